"""Losses of domain adaptation as pure functions of tensors, one idea per file."""

from transpl.nn.losses.coral import coral
from transpl.nn.losses.entropy import diversity, mean_entropy, mean_entropy_of
from transpl.nn.losses.mmd import mmd
from transpl.nn.losses.orthogonality import overlap
from transpl.nn.losses.proportions import proportion_divergence
from transpl.nn.losses.reversal import reversal_strength, reverse_gradient
from transpl.nn.losses.sinkhorn import sinkhorn, transport_plan
from transpl.nn.losses.sparsemax import sparsemax

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
