"""What a target may be, how one is told from another, which files are meant and what they are called."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import refusal
from targets_to_read import read_waves

from transpl.datasets.recordings.reading import read_recordings
from transpl.datasets.recordings.several import expand_patterns, is_pattern
from transpl.jobs.target_files import (
    TargetFile,
    as_target,
    name_files,
    read_target,
    target_digest,
)


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
        assert found.origin.columns.tolist() == ["window", "group"]
        assert names == ("channel_0", "channel_1")


def test_windows_have_the_names_that_are_given():
    found, names = read_target(np.zeros((2, 2, 16)), ("a", "b"))
    assert (found.y, found.origin, names) == (None, None, ("a", "b"))
    with refusal("target", "expected channels a, got channel_0, channel_1"):
        read_target(lambda: read_recordings_of_two(), ("a",))


def read_recordings_of_two():
    from transpl.datasets.recordings.reading import Recordings

    return Recordings(np.zeros((2, 2, 16)), None, None, None, None, ("channel_0", "channel_1"), "")


def test_identities_tell_apart_what_gives_other_results(npz):
    file, X = TargetFile(npz), np.zeros((2, 2, 16))
    assert target_digest(file) == target_digest(TargetFile(npz))
    assert target_digest(file) != target_digest(TargetFile(npz, {"channels": ["channel_0"]}))
    before = target_digest(file)
    np.savez(npz, X=X)
    assert target_digest(file) != before
    assert target_digest(X) == target_digest(X.copy())
    assert target_digest(X) != target_digest(X + 1)
    assert target_digest(partial(read_waves, 1)) != target_digest(partial(read_waves, 2))


def test_what_cannot_be_known_has_no_identity(tmp_path):
    assert target_digest(TargetFile(tmp_path / "absent.npz")) is None
    assert target_digest(threading.Lock()) is None


# files and their names


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/x.npz", "a/y.npz", "b/x.npz", "b/deep/z.npz", "odd[1].npz"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def paths(*names):
    return [Path(name) for name in names]


def test_patterns_are_replaced_by_files_in_order(files):
    assert expand_patterns(paths("a/*.npz")) == paths("a/x.npz", "a/y.npz")
    assert expand_patterns(paths("b/x.npz", "a/*.npz")) == paths("b/x.npz", "a/x.npz", "a/y.npz")
    assert expand_patterns(paths("b/**/*.npz")) == paths("b/deep/z.npz", "b/x.npz")
    assert expand_patterns(paths("b/*")) == paths("b/x.npz")  # the folder is no file


def test_a_file_that_is_named_twice_is_meant_once(files):
    assert expand_patterns([*paths("a/x.npz", "a/../a/x.npz", "a/*.npz"), files / "a" / "y.npz"]) == paths(
        "a/x.npz", "a/y.npz"
    )


def test_a_file_with_brackets_in_its_name_is_itself(files):
    assert not is_pattern(Path("odd[1].npz"))
    assert is_pattern(Path("odd[2].npz"))
    assert expand_patterns(paths("odd[1].npz")) == paths("odd[1].npz")


def test_a_missing_file_stays_to_be_complained_about_later(files):
    assert expand_patterns(paths("absent.npz")) == paths("absent.npz")


def test_a_pattern_without_a_match_is_refused(files):
    with refusal("target", r"c/\*\.npz, which matches none"):
        expand_patterns(paths("a/x.npz", "c/*.npz"))


def test_files_are_named_after_themselves(files):
    assert name_files(paths("a/x.npz", "a/y.npz", "more/z.csv.gz")) == dict(
        zip("xyz", paths("a/x.npz", "a/y.npz", "more/z.csv.gz"), strict=True)
    )
    assert name_files([]) == {}


def test_and_after_their_folders_where_that_tells_them_apart(files):
    assert list(name_files(paths("a/x.npz", "b/x.npz", "a/y.npz"))) == ["a-x", "b-x", "a-y"]
    assert list(name_files(paths("p/a/x.npz", "q/a/x.npz"))) == ["p-a-x", "q-a-x"]
    assert list(name_files(paths("a/x.npz", "a/x.csv"))) == ["x.npz", "x.csv"]
    assert list(name_files(paths("x.npz", "../x.npz"))) == [f"{files.name}-x", f"{files.parent.name}-x"]


def test_names_that_are_taken_are_avoided():
    assert list(name_files(paths("model.npz", "x.npz"), taken=("model",))) == ["model.npz", "x.npz"]


def test_a_hidden_file_has_a_name_that_is_seen():
    assert list(name_files(paths(".secret.npz"))) == ["secret"]


def test_names_that_cannot_be_told_apart_are_refused():
    with refusal("targets", "different names"):
        name_files(paths("/.x.npz", "/x.npz"))
