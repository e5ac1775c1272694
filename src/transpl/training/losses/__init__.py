"""Losses of domain adaptation as pure functions of tensors, one idea per file."""

from transpl.training.losses.coral import coral
from transpl.training.losses.mmd import mmd

__all__ = [
    "coral",
    "mmd",
]
