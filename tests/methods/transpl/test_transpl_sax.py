"""SAX symbols by hand, and TransPL's labels made of them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves, refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl import markov
from transpl.methods import Labelled, TargetInfo
from transpl.methods.registry import create
from transpl.methods.transpl.transpl_sax import (
    Scale,
    TransPLSAX,
    TransPLSAXSettings,
    breakpoints,
    sax,
    symbol_distances,
)
from transpl.windows import Windows, as_windows

# Table of Lin et al. 2007, to two decimals.
PRINTED = {3: [-0.43, 0.43], 4: [-0.67, 0, 0.67], 5: [-0.84, -0.25, 0.25, 0.84], 6: [-0.97, -0.43, 0, 0.43, 0.97]}


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=2, **shift)
    return Labelled(as_windows(X), y, 2)


SOURCE, TARGET = labelled(40, 0), labelled(30, 1, gain=1.5, offset=0.3)


@pytest.mark.parametrize("a", PRINTED)
def test_breakpoints_are_the_printed_ones(a):
    assert np.allclose(breakpoints(a), PRINTED[a], atol=0.006)


def test_symbols_by_hand():
    """Deviations from the mean in units of sqrt(5): -3, -1, 1, 3 / sqrt 5 = -1.34, -.45, .45, 1.34."""
    x = np.repeat([10.0, 12.0, 14.0, 16.0], 3)[None, None]
    assert sax(x, n_symbols=4, patch_length=3).tolist() == [[[0, 1, 2, 3]]]
    assert sax(x, n_symbols=3, patch_length=3).tolist() == [[[0, 0, 2, 2]]]
    assert sax(x, n_symbols=4, patch_length=6).tolist() == [[[0, 3]]]  # means -.89, .89
    assert sax(x, n_symbols=4, patch_length=5).shape == (1, 1, 2)  # the tail of two steps is dropped


def test_a_value_on_a_breakpoint_gets_the_symbol_above():
    assert sax(np.array([[[-1.0, 0.0, 1.0]]]), 2, 1).tolist() == [[[0, 1, 1]]]


def test_a_constant_channel_is_level():
    level = np.full((1, 1, 8), np.float32(0.1))
    assert sax(level, 4, 2).tolist() == [[[2, 2, 2, 2]]]


@given(st.integers(2, 10), st.integers(1, 5), st.floats(0.01, 100), st.floats(-100, 100))
def test_gain_and_offset_of_a_window_change_no_symbol(a, m, gain, offset):
    x = np.random.default_rng(a * m).normal(size=(3, 2, 20))
    codes = sax(x, a, m)
    assert codes.shape == (3, 2, 20 // m)
    assert 0 <= codes.min() <= codes.max() < a
    assert (codes == sax(gain * x + offset, a, m)).mean() > 0.99  # rounding may move a value over a breakpoint
    assert np.array_equal(sax(-x, a, m), a - 1 - codes)


def test_a_normal_value_has_every_symbol_equally_often():
    x = np.random.default_rng(0).normal(size=(1, 1, 40_000))
    shares = np.bincount(sax(x, 5, 1).ravel()) / 40_000
    assert np.allclose(shares, 0.2, atol=0.01)


def test_shorter_windows_have_the_symbols_of_cut_ones():
    x = np.random.default_rng(1).normal(size=(2, 1, 20))
    padded = x.copy()
    padded[1, :, 13:] = np.nan
    codes = sax(padded, 4, 4)
    assert codes[1].tolist() == [[*sax(x[1:, :, :13], 4, 4)[0, 0], -1, -1]]
    assert np.array_equal(codes[0], sax(x[:1], 4, 4)[0])


def test_distances_of_symbols_by_hand():
    """Medians of four symbols are the octiles -1.1503, -0.3186, 0.3186, 1.1503 of a normal distribution."""
    M = symbol_distances(4)
    assert np.allclose(M, M.T)
    assert np.allclose(np.diag(M), 0)
    assert M[0] == pytest.approx([0, 2 * 0.8317 / 2.3007, 2 * 1.4690 / 2.3007, 2], abs=1e-3)
    assert symbol_distances(2).tolist() == [[0, 2], [2, 0]]


def test_scale_of_a_domain():
    values = np.array([[[0.0, 2.0, np.nan]], [[4.0, 6.0, 8.0]]])
    mean, deviation = Scale.of(values, axis=(0, 2))
    assert mean.ravel() == pytest.approx([4])
    assert deviation.ravel() == pytest.approx([8**0.5])


def fitted(**changes: object) -> TransPLSAX:
    method = TransPLSAX(TransPLSAXSettings(**{"patch_length": 4, "n_coarse": 4, **changes}))
    method.fit_source(SOURCE)
    return method


@pytest.mark.parametrize("standardise", ["window", "domain"])
def test_probabilities_are_bayes_rule_on_the_counts(standardise):
    """All of the vote by loops, with equal channel weights and a prior."""
    method = fitted(standardise=standardise, channel_alignment=False)
    prior = np.array([0.7, 0.3])
    method.adapt(TARGET.windows, TargetInfo(prior=prior))
    codes = [
        sax(part.windows.values, 4, 4, None if standardise == "window" else Scale.of(part.windows.values, (0, 2)))
        for part in (SOURCE, TARGET)
    ]
    n, D, N = codes[1].shape
    count = np.zeros((2, D, 4, 4))
    for window, k in zip(codes[0], SOURCE.y, strict=True):
        for d in range(D):
            for t in range(N - 1):
                count[k, d, window[d, t], window[d, t + 1]] += 1
    p = count / np.maximum(count.sum(axis=3, keepdims=True), 1)
    p[p == 0] = 1e-4
    expected = np.zeros((n, 2))
    for i in range(n):
        for d in range(D):
            steps = zip(codes[1][i, d], codes[1][i, d, 1:], strict=False)
            scores = np.mean([np.log(p[:, d, now, then]) for now, then in steps], axis=0) + np.log(prior)
            expected[i] += np.exp(scores) / np.exp(scores).sum() / D
    assert np.allclose(method.predict_proba(TARGET.windows), expected)
    assert np.allclose(method.one_shot_labels(TARGET.windows, prior).probabilities, expected)


def test_a_channel_that_moved_counts_less():
    method, broken = fitted(standardise="domain", sigma=0.1), TARGET.windows.values.copy()
    broken[:, 1] = np.random.default_rng(0).normal(size=broken[:, 1].shape)
    method.adapt(Windows(broken, TARGET.windows.lengths))
    still, moved = method.channel_distances(method._target.counts)
    assert moved > 2 * still
    likely = markov.log_likelihoods(
        method._codes(Windows(broken, TARGET.windows.lengths), method._target.scale), method._learnt.counts
    )
    weights = np.exp(-((np.array([still, moved]) / 0.1) ** 2))
    expected = markov.label_probabilities(likely, weights)
    assert np.allclose(method.predict_proba(Windows(broken, TARGET.windows.lengths)), expected)


@pytest.mark.parametrize("standardise", ["window", "domain"])
def test_frequencies_are_told_apart_through_gain_and_offset(standardise):
    method = fitted(standardise=standardise)
    method.adapt(TARGET.windows)
    assert (method.predict_proba(TARGET.windows).argmax(axis=1) == TARGET.y).mean() > 0.9
    unadapted = fitted(standardise=standardise)  # the windows are themselves the target
    assert np.array_equal(method.predict_proba(TARGET.windows), unadapted.pseudo_label(TARGET.windows).probabilities)


def test_settings_of_the_data_sets_are_those_of_the_paper():
    assert create("transpl-sax", dataset="wisdm").settings.sigma == 0.1
    assert create("transpl-sax", dataset="ptb").settings.patch_length == 15


@pytest.mark.parametrize(
    ("name", "value"),
    [("patch_length", 0), ("n_coarse", 1), ("standardise", "x"), ("sigma", 0), ("epsilon", 2.0), ("smoothing", "x")],
)
def test_wrong_values_are_named(name, value):
    with refusal(name):
        TransPLSAXSettings(**{name: value})
