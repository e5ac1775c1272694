"""Runs of a plan in this process: made once, tried again, and what goes wrong stays where it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from conftest import refusal
from tiny_bench import COUNTED, half_files, plan, write_data

from transpl import datasets
from transpl._utils.errors import InputError
from transpl.benchmark import runner
from transpl.benchmark.plugins import import_plugins
from transpl.benchmark.run import run_pair
from transpl.benchmark.runner import execute, interleave_sources, run_plan
from transpl.benchmark.store import Store
from transpl.methods import registry
from transpl.methods.softmax import Softmax
from transpl.nn import Execution
from transpl.nn.objectives import AdaptationObjective


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    write_data(tmp_path / "data")
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "data"))
    return tmp_path / "bench"


@pytest.fixture
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))


def run(specs, folder, **options):
    return list(run_plan(specs, folder, backend="inline", **options))


def files_of(folder):
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (folder / "runs").iterdir()}


def test_scaled_channels_are_those_of_the_scaled_data_set(home):
    plain, scaled = (replace(plan("no-adapt"), normalise=rule).runs()[0] for rule in ("none", "domain"))
    results = {done.spec.normalise: done.result for done in run([plain, scaled], home)}
    assert results["none"].fingerprint != results["domain"].fingerprint
    here = {"execution": Execution("cpu", n_threads=1), "changes": dict(scaled.settings)}
    (alone,) = run_pair(datasets.load("small", normalise="domain"), (0, 1), ["no-adapt"], **here)
    assert results["domain"].fingerprint == alone.fingerprint


def test_a_run_gives_what_run_pair_gives(home):
    specs = plan("softmax", "transpl", "target-only").runs()
    for done in run(specs, home):
        settings = asdict(done.spec.method_settings())
        del settings["random_state"]
        here = {"execution": Execution("cpu", n_threads=1), "changes": settings}
        (alone,) = run_pair(datasets.load("small"), (0, 1), [done.spec.method], **here)
        assert (done.error, alone.error) == (None, None)
        assert done.result.test == alone.test
        assert done.result.pseudo_labels == alone.pseudo_labels
        assert done.result.fingerprint == alone.fingerprint
        assert done.result.risks.keys() == {"source_risk", "iwcv", "dev", "few_shot", "target_oracle"}


def test_a_result_on_disk_is_the_one_yielded_with_all_that_belongs_to_it(home):
    (spec,) = plan("transpl").runs()
    (done,) = run([spec], home)
    store = Store(home)
    assert store.read(spec) == done.result
    assert {"python", "transpl", "torch", "numpy"} <= done.result.versions.keys()
    assert {"source", "start", "adapt", "predict"} == done.result.seconds.keys()
    assert len(done.result.details["channel_weights"]) == 2
    assert done.result.details["codebooks"]["coarse"]["codes"] == 4
    arrays = store.arrays(spec)
    assert arrays["test_probabilities"].shape == (15, 3)
    assert arrays["initial_labels"].shape == (24,)
    data = datasets.load("small").domain(1)
    assert done.result.test["accuracy"] == np.mean(arrays["test_probabilities"].argmax(axis=1) == data.y_test)


def test_details_that_methods_tell_are_in_the_result(home):
    att = plan("att", pretrain_epochs=1, rounds=1, round_epochs=1, threshold=0.0).runs()
    of = {done.spec.method: done.result for done in run([*att, *plan("shot", "softmax").runs()], home)}
    learnt = of["att"].details["learnt_from"]
    assert learnt["share"] == learnt["rows"] / 24 > 0
    assert 0 <= learnt["accuracy"] <= 1
    assert set(of["shot"].details["source_guard"]) == {"held_back", "cross_entropy", "bound"}
    assert of["softmax"].details == {}
    assert Store(home).read(plan("shot").runs()[0]) == of["shot"]


def test_what_is_finished_is_not_made_again(home):
    specs = plan("no-adapt", "softmax", pairs=[(0, 1), (0, 2)]).runs()
    assert len(run(specs[:3], home)) == 3
    before = files_of(home)
    (last,) = run(specs, home)
    assert last.spec == specs[3]
    assert run(specs, home) == []
    after = files_of(home)
    assert {path: after[path] for path in before} == before
    assert len(list((home / "sources").glob("*/source.json"))) == 1, "one source model for all four"


@pytest.mark.parametrize("year", [1990, 2100])
def test_a_clock_that_was_moved_makes_nothing_twice(home, year):
    specs = plan("no-adapt", "softmax").runs()
    first, _ = run(specs, home)
    (home / "runs" / f"{first.spec.digest}.json").unlink()
    for path in home.rglob("*"):
        os.utime(path, times=((year - 1970) * 31_556_952,) * 2)
    (again,) = run(specs, home)
    assert (again.spec, again.result.fingerprint) == (first.spec, first.result.fingerprint)
    assert run(specs, home) == []


def test_only_labels(home):
    row = replace(plan("transpl").rows[0], goal="label")
    (spec,) = replace(plan("transpl"), rows=(row,)).runs()
    (done,) = run([spec], home)
    assert done.result.test == {}
    assert set(done.result.pseudo_labels) == {"initial"}
    assert set(done.result.seconds) == {"source", "start", "label"}
    assert len(done.result.details["channel_weights"]) == 2
    (whole,) = run(plan("transpl").runs(), home)
    assert whole.result.pseudo_labels["initial"] == done.result.pseudo_labels["initial"]


def test_a_failure_costs_its_run_only_and_leaves_a_record(home, monkeypatch):
    def fail(self, target, prior):
        raise RuntimeError("out of luck")

    specs = plan("softmax", "no-adapt").runs()
    with monkeypatch.context() as patch:
        patch.setattr(Softmax, "_adapt", fail)
        found = {done.spec.method: done for done in run(specs, home, retries=2)}
    assert found["no-adapt"].error is None
    assert found["softmax"].error == "RuntimeError: out of luck"
    failure = Store(home).failure(found["softmax"].spec)
    assert failure.attempts == 3
    assert "in fail" in failure.traceback
    (again,) = run(specs, home)
    assert (again.spec.method, again.error) == ("softmax", None)
    assert list((home / "failures").iterdir()) == []


def test_a_damaged_result_is_made_again(home):
    (spec,) = plan().runs()
    (first,) = run([spec], home)
    path = home / "runs" / f"{spec.digest}.json"
    path.write_text(path.read_text()[:100])
    with pytest.warns(UserWarning, match=spec.digest):
        (second,) = run([spec], home)
    assert second.result.fingerprint == first.result.fingerprint
    assert json.loads(path.read_text())["result"]["fingerprint"] == first.result.fingerprint


def test_a_full_disk_fails_runs_and_nothing_else(home, monkeypatch):
    """For a while no file can be put in its place: those runs are reported, the next bench makes them."""
    specs = plan("no-adapt", "softmax", pairs=[(0, 1), (1, 0)]).runs()
    put, room = os.replace, 9

    def full(source, target):
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        found = run(specs, home)
    assert len(found) == 4
    errors = [done.error for done in found if done.error]
    assert 0 < len(errors) < 4
    assert all(error.startswith("OSError: [Errno 28] No space left") and "no record kept" in error for error in errors)
    assert half_files(home) == []
    assert len(Store(home).missing(specs)) == len(errors)
    finished = files_of(home)
    again = run(specs, home)
    assert [done.error for done in again] == [None] * len(errors)
    assert half_files(home) == []
    whole = files_of(home)
    kept = {path: stamp for path, stamp in finished.items() if path.with_suffix(".json") in finished}
    assert {path: whole[path] for path in kept} == kept, "what was finished stays as it is"
    fresh = {done.spec.digest: done.result.fingerprint for done in run(specs, home.with_name("fresh"))}
    assert {spec.digest: Store(home).read(spec).fingerprint for spec in specs} == fresh


def test_other_data_than_the_plan_is_about_are_refused(home, tmp_path):
    write_data(tmp_path / "data", seed=1)
    (spec,) = plan().runs()
    write_data(tmp_path / "data", seed=2)
    (done,) = run([spec], home)
    assert done.error.startswith("InputError: dataset: ")
    assert Store(home).missing([spec]) == [spec]


def test_a_run_in_other_hands_is_put_off(home):
    """The run that another process holds comes last, and is taken over if it did not get it done."""
    specs = plan("no-adapt", pairs=[(0, 1), (1, 0), (2, 0)]).runs()
    lock = Store(home).lock(specs[0].digest)
    lock.__enter__()
    made = []
    runs = run_plan(specs, home, backend="inline")
    for done in runs:
        made.append(done.spec)
        if len(made) == 2:
            lock.__exit__(None, None, None)
    assert made == [specs[1], specs[2], specs[0]]


def test_a_run_that_another_process_finished_meanwhile_is_not_made_again(home, own_registry, tmp_path, monkeypatch):
    calls = counting(tmp_path, monkeypatch)
    specs = plan("counted", pairs=[(0, 1), (1, 0)]).runs()
    store = Store(home)
    lock = store.lock(specs[0].digest)
    lock.__enter__()
    runs = run_plan(specs, home, backend="inline")
    assert next(runs).spec == specs[1]
    other = execute(specs[0], home.with_name("other"))
    store.write(specs[0], other, {"a": np.zeros(1)})
    lock.__exit__(None, None, None)
    (last,) = runs
    assert (last.spec, last.result) == (specs[0], other)
    assert len(calls()) == 2


def test_who_does_not_wait_gets_no_result(home):
    (spec,) = plan().runs()
    with Store(home).lock(spec.digest):
        assert execute(spec, home, wait=False) is None
    assert execute(spec, home, wait=False) == Store(home).read(spec)


def test_who_waits_gets_the_result_of_the_other(home, own_registry, tmp_path, monkeypatch):
    calls = counting(tmp_path, monkeypatch)
    (spec,) = plan("counted").runs()
    found = []
    threads = [threading.Thread(target=lambda: found.append(execute(spec, home))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls()) == 1
    assert found[0] == found[1] == found[2]


def counting(tmp_path, monkeypatch):
    """Register the method that counts; returns a way to read its counts."""
    (tmp_path / "counted.py").write_text(COUNTED)
    monkeypatch.setenv("COUNT_FILE", str(tmp_path / "count"))
    (tmp_path / "count").touch()
    monkeypatch.delitem(sys.modules, "transpl_plugin_counted", raising=False)
    import_plugins([str(tmp_path / "counted.py")])
    return lambda: (tmp_path / "count").read_text().splitlines()


def test_methods_from_a_file(home, own_registry, tmp_path, monkeypatch):
    calls = counting(tmp_path, monkeypatch)
    specs = plan("counted", "no-adapt").runs()
    assert "counted.py" not in json.dumps(specs[0].as_dict())
    monkeypatch.chdir(tmp_path)
    mine, other = run(specs, home, plugins=["counted.py"])
    assert (mine.error, other.error) == (None, None)
    assert mine.result.versions["counted.py"].startswith("sha256 ")
    assert "counted.py" not in other.result.versions
    assert len(calls()) == 1


def test_a_relative_folder_is_the_callers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    passed = {}

    def record(work, tasks, **_):
        passed.update(work.keywords)
        return (_ for _ in ())

    monkeypatch.setattr(runner, "run_all", record)
    list(run_plan(plan().runs(), Path("here"), plugins=["mine.py", "a.module"]))
    assert passed["folder"] == tmp_path / "here"
    assert passed["plugins"] == (str(tmp_path / "mine.py"), "a.module")


def test_leftovers_of_a_killed_run_are_removed_when_it_is_made(home):
    specs = plan("softmax", pairs=[(0, 1), (1, 0)]).runs()
    run(specs[:1], home)
    for spec in specs:
        (home / "checkpoints" / spec.digest).mkdir()
        (home / "checkpoints" / spec.digest / ".adapt-1.ckpt.k.part.ckpt").touch()
    (home / "runs" / f".{specs[1].digest}.json.0a1b2c3d.part.json").touch()
    run(specs, home)
    assert half_files(home) == []
    assert list((home / "checkpoints").iterdir()) == []


def test_an_interrupted_adaptation_goes_on_where_it_was(home, monkeypatch):
    (spec,) = plan("softmax", max_epochs=4, check_every=1, adapt_patience=4).runs()
    (whole,) = run([spec], home.with_name("whole"))
    forward, steps = AdaptationObjective.forward, []

    def counted(self, batch):
        steps.append(1)
        if len(steps) == 7:
            raise KeyboardInterrupt
        return forward(self, batch)

    monkeypatch.setattr(AdaptationObjective, "forward", counted)
    with pytest.raises(KeyboardInterrupt):
        run([spec], home)
    assert len(list((home / "checkpoints" / spec.digest).glob("*.ckpt"))) == 1
    steps[:] = [1] * 100
    (done,) = run([spec], home)
    assert done.result.fingerprint == whole.result.fingerprint
    assert len(steps) - 100 < 12
    assert list((home / "checkpoints").iterdir()) == []


def test_source_models_come_in_turns():
    specs = plan("no-adapt", "softmax", pairs=[(0, 1), (0, 2), (1, 2)]).runs()
    order = [(spec.source, spec.method) for spec in interleave_sources(specs)]
    assert [source for source, _ in order[:4]] == [0, 1, 0, 1]
    assert sorted(order) == sorted((spec.source, spec.method) for spec in specs)


def test_an_unknown_back_end_is_refused_before_anything_runs(home):
    with refusal("backend"):
        list(run_plan(plan().runs(), home, backend="threads"))
    with pytest.raises(InputError):
        list(run_plan(plan().runs(), home, jobs=0))


@pytest.mark.parametrize("deleted", ["runs", "sources", "plans", "locks", "checkpoints"])
def test_folders_that_vanish_under_a_bench_cost_what_was_in_them_and_no_more(home, deleted):
    specs = plan("no-adapt", "softmax", max_epochs=1).runs()
    Store(home).plan(specs)
    outcomes = []
    for outcome in run_plan(specs, home, backend="inline"):
        outcomes.append(outcome)
        if len(outcomes) == 1:
            shutil.rmtree(home / deleted, ignore_errors=True)
    assert [outcome.error for outcome in outcomes] == [None, None]
    lost = [outcomes[0].spec] if deleted == "runs" else []
    assert Store(home).missing(specs) == lost
    assert [outcome.spec for outcome in run_plan(specs, home, backend="inline")] == lost
    assert Store(home).missing(specs) == []
