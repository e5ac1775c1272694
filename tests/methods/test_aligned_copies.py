"""The map that brings a target's channels to the source's, against POT and by what it must do."""

from __future__ import annotations

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transpl.methods.aligned_copies import Alignment, copies_are_likelier, names_with_copies
from transpl.methods.moments import Moments
from transpl.methods.vote import Coded
from transpl.windows import as_windows

rng = np.random.default_rng(0)
MIX = np.array([[1.0, 0.4, 0.0], [0.0, 2.0, -0.5], [0.3, 0.0, 0.7]])
SOURCE = rng.normal(size=(40, 3, 25))
TARGET = np.einsum("cd,ndt->nct", MIX, rng.normal(size=(30, 3, 25))) + np.array([[2.0], [-1.0], [0.5]])


def moments(X) -> Moments:
    return Moments.of_windows(as_windows(X))


def between(source, target) -> Alignment:
    return Alignment.between(moments(source), moments(target))


def aligned(X, alignment: Alignment):
    return alignment.copies(as_windows(X)).values


def test_map_is_that_of_pot(monkeypatch):
    monkeypatch.setattr("transpl.methods.aligned_copies.RIDGE", 0.0)
    source, target = moments(SOURCE), moments(TARGET)
    found = Alignment.between(source, target)
    unit = np.sqrt(np.diag(source.covariance))
    A, b = ot.gaussian.bures_wasserstein_mapping(
        target.mean / unit,
        source.mean / unit,
        target.covariance / np.outer(unit, unit),
        source.covariance / np.outer(unit, unit),
    )
    np.testing.assert_allclose(found.matrix, A * unit[:, None] / unit, atol=1e-6)
    np.testing.assert_allclose(found.offset, b.ravel() * unit, atol=1e-6)


def test_target_gets_the_means_and_covariances_of_the_source():
    copies = moments(aligned(TARGET, between(SOURCE, TARGET)))
    np.testing.assert_allclose(copies.mean, moments(SOURCE).mean, atol=1e-5)
    np.testing.assert_allclose(copies.covariance, moments(SOURCE).covariance, atol=5e-3)


def test_a_target_like_the_source_stays_as_it_is():
    found = between(SOURCE, SOURCE)
    np.testing.assert_allclose(found.matrix, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(found.offset, 0, atol=1e-9)


@given(st.permutations(range(3)))
def test_order_of_channels_does_not_matter(order):
    plain = aligned(TARGET, between(SOURCE, TARGET))
    there = aligned(TARGET[:, order], between(SOURCE[:, order], TARGET[:, order]))
    np.testing.assert_allclose(there, plain[:, order], atol=1e-4)
    assert plain.std() > 0.5


@given(st.tuples(*[st.sampled_from([1e-3, 1.0, 9.81, 1e4])] * 3))
def test_units_do_not_matter(units):
    scale = np.array(units)[:, None]
    plain = aligned(TARGET, between(SOURCE, TARGET))
    there = aligned(TARGET * scale, between(SOURCE * scale, TARGET * scale))
    np.testing.assert_allclose(there / scale, plain, atol=1e-3)


@given(st.tuples(*[st.sampled_from([1e-3, 0.1, 1.0, 9.81, 1e3])] * 3))
def test_units_of_the_target_alone_do_not_matter(units):
    there = TARGET * np.array(units)[:, None]
    copies = moments(aligned(there, between(SOURCE, there)))
    np.testing.assert_allclose(copies.mean, moments(SOURCE).mean, atol=1e-3)
    np.testing.assert_allclose(copies.covariance, moments(SOURCE).covariance, atol=2e-2)


@pytest.mark.parametrize("spoil", ["constant target", "constant source", "both", "sum of others", "one window"])
def test_degenerate_channels_do_no_harm(spoil):
    source, target = SOURCE.copy(), TARGET.copy()
    if spoil in ("constant target", "both"):
        target[:, 1] = 7.0
    if spoil in ("constant source", "both"):
        source[:, 1] = -3.0
    if spoil == "sum of others":  # as leads III, aVR, aVL and aVF of an ECG are
        for X in (source, target):
            X[:, 1] = X[:, 0] + X[:, 2]
    if spoil == "one window":
        target = target[:1, :, :2]
    copies = aligned(target, between(source, target))
    assert np.isfinite(copies).all()
    assert np.abs(copies).max() < 50
    if spoil != "one window":
        assert_others_are_aligned(copies, source)


def test_a_direction_that_the_target_lacks_is_not_blown_up():
    """Two channels are equal: a thousandth of a variance lets their difference grow by 1 / sqrt(0.001) or so."""
    both_alike = np.repeat(TARGET[:, :1], 2, axis=1)
    assert 15 < np.linalg.norm(between(SOURCE[:, :2], both_alike).matrix, 2) < 50


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-8, 1e-12])
@pytest.mark.parametrize("where", ["source", "target"])
def test_a_nearly_constant_channel_does_no_harm_to_others(noise, where):
    source, target = SOURCE.copy(), TARGET.copy()
    spoilt = source if where == "source" else target
    spoilt[:, 1] *= noise
    assert_others_are_aligned(aligned(target, between(source, target)), source)


