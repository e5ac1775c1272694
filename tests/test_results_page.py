"""docs/results.md: made of the runs beside it, and the figures in the README are theirs."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.run_lines import SCORES as NUMBERS
from transpl.datasets.pairs import PUBLISHED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SCORES = {*NUMBERS, "label_accuracy", "label_macro_f1"} - {"seconds"}


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return script("generate_results")


def test_the_page_is_what_the_runs_say(generator):
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert generator.page() == page, "run `python docs/generate_results.py` and commit docs/results.md"


# Rows of an earlier version: its runs stay on the page, its methods are gone.
GONE = {"beyond": {"transpl-plus-2025", "transpl-plus-2025-net", "transpl-plus-2025-ws"}}


@pytest.mark.parametrize("name", ["beyond", "cnn", "ablation"])
def test_every_line_is_a_run_of_its_table(generator, name):
    runs = generator.read(DOCS / "results" / f"{name}.csv")
    assert not runs.duplicated(["dataset", "row", "pair", "seed"]).any()
    for dataset, of_set in runs.groupby("dataset"):
        assert set(of_set["row"]) <= {row.label for row in paper_table(name).rows(dataset)} | GONE.get(name, set())


@pytest.mark.parametrize("name", ["beyond", "cnn", "shallow", "parts", "ablation"])
def test_every_line_is_a_run_on_the_papers_pairs(generator, name):
    runs = generator.read(DOCS / "results" / f"{name}.csv")
    for dataset, of_set in runs[runs["dataset"].isin(list(PUBLISHED))].groupby("dataset"):
        assert set(of_set["pair"]) <= {f"{source}-{target}" for source, target in PUBLISHED[dataset]}
    scores = runs[[name for name in runs if name in SCORES]]
    assert (scores.isna() | ((scores >= 0) & (scores <= 100))).all(axis=None)


def runs_of(*lines):
    return pd.DataFrame(lines, columns=["row", "pair", "seed", "accuracy"]).assign(dataset="ucihar")


def test_means_are_over_pairs_then_over_whole_seeds(generator):
    scores = {("1-2", 0): 10.0, ("3-4", 0): 20.0, ("1-2", 1): 30.0, ("3-4", 1): 50.0, ("1-2", 2): 99.0}
    runs = runs_of(*(("shot", pair, seed, score) for (pair, seed), score in scores.items()))
    mean, spread = generator.mean_and_spread(runs, "accuracy")
    assert mean == pytest.approx((15.0 + 40.0) / 2)
    assert spread == pytest.approx(25.0 / 2**0.5)
    assert generator.mean_and_spread(runs[:2], "accuracy") == (15.0, None)


def test_a_row_that_lacks_pairs_shows_no_mean(generator):
    runs = runs_of(("shot", "1-2", 0, 50.0), ("shot", "3-4", 0, 50.0), ("t2pl", "1-2", 0, 90.0))
    lines = generator.table_of_means(runs, "method").splitlines()[2:]
    assert lines == ["| `shot` | 50.0 | 1 x 2 |", "| `t2pl` |  | 1 x 1 |"]


def test_the_readme_is_that_of_the_runs(generator):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert generator.refilled(readme) == readme, "python docs/generate_results.py"
    assert generator.headline() in " ".join(readme.split())


def test_rows_share_a_letter_if_and_only_if_they_are_not_told_apart(generator):
    found = generator.ranks(generator.all_runs(), generator.RANKED[0])
    letters = {name: set(generator._letters(found, name)) for name in found.methods}
    apart = {frozenset((test.first, test.second)) for test in found.tests if test.significant}
    for one, other in combinations(found.methods, 2):
        assert bool(letters[one] & letters[other]) is (frozenset((one, other)) not in apart)


def test_the_leaderboard_has_every_row_of_both_networks_on_every_set_run_or_not():
    board = script("generate_leaderboard").board()
    shown = {(each.dataset, each.entry) for each in board.standings}
    for dataset in PUBLISHED:
        for row in paper_table("full").rows(dataset):
            assert (dataset, row.label) in shown
        of_cnn = {row.label for row in paper_table("cnn").rows(dataset)}
        assert of_cnn == {label.split(",")[0] for name, label in shown if name == dataset and "=domain" in label}
    assert {each.backbone for each in board.entries} == {"patch-transformer", "cnn", ""}
    assert board.seeds == (0,)


def test_what_was_not_run_is_named(generator):
    of_set = runs_of(("softmax", "2-11", 0, 50.0), ("softmax", "6-23", 0, 50.0), ("cdan, CNN", "2-11", 0, 90.0))
    text = generator.not_run(of_set)
    assert "`softmax`" not in text
    assert all(f"`{row}`" in text for row in ("cdan, CNN", "softmax, CNN", "att", "att, CNN", "features-linear"))
