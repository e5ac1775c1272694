import hashlib

import numpy as np
import pytest

from transpl._utils.hashing import hash_bytes, hash_file, hash_json, hash_pickle, hash_values, hash_window

X = np.arange(6, dtype=np.float32)


def test_equal_values_have_equal_digests():
    assert hash_values(X, {"a": 1, "b": [2]}) == hash_values(X.copy(), {"b": [2], "a": 1})


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
    assert hash_values(X) != hash_values(*other)


def test_neighbours_do_not_run_into_each_other():
    assert hash_values("ab", "c") != hash_values("a", "bc")


def test_a_view_of_every_second_value_is_as_good_as_its_copy():
    assert hash_values(X[::2]) == hash_values(X[::2].copy())


def test_objects_count_by_what_they_look_like():
    day = np.array([np.datetime64("2025-01-01"), None, "x"], dtype=object)
    assert hash_values(day) == hash_values(day.copy())
    assert hash_values(day) != hash_values(day[::-1])


def test_digests_on_disk_stay_what_they_were():
    """They name runs, trained sources, finished targets and saved models."""
    assert hash_json({"b": [1, 0.5, None], "a": "é"})[:16] == "996e019d6eaa9972"
    assert hash_values(X, {"b": 2, "a": "é"}, np.array([1, "x"], object))[:16] == "bf8b6e3fa683000a"
    assert hash_window(X.reshape(2, 3)).hex() == "4edaf0fe20d221bc27cb2558c661fea0"


def test_pieces_are_hashed_as_one():
    whole = hashlib.sha256("aé".encode() + X.tobytes()).hexdigest()
    assert hash_bytes(["a", "é".encode(), X.data]) == whole


def test_equal_pickles_have_equal_digests():
    assert hash_pickle({"a": X}) == hash_pickle({"a": X.copy()}) != hash_pickle({"a": X + 1})


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_the_hash_of_a_file_is_that_of_its_content(tmp_path, size):
    content = (b"transpl" * size)[:size]
    (tmp_path / "a.bin").write_bytes(content)
    assert hash_file(tmp_path / "a.bin") == hash_bytes([content]) == hashlib.sha256(content).hexdigest()
