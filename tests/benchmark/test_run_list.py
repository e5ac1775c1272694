"""The list of runs: every finished one of the table, with what the table shows of it, and no other."""

from __future__ import annotations

import csv
import io

import numpy as np
from made_up_table import Bench

from transpl.benchmark.run_list import KEYS, runs_as_csv
from transpl.benchmark.store import Store


def lines(folder, which="beyond"):
    return list(csv.DictReader(io.StringIO(runs_as_csv(folder, which))))


def test_every_finished_run_of_the_table_is_a_line(tmp_path):
    bench = Bench(tmp_path)
    bench.run("no-adapt", "shot", accuracy=lambda spec: 0.5 + 0.01 * spec.seed, seeds=(0, 1))
    bench.run("sasa")  # no row of this table
    bench.plan("t2pl")  # not finished
    found = lines(tmp_path)
    assert len(found) == 2 * 2 * 2
    assert {line["row"] for line in found} == {"no-adapt", "shot"}
    one = next(line for line in found if (line["row"], line["pair"], line["seed"]) == ("shot", "1-2", "1"))
    assert tuple(one)[: len(KEYS)] == KEYS
    assert float(one["accuracy"]) == 51.0
    assert float(one["seconds"]) >= 0


def test_its_means_are_those_of_the_table(tmp_path):
    bench = Bench(tmp_path)
    bench.run("no-adapt", accuracy=lambda spec: 0.5 + 0.1 * spec.seed + 0.02 * spec.target, seeds=(0, 1, 2))
    mean = next(row for row in bench.table("beyond").rows if row.label == "no-adapt").cells[0].mean
    np.testing.assert_allclose(np.mean([float(line["accuracy"]) for line in lines(tmp_path)]), mean, atol=1e-3)


def test_a_row_that_changes_settings_keeps_its_label(tmp_path):
    bench = Bench(tmp_path)
    bench.run(table="ablation")
    assert {"transpl", "transpl-no-alignment"} <= {line["row"] for line in lines(tmp_path, "ablation")}


def test_a_folder_without_results_gives_the_heading_alone(tmp_path):
    assert Store(tmp_path).planned() == []
    assert lines(tmp_path) == []
    assert runs_as_csv(tmp_path, "beyond").startswith("dataset,row,pair,seed,accuracy")
