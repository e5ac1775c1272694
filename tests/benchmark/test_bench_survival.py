"""A benchmark that is killed, started twice, or run elsewhere gives the same table; no run is made twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from command_line import transpl
from tiny_bench import CHANGES, half_files, plan, write_data
from tiny_bench import SET as QUICK

from transpl.benchmark.runner import run_plan
from transpl.benchmark.store import Store

METHODS = Path(__file__).with_name("counting_methods.py")
LONGER = {**CHANGES, "max_epochs": 3, "check_every": 1, "adapt_patience": 3, "source_patience": 3}
SET = [word for name, value in LONGER.items() for word in ("--set", f"{name}={value}")]
PATIENCE = 600  # seconds, for machines that have much else to do
PAIRS = ("0-1", "1-2", "2-3", "3-4", "4-0")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    write_data(tmp_path / "data")
    (tmp_path / "trace").mkdir()
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(out, *, pairs, seeds=1, methods=("no-adapt", "softmax"), backend="inline", jobs=1, changes=SET):
    words = ["bench", "--dataset", "small", "--out", str(out), "--seeds", str(seeds), *changes]
    words += [word for pair in pairs for word in ("--pairs", pair)]
    words += [word for method in methods for word in ("--methods", method)]
    return [*words, "--backend", backend, "--jobs", str(jobs)]


def start(words):
    command = [sys.executable, "-m", "transpl.cli.main", *words]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(out):
    """Digest -> inode and time of the file, which change if it is written again."""
    found = [path for path in (out / "runs").glob("*.json") if not path.name.startswith(".")]
    return {path.stem: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def kill_when(out, n, words):
    """Start a bench, and kill it with everything it started once it has n results."""
    process = start(words)
    patience = time.monotonic() + PATIENCE
    while len(finished(out)) < n and process.poll() is None:
        assert time.monotonic() < patience
        time.sleep(0.01)
    everybody = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    psutil.wait_procs(everybody, timeout=10)


def table(monkeypatch, capsys, out):
    capsys.readouterr()
    assert transpl(monkeypatch, "table", out, *SET) == 0
    return capsys.readouterr().out


def assert_survives(monkeypatch, capsys, home, size, kills, resumed, jobs):
    """Kill a bench now and then; in the end everything is as if nothing had happened."""
    whole, out = home / "whole", home / "out"
    assert transpl(monkeypatch, *bench(whole, **size, **resumed)) == 0
    total = len(finished(whole))
    for n in kills:
        kill_when(out, n, bench(out, **size, backend="loky", jobs=jobs))
        before = finished(out)
        assert n <= len(before) < total, "killed in the middle"
    capsys.readouterr()
    assert transpl(monkeypatch, *bench(out, **size, **resumed)) == 0
    made = [line for line in capsys.readouterr().err.splitlines() if ": accuracy " in line]
    after = finished(out)
    assert len(made) == total - len(before)
    assert {digest: after[digest] for digest in before} == before, "no run is made twice"
    assert after.keys() == finished(whole).keys()
    assert half_files(out) == []
    assert list((out / "checkpoints").iterdir()) == []
    assert table(monkeypatch, capsys, out) == table(monkeypatch, capsys, whole)
    for spec, result in Store(whole).results():
        assert Store(out).read(spec).fingerprint == result.fingerprint


def test_kill_9_in_the_middle_changes_nothing(monkeypatch, capsys, home):
    size = {"pairs": ("0-1", "0-2", "1-0")}
    assert_survives(monkeypatch, capsys, home, size, [2], {"backend": "inline"}, jobs=1)


@pytest.mark.slow
def test_kill_9_three_times_in_forty_runs_changes_nothing(monkeypatch, capsys, home):
    size = {"pairs": PAIRS, "seeds": 4}
    assert_survives(monkeypatch, capsys, home, size, [5, 17, 31], {"backend": "loky", "jobs": 2}, jobs=2)


def traces(home, event):
    return [path.read_text() for path in (home / "trace").glob(f"{event} *")]


@pytest.mark.parametrize("backend", ["inline", pytest.param("loky", marks=pytest.mark.slow)])
def test_two_benches_on_one_folder_make_every_run_once(monkeypatch, home, backend):
    """They meet in their first runs, so that both are at work at the same time."""
    monkeypatch.setenv("MEET", "2")
    out = home / "out"
    pairs = ("0-1", "0-2", "1-0", "1-2")
    words = bench(out, pairs=pairs, methods=["counted"], backend=backend, changes=QUICK)
    both = [start([*words, "--import", str(METHODS)]) for _ in range(2)]
    for process in both:
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        assert said.endswith(f"4 of 4 runs finished; results in {out}\n")
    runs = traces(home, "run")
    assert len(runs) == len(finished(out)) == 4
    assert len(set(runs)) == 2, "both did their share"
    assert len(traces(home, "training")) == 2, "two domains"
    assert half_files(out) == []


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Fingerprints of a plan that was run in this process."""
    known = {}

    def fingerprints(specs):
        if not known:
            folder = tmp_path_factory.mktemp("here")
            known.update(
                {done.spec.digest: done.result.fingerprint for done in run_plan(specs, folder, backend="inline")}
            )
        return known

    return fingerprints


@pytest.mark.parametrize(
    "backend", ["loky", pytest.param("dask", marks=pytest.mark.slow), pytest.param("ray", marks=pytest.mark.slow)]
)
def test_every_back_end_gives_the_same_bits_and_a_run_that_kills_its_worker_costs_itself_only(home, here, backend):
    """It leaves a record. Its method is known to the workers alone."""
    specs = plan("softmax", "transpl").runs()
    deadly, out = replace(*plan("no-adapt").runs(), method="deadly"), home / backend
    options = {"backend": backend, "jobs": 2, "retries": 0, "plugins": [str(METHODS)]}
    found = {done.spec.digest: done for done in run_plan([*specs, deadly], out, **options)}
    assert found[deadly.digest].error.startswith("worker died (")
    assert len(traces(home, "deadly")) == Store(out).failure(deadly).attempts == 1
    assert Store(out).missing([*specs, deadly]) == [deadly]
    assert [found[spec.digest].error for spec in specs] == [None] * 2
    assert {spec.digest: found[spec.digest].result.fingerprint for spec in specs} == here(specs)
    assert len(list((out / "sources").glob("*/source.json"))) == 1
    assert half_files(out) == []
