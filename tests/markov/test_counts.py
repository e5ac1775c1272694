"""Transition counts: by hand, by loops, and as the group they form."""

from __future__ import annotations

import operator
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transpl._utils.errors import UnreadableFile
from transpl.markov import TransitionCounts, codebook_usage, counts, few_label_counts

MODEST = settings(deadline=None, max_examples=60)


def random_codes(seed, n_codes=4, windows=12, channels=3, patches=9, ragged=False):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_codes, (windows, channels, patches))
    if ragged:
        ends = rng.integers(0, patches + 1, windows)
        codes[np.broadcast_to(np.arange(patches) >= ends[:, None, None], codes.shape)] = -1
    return codes


def count_by_loops(codes, n_codes, labels=None, n_classes=1):
    """Count one transition at a time; without labels everything is class 0."""
    result = np.zeros((n_classes, codes.shape[1], n_codes, n_codes), np.int64)
    for w in range(codes.shape[0]):
        for d in range(codes.shape[1]):
            for t in range(codes.shape[2] - 1):
                i, j = codes[w, d, t], codes[w, d, t + 1]
                if i != -1 and j != -1:
                    result[0 if labels is None else labels[w], d, i, j] += 1
    return result[0] if labels is None else result


# counting


def test_one_window_is_counted_as_by_hand():
    # channel 0: 0 0 1 0 has 0->0, 0->1, 1->0; channel 1: 1 1 1 0 has 1->1 twice and 1->0.
    result = TransitionCounts.from_codes([[[0, 0, 1, 0], [1, 1, 1, 0]]], 2)
    assert result.counts.tolist() == [[[1, 1], [1, 0]], [[0, 0], [1, 2]]]
    assert result.counts.dtype == np.int64


def test_labelled_windows_are_counted_as_by_hand():
    # class 0: 0 1 1 (0->1, 1->1) and 1 1 0 (1->1, 1->0); class 1: nothing; class 2: 0 0 0 (0->0 twice).
    codes = [[[0, 1, 1]], [[0, 0, 0]], [[1, 1, 0]]]
    result = TransitionCounts.from_codes(codes, 2, labels=[0, 2, 0], n_classes=3)
    assert result.counts.tolist() == [[[[0, 1], [1, 2]]], [[[0, 0], [0, 0]]], [[[2, 0], [0, 0]]]]


def test_padding_is_not_counted():
    # 0 1 and nothing more: only 0->1. A window of padding alone counts nothing.
    assert TransitionCounts.from_codes([[[0, 1, -1, -1]], [[-1, -1, -1, -1]]], 2).counts.tolist() == [[[0, 1], [0, 0]]]


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_counts_without_labels_agree_with_explicit_loops(seed, ragged):
    codes = random_codes(seed, ragged=ragged)
    np.testing.assert_array_equal(TransitionCounts.from_codes(codes, 4).counts, count_by_loops(codes, 4))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_counts_with_labels_agree_with_explicit_loops(seed, ragged):
    codes = random_codes(seed, ragged=ragged)
    labels = np.random.default_rng(seed).integers(0, 3, len(codes))
    result = TransitionCounts.from_codes(codes, 4, labels, n_classes=5)
    np.testing.assert_array_equal(result.counts, count_by_loops(codes, 4, labels, 5))


def test_the_number_of_classes_is_taken_from_the_labels_unless_given():
    codes = random_codes(0, windows=3)
    assert TransitionCounts.from_codes(codes, 4, [0, 3, 1]).n_classes == 4
    assert TransitionCounts.from_codes(codes, 4, [0, 3, 1], n_classes=6).n_classes == 6


def test_counts_know_their_sizes():
    codes = random_codes(0, windows=3)
    plain, labelled = TransitionCounts.from_codes(codes, 5), TransitionCounts.from_codes(codes, 5, [0, 1, 0])
    assert (plain.n_codes, plain.n_channels, plain.n_classes) == (5, 3, None)
    assert (labelled.n_codes, labelled.n_channels, labelled.n_classes) == (5, 3, 2)


def test_pooling_over_classes_gives_the_counts_without_labels():
    codes = random_codes(1)
    labels = np.arange(len(codes)) % 3
    pooled = TransitionCounts.from_codes(codes, 4, labels).pooled()
    assert pooled == TransitionCounts.from_codes(codes, 4)
    assert pooled.pooled() == pooled


