import numpy as np
import pytest

from transpl._utils.hashing import digest_of

X = np.arange(6, dtype=np.float32)


def test_equal_values_have_equal_digests():
    assert digest_of(X, {"a": 1, "b": [2]}) == digest_of(X.copy(), {"b": [2], "a": 1})


@pytest.mark.parametrize(
    "other",
    [
        [X.astype(np.float64)],
        [X.reshape(2, 3)],
        [X[::-1]],
        [X, []],
        [X[:3], X[3:]],
        [X.tolist()],
    ],
    ids=["type", "shape", "order", "one more", "another cut", "a list"],
)
def test_what_differs_has_another(other):
    assert digest_of(X) != digest_of(*other)


def test_neighbours_do_not_run_into_each_other():
    assert digest_of("ab", "c") != digest_of("a", "bc")


def test_a_view_of_every_second_value_is_as_good_as_its_copy():
    assert digest_of(X[::2]) == digest_of(X[::2].copy())


def test_objects_count_by_what_they_look_like():
    day = np.array([np.datetime64("2025-01-01"), None, "x"], dtype=object)
    assert digest_of(day) == digest_of(day.copy())
    assert digest_of(day) != digest_of(day[::-1])
