"""What a target may be, and how one is told from another."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import refusal
from targets_to_read import read_waves

from transpl.datasets.recordings.reading import read_recordings
from transpl.jobs.many.targets import TargetFile, as_target, identity, read_target


@pytest.fixture
def npz(tmp_path):
    X = np.arange(4 * 2 * 16, dtype=np.float32).reshape(4, 2, 16)
    np.savez(tmp_path / "x.npz", X=X, y=np.array([0, 1, -1, 0]), group=np.array(list("ppqq")))
    return tmp_path / "x.npz"


def test_paths_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for given in ("x.npz", Path("x.npz"), TargetFile(Path("x.npz"))):
        assert as_target(given) == TargetFile(tmp_path / "x.npz")
    assert as_target(read_waves) is read_waves


def test_a_file_tells_labels_and_origins_apart_from_windows(npz):
    for target in (TargetFile(npz), partial(read_recordings, npz, labels_only_score=True)):
        found, names = read_target(target, None)
        assert np.array_equal(found.X, np.load(npz)["X"])
        assert found.y.tolist() == ["0", "1", "", "0"]
        assert found.where.columns.tolist() == ["window", "group"]
        assert names == ("channel_0", "channel_1")


def test_windows_have_the_names_that_are_given():
    found, names = read_target(np.zeros((2, 2, 16)), ("a", "b"))
    assert (found.y, found.where, names) == (None, None, ("a", "b"))
    with refusal("target", "expected channels a, got channel_0, channel_1"):
        read_target(lambda: read_recordings_of_two(), ("a",))


def read_recordings_of_two():
    from transpl.datasets.recordings.reading import Recordings

    return Recordings(np.zeros((2, 2, 16)), None, None, None, None, ("channel_0", "channel_1"), "")


def test_identities_tell_apart_what_gives_other_results(npz):
    file, X = TargetFile(npz), np.zeros((2, 2, 16))
    assert identity(file) == identity(TargetFile(npz))
    assert identity(file) != identity(TargetFile(npz, {"channels": ["channel_0"]}))
    before = identity(file)
    np.savez(npz, X=X)
    assert identity(file) != before
    assert identity(X) == identity(X.copy())
    assert identity(X) != identity(X + 1)
    assert identity(partial(read_waves, 1)) != identity(partial(read_waves, 2))


def test_what_cannot_be_known_has_no_identity(tmp_path):
    assert identity(TargetFile(tmp_path / "absent.npz")) is None
    assert identity(threading.Lock()) is None