@pytest.mark.parametrize("patches", [0, 1])
def test_windows_without_transitions_count_nothing(patches):
    assert TransitionCounts.from_codes(np.zeros((3, 2, patches), int), 4) == TransitionCounts.empty(2, 4)


def test_no_windows_count_nothing():
    no_codes = np.zeros((0, 2, 5), int)
    assert TransitionCounts.from_codes(no_codes, 4) == TransitionCounts.empty(2, 4)
    assert TransitionCounts.from_codes(no_codes, 4, [], n_classes=3) == TransitionCounts.empty(2, 4, 3)


def test_a_small_integer_type_does_not_overflow():
    codes = np.array([[[127, 127, 0, 127], [126, 1, 127, 126]]], dtype=np.int8)
    result = TransitionCounts.from_codes(codes, 128)
    np.testing.assert_array_equal(result.counts, count_by_loops(codes.astype(int), 128))
    labelled = TransitionCounts.from_codes(codes, 128, np.array([100], np.int8), n_classes=101)
    np.testing.assert_array_equal(labelled.counts[100], result.counts)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4"])
def test_every_integer_type_gives_the_same_counts(dtype):
    codes = random_codes(2)
    assert TransitionCounts.from_codes(codes.astype(dtype), 4) == TransitionCounts.from_codes(codes, 4)


@pytest.mark.parametrize("at_once", [1, 27, 60])
def test_counting_in_small_chunks_gives_the_same(monkeypatch, at_once):
    codes = random_codes(3, ragged=True)
    labels = np.arange(len(codes)) % 3
    monkeypatch.setattr(counts, "_TRANSITIONS_AT_ONCE", at_once)
    np.testing.assert_array_equal(TransitionCounts.from_codes(codes, 4).counts, count_by_loops(codes, 4))
    labelled = TransitionCounts.from_codes(codes, 4, labels)
    np.testing.assert_array_equal(labelled.counts, count_by_loops(codes, 4, labels, 3))


def test_counting_leaves_the_callers_arrays_alone():
    codes = random_codes(4, ragged=True)
    labels = np.arange(len(codes)) % 3
    codes_before, labels_before = codes.copy(), labels.copy()
    TransitionCounts.from_codes(codes, 4, labels)
    np.testing.assert_array_equal(codes, codes_before)
    np.testing.assert_array_equal(labels, labels_before)


def test_counts_do_not_share_memory_with_the_array_they_were_made_from():
    array = np.ones((1, 2, 2), np.int64)
    result = TransitionCounts(array)
    array[:] = 7
    assert result.counts.max() == 1


@pytest.mark.parametrize("codes", [[[0, 1]], [[[0.0, 1.0]]], [[["a", "b"]]], [[[True, False]]]])
def test_codes_must_be_whole_numbers_on_three_axes(codes):
    with refusal("codes", "integer array"):
        TransitionCounts.from_codes(codes, 2)


@pytest.mark.parametrize("code", [2, -2, 1000])
def test_codes_outside_the_codebook_are_refused(code):
    with refusal("codes", r"codes in 0\.\.1"):
        TransitionCounts.from_codes([[[0, code]]], 2)


@pytest.mark.parametrize("labels", [[0], [0, 1, 0], [[0, 1]], [0.0, 1.0], ["a", "b"]])
def test_labels_must_be_one_class_index_per_window(labels):
    with refusal("labels", "2 class indices"):
        TransitionCounts.from_codes(random_codes(0, windows=2), 4, labels)


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_outside_the_classes_are_refused(label):
    with refusal("labels", r"class indices in 0\.\.1"):
        TransitionCounts.from_codes(random_codes(0, windows=2), 4, [0, label], n_classes=2)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 4), (1, 1, 1, 2, 2)])
def test_counts_of_any_other_shape_are_refused(shape):
    with refusal("counts", "shape"):
        TransitionCounts(np.zeros(shape, int))


def test_counts_that_are_no_whole_numbers_are_refused():
    with refusal("counts", "whole numbers"):
        TransitionCounts(np.ones((1, 2, 2)))


