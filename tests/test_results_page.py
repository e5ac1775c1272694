"""docs/results.md: made of the runs beside it, and the figures in the README are theirs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from transpl.benchmark.paper_tables import paper_table
from transpl.datasets.pairs import PUBLISHED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_results", DOCS / "generate_results.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_runs_say(generator):
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert generator.page() == page, "run `python docs/generate_results.py` and commit docs/results.md"


# Rows of an earlier version: its runs stay on the page, its methods are gone.
GONE = {"beyond": {"transpl-plus-2025", "transpl-plus-2025-net", "transpl-plus-2025-ws"}}


@pytest.mark.parametrize("name", ["beyond", "ablation"])
def test_every_line_is_a_run_of_its_table(generator, name):
    runs = generator.read(DOCS / "results" / f"{name}.csv")
    assert len(runs) == len({(run.dataset, run.row, run.pair, run.seed) for run in runs})
    for run in runs:
        assert run.row in {row.label for row in paper_table(name).rows(run.dataset)} | GONE.get(name, set())


@pytest.mark.parametrize("name", ["beyond", "parts", "ablation"])
def test_every_line_is_a_run_on_the_papers_pairs(generator, name):
    for run in generator.read(DOCS / "results" / f"{name}.csv"):
        assert run.pair in {f"{source}-{target}" for source, target in PUBLISHED[run.dataset]}
        assert all(0 <= value <= 100 for metric, value in run.scores.items() if metric != "seconds")


def test_means_are_over_pairs_then_over_whole_seeds(generator):
    scores = {("1-2", 0): 10.0, ("3-4", 0): 20.0, ("1-2", 1): 30.0, ("3-4", 1): 50.0, ("1-2", 2): 99.0}
    runs = [generator.Run("ucihar", "shot", pair, seed, {"accuracy": score}) for (pair, seed), score in scores.items()]
    mean, spread = generator.mean_and_spread(runs, "accuracy")
    assert mean == pytest.approx((15.0 + 40.0) / 2)
    assert spread == pytest.approx(25.0 / 2**0.5)
    assert generator.mean_and_spread(runs[:2], "accuracy") == (15.0, None)


def test_a_row_that_lacks_pairs_shows_no_mean(generator):
    runs = [generator.Run("ucihar", "shot", pair, 0, {"accuracy": 50.0}) for pair in ("1-2", "3-4")]
    runs.append(generator.Run("ucihar", "t2pl", "1-2", 0, {"accuracy": 90.0}))
    assert generator._means(runs, "method").splitlines()[2:] == ["| `shot` | 50.0 | 1 x 2 |", "| `t2pl` |  | 1 x 1 |"]


def test_the_table_of_the_readme_is_that_of_the_runs(generator):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = generator.short_table()
    assert table in readme, f"put this into README.md:\n{table}"
    assert re.search(r"^\| .*`transpl-plus`.* \| \d", table, flags=re.M)
