"""Results on disk, complete or absent, and locks between processes."""

from __future__ import annotations

import errno
import json
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from conftest import refusal
from tiny_bench import half_files, keep, made_up

from transpl._utils.errors import UnreadableFile
from transpl.benchmark.run_spec import RunSpec
from transpl.benchmark.store import Store

SPEC = RunSpec("small", "abc", 0, 1, "softmax", 0, {"width": 16, "betas": (0.9, 0.99), "prior": None})
OTHER = replace(SPEC, seed=1)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "bench")


def path_of(store, spec=SPEC, kind="runs"):
    return store.folder / kind / f"{spec.digest}.json"


class FullDisk:
    """Makes the n-th file that is put in its place, and all after it, fail."""

    def __init__(self, monkeypatch, n: int = 1) -> None:
        self.left, self.replace, self.full = n, os.replace, True
        monkeypatch.setattr(os, "replace", self)

    def __call__(self, *paths):
        self.left -= 1
        if self.full and self.left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.replace(*paths)


def test_a_result_comes_back_as_it_was(store):
    arrays = {"test_probabilities": np.random.default_rng(0).random((4, 3)), "initial_labels": np.arange(5)}
    result = made_up(SPEC, 0.75, details={"codebooks": {"coarse": {"dead": 1, "codes": 8}}}, risks={"dev": -1e-17})
    store.write(SPEC, result, arrays)
    assert store.has(SPEC)
    assert store.read(SPEC) == store.find(SPEC) == result
    assert list(store.results()) == [(SPEC, result)]
    found = store.arrays(SPEC)
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    record = json.loads(path_of(store).read_text())
    assert record["spec"] == SPEC.as_dict() | {"settings": dict(SPEC.settings)}


def test_what_is_not_there_is_missing(store):
    keep(store, SPEC)
    assert store.missing([SPEC, OTHER]) == [OTHER]
    assert store.find(OTHER) is None
    with refusal(path_of(store, OTHER), "no such file"):
        store.read(OTHER)


@pytest.mark.parametrize("nth", [1, 2])
def test_a_full_disk_leaves_no_half_file_and_no_result(store, monkeypatch, nth):
    disk = FullDisk(monkeypatch, nth)
    with pytest.raises(OSError, match="No space left"):
        keep(store, SPEC)
    assert half_files(store.folder) == []
    assert not store.has(SPEC)
    assert list(store.results()) == []
    disk.full = False
    keep(store, SPEC)
    assert store.has(SPEC)


