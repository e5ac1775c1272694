"""docs/benchmark.md: its commands can be typed, its plan can be read, its numbers are right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import transpl

from transpl.benchmark.paper_tables import TABLES
from transpl.benchmark.plan_files import read_plans
from transpl.benchmark.selection import RULES
from transpl.benchmark.statistics import rank_differences
from transpl.methods import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.M | re.S)
    for line in block.splitlines()
    if line.startswith("transpl bench") and "ucihar" not in line
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_plan_runs(command, monkeypatch, capsys, tmp_path):
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path))
    monkeypatch.chdir(ROOT)
    assert transpl(monkeypatch, *shlex.split(command)[1:-2], "--out", tmp_path / "out", "--dry-run") == 0
    assert "0 finished, " in capsys.readouterr().out


def test_there_are_commands():
    assert len(COMMANDS) == 2


def test_the_plan_can_be_read(tmp_path):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.M | re.S)
    (tmp_path / "plan.yaml").write_text(text)
    one, other = read_plans(tmp_path / "plan.yaml")
    assert (one.dataset, one.seeds, one.grid) == ("ucihar", (0, 1, 2), {"adapt_lr": [1e-3, 5e-4]})
    assert [row.label for row in other.rows] == ["transpl", "short patches"]


def test_every_option_is_on_the_page_under_its_own_name(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    known = set()
    for command in ("bench", "table"):
        assert transpl(monkeypatch, command, "--help-all") == 0
        known |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"(?<=`)--[a-z-]+", PAGE)) <= known


def test_every_table_and_rule_is_explained():
    assert set(TABLES) <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.M))
    assert set(RULES) <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.M))


def test_the_critical_differences_in_the_table():
    rows = re.findall(r"^\| (\d+) \| (\d\.\d+) \| (\d\.\d+) \| (\d\.\d+) \|$", PAGE, flags=re.M)
    assert len(rows) == 3
    for methods, *printed in rows:
        k = int(methods)
        found = [rank_differences([list(range(k))] * n).critical(0.05, k - 1) for n in (10, 20, 34)]
        assert list(map(float, printed)) == pytest.approx(found, abs=0.006)
