"""The examples run."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

from transpl.methods import registry

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_new_method_in_the_benchmark(monkeypatch, capsys):
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # what it registers is forgotten again
    monkeypatch.setattr(sys, "argv", ["new_method.py", "--epochs", "1"])
    runpy.run_path(str(EXAMPLES / "new_method.py"), run_name="__main__")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["pair", "method", "accuracy", "macro-F1", "seconds"]
    assert [row.split()[3] for row in rows] == ["no-adapt", "softmax", "euclidean"] * 2
    assert all(re.search(r" [01]\.\d{3} +[01]\.\d{3} +\d+\.\d$", row) for row in rows)
