"""The smartwatch recordings: counts, split, mirror, and a reader that runs nothing."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets import Dataset
from transpl.datasets.pickles import read_pickled_npy
from transpl.datasets.recipes import watch
from transpl.datasets.recipes.watch import load_watch, watch_available, watch_file
from transpl.windows import cut

installed = pytest.mark.skipif(not watch_available(), reason='seglearn is not installed: pip install "transpl[watch]"')


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load_watch()


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    content: dict[str, Any] = read_pickled_npy(watch_file())
    return content


@installed
def test_counts(dataset: Dataset, file: dict[str, Any]) -> None:
    assert len(file["X"]) == 140
    assert len({(s, e, a) for s, e, a in zip(file["subject"], file["y"], file["side"], strict=True)}) == 140
    assert dataset.X.shape == (3605, 6, 128)
    assert dataset.domains == tuple(range(1, 11))
    assert dataset.class_names == ("PEN", "ABD", "FEL", "IR", "ER", "TRAP", "ROW")
    assert dataset.channel_names == ("ax", "ay", "az", "wx", "wy", "wz")


@installed
def test_both_parts_of_each_person_have_every_class(dataset: Dataset) -> None:
    for i in dataset.domains:
        part = dataset.domain(i)
        assert set(part.y_train) == set(part.y_test) == set(range(7))
        assert 0.3 <= len(part.y_test) / (len(part.y_train) + len(part.y_test)) <= 0.5


@installed
def test_no_recording_is_in_both_parts(file: dict[str, Any]) -> None:
    """Windows are traced back to their recording by content, not by how the loader says it made them."""
    dataset = load_watch(mirror=False)
    recording_of = {
        window.tobytes(): i for i, series in enumerate(file["X"]) for window in cut(series.T, 128, 64).windows
    }
    recording = np.array([recording_of[window.tobytes()] for window in dataset.X])
    assert len(np.unique(recording)) == 140
    assert not set(recording[dataset.split == 0]) & set(recording[dataset.split == 1])
    np.testing.assert_array_equal(np.asarray(file["y"])[recording], dataset.y)
    np.testing.assert_array_equal(np.asarray(file["subject"])[recording], dataset.domain_ids)


@installed
def test_mirror_changes_only_signs_and_only_the_right_arm(dataset: Dataset) -> None:
    plain = load_watch(mirror=False)
    np.testing.assert_array_equal(dataset.split, plain.split)
    train, test = dataset.split == 0, dataset.split == 1
    np.testing.assert_array_equal(dataset.X[train], plain.X[train])
    np.testing.assert_array_equal(dataset.X[test][:, [1, 2, 3]], plain.X[test][:, [1, 2, 3]])
    np.testing.assert_array_equal(dataset.X[test][:, [0, 4, 5]], -plain.X[test][:, [0, 4, 5]])


@installed
def test_the_arms_agree_after_the_mirror_and_not_before(dataset: Dataset) -> None:
    """A hanging arm feels gravity along x; whose sign tells the wrist."""

    def mean_ax(data: Dataset, i: int) -> tuple[float, float]:
        part, pendulum = data.domain(i), 0
        return (
            float(part.X_train[part.y_train == pendulum, 0].mean()),
            float(part.X_test[part.y_test == pendulum, 0].mean()),
        )

    plain = load_watch(mirror=False)
    for i in dataset.domains:
        left, right = mean_ax(dataset, i)
        assert left > 0.5
        assert right > 0.5
        assert mean_ax(plain, i)[1] < -0.5


@installed
def test_units_are_g(dataset: Dataset) -> None:
    assert 1.0 < np.linalg.norm(dataset.X[:, :3], axis=1).mean() < 1.3


@installed
def test_pairs_use_everyone_twice_and_no_same_pace(dataset: Dataset) -> None:
    assert len(dataset.pairs) == 10
    assert sorted(s for s, _ in dataset.pairs) == sorted(t for _, t in dataset.pairs) == list(range(1, 11))
    same_pace = {(1, 2), (3, 4), (5, 6), (8, 9)}
    assert not {tuple(sorted(pair)) for pair in dataset.pairs} & same_pace


@installed
def test_seglearn_is_never_imported() -> None:
    program = (
        "import sys; from transpl import datasets; print(len(datasets.load('watch')));"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('seglearn', 'torch', 'sklearn')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["3605", "[]"]


def test_without_seglearn_the_pip_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not watch_available()
    with pytest.raises(InputError, match=r'pip install "transpl\[watch\]"'):
        load_watch()


@installed
def test_another_version_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "watch_dataset.npy"
    other.write_bytes(watch_file().read_bytes()[:-1] + b" ")
    monkeypatch.setattr(watch, "read_pickled_npy", lambda path: pytest.fail("read"))
    with pytest.raises(UnreadableFile, match="another version"):
        watch.from_file(other)
    with pytest.raises(UnreadableFile, match="no such file"):
        watch.from_file(tmp_path / "absent.npy")


def write_npy(path: Path, value: object) -> Path:
    np.save(path, np.array(value, dtype=object), allow_pickle=True)
    return path


def test_reader_gives_back_arrays_and_plain_types(tmp_path: Path) -> None:
    value: dict[str, Any] = {"X": [np.arange(6.0).reshape(2, 3)], "y": np.array([1, 2]), "names": ["a", "b"], "n": 3}
    found = read_pickled_npy(write_npy(tmp_path / "plain.npy", value))
    np.testing.assert_array_equal(found["X"][0], value["X"][0])
    np.testing.assert_array_equal(found["y"], [1, 2])
    assert (found["names"], found["n"]) == (["a", "b"], 3)


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, call: Any, *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call, self.arguments


@pytest.mark.parametrize(
    ("call", "name"), [(os.mkdir, "mkdir"), (eval, "eval"), (np.lib.format.open_memmap, "open_memmap")]
)
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path, call: Any, name: str) -> None:
    trace = tmp_path / "ran"
    arguments = (f"__import__('os').mkdir({str(trace)!r})",) if call is eval else (str(trace),)
    path = write_npy(tmp_path / "bomb.npy", {"X": Bomb(call, *arguments)})
    with pytest.raises(UnreadableFile, match=name) as caught:
        read_pickled_npy(path)
    assert "\n" not in str(caught.value)
    assert not trace.exists()
    if call is os.mkdir:  # the bomb is a real one
        np.load(path, allow_pickle=True)
        assert trace.exists()


def test_other_encodings_are_not_reachable(tmp_path: Path) -> None:
    import _codecs

    path = write_npy(tmp_path / "codec.npy", {"X": Bomb(_codecs.encode, "uryyb", "rot13")})
    with pytest.raises(UnreadableFile, match="rot13"):
        read_pickled_npy(path)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.zeros(3))
    write_npy(tmp_path / "whole.npy", {"y": np.arange(1000)})
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-500])
    (tmp_path / "bare.npy").write_bytes(pickle.dumps({"a": 1}))
    for name in ("numbers.npy", "cut.npy", "bare.npy", "absent.npy"):
        with pytest.raises(UnreadableFile) as caught:
            read_pickled_npy(tmp_path / name)
        assert "\n" not in str(caught.value)