def assert_others_are_aligned(copies, source) -> None:
    """Channels 0 and 2 have the spread that they have in the source."""
    np.testing.assert_allclose(copies[:, ::2].std(axis=(0, 2)), source[:, ::2].std(axis=(0, 2)), rtol=0.02)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_an_absurd_scale_of_all_channels_does_no_harm(scale):
    copies = moments(aligned(scale * TARGET, between(SOURCE, scale * TARGET)))
    np.testing.assert_allclose(copies.mean, moments(SOURCE).mean, atol=0.1)
    assert np.isfinite(copies.covariance).all()


def test_copies_end_with_their_window():
    windows = as_windows([TARGET[0], TARGET[1][:, :10]])
    found = between(SOURCE, TARGET).copies(windows)
    assert found.values.shape == (2, 3, 25)
    assert found.values.dtype == np.float32
    assert not found.values[1, :, 10:].any()
    assert found.lengths.tolist() == [25, 10]


def test_copies_have_names():
    assert names_with_copies(["x", "y"]) == ("x", "y", "x (aligned)", "y (aligned)")


def sequences(p_stay: float, n: int = 40):
    """Codes (n, 1, 30) of two, which stay or change."""
    draw = np.random.default_rng(1)
    return np.cumsum(draw.random((n, 1, 30)) > p_stay, axis=2) % 2


@pytest.mark.parametrize(("recorded", "copies", "likelier"), [(0.5, 0.9, True), (0.9, 0.5, False), (0.9, 0.9, False)])
def test_copies_vote_where_the_source_finds_them_likelier(recorded, copies, likelier):
    log_p = np.log([[[[0.9, 0.1], [0.1, 0.9]]], [[[0.8, 0.2], [0.2, 0.8]]]])  # (K, D, n_c, n_c): both classes stay
    codes = np.concatenate([sequences(recorded), sequences(copies)], axis=1)
    whole = [(slice(0, 40), Coded(codes))]
    halves = [(slice(0, 20), Coded(codes[:20])), (slice(20, 40), Coded(codes[20:]))]
    assert copies_are_likelier(whole, log_p, "transitions") is likelier
    assert copies_are_likelier(halves, log_p, "transitions") is likelier


def test_the_best_class_counts_for_a_window_over_all_its_channels():
    """By hand: l of two channels under two classes; the sums are -1 - 2 and -2 - 0.5, the best one -2.5."""
    log_p = np.zeros((2, 2, 2, 2))
    log_p[0, 0, 0, 0], log_p[0, 1, 0, 0] = -1.0, -2.0
    log_p[1, 0, 0, 0], log_p[1, 1, 0, 0] = -2.0, -0.5
    log_p[:, :, 1, 1] = -2.4 / 2  # both channels of the copies have code 1: -2.4 in either class
    codes = np.concatenate([np.zeros((1, 2, 3), np.int64), np.ones((1, 2, 3), np.int64)], axis=1)
    assert copies_are_likelier([(slice(0, 1), Coded(codes))], log_p, "transitions")
    log_p[:, :, 1, 1] = -2.6 / 2
    assert not copies_are_likelier([(slice(0, 1), Coded(codes))], log_p, "transitions")