def test_negative_counts_are_refused():
    with refusal("counts", "got -3"):
        TransitionCounts(np.full((1, 2, 2), -3))


def test_counts_too_large_for_int64_are_refused():
    with refusal("counts"):
        TransitionCounts(np.full((1, 1, 1), 2**63, np.uint64))


# probabilities


HAND = TransitionCounts(np.array([[[3, 1], [0, 0]]]))


def test_probabilities_without_smoothing_are_shares_of_the_row():
    # row 0: 3 / 4 and 1 / 4; code 1 was never left, so its row stays zero.
    assert HAND.probabilities("none").tolist() == [[[0.75, 0.25], [0, 0]]]


def test_the_floor_replaces_zeros_only():
    counts = TransitionCounts(np.array([[[3, 1, 0], [0, 0, 0], [0, 5, 0]]]))
    # zeros become epsilon; 0.75, 0.25 and 1 stay although rows then exceed 1.
    assert counts.probabilities("floor", 0.01).tolist() == [[[0.75, 0.25, 0.01], [0.01] * 3, [0.01, 1, 0.01]]]


def test_the_floor_leaves_a_probability_below_it_as_it_is():
    # 1 / 100 is below the floor of 0.05, but it was seen.
    assert TransitionCounts(np.array([[[1, 99], [0, 1]]])).probabilities("floor", 0.05)[0, 0, 0] == 0.01


def test_additive_smoothing_adds_to_every_probability_and_renormalises():
    # row 0: (0.75 + 0.1) / 1.2 and (0.25 + 0.1) / 1.2; row 1: 0.1 / 0.2 twice.
    expected = [[[0.85 / 1.2, 0.35 / 1.2], [0.5, 0.5]]]
    np.testing.assert_allclose(HAND.probabilities("additive", 0.1), expected, rtol=1e-15)


def test_the_floor_of_one_in_ten_thousand_is_the_default():
    np.testing.assert_array_equal(HAND.probabilities(), HAND.probabilities("floor", 1e-4))
    assert HAND.probabilities()[0, 1, 0] == 1e-4


def test_additive_smoothing_is_by_one_in_a_million_unless_told():
    np.testing.assert_array_equal(HAND.probabilities("additive"), HAND.probabilities("additive", 1e-6))
    counts = TransitionCounts(np.array([[[1, 0], [0, 1]]]))
    np.testing.assert_allclose(counts.probabilities("additive")[0, 0, 1], 1e-6 / (1 + 2e-6), rtol=1e-12)


def test_a_pseudocount_is_added_to_every_count():
    # row 0: (3 + 0.5) / (4 + 2 * 0.5) and (1 + 0.5) / 5; row 1: 0.5 / 1 twice. The default is 0.1.
    np.testing.assert_allclose(HAND.probabilities("pseudocount", 0.5), [[[0.7, 0.3], [0.5, 0.5]]], rtol=1e-15)
    np.testing.assert_allclose(HAND.probabilities("pseudocount")[0, 0], [3.1 / 4.2, 1.1 / 4.2], rtol=1e-15)


def test_a_pseudocount_may_exceed_one_but_must_be_positive():
    np.testing.assert_allclose(HAND.probabilities("pseudocount", 2)[0, 0], [5 / 8, 3 / 8], rtol=1e-15)
    with refusal("epsilon", "positive"):
        HAND.probabilities("pseudocount", 0)


def test_probabilities_have_the_shape_of_the_counts():
    codes = random_codes(5)
    labelled = TransitionCounts.from_codes(codes, 4, np.arange(len(codes)) % 3)
    assert labelled.probabilities().shape == (3, 3, 4, 4)
    assert labelled.probabilities().dtype == np.float64


def test_the_probabilities_of_one_class_do_not_depend_on_the_others():
    codes = random_codes(6)
    labels = np.arange(len(codes)) % 3
    for smoothing in counts.SMOOTHING:
        together = TransitionCounts.from_codes(codes, 4, labels).probabilities(smoothing)
        alone = TransitionCounts.from_codes(codes[labels == 1], 4).probabilities(smoothing)
        np.testing.assert_array_equal(together[1], alone)


