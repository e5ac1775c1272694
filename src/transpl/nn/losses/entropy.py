"""Entropy of predictions: of each, and of their mean (information maximisation, SHOT, Liang et al. 2020)."""

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


def mean_entropy_of(p: Tensor) -> Tensor:
    r"""(1/n) \sum_i H(p_i), H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), without rows 0.

    Epsilon is the authors'; it shifts H by up to K epsilon.
    """
    return _entropies(p).sum() / max(1, len(p))


def diversity(p: Tensor) -> Tensor:
    r"""H(\bar p), \bar p = (1/n) \sum_i p_i, H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), without rows 0."""
    return _entropies(p.sum(dim=0) / max(1, len(p)))


def _entropies(p: Tensor) -> Tensor:
    """(..., K) -> (...)."""
    return -(p * (p + SHOT_EPSILON).log()).sum(dim=-1)
