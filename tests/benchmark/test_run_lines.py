"""Lines of finished runs: they say which runs are done, survive another machine, and make tables."""

from __future__ import annotations

import csv
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import refusal
from made_up_table import PAIRS, Bench
from tiny_bench import made_up, plan, write_data

from transpl.benchmark.plan import Plan, Row
from transpl.benchmark.rendering import to_markdown
from transpl.benchmark.run_index import TableQuery
from transpl.benchmark.run_lines import (
    COLUMNS,
    KEYS,
    add_lines,
    finished_runs,
    line_of,
    read_lines,
    row_names,
    runs_of_lines,
    saving_lines,
)
from transpl.benchmark.run_spec import run_identity
from transpl.benchmark.runner import RunOutcome
from transpl.benchmark.score_tables import pair_table_from, paper_table_from, scores_by_pair
from transpl.benchmark.store import Result

OLD = "dataset,row,pair,seed,accuracy,macro_f1,calibration_error,seconds,binary_f1\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    write_data(tmp_path / "data")
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def specs():
    return plan("no-adapt", "softmax", seeds=(0, 1)).runs()


def test_a_line_has_the_scores_and_what_identifies_the_run(specs, tmp_path):
    spec = specs[2]
    result = made_up(spec, 0.51234567, cpu_seconds=1.25)
    add_lines(tmp_path / "lines.csv", [line_of(spec, result, {})])
    (line,) = read_lines(tmp_path / "lines.csv")
    assert tuple(line) == COLUMNS
    assert (line["dataset"], line["row"], line["pair"], line["seed"]) == ("small", "softmax", "0-1", "0")
    assert (line["accuracy"], line["label_accuracy"], line["binary_f1"]) == ("51.235", "12.809", "")
    assert (line["seconds"], line["cpu_seconds"], line["version"]) == ("4.0", "1.25", "0.1.0")
    assert (line["run"], line["data"]) == (spec.digest, spec.data)
    assert line["settings"] == run_identity("softmax", spec.settings)


def test_what_is_read_is_what_was_written(specs, tmp_path):
    given = {spec.digest: made_up(spec, 0.25, cpu_seconds=2.0) for spec in specs}
    add_lines(tmp_path / "lines.csv", [line_of(spec, given[spec.digest], {}) for spec in specs])
    assert finished_runs([tmp_path / "lines.csv"]) == set(given)
    for key, run in runs_of_lines(tmp_path / "lines.csv").items():
        kept, spec, result = given[key], run.spec, run.result
        assert run.identity == run_identity(kept.method, kept.settings)
        assert (spec.dataset, (spec.source, spec.target), spec.method, spec.seed) == (
            kept.dataset,
            kept.pair,
            kept.method,
            kept.seed,
        )
        assert result.test == {name: kept.test[name] for name in ("accuracy", "macro_f1", "calibration_error")}
        assert (result.cpu_seconds, result.seconds) == (2.0, {"adapt": 4.0})


def test_a_run_that_only_labels_has_no_scores_on_the_test_part(tmp_path):
    (spec,) = Plan("small", (Row("softmax", "softmax", goal="label"),), pairs=((0, 1),)).runs()
    add_lines(tmp_path / "lines.csv", [line_of(spec, made_up(spec, 0.5, seconds={"label": 1.0}), {})])
    (read,) = runs_of_lines(tmp_path / "lines.csv").values()
    assert (read.spec.goal, read.result.test, read.result.pseudo_labels) == (
        "label",
        {},
        {"initial": {"accuracy": 0.125, "macro_f1": 0.25}},
    )


def test_rows_are_named_after_the_settings_in_which_they_differ():
    rows = (Row("no-adapt", "no-adapt", {"max_epochs": 3}), Row("mine", "softmax", {"top_ratio": 0.1}))
    chosen = Plan("small", rows, pairs=((0, 1),), grid={"width": [16, 64]})
    names = row_names([chosen])
    found = [names["small", run_identity(spec.method, spec.settings), spec.goal] for spec in chosen.runs()]
    assert found == ["no-adapt width=16 max_epochs=3", "no-adapt max_epochs=3", "mine width=16", "mine"]


