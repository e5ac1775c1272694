"""The array contract and the cutting of recordings."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transpl._utils.errors import InputError
from transpl.windows import (
    UNKNOWN,
    Labelled,
    PseudoLabels,
    TargetInfo,
    Windows,
    as_windows,
    cut,
    evenly_spaced,
    label_breaks,
    overlap,
    override_labels,
    time_breaks,
)

NAN, INF = float("nan"), float("inf")


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


# as_windows: the three forms


def test_an_array_of_windows_is_taken_as_it_is():
    windows = as_windows(ramp(2, 3, 4))
    assert windows.values.dtype == np.float32
    np.testing.assert_array_equal(windows.values, ramp(2, 3, 4))
    np.testing.assert_array_equal(windows.lengths, [4, 4])
    assert (len(windows), windows.n_channels, windows.ragged) == (2, 3, False)


def test_a_table_is_taken_as_windows_of_one_channel():
    windows = as_windows(ramp(5, 4))
    assert windows.values.shape == (5, 1, 4)
    np.testing.assert_array_equal(windows.values[:, 0], ramp(5, 4))


def test_nested_lists_are_taken_as_an_array():
    windows = as_windows([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    np.testing.assert_array_equal(windows.values, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


def test_a_list_of_rows_is_taken_as_windows_of_one_channel():
    assert as_windows([[1.0, 2.0, 3.0]]).values.shape == (1, 1, 3)


@pytest.mark.parametrize("container", [list, tuple])
def test_windows_of_unequal_length_are_padded_with_zeros_and_their_lengths_kept(container):
    windows = as_windows(container([ramp(2, 3) + 1, ramp(2, 1) + 10, ramp(2, 2) + 20]))
    np.testing.assert_array_equal(windows.lengths, [3, 1, 2])
    np.testing.assert_array_equal(
        windows.values,
        [[[1, 2, 3], [4, 5, 6]], [[10, 0, 0], [11, 0, 0]], [[20, 21, 0], [22, 23, 0]]],
    )
    assert windows.values.dtype == np.float32
    assert windows.lengths.dtype == np.int64
    assert windows.ragged


def test_a_list_of_equally_long_windows_is_not_ragged():
    windows = as_windows([ramp(2, 3), ramp(2, 3)])
    assert not windows.ragged
    np.testing.assert_array_equal(windows.lengths, [3, 3])


def test_checked_windows_pass_through_unchanged():
    windows = as_windows(ramp(2, 3, 4))
    assert as_windows(windows, n_channels=3, min_length=4) is windows


def test_checked_windows_are_still_checked_for_channels_and_length():
    windows = as_windows(ramp(2, 3, 4))
    with refusal("X", "2 channel"):
        as_windows(windows, n_channels=2)
    with refusal("X", "at least 5"):
        as_windows(windows, min_length=5)


def test_rows_of_windows_can_be_chosen_with_their_lengths():
    windows = as_windows([ramp(1, 3), ramp(1, 1), ramp(1, 2)])
    chosen = windows[[2, 0]]
    np.testing.assert_array_equal(chosen.lengths, [2, 3])
    np.testing.assert_array_equal(chosen.values, windows.values[[2, 0]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "bool", "object", ">f8"])
def test_any_real_type_of_number_becomes_float32(dtype):
    windows = as_windows(np.ones((2, 1, 3)).astype(dtype))
    assert windows.values.dtype == np.dtype("float32")
    np.testing.assert_array_equal(windows.values, np.ones((2, 1, 3)))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_callers_array_is_neither_changed_nor_shared(shape, dtype):
    X = ramp(*shape).astype(dtype)
    windows = as_windows(X)
    windows.values[:] = -1
    np.testing.assert_array_equal(X, ramp(*shape))


def test_the_callers_list_is_neither_changed_nor_shared():
    X = [np.ones((1, 3), np.float32), np.ones((1, 2), np.float32)]
    as_windows(X).values[:] = -1
    assert len(X) == 2
    assert all((window == 1).all() for window in X)


def test_a_read_only_array_is_accepted():
    X = ramp(2, 3, 4)
    X.flags.writeable = False
    assert len(as_windows(X)) == 2


# as_windows: memory maps


@pytest.fixture
def mapped(tmp_path):
    """Write an array to a file and map it."""

    def save_and_map(values, mode="r"):
        np.save(tmp_path / "X.npy", values)
        return np.load(tmp_path / "X.npy", mmap_mode=mode)

    return save_and_map


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16", "bool", ">f8"])
@pytest.mark.parametrize("shape", [(5, 3, 4), (5, 4)])
def test_a_memory_map_is_not_copied_and_becomes_float32_where_it_is_used(mapped, dtype, shape):
    X = mapped((ramp(*shape) % 2).astype(dtype))
    windows = as_windows(X)
    assert np.shares_memory(windows.values, X)
    assert np.shares_memory(windows[1:4].values, X)
    for part in (windows.in_memory(), windows[1:4].in_memory(), windows[[3, 1]], windows[np.arange(5) > 2]):
        assert type(part.values) is np.ndarray
        assert part.values.dtype == np.dtype("float32")
        assert part.values.flags.writeable
        assert part.values.flags.c_contiguous
        assert not np.shares_memory(part.values, X)
    np.testing.assert_array_equal(windows.in_memory().values, as_windows(np.array(X)).values)
    np.testing.assert_array_equal(windows[[3, 1]].values, as_windows(np.array(X)[[3, 1]]).values)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_map_is_never_written_to(mapped, mode):
    X = mapped(ramp(2, 3, 4).astype(np.float32), mode)
    as_windows(X).in_memory().values[:] = -1
    np.testing.assert_array_equal(X, ramp(2, 3, 4))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (NAN, "2 NaN value"),
        (-INF, r"2 infinite value\(s\)"),
        (1e300, r"2 infinite value\(s\)"),
        (-1e16, "moderate size"),
    ],
)
@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_a_memory_map_is_checked_piece_by_piece_with_the_same_complaints(mapped, monkeypatch, value, message, at_once):
    monkeypatch.setattr("transpl.windows._CHECKED_AT_ONCE", at_once)
    X = ramp(6, 3, 4)
    X[0, 0, 0] = X[5, 2, 3] = value
    complaints = set()
    for form in (X, mapped(X), mapped(X)[::-1], mapped(np.asfortranarray(X))):
        with refusal("X", message) as caught:
            as_windows(form)
        complaints.add(str(caught.value))
    assert len(complaints) == 1


@pytest.mark.parametrize("X", [np.ones((2, 3, 4), complex), np.full((2, 3, 4), "a")], ids=["complex", "text"])
def test_a_memory_map_that_holds_no_real_numbers_is_refused(mapped, X):
    with refusal("X", "numbers|Complex"):
        as_windows(mapped(X))


def test_windows_come_in_chunks_with_their_rows():
    windows = as_windows(ramp(5, 1, 2))
    chunks = list(windows.chunks(2))
    assert [rows for rows, _ in chunks] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    for rows, part in chunks:
        np.testing.assert_array_equal(part.values, windows.values[rows])


def test_windows_in_memory_are_not_copied_again():
    windows = as_windows(ramp(2, 3, 4))
    assert windows.in_memory().values is windows.values


# as_windows: refusals


@pytest.mark.parametrize("X", [1.0, ramp(4), ramp(1, 2, 3, 4), []])
def test_any_other_number_of_axes_is_refused(X):
    with refusal("X", "shape"):
        as_windows(X)


@pytest.mark.parametrize("shape", [(0, 3, 4), (0, 4)])
def test_no_window_at_all_is_refused(shape):
    with refusal("X", "0 sample"):
        as_windows(np.empty(shape))


@pytest.mark.parametrize("shape", [(2, 0, 4), (2, 3, 0), (2, 0)])
def test_windows_without_channel_or_time_are_refused(shape):
    with refusal("X", "minimum of 1 is required"):
        as_windows(np.empty(shape))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_listed_windows_without_channel_or_time_are_refused(shape):
    with refusal("X"):
        as_windows([np.empty(shape), np.empty(shape)])


def test_checked_windows_of_which_no_row_is_left_are_refused():
    with refusal("X"):
        as_windows(as_windows(ramp(2, 3, 4))[[]])


@pytest.mark.parametrize("X", [ramp(2, 3, 4), ramp(2, 4), [ramp(3, 4), ramp(3, 2)]], ids=["3-D", "2-D", "list"])
def test_missing_values_are_refused_with_their_number_and_a_way_out(X):
    if isinstance(X, list):
        X[1][0, :2] = NAN
    else:
        X[-1, ..., :2] = NAN
    missing = sum(int(np.isnan(part).sum()) for part in X)
    with pytest.raises(InputError, match=rf"\AX.*{missing} NaN value.*transpl\.windows\.cut.*\Z"):
        as_windows(X)


def test_a_missing_value_in_a_list_is_traced_to_its_window():
    with refusal("X[1]", "1 NaN"):
        as_windows([[[1.0, 2.0]], [[NAN]]])


def test_none_counts_as_missing():
    with refusal("X", "1 NaN"):
        as_windows([[1.0, None]])


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
@pytest.mark.parametrize("of", [np.asarray, np.ma.asarray, list, pd.DataFrame])
def test_times_are_no_numbers(dtype, of):
    with refusal("X", "numbers, got times"):
        as_windows(of(np.zeros((2, 8), dtype)))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bool", "object"])
def test_masked_values_count_as_missing_whatever_their_type(dtype):
    X = np.ma.array((ramp(2, 1, 4) % 2).astype(dtype), mask=False)
    np.testing.assert_array_equal(as_windows(X).values, ramp(2, 1, 4) % 2)
    X[1, 0, 2] = np.ma.masked
    with refusal("X", r"1 NaN value\(s\)"):
        as_windows(X)
    with refusal("X[1]", r"1 NaN value\(s\)"):
        as_windows([X[0], X[1]])


@pytest.mark.parametrize("value", [INF, -INF, 1e39, -1e300])
def test_values_that_are_infinite_in_float32_are_refused(value):
    with refusal("X", r"1 infinite value\(s\)"):
        as_windows([[1.0, value]])


@pytest.mark.filterwarnings("error")
def test_values_too_large_for_float32_raise_no_warning_besides_the_complaint():
    with refusal("X", "float32"):
        as_windows(np.array([[1e300, 1.0]]))


def test_whole_numbers_too_large_for_any_float_are_refused():
    with refusal("X"):
        as_windows([[10**400, 1]])


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_data_is_refused(form):
    with refusal("X", "sparse .*toarray"):
        as_windows(form(np.eye(3)))


def test_sparse_data_in_a_list_is_traced_to_its_window():
    with refusal("X[1]", "sparse"):
        as_windows([np.eye(3), scipy.sparse.csr_matrix(np.eye(3))])


def test_complex_numbers_are_refused():
    with refusal("X", "Complex data not supported"):
        as_windows(np.ones((2, 1, 3), complex))


@pytest.mark.parametrize("X", [[["a", "b"]], np.array([["1", "two\nlines"]]), np.array([[b"\xff"]])])
def test_text_is_refused(X):
    with refusal("X", "expected numbers", error=ValueError):
        as_windows(X)


@pytest.mark.parametrize("thing", [{}, object(), 1j])
def test_objects_that_are_no_numbers_are_refused(thing):
    with refusal("X", "expected numbers", error=(TypeError, ValueError)):
        as_windows(np.array([[1.0, thing]], dtype=object))


def test_rows_of_unequal_length_are_refused():
    with refusal("X", "unequal"):
        as_windows([[1.0, 2.0], [3.0]])


def test_a_window_whose_channels_have_unequal_length_is_refused():
    with pytest.raises(InputError, match=r"\AX(\[0\])?: .*\Z"):
        as_windows([[[1, 2], [3]], [[1, 2], [3, 4]]])


@pytest.mark.parametrize("odd", [ramp(3, 4), ramp(4), ramp(2, 2, 2)], ids=["channels", "1-D", "3-D"])
def test_listed_windows_must_have_the_same_channels(odd):
    with refusal("X", "same channels"):
        as_windows([ramp(2, 4), odd])


@pytest.mark.parametrize("X", [ramp(2, 3, 4), [ramp(3, 4), ramp(3, 2)]], ids=["array", "list"])
def test_other_channels_than_demanded_are_refused(X):
    with refusal("X", r"2 channel\(s\).*got 3\."):
        as_windows(X, n_channels=2)


def test_the_channels_demanded_are_accepted():
    assert as_windows(ramp(2, 3, 4), n_channels=3).n_channels == 3


@pytest.mark.parametrize("X", [ramp(2, 3, 4), [ramp(3, 9), ramp(3, 4)]], ids=["array", "list"])
def test_windows_that_are_too_short_are_refused(X):
    with refusal("X", "at least 5 time steps.*got a window of 4"):
        as_windows(X, min_length=5)


def test_windows_of_just_the_smallest_length_are_accepted():
    assert len(as_windows([ramp(3, 9), ramp(3, 4)], min_length=4)) == 2


def test_complaints_use_the_callers_name_for_the_argument():
    with refusal("X_target"):
        as_windows(ramp(4), name="X_target")


def test_windows_cannot_be_reassigned():
    with pytest.raises(AttributeError):
        as_windows(ramp(1, 1, 2)).values = ramp(1, 1, 2)


# cut


def test_windows_are_cut_every_step_and_the_rest_is_dropped():
    # 7 samples, length 3, step 2: starts 0, 2, 4; a start at 6 would need samples 6..8.
    windows, starts = cut([[0, 1, 2, 3, 4, 5, 6], [10, 11, 12, 13, 14, 15, 16]], 3, 2)
    np.testing.assert_array_equal(starts, [0, 2, 4])
    np.testing.assert_array_equal(
        windows, [[[0, 1, 2], [10, 11, 12]], [[2, 3, 4], [12, 13, 14]], [[4, 5, 6], [14, 15, 16]]]
    )
    assert (windows.dtype, starts.dtype) == (np.float32, np.int64)
    assert windows.flags.c_contiguous


def test_a_step_longer_than_the_window_skips_samples():
    np.testing.assert_array_equal(cut(ramp(1, 10), 2, 4).starts, [0, 4, 8])


def test_windows_are_cut_on_both_sides_of_a_gap():
    # Sample 3 is missing in channel 1 only: runs 0..2 and 4..8, each cut from its own start.
    recording = ramp(2, 9)
    recording[1, 3] = NAN
    np.testing.assert_array_equal(cut(recording, 2, 2).starts, [0, 4, 6])


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_a_masked_sample_is_a_gap(dtype):
    recording = np.ma.array((ramp(2, 9) % 2).astype(dtype))
    recording[1, 3] = np.ma.masked
    np.testing.assert_array_equal(cut(recording, 2, 2).starts, [0, 4, 6])


def test_no_window_spans_a_break():
    # Samples 3 and 4 each begin a run: 0..2, 3..3, 4..8.
    breaks = np.zeros(9, bool)
    breaks[[3, 4]] = True
    np.testing.assert_array_equal(cut(ramp(1, 9), 2, 2, breaks=breaks).starts, [0, 4, 6])


def test_a_break_at_the_first_sample_changes_nothing():
    breaks = [True] + [False] * 8
    np.testing.assert_array_equal(cut(ramp(1, 9), 3, 3, breaks=breaks).starts, [0, 3, 6])


@pytest.mark.parametrize(("recording", "length"), [(ramp(2, 4), 5), (np.full((2, 9), NAN), 1), (np.empty((2, 0)), 3)])
def test_a_recording_without_room_for_a_window_gives_none(recording, length):
    windows, starts = cut(recording, length, 1)
    assert windows.shape == (0, 2, length)
    assert starts.shape == (0,)
    assert (windows.dtype, starts.dtype) == (np.float32, np.int64)


def test_cutting_neither_changes_nor_shares_the_recording():
    recording = np.ones((1, 6), np.float32)
    cut(recording, 3, 1).windows[:] = -1
    assert (recording == 1).all()


def test_overlapping_windows_do_not_share_memory():
    windows = cut(ramp(1, 6), 3, 1).windows
    windows[0] = -1
    np.testing.assert_array_equal(windows[1, 0], [1, 2, 3])


@pytest.mark.parametrize("shape", [(9,), (1, 2, 9)])
def test_cutting_wants_one_recording(shape):
    with refusal("recording", "channels, time"):
        cut(ramp(*shape), 2, 1)


@pytest.mark.parametrize("argument", ["length", "step"])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_length_and_step_must_be_positive_whole_numbers(argument, value):
    with refusal(argument):
        cut(ramp(1, 9), **{"length": 2, "step": 2, argument: value})


@pytest.mark.parametrize("value", [INF, -INF, 1e39])
def test_infinity_in_a_recording_is_refused(value):
    with refusal("recording", "infinite"):
        cut([[1.0, value, NAN]], 1, 1)


@pytest.mark.parametrize("n", [0, 8, 10])
def test_breaks_must_have_one_entry_per_sample(n):
    with refusal("breaks", "9"):
        cut(ramp(1, 9), 2, 1, breaks=np.zeros(n, bool))


def test_cutting_complains_with_the_callers_name_for_the_recording():
    with refusal("walk.csv"):
        cut(ramp(9), 2, 1, name="walk.csv")


def starts_by_loop(recording, length, step, breaks):
    """Walk along the recording and note every window that ends here."""
    starts, run = [], None
    for t in range(recording.shape[1]):
        if np.isnan(recording[:, t]).any():
            run = None
            continue
        if run is None or breaks[t]:
            run = t
        start = t - length + 1
        if start >= run and (start - run) % step == 0:
            starts.append(start)
    return starts


@st.composite
def recordings(draw):
    time = draw(st.integers(0, 30))
    rare = st.integers(0, 7).map(lambda k: k == 0)
    recording = np.arange(2.0 * time).reshape(2, time)
    recording[draw(arrays(bool, (2, time), elements=rare))] = NAN
    return recording, draw(arrays(bool, time, elements=rare))


@settings(deadline=None, max_examples=150)
@given(recordings(), st.integers(1, 6), st.integers(1, 5))
def test_cutting_finds_exactly_the_windows_without_gap_or_break(case, length, step):
    recording, breaks = case
    windows, starts = cut(recording, length, step, breaks=breaks)
    assert not np.isnan(windows).any()
    assert not any(breaks[start + 1 : start + length].any() for start in starts)
    assert starts.tolist() == starts_by_loop(recording, length, step, breaks)
    for window, start in zip(windows, starts, strict=True):
        np.testing.assert_array_equal(window, recording[:, start : start + length])


# breaks


def test_an_even_clock_has_no_break():
    marks = time_breaks(np.arange(6) * 0.02)
    assert marks.dtype == bool
    assert marks.tolist() == [False] * 6


def test_a_pause_longer_than_the_tolerance_is_a_break():
    # Steps 1, 1, 1.4, 1, 1.6: the usual step is 1, so only the last exceeds 1.5 of it.
    assert time_breaks([0, 1, 2, 3.4, 4.4, 6.0]).tolist() == [False] * 5 + [True]


def test_the_tolerance_can_be_chosen():
    assert time_breaks([0, 1, 2, 4, 5], tolerance=3).tolist() == [False] * 5
    assert time_breaks([0, 1, 2, 4, 5], tolerance=1.9).tolist() == [False, False, False, True, False]


def test_a_clock_that_stands_still_or_runs_back_breaks():
    assert time_breaks([0, 1, 1, 2, 0, 1]).tolist() == [False, False, True, False, True, False]


def test_a_clock_that_never_moves_forward_breaks_everywhere():
    assert time_breaks([3, 2, 2]).tolist() == [False, True, True]


def test_a_pause_is_not_hidden_by_a_missing_time():
    # Between sample 1 (time 1) and sample 3 (time 100) lies a pause, wherever the break is put.
    assert time_breaks([0, 1, NAN, 100, 101])[2:4].any()


def test_whole_nanoseconds_are_a_clock_too():
    start = 1_700_000_000_000_000_000
    assert time_breaks(start + np.array([0, 1, 2, 9]) * 10_000_000).tolist() == [False, False, False, True]


def test_masked_breaks_times_and_labels_are_breaks():
    hidden = [False, False, True, False]
    assert time_breaks(np.ma.masked_array([0.0, 1.0, 2.0, 3.0], hidden)).tolist() == [False, False, True, True]
    assert label_breaks(np.ma.masked_array([1, 1, 1, 1], hidden)).tolist() == [False, False, True, True]
    starts = cut(np.arange(8.0)[None], 2, 2, breaks=np.ma.masked_array([False] * 8, np.arange(8) == 3)).starts
    assert starts.tolist() == [0, 3, 5]


def test_labelled_windows_take_no_masked_label():
    windows = as_windows(np.zeros((2, 1, 4)))
    with refusal("y", "class indices"):
        Labelled(windows, np.ma.masked_array([0, 1], [False, True]), 2)


def test_a_change_of_label_is_a_break():
    marks = label_breaks(["walk", "walk", "sit", "sit", "walk"])
    assert marks.dtype == bool
    assert marks.tolist() == [False, False, True, False, True]


@pytest.mark.parametrize("breaks", [time_breaks, label_breaks])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_breaks_have_one_entry_per_sample(breaks, n):
    assert breaks(np.arange(n)).shape == (n,)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=20), st.integers(1, 4))
def test_windows_cut_at_label_breaks_have_one_label_each(labels, length):
    _, starts = cut(np.zeros((1, len(labels))), length, 1, breaks=label_breaks(labels))
    expected = [t for t in range(len(labels) - length + 1) if len(set(labels[t : t + length])) == 1]
    assert starts.tolist() == expected


def test_windows_can_be_built_directly():
    windows = Windows(np.zeros((2, 1, 3), np.float32), np.array([3, 2]))
    assert windows.ragged
    assert as_windows(windows) is windows


# labels and what is known of a target


def test_known_labels_take_the_place_of_pseudo_labels():
    p = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    before = PseudoLabels.from_probabilities(p)
    after = override_labels(before, np.array([1, -1, 0]))
    assert after.labels.tolist() == [1, 1, 0]
    assert after.confidence.tolist() == [1.0, 0.7, 1.0]
    assert after.probabilities.tolist() == [[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]]
    assert before.labels.tolist() == [0, 1, 0]  # the caller's arrays stay


def test_few_rows_stand_for_many():
    assert evenly_spaced(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly_spaced(10, 0).tolist() == evenly_spaced(0, 4).tolist() == []


INFO = TargetInfo(np.array([0.5, 0.5]), np.array([0, UNKNOWN, 1]), np.array([7, 7, 8]), smooth=True)


def test_what_is_known_of_some_windows():
    some = INFO.at(np.array([2, 0]))
    assert some.few_labels.tolist() == [1, 0]
    assert some.groups.tolist() == [8, 7]
    assert some.prior is INFO.prior
    assert some.smooth
    nothing = TargetInfo().at(np.array([2, 0]))
    assert nothing.few_labels is nothing.groups is None


def test_what_is_known_must_fit_the_target():
    INFO.check(3, 2)
    TargetInfo().check(3, 2)
    for name, n, n_classes in (("prior", 3, 3), ("few_labels", 4, 2)):
        with refusal(name):
            INFO.check(n, n_classes)
    with refusal("groups"):
        TargetInfo(groups=np.zeros(2, int)).check(3, 2)
    with refusal("groups"):
        TargetInfo(groups=np.array(["a", "b", "c"])).check(3, 2)
    with refusal("few_labels"):
        TargetInfo(few_labels=np.array([0, 2, -1])).check(3, 2)


@pytest.mark.parametrize(
    ("windows", "y", "name"),
    [
        (ramp(3, 1, 4), [0, 1, 0], "windows"),
        (as_windows(ramp(3, 1, 4)), [0, 1], "y"),
        (as_windows(ramp(3, 1, 4)), [0, 1, 2], "y"),
    ],
)
def test_labelled_windows_have_a_class_each(windows, y, name):
    with refusal(name):
        Labelled(windows, np.array(y), 2)


def test_signals_can_have_nan_behind_the_end():
    assert np.isnan(as_windows([ramp(1, 3), ramp(1, 2)]).with_nan()[1, 0]).tolist() == [False, False, True]
    assert not np.isnan(as_windows(ramp(2, 1, 3)).with_nan()).any()


@pytest.mark.parametrize(("step", "shared"), [(24, 1), (20, 1), (19, 2), (10, 2), (7, 3), (1, 20)])
def test_how_many_windows_share_a_sample_is_seen_in_their_values(step, shared):
    signal = np.random.default_rng(0).normal(size=(2, 800))
    cut = np.stack([signal[:, first : first + 20] for first in range(0, 780, step)])
    cut[5] += 1.0  # another recording begins and ends
    cut[6] = 0.0
    assert overlap(as_windows(cut)) == shared


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_windows_of_one_value_or_too_few_do_not_overlap(n):
    assert overlap(Windows(np.zeros((n, 2, 20), np.float32), np.full(n, 20))) == 1
