"""The examples run."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import make_waves

from transpl.council.witnesses import witness as witness_registry
from transpl.methods import registry

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["adapt_your_csv", "compare_methods", "read_an_explanation", "scikit_learn_tools"])
def test_the_page_of_the_gallery_runs(monkeypatch, name):
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def test_a_new_method_in_the_benchmark(monkeypatch, capsys):
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(sys, "argv", ["new_method.py", "--epochs", "1"])
    runpy.run_path(str(EXAMPLES / "new_method.py"), run_name="__main__")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["pair", "method", "accuracy", "macro_f1", "seconds"]
    assert [row.split()[:2] for row in rows] == [
        [pair, name] for pair in ("0-1", "1-2") for name in ("no-adapt", "softmax", "euclidean")
    ]
    assert all(re.search(r" [01]\.\d{3} +[01]\.\d{3} +\d+\.\d{3}$", row) for row in rows)


def test_a_new_witness_in_the_council(monkeypatch, capsys):
    witness_registry.names()
    monkeypatch.setattr(witness_registry, "_registered", dict(witness_registry._registered))
    runpy.run_path(str(EXAMPLES / "new_witness.py"), run_name="__main__")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["pair", "witnesses", "accuracy", "estimated", "rhythm", "here"]
    assert ["rhythm" in row for row in rows] == [False, True] * 2
    assert all(0 < float(row.split()[-1]) <= 1 for row in rows if "rhythm" in row)


def test_the_new_witness_learns_and_is_restored(monkeypatch):
    monkeypatch.setattr(witness_registry, "_registered", dict(witness_registry._registered))
    rhythm = runpy.run_path(str(EXAMPLES / "new_witness.py"))["Rhythm"]
    X, y = make_waves(30, 0, n_classes=3)
    viewed = witness_registry.ViewedWindows(X, np.full(len(X), X.shape[2]))
    rows = rhythm().rows(viewed)
    witness = rhythm().learn(rows, y, 4)  # the last class has no window
    p = witness.answer(rows)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p > 0).all()
    assert (p.argmax(axis=1) == y).mean() > 0.9
    assert p[:, 3].max() < 1e-5
    assert np.array_equal(rhythm().restore(witness.arrays(), 4).answer(rows), p)
