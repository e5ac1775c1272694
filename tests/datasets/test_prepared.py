"""Prepared files: what is written comes back, and nothing damaged or pickled gets in."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets import Dataset, make_shifted
from transpl.datasets.pairs import PUBLISHED, default_pairs, pairs_for
from transpl.datasets.prepared import data_home, load_prepared, save_prepared

SHARED = Path(__file__).parents[3] / "shared" / "data"


def arrays(**changes: Any) -> dict[str, Any]:
    usual = {
        "X": np.arange(48, dtype=np.float16).reshape(4, 3, 4),
        "y": np.array([0, 1, 0, 1], np.int8),
        "domain": np.array([1, 1, 2, 2], np.int16),
        "split": np.array([0, 1, 0, 1], np.int8),
        "class_names": np.array(["sit", "walk"]),
        "channel_names": np.array(["x", "y", "z"]),
        "group": np.array([5, 5, 6, 6]),
    }
    return {**usual, **changes}


def small() -> Dataset:
    return make_shifted(n_train=6, n_test=4, length=8)


def test_half_precision_and_extra_keys_are_welcome(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **arrays())
    dataset = load_prepared(tmp_path / "mine.npz")
    assert dataset.name == "mine"
    assert dataset.X.dtype == np.float32
    np.testing.assert_array_equal(dataset.X.ravel(), np.arange(48))
    assert dataset.class_names == ("sit", "walk")
    assert dataset.pairs == ((1, 2), (2, 1))


def test_a_data_set_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    before = small()
    save_prepared(before, tmp_path / "sub" / "again.npz")
    after = load_prepared(tmp_path / "sub" / "again.npz", name="synthetic")
    assert after.groups is None
    for field in ("X", "y", "domain_ids", "split"):
        np.testing.assert_array_equal(getattr(before, field), getattr(after, field))
    for field in ("name", "class_names", "channel_names", "pairs"):
        assert getattr(before, field) == getattr(after, field)


def test_groups_are_kept_and_may_have_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **arrays())
    dataset = load_prepared(tmp_path / "mine.npz")
    assert dataset.groups is not None
    assert dataset.groups.tolist() == [5, 5, 6, 6]
    save_prepared(dataset, tmp_path / "again.npz")
    again = load_prepared(tmp_path / "again.npz").groups
    assert again is not None
    assert again.tolist() == [5, 5, 6, 6]
    np.savez(tmp_path / "named.npz", **arrays(group=np.array(["b", "b", "a", "c"])))
    named = load_prepared(tmp_path / "named.npz").groups
    assert named is not None
    assert named.tolist() == [1, 1, 0, 2]


def test_saved_pairs_win_over_the_rule(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **arrays(pairs=np.array([[2, 1]])))
    assert load_prepared(tmp_path / "mine.npz").pairs == ((2, 1),)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keep.npz"
    save_prepared(small(), path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        save_prepared(small(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["keep.npz"]


def refused(path: Path, message: str) -> None:
    with pytest.raises(UnreadableFile, match=message) as caught:
        load_prepared(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    refused(tmp_path / "absent.npz", "no such file")


@pytest.mark.parametrize("key", ["X", "y", "domain", "split", "class_names", "channel_names"])
def test_missing_key(tmp_path: Path, key: str) -> None:
    content = arrays()
    del content[key]
    np.savez(tmp_path / "part.npz", **content)
    refused(tmp_path / "part.npz", f"no {key}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((4, 3))}, "X: expected"),
        ({"y": np.zeros(3, int)}, "y: expected 4"),
        ({"split": np.array([0, 1, 2, 0])}, "split: expected"),
        ({"class_names": np.array("sit")}, "class_names: expected"),
        ({"channel_names": np.arange(3)}, "channel_names: expected"),
        ({"domain": np.array([1.5, 1, 2, 2])}, "domain_ids: expected"),
        ({"pairs": np.array([[1, 9]])}, "got also 9"),
    ],
)
def test_unsound_content(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays(**changes))
    refused(tmp_path / "bad.npz", message)


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def test_pickled_content_is_refused_and_not_run(tmp_path: Path) -> None:
    names = np.array([Bomb(tmp_path / "ran"), "walk"], dtype=object)
    np.savez(tmp_path / "bomb.npz", **arrays(class_names=names))
    refused(tmp_path / "bomb.npz", "pickled objects")
    np.save(tmp_path / "whole.npy", names)
    (tmp_path / "whole.npy").rename(tmp_path / "whole.npz")
    refused(tmp_path / "whole.npz", "a single array")
    assert not (tmp_path / "ran").exists()


def test_single_array_and_plain_text_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    refused(tmp_path / "one.npz", "a single array")
    (tmp_path / "text.npz").write_text("time,x\n1,2\n")
    refused(tmp_path / "text.npz", "not read|not an npz")
    (tmp_path / "empty.npz").touch()
    refused(tmp_path / "empty.npz", "not an npz")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_never_gives_other_numbers(tmp_path: Path, data: st.DataObject) -> None:
    sound = small()
    path = tmp_path / "synthetic.npz"
    if not (tmp_path / "whole").exists():
        save_prepared(sound, path)
        path.rename(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    if data.draw(st.booleans(), label="truncate"):
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    else:
        at = data.draw(st.integers(0, len(whole) - 1))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
    with contextlib.suppress(UnreadableFile):
        found = load_prepared(path)  # it can succeed: nobody reads the bytes of a date, for one
        np.testing.assert_array_equal(found.X, sound.X)
        np.testing.assert_array_equal(found.y, sound.y)


def test_data_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.setenv("TRANSPL_DATA", "")
    assert data_home().name == "transpl"


def test_default_pairs() -> None:
    assert default_pairs((1, 2, 5)) == ((1, 2), (1, 5), (2, 1), (2, 5), (5, 1), (5, 2))
    assert len(default_pairs(range(12))) == 12 * 11
    many = default_pairs(range(13))
    assert len(many) == 13
    assert many[0] == (0, 1)
    assert sorted(source for source, _ in many) == sorted(target for _, target in many) == list(range(13))
    assert default_pairs((4,)) == ()


def test_published_pairs_need_all_their_domains() -> None:
    assert pairs_for("ptb", (1, 2, 3, 4)) == ((1, 3), (1, 4), (3, 4), (4, 1))
    with pytest.raises(InputError, match="no window of 3"):
        pairs_for("ptb", (1, 2, 4))


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared prepared data are not at {SHARED}")
@pytest.mark.parametrize(
    ("name", "shape", "domains", "classes"),
    [
        ("ucihar", (10299, 9, 128), tuple(range(1, 31)), 6),
        ("wisdm", (7292, 3, 128), tuple(range(36)), 6),
        ("hhar", (4436, 3, 128), tuple(range(9)), 6),
        ("ptb", (6880, 15, 300), (1, 2, 3, 4), 2),
    ],
)
def test_shared_data(name: str, shape: tuple[int, ...], domains: tuple[int, ...], classes: int) -> None:
    dataset = load_prepared(SHARED / f"{name}.npz")
    assert dataset.X.shape == shape
    assert dataset.X.dtype == np.float32
    assert dataset.domains == domains
    assert len(dataset.class_names) == classes
    assert dataset.pairs == PUBLISHED[name]
    sizes = [(len(part.y_train), len(part.y_test)) for part in map(dataset.domain, dataset.domains)]
    assert sum(train + test for train, test in sizes) == shape[0]
    assert all(train and test for train, test in sizes)
