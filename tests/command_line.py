"""The command line in this process, and recordings to run it on."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from transpl import cli

FAST = ["--epochs", "1", "--width", "16", "--seed", "3", "--device", "cpu"]


def transpl(monkeypatch, *words: str) -> int:
    """Run the command line in this process; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["transpl", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def walk(seed: int, gain: float) -> pd.DataFrame:
    """A long table: two people doing two things, with a gap in time."""
    rng = np.random.default_rng(seed)
    n = 1200
    label = np.where(np.arange(n) // 200 % 2 == 0, "walk", "run")
    pace = np.where(label == "walk", 0.2, 0.9)
    phase = np.cumsum(pace)
    time = np.arange(n) * 0.02
    time[700:] += 5.0
    return pd.DataFrame(
        {
            "t": time,
            "ax": gain * np.sin(phase) + 0.1 * rng.normal(size=n),
            "ay": gain * np.cos(phase) + 0.1 * rng.normal(size=n),
            "activity": label,
        }
    )


READ = ["--label-col", "activity", "--time-col", "t", "--window", "64"]


def adapt(monkeypatch, files, target: str, *more: str) -> int:
    paths = ["--source", files / "lab.csv", "--target", files / target, "--out", files / "out"]
    return transpl(monkeypatch, "adapt", *paths, *READ, *FAST, *more)
