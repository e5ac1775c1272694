"""sktime's pandas formats become windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import make_waves, refusal

from transpl import TransPL
from transpl.datasets import from_sktime

NAMES = ["ax", "ay"]


def nested(windows) -> pd.DataFrame:
    return pd.DataFrame({name: [pd.Series(x[d]) for x in windows] for d, name in enumerate(NAMES)})


def multiindex(windows) -> pd.DataFrame:
    frames = {f"w{i}": pd.DataFrame(x.T, columns=NAMES) for i, x in enumerate(windows)}
    return pd.concat(frames, names=["instance", "time"])


def frames(windows) -> list[pd.DataFrame]:
    return [pd.DataFrame(x.T, columns=NAMES) for x in windows]


FORMATS = [nested, multiindex, frames]


@pytest.mark.parametrize("form", FORMATS)
def test_windows_of_one_length_become_an_array(form):
    X, _ = make_waves(12, 0)
    assert np.array_equal(from_sktime(form(X)), X)


@pytest.mark.parametrize("form", FORMATS)
def test_windows_of_unequal_length_become_a_list(form):
    X = [x[:, : 20 + i] for i, x in enumerate(make_waves(12, 0)[0])]
    for found, expected in zip(from_sktime(form(X)), X, strict=True):
        assert np.array_equal(found, expected)


def test_instances_keep_their_order_and_time_is_sorted():
    X, _ = make_waves(12, 0)
    shuffled = multiindex(X).sample(frac=1, random_state=0)
    first = shuffled.index.get_level_values(0).unique()
    assert np.array_equal(from_sktime(shuffled), X[[int(name[1:]) for name in first]])


def test_the_estimator_takes_what_it_returns():
    X, y = make_waves(24, 0)
    assert TransPL(witnesses=("linear",)).fit(from_sktime(nested(X)), y).score(from_sktime(multiindex(X)), y) > 0.9


@pytest.mark.parametrize(
    ("X", "containing"),
    [
        (np.zeros((2, 1, 4)), "a pandas format"),
        ([], "a pandas format"),
        (pd.DataFrame({"a": [1.0]}), "a Series in every cell"),
        (pd.DataFrame({"a": [pd.Series([1.0])], "b": [pd.Series([1.0, 2.0])]}), "one length"),
        (pd.DataFrame({"a": [pd.Series(["x"])]}), "numbers"),
        (pd.DataFrame({"a": [1.0]}, index=pd.MultiIndex.from_tuples([(0, 0, 0)])), "an index"),
    ],
)
def test_other_formats_are_refused(X, containing):
    with refusal("X", containing):
        from_sktime(X)
