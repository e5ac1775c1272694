"""The byte dropout is dropout: rate, scale, independence, gradient."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from transpl.network.dropout import Dropout, random_bytes


@pytest.fixture
def dropped():
    torch.manual_seed(0)
    return Dropout(0.3)(torch.ones(1_000_003))


def test_rate_is_p_to_the_nearest_1_256(dropped):
    p = 77 / 256
    rate = float((dropped == 0).double().mean())
    assert abs(rate - p) < 5 * np.sqrt(p * (1 - p) / len(dropped))


def test_kept_elements_are_scaled_so_that_the_mean_stays(dropped):
    assert dropped.unique().tolist() == [0.0, pytest.approx(256 / 179)]
    assert float(dropped.double().mean()) == pytest.approx(1.0, abs=0.005)


def test_neighbours_are_dropped_independently(dropped):
    zero = (dropped == 0).double() - 77 / 256
    for lag in (1, 2, 7, 8, 64):
        correlation = float((zero[:-lag] * zero[lag:]).mean() / zero.square().mean())
        assert abs(correlation) < 5 / np.sqrt(len(zero))


def test_all_256_byte_values_are_equally_likely():
    torch.manual_seed(1)
    counts = torch.bincount(random_bytes(1 << 20, torch.device("cpu")).long(), minlength=256).numpy()
    assert chisquare(counts).pvalue > 1e-4


def test_gradient_passes_where_elements_were_kept_and_only_there():
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_nothing_is_dropped_in_eval_mode_or_with_p_zero():
    x = torch.randn(10)
    assert Dropout(0.3).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_two_calls_draw_different_masks_and_one_seed_draws_the_same():
    layer, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    assert not torch.equal(first, second)