def test_no_line_is_written_twice_and_none_is_lost(specs, tmp_path):
    path = tmp_path / "lines.csv"
    lines = [line_of(spec, made_up(spec, 0.1 * i), {}) for i, spec in enumerate(specs)]
    with ThreadPoolExecutor(4) as pool:  # a lock belongs to a descriptor, so that threads are as good as processes
        list(pool.map(lambda line: add_lines(path, [line]), lines * 3))
    assert sorted(line["run"] for line in read_lines(path)) == sorted(spec.digest for spec in specs)
    assert not list(tmp_path.glob(".lines.csv.*.part"))


def test_a_line_is_there_before_the_outcome_is_passed_on(specs, tmp_path):
    path = tmp_path / "lines.csv"
    outcomes = [RunOutcome(specs[0], made_up(specs[0])), RunOutcome(specs[1], None, "Boom"), RunOutcome(specs[2], None)]
    for i, outcome in enumerate(saving_lines(outcomes, path, {})):
        assert outcome is outcomes[i]
        assert finished_runs([path]) == {specs[0].digest}


def test_old_lines_stay_as_they_are_and_finish_nothing(specs, tmp_path):
    path = tmp_path / "old.csv"
    path.write_text(OLD + "small,no-adapt,0-1,0,61.053,51.862,27.621,0.0,\n")
    assert finished_runs([path]) == set()
    add_lines(path, [line_of(specs[1], made_up(specs[1]), {})])
    old, new = csv.DictReader(path.read_text().splitlines())
    assert {name: old[name] for name in OLD.strip().split(",")} == {
        **dict(zip(KEYS, ("small", "no-adapt", "0-1", "0"), strict=True)),
        "accuracy": "61.053",
        "macro_f1": "51.862",
        "calibration_error": "27.621",
        "seconds": "0.0",
        "binary_f1": "",
    }
    assert new["run"] == specs[1].digest


def test_files_that_hold_no_runs_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    with refusal(path, "no such file"):
        read_lines(path)
    path.write_text("a,b\n1,2\n")
    with refusal(path, "dataset"):
        read_lines(path)
    path.write_bytes(b"")
    with refusal(path, "dataset"):
        read_lines(path)
    path.write_bytes(OLD.encode("utf-16"))
    with refusal(path, "CSV"):
        read_lines(path)
    path.write_text(OLD.strip() + ",seed\n")
    with refusal(path, "seed twice"):
        read_lines(path)
    for scores in ("nan,1,1,1", "1,-1,1,1", "1,1,100.1,1", "1,1,1,inf", "1,1,1,1e300"):
        path.write_text(OLD + f"small,no-adapt,0-1,0,{scores},\n")
        with refusal(path, "line 2"):
            runs_of_lines(path)
    path.write_text(OLD + "small,no-adapt\n")
    with refusal(path, "row 2"):
        read_lines(path)
    path.unlink()
    os.mkfifo(path)
    with refusal(path, "pipe"):
        read_lines(path)
    path.unlink()
    path.write_text(OLD + "small,no-adapt,0-1,0,high,51.862,27.621,0.0,\n")
    with refusal(path, "line 2"):
        runs_of_lines(path)


# Tables


def lines_of(bench: Bench, path: Path) -> Path:
    """What `--save-lines` would have written of a folder."""
    add_lines(path, [line_of(spec, result, {}) for spec, result in bench.store.results()])
    return path


