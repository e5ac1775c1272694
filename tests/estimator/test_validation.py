"""Labels, class shares, domains, held-out rows and seed as the estimator takes them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import refusal

from transpl.estimator.validation import (
    check_labels,
    class_indices,
    few_label_indices,
    hold_out,
    is_table,
    prior_shares,
    seed_of,
    target_rows,
    to_python,
    warn_truncated_tail,
)
from transpl.methods import Labelled
from transpl.windows import as_windows

NONE = np.zeros(4, dtype=bool)


def labelled(y):
    return Labelled(as_windows(np.arange(2.0 * len(y)).reshape(len(y), 1, 2)), np.array(y), max(y) + 1)


def test_labels_of_target_rows_are_not_looked_at():
    y = np.array(["a", "b", None, float("nan")], dtype=object)
    assert check_labels(y, 4, np.array([False, False, True, True])).tolist() == ["a", "b"]


def test_objects_that_are_numbers_become_numbers():
    assert check_labels(np.array([1, 2, 1, 2], dtype=object), 4, NONE).dtype.kind == "i"
    assert check_labels(np.array(["x", "yy", "x", "x"], dtype=object), 4, NONE).dtype == object


def test_labels_that_cannot_be_classes_are_refused():
    with refusal("y", "of one type"):
        check_labels(np.array(["a", 1, "b", 2], dtype=object), 4, NONE)
    with refusal("y", "class labels"):
        check_labels(np.array([0.1, 0.2, 0.3, 0.4]), 4, NONE)
    with refusal("y", "2 or more classes"):
        check_labels(np.array(["a"] * 4), 4, NONE)


def test_positions_in_the_classes():
    assert class_indices(["b", "a"], 2, np.array(["a", "b", "c"]), "y_val").tolist() == [1, 0]
    with refusal("y_val", "classes of y"):
        class_indices(["d"], 1, np.array(["a"]), "y_val")


def test_negative_domains_are_target_rows():
    assert target_rows([0, 3, -1], 3).tolist() == [False, False, True]
    assert target_rows(None, 2).tolist() == [False, False]


def test_a_stratified_share_is_held_out_and_every_class_stays():
    train, held = hold_out(labelled([0] * 10 + [1] * 20 + [2]), seed=0)
    assert np.bincount(held.y, minlength=3).tolist() == [3, 6, 0]
    assert np.bincount(train.y, minlength=3).tolist() == [7, 14, 1]
    rows = np.concatenate([train.windows.values, held.windows.values])[:, 0, 0]
    assert sorted(rows.tolist()) == [2.0 * i for i in range(31)]


def test_the_same_rows_are_held_out_for_the_same_seed():
    y = [0, 1] * 20
    first, again, other = (hold_out(labelled(y), seed)[1].windows.values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_tables_are_told_from_windows():
    assert is_table(np.zeros((2, 3)))
    assert is_table([[1.0, 2.0], [3.0, 4.0]])
    assert not is_table(np.zeros((2, 1, 3)))
    assert not is_table([np.zeros((1, 3)), np.zeros((1, 2))])


def test_only_a_real_tail_is_spoken_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_truncated_tail(as_windows(np.zeros((2, 1, 8))), 4, "X")
    with pytest.warns(UserWarning, match=r"X: .*up to 3"):
        warn_truncated_tail(as_windows([np.zeros((1, 8)), np.zeros((1, 11))]), 4, "X")


def test_numpy_numbers_become_plain_ones():
    assert type(to_python(np.int64(3))) is int
    assert type(to_python(np.float32(0.5))) is float
    assert to_python("floor") == "floor"


def test_few_labels_are_rows_or_one_label_per_window():
    classes = np.array(["run", "walk"])
    expected = [-1, 1, -1, 0]
    for given in (
        {1: "walk", np.int64(3): np.str_("run")},
        [None, "walk", "", "run"],
        np.array([np.nan, "walk", None, "run"], dtype=object),
        pd.Series([pd.NA, "walk", pd.NA, "run"], dtype="string"),
    ):
        assert few_label_indices(given, 4, classes).tolist() == expected
    assert few_label_indices([np.nan, 2.0], 2, np.array([1, 2])).tolist() == [-1, 1]
    for nothing in (None, {}, [None, "", np.nan]):
        assert few_label_indices(nothing, 3, classes) is None


def test_masked_labels_are_unknown_among_few_and_nothing_under_a_mask_is_used():
    masked = np.ma.masked_array(["b", "a", "b", "a"], [True, False, True, True])
    assert few_label_indices(masked, 4, np.array(["a", "b"])).tolist() == [-1, 0, -1, -1]
    y = np.ma.masked_array([0, 1, 0, 1], [False, False, True, True])
    assert check_labels(y, 4, np.array([False, False, True, True])).tolist() == [0, 1]  # of target rows, any may be
    with refusal("y", "masked"):
        check_labels(y, 4, NONE)
    with refusal("sample_domain"):
        target_rows(np.ma.masked_array([1, -1], [False, True]), 2)


def test_few_labels_in_a_list_keep_their_types():
    assert few_label_indices([float("nan"), "a", None, "b"], 4, np.array(["a", "b"])).tolist() == [-1, 0, -1, 1]


def test_few_labels_that_fit_no_window_or_class_are_refused():
    classes = np.array(["run", "walk"])
    for rows in ({4: "run"}, {-1: "run"}, {"0": "run"}, {True: "run"}):
        with refusal("few_labels", "rows 0..3"):
            few_label_indices(rows, 4, classes)
    with refusal("few_labels", "'swim' for window 2. Check the spelling; a class that the source does not have"):
        few_label_indices({2: "swim"}, 4, classes)
    with refusal("few_labels", "for window 2"):
        few_label_indices({2: ["run"]}, 4, classes)
    with refusal("few_labels", "4 labels"):
        few_label_indices(["run"], 4, classes)


def test_class_shares_by_label_stand_in_the_order_of_the_classes():
    classes = np.array(["a", "b", "c"])
    assert prior_shares(None, classes) is None
    assert prior_shares({"c": 0.75, "a": 0.25}, classes).tolist() == [0.25, 0.0, 0.75]
    assert prior_shares([0.5, 0.0, 0.5], classes).tolist() == [0.5, 0.0, 0.5]
    with refusal("prior", "labels among"):
        prior_shares({"d": 1.0}, classes)
    with refusal("prior", "labels among"):
        prior_shares({("a", "b"): 1.0}, classes)
    with refusal("prior", "3 non-negative proportions"):
        prior_shares({"a": "much", "b": 0.5, "c": 0.5}, classes)


def test_class_shares_that_leave_out_a_class_must_add_up_to_one():
    """Who gives the one share that is known does not mean that the others are nothing."""
    classes = np.array(["a", "b", "c"])
    for shares, found in (({"a": 0.6}, "0.6 without b, c"), ({"a": 0.6, "b": 0.6}, "1.2 without c")):
        with refusal("prior", f"shares that add up to 1, got {found}"):
            prior_shares(shares, classes)
    assert prior_shares({"a": 0.66, "b": 0.33}, classes)[2] == 0  # rounded
    assert prior_shares({"a": 30, "b": 10, "c": 0}, classes).tolist() == [0.75, 0.25, 0.0]  # counts


def test_a_seed_is_itself_or_drawn():
    assert seed_of(np.int64(7)) == 7
    assert seed_of(np.random.RandomState(3)) == seed_of(np.random.RandomState(3))
    with refusal("random_state", "at most"):
        seed_of(2**32)
