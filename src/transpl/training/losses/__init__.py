"""Losses of domain adaptation as pure functions of tensors, one idea per file."""

from transpl.training.losses.coral import coral
from transpl.training.losses.entropy import diversity, mean_entropy, mean_entropy_of
from transpl.training.losses.mmd import mmd
from transpl.training.losses.orthogonality import overlap
from transpl.training.losses.proportions import proportion_divergence
from transpl.training.losses.reversal import reversal_strength, reverse_gradient
from transpl.training.losses.sinkhorn import sinkhorn, transport_plan
from transpl.training.losses.sparsemax import sparsemax

__all__ = [
    "coral",
    "diversity",
    "mean_entropy",
    "mean_entropy_of",
    "mmd",
    "overlap",
    "proportion_divergence",
    "reversal_strength",
    "reverse_gradient",
    "sinkhorn",
    "sparsemax",
    "transport_plan",
]