@pytest.mark.parametrize("which", ["full", "pseudo", "weak", "ablation", "beyond"])
def test_a_table_of_lines_is_the_table_of_their_folder(tmp_path, which):
    bench = Bench(tmp_path / "runs")
    bench.run(table=which, dataset="ucihar", accuracy=lambda spec: 0.5 + 0.01 * spec.source)
    path = lines_of(bench, tmp_path / "lines.csv")
    of_folder, of_lines = (paper_table_from(each, which, ["ucihar"]) for each in (bench.store.folder, path))
    assert to_markdown(of_lines) == to_markdown(of_folder)
    if which in ("full", "beyond"):
        assert scores_by_pair(path, which, ["ucihar"]) == scores_by_pair(bench.store.folder, which, ["ucihar"])


def test_other_settings_are_other_rows_and_old_lines_are_found_by_their_name(tmp_path):
    bench = Bench(tmp_path / "runs")
    bench.run("no-adapt", accuracy=0.5)
    bench.run("no-adapt", accuracy=0.9, changes={"width": 16})
    path = lines_of(bench, tmp_path / "lines.csv")
    for changes, expected in (({}, 50.0), ({"width": 16}, 90.0)):
        table = paper_table_from(path, "full", ["mine"], TableQuery(changes=changes, methods=["no-adapt"]))
        assert table.rows[0].cells[0].mean == pytest.approx(expected)
    old = "".join(f"mine,softmax,{a}-{b},0,70,60,,,\n" for a, b in PAIRS)
    (tmp_path / "old.csv").write_text(OLD + old)
    table = pair_table_from(tmp_path / "old.csv", "mine", "macro_f1", TableQuery(methods=["softmax"]))
    assert [cell.mean for cell in table.rows[0].cells] == [60.0] * (len(PAIRS) + 1)


def test_a_line_with_a_digest_stands_in_for_an_old_one_of_the_same_run(specs, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text(OLD + "small,no-adapt,0-1,0,10,10,10,0,\nsmall,no-adapt,0-1,7,20,20,20,0,\n")
    add_lines(path, [line_of(specs[0], made_up(specs[0], 0.5), {})])
    assert sorted(run.result.test["accuracy"] for run in runs_of_lines(path).values()) == [0.2, 0.5]


def test_rows_of_another_backbone_or_scaling_stand_apart(tmp_path, specs):
    plain = specs[0]
    scaled = replace(plain, normalise="domain")
    on_cnn = replace(plain, settings={**plain.settings, "backbone": "cnn"})
    runs = (plain, 0.1), (scaled, 0.2), (on_cnn, 0.3)
    add_lines(tmp_path / "lines.csv", [line_of(spec, made_up(spec, accuracy), {}) for spec, accuracy in runs])
    columns = [(line["backbone"], line["normalise"]) for line in read_lines(tmp_path / "lines.csv")]
    assert columns == [("patch-transformer", "none"), ("patch-transformer", "domain"), ("cnn", "none")]
    table = paper_table_from(tmp_path / "lines.csv", "all")
    assert [row.label for row in table.rows] == ["no-adapt", "no-adapt, normalise=domain", "no-adapt, backbone=cnn"]
    assert [row.cells[0].mean for row in table.rows] == [10, 20, 30]


def test_numbers_that_no_line_has_are_refused(tmp_path):
    bench = Bench(tmp_path / "runs")
    bench.run(table="codebook", dataset="hhar")
    path = lines_of(bench, tmp_path / "lines.csv")
    with refusal("metric", "mse"):
        paper_table_from(path, "codebook", ["hhar"])


def test_results_of_earlier_versions_are_read(specs):
    values = replace(made_up(specs[0]), cpu_seconds=None).as_dict()
    del values["cpu_seconds"]
    assert Result.from_dict(values).cpu_seconds is None


def test_pandas_reads_the_file_as_it_is(specs, tmp_path):
    add_lines(tmp_path / "lines.csv", [line_of(spec, made_up(spec, 0.5), {}) for spec in specs])
    assert pd.read_csv(tmp_path / "lines.csv").groupby("row")["accuracy"].mean().to_dict() == {
        "no-adapt": 50.0,
        "softmax": 50.0,
    }
