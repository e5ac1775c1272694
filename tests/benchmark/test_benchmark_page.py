"""docs/benchmark.md: its commands can be typed, its plan can be read, its numbers are right."""

from __future__ import annotations

import re
import shlex
from math import comb
from pathlib import Path

import pytest
from command_line import transpl

from transpl.benchmark.paper_tables import TABLES
from transpl.benchmark.plan import read_plans
from transpl.benchmark.selection import RULES
from transpl.benchmark.statistics import holm, least_p, signed_rank_p
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
        assert transpl(monkeypatch, command, "--help") == 0
        known |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"(?<=`)--[a-z-]+", PAGE)) <= known


def test_every_table_and_rule_is_explained():
    assert set(TABLES) <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.M))
    assert set(RULES) <= set(re.findall(r"^\| `(\w+)`", PAGE, flags=re.M))


def test_the_least_p_of_ten_pairs():
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (0\.\d+) \|$", PAGE, flags=re.M)
    assert len(rows) == 4
    clearest = signed_rank_p(range(1, 11))
    for methods, comparisons, p in rows:
        assert int(comparisons) == comb(int(methods), 2)
        assert float(p) == pytest.approx(least_p(10, int(comparisons)), abs=5e-4)
        assert float(p) == pytest.approx(holm([clearest, *[1.0] * (int(comparisons) - 1)])[0], abs=5e-4)
