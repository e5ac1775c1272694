"""The examples run; in a process of their own, because they register methods."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_new_method_in_the_benchmark(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "new_method.py"), "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["pair", "method", "accuracy", "macro-F1", "seconds"]
    assert [row.split()[3] for row in rows] == ["no-adapt", "softmax", "euclidean"] * 2
    assert all(re.search(r" [01]\.\d{3} +[01]\.\d{3} +\d+\.\d$", row) for row in rows)