def test_the_disk_is_full_while_the_arrays_are_written(store, monkeypatch):
    def full(stream, **_):
        stream.write(b"PK half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        keep(store, SPEC)
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


def test_the_json_is_written_last(store, monkeypatch):
    FullDisk(monkeypatch, 2)
    with pytest.raises(OSError, match="No space left"):
        keep(store, SPEC)
    assert path_of(store).with_suffix(".npz").exists()
    assert not path_of(store).exists()


DAMAGE = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "no record": lambda text: "[1, 2]",
    "another format": lambda text: text.replace("transpl-run-1", "transpl-run-9"),
    "another spec": lambda text: text.replace('"target": 1', '"target": 2'),
    "no spec": lambda text: text.replace('"target": 1', '"target": "x"'),
    "fields missing": lambda text: text.replace('"fingerprint"', '"fingermark"'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_result_is_named_and_counts_as_missing(store, damage):
    keep(store, SPEC)
    keep(store, OTHER)
    path = path_of(store)
    path.write_text(damage(path.read_text()))
    with pytest.warns(UserWarning, match=f"{SPEC.digest}.json: .*counts as missing") as caught:
        assert store.missing([SPEC, OTHER]) == [SPEC]
    assert "\n" not in str(caught[0].message)
    with pytest.warns(UserWarning, match=SPEC.digest):
        assert [spec for spec, _ in store.results()] == [OTHER]
    with pytest.raises(UnreadableFile):
        store.read(SPEC)
    keep(store, SPEC)
    assert store.missing([SPEC, OTHER]) == []


def test_files_that_are_being_written_are_not_read(store):
    keep(store, SPEC)
    store.plan([SPEC])
    for folder in ("runs", "plans"):
        (store.folder / folder / f".{OTHER.digest}.json.a1b2c3d4.part.json").write_text('{"format": "tra')
    assert [spec for spec, _ in store.results()] == [SPEC]
    assert store.planned() == [SPEC]


def test_half_files_of_a_run_are_removed_and_those_of_others_left_alone(store):
    keep(store, SPEC)
    names = [f".{spec.digest}.{kind}.q3a81f0c.part.{kind}" for spec in (SPEC, OTHER) for kind in ("json", "npz")]
    for name in names:
        (store.folder / "runs" / name).touch()
    store.remove_partial_files(SPEC)
    assert sorted(path.name for path in half_files(store.folder)) == sorted(names[2:])
    assert store.has(SPEC)


def test_a_failure_is_kept_until_the_run_succeeds(store):
    store.fail(SPEC, "RuntimeError: no", "Traceback ...", 2)
    failure = store.failure(SPEC)
    assert (failure.spec, failure.error, failure.traceback, failure.attempts) == (
        SPEC,
        "RuntimeError: no",
        "Traceback ...",
        2,
    )
    assert store.missing([SPEC]) == [SPEC]
    keep(store, SPEC)
    assert store.failure(SPEC) is None
    assert not path_of(store, kind="failures").exists()


def test_a_damaged_record_of_a_failure_is_no_failure(store):
    store.fail(SPEC, "RuntimeError: no", "", 1)
    path_of(store, kind="failures").write_text("{")
    with pytest.warns(UserWarning, match=SPEC.digest):
        assert store.failure(SPEC) is None


def test_a_failure_that_cannot_be_removed_does_not_undo_the_run(store):
    path_of(store, kind="failures").mkdir(parents=True)  # unlink refuses a folder
    keep(store, SPEC)
    assert store.has(SPEC)


def test_plans_add_up_and_each_run_is_planned_once(store):
    assert store.planned() == []
    store.plan([SPEC])
    store.plan([SPEC, OTHER])
    store.plan([SPEC])
    assert len(list((store.folder / "plans").glob("*.json"))) == 2
    assert sorted(spec.seed for spec in store.planned()) == [0, 1]


@pytest.mark.parametrize("text", ["{", '{"format": "transpl-run-1", "runs": [{"dataset": 1}]}', '{"runs": []}'])
def test_a_damaged_plan_is_named_and_the_others_count(store, text):
    store.plan([SPEC])
    bad = store.folder / "plans" / "0.json"
    bad.write_text(text)
    with pytest.warns(UserWarning, match=r"plans/0\.json: "):
        assert store.planned() == [SPEC]


def test_a_run_of_a_method_that_is_not_installed_does_no_harm(store):
    stranger = replace(SPEC, method="not-installed")
    store.plan([stranger, SPEC])
    keep(store, stranger)
    keep(store, SPEC)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {spec.method for spec, _ in store.results()} == {"not-installed", "softmax"}
        assert store.missing(store.planned()) == []


def test_checkpoints_go_when_the_run_is_finished(store):
    for spec in (SPEC, OTHER):
        store.checkpoints(spec).mkdir(parents=True)
        (store.checkpoints(spec) / "adapt-1.ckpt").touch()
    keep(store, SPEC)
    assert not store.checkpoints(SPEC).exists()
    store.checkpoints(SPEC).mkdir()  # as if killed before they were removed
    store.remove_old_checkpoints([SPEC, OTHER])
    assert not store.checkpoints(SPEC).exists()
    assert store.checkpoints(OTHER).exists(), "an unfinished run goes on from them"


def test_half_plans_and_failures_are_removed_by_the_next(store):
    for kind in ("plans", "failures"):
        (store.folder / kind).mkdir(parents=True)
        (store.folder / kind / ".1.json.a1b2c3d4.part.json").touch()
    store.plan([SPEC])
    store.fail(SPEC, "RuntimeError: no", "", 1)
    assert half_files(store.folder) == []


def test_is_used_once_a_benchmark_wrote_to_the_folder(store):
    assert not store.is_used
    store.plan([SPEC])
    assert store.is_used


def test_a_result_that_was_edited_counts_as_missing(store):
    keep(store, SPEC, accuracy=0.5)
    path_of(store).write_text(path_of(store).read_text().replace('"accuracy": 0.5', '"accuracy": 0.9'))
    with pytest.warns(UserWarning, match="changed since it was written"):
        assert store.find(SPEC) is None


def test_a_result_of_an_older_version_has_no_digest(store):
    keep(store, SPEC)
    record = json.loads(path_of(store).read_text())
    del record["digest"]
    path_of(store).write_text(json.dumps(record))
    assert store.has(SPEC)