def test_asking_for_probabilities_leaves_the_counts_alone():
    before = HAND.counts.copy()
    for smoothing in counts.SMOOTHING:
        HAND.probabilities(smoothing)[:] = 9
    np.testing.assert_array_equal(HAND.counts, before)


def test_an_unknown_smoothing_is_refused():
    with refusal("smoothing", "'floor', 'additive', 'pseudocount', 'none'"):
        HAND.probabilities("laplace")


@pytest.mark.parametrize("smoothing", ["floor", "additive"])
@pytest.mark.parametrize("epsilon", [0, 1, -1e-4, float("nan")])
def test_an_epsilon_outside_zero_to_one_is_refused(smoothing, epsilon):
    with refusal("epsilon"):
        HAND.probabilities(smoothing, epsilon)


# the group of counts


@st.composite
def labelled_codes(draw):
    n_codes, windows, channels, patches = (draw(st.integers(1, high)) for high in (4, 8, 3, 6))
    codes = draw(arrays(np.int64, (windows, channels, patches), elements=st.integers(0, n_codes - 1)))
    ends = draw(arrays(np.int64, windows, elements=st.integers(0, patches)))
    codes[np.broadcast_to(np.arange(patches) >= ends[:, None, None], codes.shape)] = -1
    return n_codes, codes, draw(arrays(np.int64, windows, elements=st.integers(0, 2)))


def count_tensors(highest=2**40):
    shape = (2, 3, 3)
    return arrays(np.int64, shape, elements=st.integers(0, highest)).map(TransitionCounts)


@MODEST
@given(labelled_codes(), st.data())
def test_any_split_into_shards_added_in_any_order_gives_the_same_counts(case, data):
    n_codes, codes, labels = case
    shard_of = data.draw(arrays(np.int64, len(codes), elements=st.integers(0, 3)))
    order = data.draw(st.permutations(range(4)))
    plain = TransitionCounts.empty(codes.shape[1], n_codes)
    labelled = TransitionCounts.empty(codes.shape[1], n_codes, 3)
    for shard in order:
        rows = shard_of == shard
        plain = plain + TransitionCounts.from_codes(codes[rows], n_codes)
        labelled = labelled + TransitionCounts.from_codes(codes[rows], n_codes, labels[rows], 3)
    assert plain == TransitionCounts.from_codes(codes, n_codes)
    assert labelled == TransitionCounts.from_codes(codes, n_codes, labels, 3)
    assert plain.counts.dtype == labelled.counts.dtype == np.int64


@MODEST
@given(labelled_codes())
def test_counts_agree_with_explicit_loops_whatever_the_codes(case):
    n_codes, codes, labels = case
    np.testing.assert_array_equal(
        TransitionCounts.from_codes(codes, n_codes, labels, 3).counts, count_by_loops(codes, n_codes, labels, 3)
    )


