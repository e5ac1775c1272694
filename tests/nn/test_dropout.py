"""The byte dropout is dropout: rate, scale, independence, gradient."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from transpl.nn.dropout import Dropout, RandomBytes, random_bytes, without_dropped, zero_dropped_


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


BLOCK = 8192 * 8  # bytes that the generators give in one step


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 16, 64, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK])
def test_masks_are_independent_within_a_step_of_the_generators_and_between_steps(lag):
    torch.manual_seed(0)
    dropped = 77 / 256 - (~RandomBytes().keep((64 * BLOCK,), 77)).astype(np.float64)
    correlation = (dropped[:-lag] * dropped[lag:]).mean() / np.square(dropped).mean()
    assert abs(correlation) < 4.5 / np.sqrt(len(dropped) - lag)


@pytest.mark.parametrize("threshold", [1, 77, 128, 255])
def test_every_threshold_keeps_its_share(threshold):
    torch.manual_seed(0)
    kept = RandomBytes().keep((1 << 20,), threshold).mean()
    p = threshold / 256
    assert abs(kept - (1 - p)) < 5 * np.sqrt(p * (1 - p) / (1 << 20))


def test_the_number_kept_in_a_row_has_the_variance_of_independent_draws():
    torch.manual_seed(0)
    kept = RandomBytes().keep((20_000, 256), 77).sum(axis=1)
    assert kept.var() == pytest.approx(256 * (77 / 256) * (179 / 256), rel=0.05)


def test_columns_over_layers_and_steps_are_dropped_equally_often():
    torch.manual_seed(0)
    shares = np.mean([RandomBytes().keep((64, 256), 77).mean(axis=0) for _ in range(200)], axis=0)
    assert np.abs(shares - 179 / 256).max() < 5 * np.sqrt(0.21 / (64 * 200))


def test_all_256_byte_values_of_another_device_are_equally_likely():
    torch.manual_seed(1)
    counts = torch.bincount(random_bytes(1 << 20, torch.device("cpu")).long(), minlength=256).numpy()
    assert chisquare(counts).pvalue > 1e-4


def test_masking_in_place_and_in_new_memory():
    x, keep = torch.tensor([1.0, -2.0, 3.0]), np.array([True, False, True])
    assert without_dropped(x, keep).tolist() == [1.0, 0.0, 3.0]
    assert x.tolist() == [1.0, -2.0, 3.0]
    assert without_dropped(x, None) is x
    assert zero_dropped_(x, None) is x
    assert zero_dropped_(x, keep) is x
    assert x.tolist() == [1.0, 0.0, 3.0]


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
