"""docs/reproduction.md: every published figure beside the runs, judged by one rule."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from transpl.benchmark.measures import Spread
from transpl.benchmark.published import FigureKey, PublishedFigure, published_figure, published_figures

DOCS = Path(__file__).parents[1] / "docs"
EXACT = PublishedFigure(FigureKey("full", "ucihar", "softmax", "accuracy"), 60.0)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reproduction", DOCS / "generate_reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_runs_say(generator):
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert generator.page() == page, "run `python docs/generate_reproduction.py` and commit docs/reproduction.md"


def test_every_published_score_is_listed_once(generator):
    listed = [cell.figure.key for cell in generator.ledger()]
    assert len(listed) == len(set(listed))
    assert set(listed) == {key for key in published_figures() if not key.metric.endswith("_gain")}


@pytest.mark.parametrize(
    ("ours", "usual", "status"),
    [
        (None, None, "not run"),
        (Spread(61.9, None, 10), None, "reproduced"),
        (Spread(62.1, None, 10), None, "differs"),
        (Spread(62.1, None, 10), 1.1, "reproduced"),  # a single seed takes the spread of rows like it
        (Spread(63.9, 2.0, 30), 0.1, "reproduced"),
        (Spread(64.1, 2.0, 30), 9.0, "differs"),  # its own spread counts where it has one
    ],
)
def test_a_figure_is_reproduced_within_two_points_or_two_standard_deviations(generator, ours, usual, status):
    assert generator.status_of(EXACT, ours, usual) == status


def test_figures_in_doubt_and_on_other_data_are_not_judged(generator):
    repeated = published_figure("full", "ucihar", "raincoat", "accuracy")
    other = published_figure("full", "hhar", "softmax", "accuracy")
    assert generator.status_of(repeated, Spread(58.6, 0.1, 30), None) == "print in doubt"
    assert generator.status_of(other, Spread(62.5, 0.1, 30), None) == "other data"


def test_an_average_takes_whole_seeds_only(generator):
    places = [(pair, seed) for seed in (0, 1) for pair in ("2-11", "6-23")]
    rows = [{"dataset": "ucihar", "row": "softmax", "pair": p, "seed": s, "accuracy": 60.0 + s} for p, s in places]
    cell = generator.make_cell(EXACT, pd.DataFrame(rows[:3]), 2, {})
    assert (cell.seeds, cell.ours.mean) == (1, 60.0)
    assert generator.make_cell(EXACT, pd.DataFrame(rows), 2, {}).ours.mean == 60.5


def test_ptb_s_macro_f1_stands_beside_the_f1_that_was_printed(generator):
    figure = published_figure("full", "ptb", "softmax", "macro_f1")
    runs = pd.DataFrame(
        [{"dataset": "ptb", "row": "softmax", "pair": "1-3", "seed": 0, "macro_f1": 45.0, "binary_f1": 70.0}]
    )
    assert generator.make_cell(figure, runs, 1, {}).ours.mean == 70.0


def test_time_of_a_missing_run_is_that_of_its_row_or_of_rows_like_it(generator):
    lines = [
        ("ucihar", "softmax", 100.0),
        ("ucihar", "shot", 20.0),
        ("ucihar", "no-adapt", 0.1),  # trains nothing, so it says nothing about rows that do
        ("wisdm", "softmax", 10.0),
    ]
    finished = pd.DataFrame(lines, columns=["dataset", "row", "seconds"])
    pace = {"ucihar": 200.0, "wisdm": 20.0, "ptb": 1000.0}

    def seconds(dataset, method, goal="adapt"):
        row = generator.Row(method, method, goal=goal)
        return generator.seconds_of(generator.PlannedRun("cnn", dataset, row, 0, 1, 0), finished, pace)

    assert seconds("ucihar", "shot") == 20
    assert seconds("wisdm", "shot") == 2  # a tenth of its time on ucihar
    assert seconds("ucihar", "cdan") == 60
    assert seconds("wisdm", "cdan") == 10
    assert seconds("ptb", "softmax") == 500
    assert seconds("ucihar", "ncp", goal="label") == 0
    assert seconds("ucihar", "code-cnn", goal="label") == 60


def test_runs_that_tables_share_are_one_piece_of_work(generator):
    full, weak = ({run.work for run in generator.planned_runs(table, [0])} for table in ("full", "weak"))
    codats = {run.work for run in generator.planned_runs("weak", [0]) if run.row.label in ("codats", "transpl")}
    assert codats == full & weak
    ablation = [run for run in generator.planned_runs("ablation", [0]) if run.dataset == "ucihar"]
    assert len({run.source_network for run in ablation}) == len({run.source for run in ablation})
    patch = [run for run in generator.planned_runs("patch", [0]) if run.dataset == "ucihar"]
    assert len({run.source_network for run in patch}) == 4 * len({run.source for run in patch})