@MODEST
@given(count_tensors(), count_tensors(), count_tensors())
def test_addition_is_commutative_and_associative(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


@MODEST
@given(count_tensors(), count_tensors())
def test_subtraction_undoes_addition(a, b):
    assert a + b - b == a
    assert a - a == TransitionCounts.empty(2, 3)


@MODEST
@given(count_tensors())
def test_no_transitions_are_the_identity(a):
    nothing = TransitionCounts.empty(2, 3)
    assert a + nothing == a
    assert nothing + a == a
    assert a - nothing == a


@MODEST
@given(count_tensors(highest=3))
def test_rows_of_probabilities_sum_to_one_where_they_should(a):
    for smoothing in ("additive", "pseudocount"):
        np.testing.assert_allclose(a.probabilities(smoothing).sum(axis=-1), 1, rtol=1e-12)
    seen = a.counts.sum(axis=-1) > 0
    np.testing.assert_allclose(a.probabilities("none").sum(axis=-1), np.where(seen, 1, 0), rtol=1e-12)


def test_forgetting_a_day_gives_the_counts_of_the_other_days():
    codes = random_codes(7)
    whole, day = TransitionCounts.from_codes(codes, 4), TransitionCounts.from_codes(codes[:5], 4)
    assert whole - day == TransitionCounts.from_codes(codes[5:], 4)


def test_forgetting_more_than_was_added_is_refused():
    with refusal("counts", "Subtract only what was added"):
        HAND - (HAND + HAND)


def test_adding_does_not_change_what_is_added():
    a, b = TransitionCounts(np.ones((1, 2, 2), int)), TransitionCounts(np.full((1, 2, 2), 5))
    a + b, b - a
    assert a.counts.tolist() == [[[1, 1], [1, 1]]]
    assert b.counts.tolist() == [[[5, 5], [5, 5]]]


@pytest.mark.parametrize("other", [(2, 2), (1, 3), (1, 2, 1)], ids=["channels", "codes", "classes"])
@pytest.mark.parametrize("operation", [operator.add, operator.sub])
def test_counts_of_different_shape_do_not_merge(operation, other):
    # (1, 1, 2, 2) and (1, 2, 2) would broadcast if nobody looked.
    with refusal("counts", "same codebook"):
        operation(TransitionCounts.empty(1, 2), TransitionCounts.empty(*other))


def test_an_overflowing_sum_is_refused():
    huge = TransitionCounts(np.full((1, 1, 1), 2**62))
    with refusal("counts"):
        huge + huge


@pytest.mark.parametrize("other", [1, np.ones((1, 2, 2), int), None])
@pytest.mark.parametrize("operation", [operator.add, operator.sub])
def test_counts_merge_with_counts_only(operation, other):
    with pytest.raises(TypeError):
        operation(HAND, other)


def test_counts_are_equal_by_content():
    assert TransitionCounts.empty(1, 2) == TransitionCounts(np.zeros((1, 2, 2), np.int8))
    assert TransitionCounts.empty(1, 2) != HAND
    assert TransitionCounts.empty(1, 2) != TransitionCounts.empty(1, 2, 1)
    assert HAND.counts.tolist() != HAND


def test_counts_cannot_be_hashed():
    with pytest.raises(TypeError):
        hash(HAND)


# files


@pytest.fixture
def saved(tmp_path):
    """A saved file and what is in it."""
    codes = random_codes(8)
    original = TransitionCounts.from_codes(codes, 4, np.arange(len(codes)) % 3)
    original.save(tmp_path / "counts.npz")
    return tmp_path / "counts.npz", original


class Payload:
    """Creates a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["counts.npz", "counts", "counts.state"])
@pytest.mark.parametrize("classes", [None, 2])
def test_counts_survive_a_round_trip_through_a_file_of_any_name(tmp_path, name, classes):
    original = TransitionCounts.empty(2, 3, classes)
    original = TransitionCounts(original.counts + 2**53 + 1)
    original.save(tmp_path / name)
    loaded = TransitionCounts.load(str(tmp_path / name))
    assert loaded == original
    assert loaded.counts.dtype == np.int64
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_file_is_reported_in_one_line(tmp_path):
    with refusal(tmp_path / "none.npz", "no such file", UnreadableFile):
        TransitionCounts.load(tmp_path / "none.npz")


def test_a_folder_is_reported_in_one_line(tmp_path):
    with refusal(tmp_path, error=UnreadableFile):
        TransitionCounts.load(tmp_path)


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_reported_in_one_line(saved, share):
    path, _ = saved
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refusal(path, "Write it again", UnreadableFile):
        TransitionCounts.load(path)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_file_with_any_one_damaged_byte_gives_the_counts_or_a_complaint_in_one_line(saved, step):
    path, original = saved
    content = path.read_bytes()
    positions = range(0, len(content), step)
    complaints = []
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert TransitionCounts.load(path) == original
        except UnreadableFile as error:
            complaints.append(str(error))
    assert len(complaints) > len(positions) / 4
    assert [complaint for complaint in complaints if "\n" in complaint] == []


def test_a_truncated_file_is_closed_again(saved):
    path, _ = saved
    path.write_bytes(path.read_bytes()[:-10])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(UnreadableFile):
            TransitionCounts.load(path)
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.parametrize("content", [b"", b"\n", b"PK", b"a,b\n1,2\n", b"\x93NUMPY\x01\x00", bytes(range(256))])
def test_a_file_of_another_kind_is_reported_in_one_line(tmp_path, content):
    path = tmp_path / "counts.npz"
    path.write_bytes(content)
    with refusal(path, "", UnreadableFile):
        TransitionCounts.load(path)


FOREIGN = {
    "no-format": {"counts": np.zeros((1, 2, 2), int)},
    "no-counts": {"format": np.array("transpl-counts-1")},
    "other-format": {"format": np.array("transpl-counts-2"), "counts": np.zeros((1, 2, 2), int)},
    "format-of-several-lines": {"format": np.zeros((3, 3)), "counts": np.zeros((1, 2, 2), int)},
    "float-counts": {"format": np.array("transpl-counts-1"), "counts": np.zeros((1, 2, 2))},
    "negative-counts": {"format": np.array("transpl-counts-1"), "counts": np.full((1, 2, 2), -1)},
    "flat-counts": {"format": np.array("transpl-counts-1"), "counts": np.zeros(4, int)},
    "very-long-header": {
        "format": np.array("transpl-counts-1"),
        "counts": np.zeros(1, dtype=[(f"field{i}", "f8") for i in range(2000)]),
    },
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_an_archive_that_is_not_ours_is_reported_in_one_line(tmp_path, content):
    path = tmp_path / "counts.npz"
    np.savez(path, **content)
    with refusal(path, "", UnreadableFile):
        TransitionCounts.load(path)


def test_a_plain_npy_file_is_reported_in_one_line(tmp_path):
    path = tmp_path / "counts.npy"
    np.save(path, np.zeros((1, 2, 2), int))
    with refusal(path, "", UnreadableFile):
        TransitionCounts.load(path)


def test_a_pickle_is_reported_in_one_line_and_never_executed(tmp_path):
    path, trace = tmp_path / "counts.npz", tmp_path / "executed"
    path.write_bytes(pickle.dumps(Payload(trace)))
    with refusal(path, error=UnreadableFile):
        TransitionCounts.load(path)
    assert not trace.exists()


def test_a_pickle_inside_an_archive_is_reported_in_one_line_and_never_executed(tmp_path):
    path, trace = tmp_path / "counts.npz", tmp_path / "executed"
    np.savez(path, format=np.array("transpl-counts-1"), counts=np.array([Payload(trace)], dtype=object))
    with refusal(path, error=UnreadableFile):
        TransitionCounts.load(path)
    assert not trace.exists()


def test_a_failed_save_keeps_the_file_that_was_there(saved, monkeypatch):
    path, original = saved

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        TransitionCounts.empty(1, 2).save(path)
    assert TransitionCounts.load(path) == original
    assert list(path.parent.iterdir()) == [path]


# How often codes occur


def test_usage_perplexity_and_dead_codes():
    usage = codebook_usage(np.array([[0, 0, 2], [2, -1, -1]]), 4)
    assert usage.counts.tolist() == [2, 0, 2, 0]
    assert usage.perplexity == pytest.approx(2.0)
    assert usage.dead == [1, 3]
    assert codebook_usage(np.arange(8), 8).perplexity == pytest.approx(8.0)
    assert codebook_usage(np.array([-1]), 2).perplexity == 0.0


# a few labels of the target


def labelled_codes(n: int, seed: int, length: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (n, 2, length))


def test_ten_labelled_windows_count_as_much_as_all_of_their_class():
    y = np.repeat([0, 1], [300, 12])
    source = TransitionCounts.from_codes(labelled_codes(312, 0), 4, y, 3)
    few, labels = labelled_codes(20, 1), np.repeat([0, 1], 10)
    found = few_label_counts(few, labels, source).counts.sum(axis=(1, 2, 3))
    total = source.counts.sum(axis=(1, 2, 3))
    assert found[0] == total[0]  # 10 windows, 30 times each
    assert found[1] == 10 * 2 * 5  # 12 / 10 is 1: never less than once
    assert found[2] == 0


def test_counts_are_whole_multiples_of_what_was_seen():
    source = TransitionCounts.from_codes(labelled_codes(100, 0), 4, np.zeros(100, int), 1)
    few = labelled_codes(3, 1)
    few[1, :, 4:] = -1  # shorter: the mean of the three decides
    one = (3 * 10 - 4) / 3
    expected = TransitionCounts.from_codes(few, 4).counts * round(100 * 2 * 5 / (10 * one))
    assert np.array_equal(few_label_counts(few, np.zeros(3, int), source).counts[0], expected)
