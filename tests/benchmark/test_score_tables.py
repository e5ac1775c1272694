"""Tables from made-up results: what is in a cell, what is missing, and that nothing is mixed."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from conftest import refusal
from made_up_table import PAIRS, Bench
from tiny_bench import keep

from transpl.benchmark.paper_tables import TABLES
from transpl.benchmark.rendering import to_csv, to_markdown
from transpl.benchmark.run_index import TableQuery
from transpl.benchmark.score_tables import RUN_KEYS, pair_table_from, runs_as_csv, scores_by_pair
from transpl.benchmark.store import Store
from transpl.datasets.pairs import PUBLISHED


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def cell(table, row, column):
    at = [each.name for each in table.columns].index(column)
    return next(each for each in table.rows if each.label == row).cells[at]


def test_the_table_beyond_the_paper_has_calibration_seconds_and_the_figures_of_the_full_one(bench):
    bench.run(table="beyond", dataset="ucihar", accuracy=0.6)
    table = bench.table("beyond", ["ucihar"])
    assert cell(table, "transpl-markov", "ucihar ECE").mean == pytest.approx(10.0)
    assert cell(table, "transpl-markov", "ucihar Seconds").mean == pytest.approx(4.0)
    assert (
        cell(table, "shot", "ucihar Acc").published
        == cell(bench.table("full", ["ucihar"]), "shot", "ucihar Acc").published
    )
    assert cell(table, "transpl-markov", "ucihar Acc").published is None
    better = {column.label: column.better for column in table.columns}
    assert (better["ECE"], better["Seconds"]) == ("lower", "none")
    assert "Seconds of adaptation" in table.caption


def test_a_table_without_published_figures_does_not_speak_of_them(bench, monkeypatch):
    monkeypatch.setitem(TABLES, "own", replace(TABLES["ablation"], name="own", published=None))
    bench.run(table="own", dataset="ucihar")
    table = bench.table("own", ["ucihar"])
    assert "published" not in table.caption
    assert cell(table, "transpl", "ucihar Acc").published is None


# What is in a cell


def test_mean_over_pairs_then_mean_and_deviation_over_seeds(bench):
    by_seed = {0: (0.2, 0.4), 1: (0.6, 0.8)}
    bench.run("no-adapt", seeds=(0, 1), accuracy=lambda spec: by_seed[spec.seed][spec.source])
    found = cell(bench.table(), "no-adapt", "mine Acc")
    assert found.mean == pytest.approx(50.0)
    assert found.std == pytest.approx(np.std([30, 70], ddof=1))
    assert (found.n, found.missing) == (4, 0)


def test_one_seed_has_no_deviation(bench):
    bench.run("no-adapt")
    found = cell(bench.table(), "no-adapt", "mine Acc")
    assert (found.mean, found.std) == (50.0, None)
    line = next(line for line in to_markdown(bench.table()).splitlines() if line.startswith("| no-adapt"))
    assert "±" not in line


def test_the_published_figure_stands_beside(bench):
    bench.run("no-adapt", "transpl", dataset="ucihar", pairs=PUBLISHED["ucihar"], accuracy=0.71)
    found = cell(bench.table(), "transpl", "ucihar Acc")
    assert found.published is not None
    assert found.difference == pytest.approx(71.0 - found.published)


def test_a_table_of_pseudo_labels_has_their_scores(bench):
    bench.run(table="pseudo", dataset="hhar", accuracy=0.8)
    found = cell(bench.table("pseudo"), "transpl", "hhar Acc")
    assert found.mean == pytest.approx(20.0)
    assert found.missing == 0


def test_a_run_that_adapts_serves_a_table_of_labels_too(bench):
    bench.run("softmax", accuracy=0.8)
    assert cell(bench.table("pseudo"), "softmax", "mine Acc").mean == pytest.approx(20.0)


def test_a_run_that_only_labels_serves_no_table_of_adaptation(bench):
    bench.run(table="pseudo", accuracy=0.8)
    assert cell(bench.table("pseudo"), "softmax", "mine Acc").mean is not None
    assert cell(bench.table("full"), "softmax", "mine Acc").mean is None


def test_a_label_run_comes_before_one_that_adapts(bench):
    bench.run("softmax", accuracy=0.4)
    bench.run(table="pseudo", accuracy=0.8)
    assert cell(bench.table("pseudo"), "softmax", "mine Acc").mean == pytest.approx(20.0)


def test_two_classes_have_the_f1_of_class_1_under_its_own_name(bench):
    (spec,) = bench.plan("transpl", dataset="ptb", pairs=[(1, 3)])
    scores = {"accuracy": 0.7, "macro_f1": 0.6, "binary_f1": 0.9}
    keep(bench.store, spec, test=scores)
    table = bench.table(datasets=["ptb"])
    assert [column.label for column in table.columns] == ["Acc", "MF1", "F1 of class 1"]
    macro, binary = cell(table, "transpl", "ptb MF1"), cell(table, "transpl", "ptb F1 of class 1")
    assert (macro.mean, binary.mean) == pytest.approx((60.0, 90.0))
    assert macro.published is None, "what is printed there is not the macro-F1"
    assert binary.published is not None


def test_own_data_of_two_classes_have_it_too_and_others_do_not(bench):
    (spec,) = bench.plan("transpl", dataset="two", pairs=[(0, 1)])
    keep(bench.store, spec, test={"accuracy": 0.7, "macro_f1": 0.6, "binary_f1": 0.9})
    bench.run("transpl")
    names = [column.name for column in bench.table().columns]
    assert names == ["mine Acc", "mine MF1", "two Acc", "two MF1", "two F1 of class 1"]


def test_pseudo_labels_of_two_classes_too(bench):
    for spec in bench.plan(table="pseudo"):
        keep(bench.store, spec, pseudo_labels={"initial": {"accuracy": 0.7, "macro_f1": 0.6, "binary_f1": 0.9}})
    assert cell(bench.table("pseudo"), "transpl", "mine F1 of class 1").mean == pytest.approx(90.0)


def test_codebooks(bench):
    books = {"coarse": {"dead": 2, "codes": 8}, "fine": {"dead": 16, "codes": 64}}
    details = {"reconstruction_error": 0.1234, "codebooks": books}
    for spec in bench.plan(table="codebook", dataset="hhar"):
        keep(bench.store, spec, details=details)
    table = bench.table("codebook")
    assert cell(table, "8/64", "hhar MSE").mean == pytest.approx(0.1234)
    assert cell(table, "8/64", "hhar Dead %").mean == pytest.approx(25.0)
    assert table.missing_runs == ()


@pytest.mark.parametrize("which", TABLES)
def test_every_table_of_the_paper_can_be_made(bench, which):
    books = {"reconstruction_error": 0.1, "codebooks": {"coarse": {"dead": 1, "codes": 8}}}
    for spec in bench.plan(table=which, dataset="hhar", seeds=(0, 1)):
        keep(bench.store, spec, details=books)
    table = bench.table(which)
    assert table.missing_runs == ()
    assert all(found.complete for found in table.cells)


# What is missing


def test_a_partial_table_names_what_it_lacks_in_its_caption(bench):
    specs = bench.plan("no-adapt", "softmax", seeds=(0, 1))
    for spec in specs:
        if (spec.method, spec.pair, spec.seed) != ("softmax", "1-2", 1):
            keep(bench.store, spec)
    table = bench.table(methods=["no-adapt", "softmax"])
    assert table.missing_runs == ("mine 1-2 softmax seed 1",)
    assert "Missing runs: mine 1-2 softmax seed 1." in table.full_caption()
    assert cell(table, "softmax", "mine Acc").missing == 1
    assert "**" not in to_markdown(table), "an incomplete row is not the best, nor is the other better than it"


def test_unplanned_rows_are_missing_too(bench):
    bench.run("no-adapt")
    table = bench.table()
    assert "mine deepcoral (all 2)" in table.missing_runs
    assert cell(table, "deepcoral", "mine Acc").missing == 2
    assert len(table.missing_runs) == 12


def test_a_pair_or_seed_that_only_one_row_has_is_missing_in_the_others(bench):
    bench.run("no-adapt", pairs=PAIRS, seeds=(0, 1))
    bench.run("softmax", pairs=PAIRS[:1])
    table = bench.table(methods=["no-adapt", "softmax"])
    assert table.missing_runs == (
        "mine 0-1 softmax seed 1",
        "mine 1-2 softmax seed 0",
        "mine 1-2 softmax seed 1",
    )


def test_a_mean_over_some_pairs_says_which(bench):
    bench.run("no-adapt", dataset="ucihar", pairs=[(2, 11), (6, 23)])
    for spec in bench.plan("no-adapt", dataset="ptb", pairs=PUBLISHED["ptb"]):
        keep(bench.store, spec, test={"accuracy": 0.7, "macro_f1": 0.6, "binary_f1": 0.9})
    caption = bench.table().caption
    assert "Pairs: ucihar 2-11, 6-23 (2 of 10); ptb all 4." in caption


def test_missing_rows_of_one_method_have_different_names(bench):
    bench.plan(table="ablation", pairs=PAIRS)
    (first, *_) = bench.plan("transpl", pairs=PAIRS[:1])
    keep(bench.store, first)
    assert bench.table("ablation").missing_runs == (
        "mine transpl-no-alignment (all 2)",
        "mine 1-2 transpl seed 0",
        "mine transpl-ws-no-alignment (all 2)",
        "mine transpl-ws (all 2)",
    )


def test_a_damaged_result_is_missing(bench):
    spec, *_ = bench.run("no-adapt")
    (bench.store.folder / "runs" / f"{spec.digest}.json").write_text("{")
    with pytest.warns(UserWarning, match=spec.digest):
        table = bench.table(methods=["no-adapt"])
    assert table.missing_runs == ("mine 0-1 no-adapt seed 0",)


def test_an_empty_folder_makes_a_table_of_the_print(bench):
    table = bench.table()
    assert [column.group for column in table.columns][::2][:3] == ["ucihar", "wisdm", "hhar"]
    assert "over seeds (none). Pairs: ucihar none (0 of 10)" in table.caption


# Nothing is mixed


def test_runs_with_other_settings_are_counted_and_left_out(bench):
    bench.run("no-adapt", accuracy=0.5)
    bench.run("no-adapt", accuracy=0.9, changes={"max_epochs": 3})
    table = bench.table()
    assert cell(table, "no-adapt", "mine Acc").mean == 50.0
    (note,) = table.notes
    assert note.startswith("mine: 2 ")
    assert "(max_epochs=3)" in note
    changed = bench.table(changes={"max_epochs": 3})
    assert cell(changed, "no-adapt", "mine Acc").mean == 90.0
    assert "Settings changed: max_epochs=3." in changed.caption


def test_a_preset_is_said_in_the_caption(bench):
    table = bench.table(preset="adatime", datasets=["wisdm"])
    assert "Preset adatime." in table.caption
    assert "Preset" not in bench.table().caption


def test_two_versions_of_the_data_are_not_mixed(bench):
    bench.run("no-adapt", data="aaa1", accuracy=0.5)
    bench.run("no-adapt", data="bbb2", accuracy=0.9)
    bench.run("no-adapt", dataset="other", data="ccc3", accuracy=0.7)
    with refusal("data", r"one version of mine, got aaa1 \(2 runs\), bbb2 \(2 runs\)"):
        bench.table()
    with refusal("data"):
        bench.table(data=["zzz"])
    table = bench.table(data=["bbb"])
    assert cell(table, "no-adapt", "mine Acc").mean == 90.0
    assert cell(table, "no-adapt", "other Acc").mean == pytest.approx(70.0)
    assert (
        scores_by_pair(bench.store.folder, "full", ["mine"], query=TableQuery(data=["a"]))["no-adapt"]["mine", "0-1"]
        == 50
    )


def test_several_versions_of_a_package_are_said(bench):
    one, other = bench.plan("no-adapt")
    keep(bench.store, one, versions={"transpl": "0.1.0", "torch": "2.4"})
    keep(bench.store, other, versions={"transpl": "0.2.0", "torch": "2.4"})
    assert any(note.endswith("versions: transpl 0.1.0, 0.2.0.") for note in bench.table().notes)


def test_runs_of_a_method_that_is_not_installed_do_no_harm(bench):
    specs = bench.run("no-adapt")
    stranger = replace(specs[0], method="not-installed")
    bench.store.plan([stranger])
    keep(bench.store, stranger)
    table = bench.table()
    assert cell(table, "no-adapt", "mine Acc").mean == 50.0
    assert any(note.startswith("mine: ") and note.endswith("not-installed (1).") for note in table.notes)


def test_other_methods_join_where_rows_are_methods(bench):
    bench.run("no-adapt", "target-only")
    table = bench.table(methods=["target-only", "no-adapt"])
    assert [row.label for row in table.rows] == ["no-adapt", "target-only"]
    assert table.missing_runs == ()
    with refusal("methods", "got softmax"):
        bench.table("ablation", methods=["softmax", "transpl"])


# Grids


GRID = {"adapt_lr": [1e-3, 5e-4]}


def candidates(bench, **options):
    """Two candidates on one pair: the first looks better on the source, the second is better on the target."""
    first, second = bench.plan("softmax", pairs=PAIRS[:1], grid=GRID, **options)
    keep(bench.store, first, 0.4, risks={"source_risk": 0.1, "target_oracle": 0.9})
    keep(bench.store, second, 0.6, risks={"source_risk": 0.2, "target_oracle": 0.3})
    return first, second


def test_the_rule_chooses_and_is_named(bench):
    candidates(bench)
    table = bench.table(grid=GRID)
    assert cell(table, "softmax", "mine Acc").mean == 40.0
    assert "Chosen per run by source_risk (cross entropy on held-out source rows" in table.caption
    assert "adapt_lr of 0.001, 0.0005." in table.caption


def test_an_oracle_is_called_one(bench):
    candidates(bench)
    table = bench.table(grid=GRID, select="target_oracle")
    assert cell(table, "softmax", "mine Acc").mean == 60.0
    assert "ORACLE" in table.caption
    with refusal("select"):
        TableQuery(select="best_of_test")


def test_nothing_is_chosen_while_a_candidate_is_missing(bench):
    _, second = candidates(bench)
    (bench.store.folder / "runs" / f"{second.digest}.json").unlink()
    table = bench.table(grid=GRID, methods=["softmax"])
    assert cell(table, "softmax", "mine Acc").mean is None
    assert len(table.missing_runs) == 1


def test_an_unplanned_candidate_is_missing_too(bench):
    candidates(bench)
    wider = {"adapt_lr": [1e-3, 5e-4, 1e-4]}
    assert cell(bench.table(grid=wider), "softmax", "mine Acc").mean is None


def test_without_the_grid_only_the_papers_point_is_in_the_table(bench):
    candidates(bench)
    table = bench.table()
    assert cell(table, "softmax", "mine Acc").mean == 60.0, "5e-4 is the default"
    assert table.notes[0].startswith("mine: 1 ")
    assert "adapt_lr=0.001" in table.notes[0]


def test_a_rule_that_a_candidate_was_not_judged_by_is_refused(bench):
    candidates(bench)
    with refusal("rule", "runs with a dev"):
        bench.table(grid=GRID, select="dev")


# Pairs and statistics


def test_every_pair_and_their_average(bench):
    bench.run("no-adapt", accuracy=lambda spec: 0.4 if spec.source == 0 else 0.8)
    table = pair_table_from(bench.store.folder, "mine")
    assert [column.label for column in table.columns] == ["0-1", "1-2", "average"]
    assert [found.mean for found in table.rows[0].cells] == pytest.approx([40.0, 80.0, 60.0])
    assert table.label == "tab:pairs-mine-accuracy"
    macro = pair_table_from(bench.store.folder, "mine", "macro_f1", TableQuery(changes={"width": 64}))
    assert macro.rows[0].cells[0].mean == pytest.approx(20.0)
    assert "Settings changed: width=64." in macro.caption


def test_pairs_show_what_was_run_with_its_settings_and_no_other_row(bench):
    bench.run("no-adapt", changes={"width": 64})
    bench.run("transpl-plus")
    table = pair_table_from(bench.store.folder, "mine")
    assert [row.label.split(",")[0] for row in table.rows] == ["no-adapt", "transpl-plus"]
    assert all(found.mean is not None for row in table.rows for found in row.cells)
    with refusal("runs"):
        pair_table_from(bench.store.folder, "mine", query=TableQuery(methods=["shot"]))


def test_published_figures_of_pairs(bench):
    bench.run("transpl", dataset="ucihar", pairs=[(2, 11)])
    table = pair_table_from(bench.store.folder, "ucihar")
    row = next(row for row in table.rows if row.label == "transpl")
    assert all(found.published is not None for found in row.cells)


def test_a_score_that_a_data_set_does_not_have_is_refused(bench):
    bench.run("no-adapt")
    with refusal("metric", r"a score of mine .*got 'binary_f1'"):
        pair_table_from(bench.store.folder, "mine", "binary_f1")
    with refusal("metric"):
        pair_table_from(bench.store.folder, "mine", "mse")


def test_scores_for_statistics_are_whole_or_none(bench):
    bench.run("no-adapt", seeds=(0, 1))
    softmax = bench.plan("softmax", seeds=(0, 1))
    for spec in softmax[:3]:
        keep(bench.store, spec, 0.75)
    found = scores_by_pair(bench.store.folder, "full", [])
    assert found == {
        "no-adapt": {("mine", "0-1"): 50.0, ("mine", "1-2"): 50.0},
        "softmax": {("mine", "0-1"): 75.0, ("mine", "1-2"): None},
    }


def test_a_seed_that_no_row_has_on_a_pair_does_not_forbid_statistics(bench):
    for spec in bench.plan("no-adapt", "softmax", seeds=(0, 1)):
        if (spec.pair, spec.seed) != ("1-2", 1):
            keep(bench.store, spec)
    assert set(scores_by_pair(bench.store.folder, "full", [])["softmax"].values()) == {50.0}


def test_the_table_is_the_same_whatever_the_order_of_runs(tmp_path):
    one, other = Bench(tmp_path / "one"), Bench(tmp_path / "other")
    specs = one.plan("no-adapt", "softmax", seeds=(0, 1))
    other.store.plan(specs)
    for bench, order in ((one, specs), (other, specs[::-1])):
        for spec in order:
            keep(bench.store, spec, 0.1 * spec.source + 0.3)
    assert to_csv(one.table()) == to_csv(other.table())
    assert to_markdown(one.table()) == to_markdown(other.table())


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
    assert tuple(one)[: len(RUN_KEYS)] == RUN_KEYS
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
