"""MATLAB's files: the same values as scipy's reader finds, and damaged files end in an error, not in a crash."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from transpl.datasets.recordings.matlab_files import read_matlab

RNG = np.random.default_rng(0)


def written(folder: Path, values: dict[str, Any], **options: Any) -> Path:
    savemat(folder / "a.mat", values, **options)
    return folder / "a.mat"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "bool"])
def test_numbers_of_every_type_are_scipys(tmp_path: Path, dtype: str, packed: bool) -> None:
    values = {"a": (100 * RNG.random((4, 3, 5))).astype(dtype), "b": np.arange(7).astype(dtype)}
    path = written(tmp_path, values, do_compression=packed)
    found, known = read_matlab(path), loadmat(path)
    for name in values:
        np.testing.assert_array_equal(found[name], known[name])


def test_structs_cells_and_texts(tmp_path: Path) -> None:
    trial = {"acc": RNG.random((6, 3)), "who": "änn", "inner": {"t": np.arange(6.0)}}
    words = np.array(["walk", "", "sit down"], dtype=object)
    found = read_matlab(written(tmp_path, {"trial": trial, "activity": words, "rows": np.array(["ab", "cde"])}))
    np.testing.assert_array_equal(found["trial/acc"], trial["acc"])
    np.testing.assert_array_equal(found["trial/inner/t"].reshape(-1), np.arange(6.0))
    assert found["trial/who"].tolist() == ["änn"]
    assert found["activity"].tolist() == ["walk", "", "sit down"]
    assert found["rows"].tolist() == ["ab", "cde"]


def test_several_structs_and_cells_of_structs_are_numbered(tmp_path: Path) -> None:
    structs = np.array([{"x": np.arange(3.0)}, {"x": np.ones(2)}], dtype=object)
    found = read_matlab(written(tmp_path, {"cell": structs}))
    assert {name: array.size for name, array in found.items()} == {"cell/1/x": 3, "cell/2/x": 2}
    several = np.zeros(2, dtype=[("x", object)])
    several["x"] = [np.arange(3.0), np.ones(2)]
    found = read_matlab(written(tmp_path, {"several": several}))
    assert {name: array.size for name, array in found.items()} == {"several/1/x": 3, "several/2/x": 2}


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    from scipy.sparse import eye

    found = read_matlab(
        written(tmp_path, {"c": np.array([1j]), "s": eye(3).tocsc(), "a": np.ones(2), "e": np.empty(0)})
    )
    assert found.keys() == {"a", "e"}


@pytest.mark.parametrize("content", [b"", b"x" * 200, bytes(128)])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(ValueError, match="version"):
        read_matlab(tmp_path / "a.mat")


def test_damage_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = written(
        tmp_path, {"trial": {"acc": RNG.random((6, 3)), "who": "ann", "label": np.array(["a", "b"], object)}}
    )
    sound, rng = path.read_bytes(), random.Random(0)
    for _ in range(200):
        damaged = bytearray(sound)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(128, len(damaged))] = rng.choice([0, 1, 255, rng.randrange(256)])
        path.write_bytes(damaged[: rng.choice([len(damaged), rng.randrange(128, len(damaged))])])
        try:
            read_matlab(path)
        except (ValueError, UnicodeDecodeError, OverflowError):
            continue
