"""Which files are meant, and what their targets are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import refusal

from transpl.jobs.many.names import expanded, is_pattern, named


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
    assert expanded(paths("a/*.npz")) == paths("a/x.npz", "a/y.npz")
    assert expanded(paths("b/x.npz", "a/*.npz")) == paths("b/x.npz", "a/x.npz", "a/y.npz")
    assert expanded(paths("b/**/*.npz")) == paths("b/deep/z.npz", "b/x.npz")
    assert expanded(paths("b/*")) == paths("b/x.npz")  # the folder is no file


def test_a_file_that_is_named_twice_is_meant_once(files):
    assert expanded([*paths("a/x.npz", "a/../a/x.npz", "a/*.npz"), files / "a" / "y.npz"]) == paths(
        "a/x.npz", "a/y.npz"
    )


def test_a_file_with_brackets_in_its_name_is_itself(files):
    assert not is_pattern(Path("odd[1].npz"))
    assert is_pattern(Path("odd[2].npz"))
    assert expanded(paths("odd[1].npz")) == paths("odd[1].npz")


def test_a_missing_file_stays_to_be_complained_about_later(files):
    assert expanded(paths("absent.npz")) == paths("absent.npz")


def test_a_pattern_without_a_match_is_refused(files):
    with refusal("target", r"c/\*\.npz, which matches none"):
        expanded(paths("a/x.npz", "c/*.npz"))


def test_files_are_named_after_themselves(files):
    assert named(paths("a/x.npz", "a/y.npz", "more/z.csv.gz")) == dict(
        zip("xyz", paths("a/x.npz", "a/y.npz", "more/z.csv.gz"), strict=True)
    )
    assert named([]) == {}


def test_and_after_their_folders_where_that_tells_them_apart(files):
    assert list(named(paths("a/x.npz", "b/x.npz", "a/y.npz"))) == ["a-x", "b-x", "a-y"]
    assert list(named(paths("p/a/x.npz", "q/a/x.npz"))) == ["p-a-x", "q-a-x"]
    assert list(named(paths("a/x.npz", "a/x.csv"))) == ["x.npz", "x.csv"]
    assert list(named(paths("x.npz", "../x.npz"))) == [f"{files.name}-x", f"{files.parent.name}-x"]


def test_names_that_are_taken_are_avoided():
    assert list(named(paths("model.npz", "x.npz"), taken=("model",))) == ["model.npz", "x.npz"]


def test_a_hidden_file_has_a_name_that_is_seen():
    assert list(named(paths(".secret.npz"))) == ["secret"]


def test_names_that_cannot_be_told_apart_are_refused():
    with refusal("targets", "different names"):
        named(paths("/.x.npz", "/x.npz"))
