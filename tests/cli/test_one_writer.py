"""Two of each writing command on one place: the second is refused from the first one's lock to its last byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import transpl, walk

READ = ["--label-col", "activity", "--time-col", "t", "--window", "64"]
QUICK = ["--threads", "1", "--set", 'witnesses=["linear"]']
PAPER = ["--variant", "paper", "--mode", "markov", "--epochs", "1", "--width", "16", "--threads", "1"]
WAITING = Path(__file__).with_name("commands_that_wait.py")


class OtherProcess:
    """Runs commands, and waits where they take and release their lock."""

    def __init__(self, place: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WAITING)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=place,
            env={**os.environ, "TRANSPL_DATA": str(place / "data")},
        )

    def tell(self, words: object = "go on") -> list:
        """Start a command, or let it go on; return what it says next."""
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def other(place):
    started = OtherProcess(place)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    walk(0, 1.0).to_csv(folder / "lab.csv", index=False)
    walk(1, 1.5).to_csv(folder / "home.csv", index=False)
    walk(2, 1.2).to_csv(folder / "street.csv", index=False)
    X = np.random.default_rng(0).normal(size=(30, 2, 64)).astype(np.float32)
    np.save(folder / "windows.npy", X)
    (folder / "HAR").mkdir()
    for part in ("train", "test"):
        torch.save({"samples": torch.from_numpy(X), "labels": torch.arange(30) % 2}, folder / "HAR" / f"{part}_1.pt")
    return folder


# In this order: later ones use what earlier ones left. The words, and a file that is written.
COMMANDS = {
    "adapt": (["adapt", "--source", "lab.csv", "--target", "home.csv", "--out", "one", *READ, *QUICK], "report.html"),
    "adapt to many": (
        ["adapt", "--source", "lab.csv", "--target", "*e*.csv", "--out", "many", "--backend", "inline", *READ, *QUICK],
        "summary.csv",
    ),
    "demo": (["demo", "--dataset", "synthetic", "--out", "demo", *QUICK], "report.html"),
    "label": (["label", "one", "windows.npy", "--out", "labels", "--threads", "1"], "progress.json"),
    "review": (["review", "--model", "one", "--out", "few.csv"], "few.csv"),
    "report": (["report", "one"], "report.html"),
    "adapt by the paper's method": (
        ["adapt", "--source", "lab.csv", "--target", "home.csv", "--out", "paper", *READ, *PAPER],
        "report.html",
    ),
    "figure": (["figure", "alignment", "paper"], "alignment.html"),
    "datasets import": (["datasets", "import", "HAR", "--format", "adatime", "--name", "theirs"], "theirs.json"),
    "datasets make": (["datasets", "make", "home.csv", "--name", "mine", "--label-col", "activity"], "mine.json"),
}


SLOW = ("adapt by the paper's method", "figure")  # which need torch


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in COMMANDS])
def test_a_second_one_is_refused_and_changes_nothing(monkeypatch, capsys, other, place, name):
    words, last = COMMANDS[name]
    monkeypatch.setenv("TRANSPL_DATA", str(place / "data"))
    monkeypatch.chdir(place)
    said = other.tell(words)
    path = said[1]
    for expected in ("holds", "releases"):
        assert said == [expected, path]
        capsys.readouterr()
        assert transpl(monkeypatch, *words) == 2
        assert f"held by process {other.process.pid} (" in capsys.readouterr().err.splitlines()[-1]
        said = other.tell()
    assert said == ["exit", 0]
    assert not Path(path).exists()
    assert list(place.rglob(last))
