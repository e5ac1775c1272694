"""Entropy of predictions, and information maximisation (SHOT, Liang et al. 2020)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

SHOT_EPSILON = 1e-5


def mean_entropy(logits: Tensor) -> Tensor:
    r"""(1/n) \sum_i H(p_i), H(p) = -\sum_k p_k log p_k, p = softmax(logits).

    logits (n, K) -> (); without rows 0. Through log_softmax: exact and finite for logits of any size.
    """
    log_p = F.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p).sum() / max(1, len(logits))


def information_maximisation(logits: Tensor, epsilon: float = SHOT_EPSILON) -> Tensor:
    r"""(1/n) \sum_i H(p_i) - H(\bar p), \bar p = (1/n) \sum_i p_i: certain about each row, diverse over all.

    logits (n, K) -> (); negative, down to about -ln K.

    The logs are of p + epsilon, as the authors have it. That shifts H by up to K epsilon, so the ideal values -ln K
    (balanced and certain), 0 (uniform) and 0 (collapsed to a class) are met to about 1e-4, not exactly.
    """
    p = F.softmax(logits, dim=-1)
    return mean_entropy_of(p, epsilon) - diversity(p, epsilon)


def mean_entropy_of(p: Tensor, epsilon: float = SHOT_EPSILON) -> Tensor:
    r"""(1/n) \sum_i H(p_i), H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), without rows 0."""
    return _entropies(p, epsilon).sum() / max(1, len(p))


def diversity(p: Tensor, epsilon: float = SHOT_EPSILON) -> Tensor:
    r"""H(\bar p), \bar p = (1/n) \sum_i p_i, H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), without rows 0."""
    return _entropies(p.sum(dim=0) / max(1, len(p)), epsilon)


def _entropies(p: Tensor, epsilon: float) -> Tensor:
    """(..., K) -> (...)."""
    return -(p * (p + epsilon).log()).sum(dim=-1)
