"""Mean and spread of runs."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.benchmark.spread import spread


def test_spread_is_over_seeds_of_means_over_pairs():
    found = spread([(0, 10.0), (0, 20.0), (1, 30.0), (1, 50.0)])
    assert (found.mean, found.n) == (27.5, 4)
    assert found.std == pytest.approx(np.std([15.0, 40.0], ddof=1))
    assert spread([(0, 10.0), (0, 20.0)]).std is None
