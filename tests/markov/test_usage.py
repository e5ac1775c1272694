"""How often codes occur."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.markov import codebook_usage


def test_usage_perplexity_and_dead_codes():
    usage = codebook_usage(np.array([[0, 0, 2], [2, -1, -1]]), 4)
    assert usage.counts.tolist() == [2, 0, 2, 0]
    assert usage.perplexity == pytest.approx(2.0)
    assert usage.dead == [1, 3]
    assert codebook_usage(np.arange(8), 8).perplexity == pytest.approx(8.0)
    assert codebook_usage(np.array([-1]), 2).perplexity == 0.0
