"""What the views show, and what they hide: gains, offsets, and the level and size of a single window."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.council import views
from transpl.council.views import VIEWS, RowScaler, SignalScaler, channel_moments
from transpl.windows import Windows, as_windows

MODEST = settings(max_examples=25)
SOURCE, _ = make_waves(20, 0, gain=3.0, offset=1.0)
TARGET, _ = make_waves(16, 1)


def seen(view: str, X: object, by: object = None) -> np.ndarray:
    """Windows through the lens that they themselves, or others, make."""
    return SignalScaler.fit(view, as_windows(X if by is None else by)).transform(as_windows(X)).values


def ragged(X: np.ndarray) -> list[np.ndarray]:
    return [window[:, : 32 - 5 * (i % 3)] for i, window in enumerate(X)]


# by hand


@pytest.mark.parametrize("view", ["recorded", "standardised"])
def test_channels_are_standardised_over_all_time_steps_of_all_windows(view):
    X = np.array([[[1.0, 3.0], [10.0, 10.0]], [[5.0, 7.0], [30.0, 30.0]]])
    expected = (X - np.array([4.0, 20.0])[:, None]) / np.array([5**0.5, 10.0])[:, None]
    assert np.allclose(seen(view, X), expected)


def test_the_shape_of_every_window_alone():
    X = np.array([[[1.0, 3.0]], [[5.0, 15.0]]])
    usual = np.array([1, 3, 5, 15]).std()
    own = np.array([1.0, 5.0])[:, None, None] + views._STILL * usual
    assert np.allclose(seen("shape", X), (X - X.mean(axis=2, keepdims=True)) / own)


def test_a_lens_of_the_source_shows_others_as_the_source_sees_them():
    expected = (TARGET - SOURCE.mean(axis=(0, 2))[:, None]) / SOURCE.std(axis=(0, 2))[:, None]
    assert np.allclose(seen("recorded", TARGET, by=SOURCE), expected, atol=1e-5)


def test_columns_by_hand():
    rows = np.array([[0.0, 1.0], [4.0, 1.0]])
    columns = RowScaler.fit(rows)
    assert columns.transform(rows).tolist() == [[-1, 0], [1, 0]]
    far = columns.transform(np.array([[1e9, 2.0], [-1e9, 1.0]]))
    assert far[:, 0].tolist() == [views._MAX_DEVIATION, -views._MAX_DEVIATION]
    assert far.dtype == np.float32


# what is hidden


@MODEST
@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_gain_and_offset_of_a_domain_are_gone_where_it_is_standardised(gain, offset):
    X = gain * TARGET.astype(np.float64) + offset
    rounding = 1e-5 * (1 + abs(offset) / gain)
    assert np.allclose(seen("standardised", X), seen("standardised", TARGET), atol=rounding)
    assert np.allclose(seen("shape", X), seen("shape", TARGET), atol=10 * rounding)


def test_gains_that_round_nothing_are_undone_to_the_bit():
    assert np.array_equal(seen("standardised", 8 * TARGET), seen("standardised", TARGET))


@MODEST
@given(st.lists(st.tuples(st.floats(0.3, 3), st.floats(-5, 5)), min_size=16, max_size=16))
def test_gain_and_offset_of_every_window_are_nearly_gone_from_its_shape(changes):
    gain, offset = (np.array(numbers)[:, None, None] for numbers in zip(*changes, strict=True))
    by = as_windows(TARGET)
    lens = SignalScaler.fit("shape", by)
    before, after = lens.transform(by).values, lens.transform(as_windows(gain * TARGET + offset)).values
    assert np.allclose(after, before, atol=0.15)


def test_the_recorded_view_hides_nothing():
    once, twice = seen("recorded", TARGET, by=SOURCE), seen("recorded", 2 * TARGET, by=SOURCE)
    assert twice.std() > 1.9 * once.std()


# odd windows


@pytest.mark.parametrize("view", VIEWS)
def test_windows_of_unequal_length_are_seen_as_if_alone(view):
    windows = as_windows(ragged(TARGET))
    lens = SignalScaler.fit(view, windows)
    together = lens.transform(windows)
    assert np.array_equal(together.lengths, windows.lengths)
    assert together.values.dtype == np.float32
    for i in range(4):
        alone = lens.transform(as_windows([ragged(TARGET)[i]])).values[0]
        n = windows.lengths[i]
        assert np.allclose(together.values[i, :, :n], alone, atol=1e-5)
        assert (together.values[i, :, n:] == 0).all()


@pytest.mark.parametrize("view", VIEWS)
def test_a_constant_channel_shows_nothing(view):
    X = TARGET.copy()
    X[:, 1] = 123.4
    shown = seen(view, X)
    assert np.isfinite(shown).all()
    assert np.allclose(shown[:, 1], 0, atol=1e-4)
    assert np.allclose(shown[:, 0], seen(view, TARGET)[:, 0])


def test_a_channel_that_is_still_in_one_window_is_not_blown_up():
    X = TARGET.copy()
    X[3, 0] = 1e-4 * np.sin(np.arange(32))
    assert np.abs(seen("shape", X)[3, 0]).max() < 0.1


@pytest.mark.parametrize("view", VIEWS)
def test_the_callers_windows_stay_as_they_are(view):
    X = TARGET.copy()
    windows = Windows(X, np.full(len(X), 32))
    SignalScaler.fit(view, windows).transform(windows)
    assert np.array_equal(X, TARGET)


def test_constant_columns_are_0():
    assert (RowScaler.fit(np.full((4, 2), 0.1)).transform(np.full((3, 2), 0.1)) == 0).all()


def test_an_unknown_view_is_refused():
    with refusal("views", "sideways"):
        SignalScaler.fit("sideways", as_windows(TARGET))


# moments


@pytest.mark.parametrize("offset", [0.0, -1e4, 1e6])
@pytest.mark.parametrize("at_once", [1, 7, 1024])
def test_moments_against_numpy(offset, at_once, monkeypatch):
    monkeypatch.setattr(views, "_AT_ONCE", at_once)
    X = (TARGET + offset).astype(np.float32)
    mean, deviation = channel_moments(as_windows(X))
    exact = X.astype(np.float64)
    assert np.allclose(mean, exact.mean(axis=(0, 2)), rtol=1e-12)
    assert np.allclose(deviation, exact.std(axis=(0, 2)), rtol=1e-9)


def test_moments_of_windows_of_unequal_length(monkeypatch):
    monkeypatch.setattr(views, "_AT_ONCE", 5)
    mean, deviation = channel_moments(as_windows(ragged(TARGET)))
    steps = np.concatenate(ragged(TARGET), axis=1).astype(np.float64)
    assert np.allclose(mean, steps.mean(axis=1))
    assert np.allclose(deviation, steps.std(axis=1))


def test_moments_of_a_memory_map_are_taken_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "_AT_ONCE", 6)
    np.save(tmp_path / "X.npy", TARGET.astype(np.float64))
    mapped = as_windows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    most = []
    in_memory = Windows.in_memory
    monkeypatch.setattr(Windows, "in_memory", lambda self: most.append(len(self)) or in_memory(self))
    moments = channel_moments(mapped)
    assert max(most) == 6
    assert np.allclose(moments, channel_moments(as_windows(TARGET)))
