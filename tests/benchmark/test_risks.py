import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refusal
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from transpl.benchmark.selection import density_ratio, dev, iwcv, source_risk

MODEST = settings(deadline=None, max_examples=40)
WEIGHTS = arrays(np.float64, st.integers(1, 9), elements=st.floats(0.01, 100))


def test_dev_by_hand():
    assert dev([0.5, 1, 3], [1, 0, 2]) == pytest.approx(0.952381, abs=1e-6)


@given(WEIGHTS, st.floats(-5, 5))
@MODEST
def test_dev_of_a_constant_loss_is_that_loss_unless_the_weights_say_nothing(w, c):
    spread = np.ptp(w) / w.max()
    assume(spread == 0 or spread > 1e-6)
    losses = np.full(len(w), c)
    expected = c if spread > 0 else c * w[0]
    assert dev(w, losses) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("w", [0.1, 1.0, 3.0])
def test_dev_without_variance_is_iwcv(w):
    losses = [1.0, 0.0, 2.0]
    assert dev([w] * 3, losses) == iwcv([w] * 3, losses) == pytest.approx(w)
    assert dev([w], [2.0]) == pytest.approx(2 * w)
    assert dev([w, np.nextafter(w, 9), w], losses) == pytest.approx(w)


@given(st.integers(0, 10**6))
@MODEST
def test_dev_by_its_formula(seed):
    rng = np.random.default_rng(seed)
    w, loss = rng.gamma(2, 0.5, 12), rng.gamma(1, 1, 12)
    eta = -((w * loss - (w * loss).mean()) * (w - w.mean())).sum() / ((w - w.mean()) ** 2).sum()
    assert dev(w, loss) == pytest.approx((w * loss).mean() + eta * w.mean() - eta)
    order = rng.permutation(12)
    assert dev(w[order], loss[order]) == pytest.approx(dev(w, loss))


def test_source_risk_and_iwcv_are_means():
    assert source_risk([1.0, 2.0, 6.0]) == 3
    assert iwcv([0.5, 1, 3], [1, 0, 2]) == pytest.approx(6.5 / 3)
    assert iwcv(np.ones(3), [1.0, 2.0, 6.0]) == 3


def clouds(seed, n_s=300, n_t=150, d=4, shift=1.0):
    rng = np.random.default_rng(seed)
    z_t = rng.normal(size=(n_t, d))
    z_t[:, 0] += shift
    return rng.normal(size=(n_s, d)), z_t, rng.normal(size=(200, d))


def test_density_ratio_follows_the_true_one():
    """Two Gaussians one apart along the first axis: log w = z_0 - 1/2."""
    z_s, z_t, z = clouds(0)
    w = density_ratio(z_s, z_t, z, seed=0)
    assert w.shape == (200,)
    assert np.corrcoef(np.log(w), z[:, 0] - 0.5)[0, 1] > 0.8
    assert 0.7 < w.mean() < 1.4


def test_density_ratio_of_one_domain_is_about_one_whatever_the_sizes():
    z_s, z_t, z = clouds(1, n_s=400, n_t=100, shift=0)
    w = density_ratio(z_s, z_t, z, seed=0)
    assert 0.6 < np.median(w) < 1.5


def test_density_ratio_is_a_function_of_its_seed_and_leaves_global_randomness_alone():
    data = clouds(2, n_s=60, n_t=60)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = density_ratio(*data, seed=3)
    assert np.array_equal(first, density_ratio(*data, seed=3))
    assert not np.array_equal(first, density_ratio(*data, seed=4))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_density_ratio_does_not_depend_on_the_units_of_features():
    data = clouds(5)
    scale, offset = np.array([1e3, 1.0, 1e-3, 1.0]), np.array([500.0, 0.0, -3.0, 0.0])
    other_units = (z * scale + offset for z in data)
    np.testing.assert_allclose(density_ratio(*other_units, seed=0), density_ratio(*data, seed=0), rtol=1e-3)


def test_density_ratio_is_by_the_learning_rate_that_tells_held_out_rows_apart_best(monkeypatch):
    """The one in the middle learns something, the others say one half whatever they see."""

    def fit(z, y, learning_rate, seed):
        def predict_proba(z):
            p = expit(5 * z[:, 0]) if learning_rate == 0.05 else np.full(len(z), 0.5)
            return np.stack([1 - p, p], axis=1)

        return SimpleNamespace(predict_proba=predict_proba)

    monkeypatch.setattr("transpl.benchmark.selection._fit", fit)
    like_source, like_target = density_ratio(np.zeros((20, 1)), np.ones((20, 1)), [[0.0], [1.0]], seed=0)
    assert like_source < 0.1
    assert like_target > 10


def test_domains_far_apart_still_give_finite_weights():
    z_s, z_t, z = clouds(3, shift=1e4)
    w = density_ratio(z_s, z_t, np.concatenate([z, z_t]), seed=0)
    assert np.isfinite(w).all()
    assert (w > 0).all()
    assert math.isfinite(dev(w, np.ones(len(w))))


def test_few_rows_one_feature_and_a_constant_feature_are_fine():
    w = density_ratio([[0.0], [0.1]], [[1.0], [1.1]], [[0.5]], seed=0)
    assert w.shape == (1,)
    assert np.isfinite(w).all()
    z_s, z_t, z = (np.pad(part, ((0, 0), (0, 1)), constant_values=7) for part in clouds(4, n_s=20, n_t=20))
    assert np.isfinite(density_ratio(z_s, z_t, z, seed=0)).all()


def test_bad_input_is_named():
    with refusal("losses", "expected 2, one per weight, got 3"):
        dev([1, 2], [1, 2, 3])
    with refusal("losses", r"got \(0,\)"):
        source_risk([])
    with refusal("weights", r"got \(1, 2\)"):
        iwcv([[1, 2]], [1, 2])
    with refusal("z_target_train", r"\(rows, 2\), 2 or more rows, got \(3, 1\)"):
        density_ratio(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)), seed=0)
    with refusal("z_source_train", "2 or more rows"):
        density_ratio(np.zeros((1, 2)), np.zeros((3, 2)), np.zeros((3, 2)), seed=0)
    with refusal("z_validation", "NaN or infinity"):
        density_ratio(np.eye(3), np.eye(3), np.full((1, 3), np.nan), seed=0)
