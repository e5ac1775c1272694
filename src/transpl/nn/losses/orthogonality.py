"""Two heads that look at different features (asymmetric tri-training, Saito et al. 2017)."""

from __future__ import annotations

from torch import Tensor

from transpl.nn.losses.checks import same_width


def overlap(W1: Tensor, W2: Tensor) -> Tensor:
    r"""\sum_ij |W_1 W_2^T|_ij: how much the units of two layers on the same features respond alike.

    W1 (units, features), W2 (units', features), torch's layout (the paper's |W_1^T W_2| has columns for units) -> ()
    """
    same_width("W1", W1, "W2", W2)
    return (W1 @ W2.T).abs().sum()
