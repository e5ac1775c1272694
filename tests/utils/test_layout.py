"""What a file must hold: arrays by kind and shape, facts by type."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal

from transpl._utils.layout import below, check_arrays, check_facts, check_numbers

LAYOUT = {"mean": "f D", "scale": "p D", "rows": "i n", "shown": "b K", "matrix": "f K D 2", "net.*": ""}
SOUND = {
    "mean": np.zeros(3),
    "scale": np.ones(3),
    "rows": np.arange(4),
    "shown": np.ones(2, bool),
    "matrix": np.zeros((2, 3, 2)),
    "net.any": np.array("x"),
}


def test_arrays_that_fit_tell_the_sizes():
    sizes = {"K": 2}
    check_arrays(SOUND, LAYOUT, sizes)
    assert sizes == {"K": 2, "D": 3, "n": 4}


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("mean", np.zeros(4)),
        ("mean", np.zeros((3, 1))),
        ("mean", np.zeros(3, int)),
        ("mean", np.array([0, np.nan, 0])),
        ("scale", np.zeros(3)),
        ("rows", np.zeros(4)),
        ("shown", np.ones(3, bool)),
        ("matrix", np.zeros((2, 3, 3))),
        ("more", np.zeros(1)),
        ("mean", None),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(name, array):
    arrays = {key: value for key, value in {**SOUND, name: array}.items() if value is not None}
    with refusal(name):
        check_arrays(arrays, LAYOUT, {"K": 2, "D": 3})


def test_axes_in_small_letters_belong_to_a_prefix():
    assert below("a", {"x": "f K n 2", "*": ""}) == {"a.x": "f K a.n 2", "a.*": ""}


def test_numbers_out_of_range_are_refused():
    check_numbers("rows", np.array([], int), 0, 0)
    check_numbers("rows", np.array([0, 3]), 0, 3)
    with refusal("rows"):
        check_numbers("rows", np.array([0, 4]), 0, 3)


KIND = {"name": str, "sizes": [int], "rate": float, "mode": (str, None), "more?": {str: [float]}}
FACTS = {"name": "a", "sizes": [1, 2], "rate": 1, "mode": None, "more": {"b": [0.5]}}


def test_facts_that_fit():
    check_facts("model", FACTS, KIND)
    check_facts("model", {name: value for name, value in FACTS.items() if name != "more"}, KIND)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 1}, "model.name"),
        ({"sizes": [1, "2"]}, "model.sizes[1]"),
        ({"sizes": [True]}, "model.sizes[0]"),
        ({"sizes": {"a": 1}}, "model.sizes"),
        ({"rate": float("inf")}, "model.rate"),
        ({"mode": 3}, "model.mode"),
        ({"more": {"b": ["x"]}}, "model.more.b[0]"),
        ({"other": 1}, "model"),
    ],
)
def test_facts_that_do_not_fit_are_refused_by_name(change, place):
    with refusal(place):
        check_facts("model", {**FACTS, **change}, KIND)


def test_a_missing_fact_is_refused():
    with refusal("model", "no sizes"):
        check_facts("model", {name: value for name, value in FACTS.items() if name != "sizes"}, KIND)
