"""Softmax labels (Lee, 2013), and the last step of every rule that ends in probabilities."""

from __future__ import annotations

from numpy.typing import ArrayLike

from transpl.methods.labelling.checks import check_probabilities
from transpl.windows import PseudoLabels


def most_probable(p: ArrayLike) -> PseudoLabels:
    r"""\hat y_i = argmax_k p_ik, confidence max_k p_ik.

    p : (n, K), rows sum to 1
    """
    probabilities = check_probabilities(p)
    return PseudoLabels(probabilities.argmax(axis=1), probabilities.max(axis=1), probabilities)
