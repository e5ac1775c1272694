"""From a folder of runs to its leaderboard: nothing is guessed, nothing is mixed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from conftest import refusal
from made_up_bench import bench, result, small_bench, spec

from transpl.benchmark.entries import EntryIndex, changes_between
from transpl.benchmark.leaderboard import (
    ALL_SETS,
    FAILED,
    FINISHED,
    NOT_RUN,
    leaderboard_of_lines,
    read_leaderboard,
    widest_comparison,
)
from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.plan import settings_without_seed
from transpl.benchmark.run_lines import add_lines, line_of
from transpl.benchmark.run_spec import run_identity
from transpl.benchmark.score_tables import paper_table_from
from transpl.benchmark.store import Store
from transpl.datasets.pairs import PUBLISHED
from transpl.methods.registry import entry

PAIRS = ((0, 1), (1, 0), (0, 2))


def standings_of(board, dataset="synthetic"):
    return {each.entry: each for each in board.standings if each.dataset == dataset}


def test_numbers_are_the_stores(tmp_path):
    store = small_bench(tmp_path)
    board = read_leaderboard(tmp_path)
    stored = {of.digest: found for of, found in store.results()}
    finished = board.in_state(FINISHED)
    assert {run.digest for run in finished} == set(stored)
    for run in finished:
        found = stored[run.digest]
        assert run.scores["accuracy"] == 100 * found.test["accuracy"]
        assert run.scores["calibration_error"] == 100 * found.test["calibration_error"]
        assert run.scores["label_accuracy"] == 100 * found.pseudo_labels["initial"]["accuracy"]
        assert run.scores["seconds"] == found.seconds["adapt"]
        assert (run.seconds, run.epochs, run.details) == (found.seconds, found.epochs, found.details)


def test_means_are_those_of_the_paper_tables(tmp_path):
    small_bench(tmp_path)
    table = paper_table_from(tmp_path, "full", ["synthetic"])
    in_table = {row.label: row.cells for row in table.rows}
    for label in ("no-adapt", "softmax", "transpl"):
        ours = standings_of(read_leaderboard(tmp_path))[label].scores
        for cell, metric in zip(in_table[label], ("accuracy", "macro_f1"), strict=True):
            assert ours[metric].mean == pytest.approx(cell.mean, abs=1e-12)
            assert ours[metric].std == pytest.approx(cell.std, abs=1e-12)


def test_lines_of_a_folder_have_its_numbers(tmp_path):
    store = small_bench(tmp_path)
    lines = [line_of(of, found, {}) for of, found in store.results() if found.method in ("no-adapt", "softmax")]
    half = len(lines) // 2
    for name, part in (("one", lines[:half]), ("two", lines[half:])):
        add_lines(tmp_path / f"{name}.csv", part)
    of_lines = standings_of(leaderboard_of_lines([tmp_path / "one.csv", tmp_path / "two.csv"]))
    of_folder = standings_of(read_leaderboard(tmp_path))
    assert set(of_lines) == {"no-adapt", "softmax"}
    for label, standing in of_lines.items():
        for metric in ("accuracy", "macro_f1", "calibration_error"):
            assert standing.scores[metric].mean == pytest.approx(of_folder[label].scores[metric].mean, abs=1e-3)


def board_of_lines(folder, runs, rows=None, tables=()):
    """The leaderboard of lines with made-up scores; `rows` are the names of rows that are not their method."""
    names = {
        (run.dataset, run_identity(run.method, run.settings, run.normalise), run.goal): row for run, row in rows or ()
    }
    add_lines(folder / "lines.csv", [line_of(run, result(run, score), names) for run, score in runs])
    return leaderboard_of_lines([folder / "lines.csv"], tables)


def test_entries_of_lines_say_network_scaling_and_settings(tmp_path):
    plain, trees = spec("softmax"), spec("features-trees", standardise="source")
    on_cnn = replace(
        plain, settings=settings_without_seed(entry("softmax").settings("synthetic", "cnn")), normalise="domain"
    )
    rows = [(trees, "features-trees standardise=source"), (on_cnn, "mine max_epochs=40")]
    found = {
        each.label: each for each in board_of_lines(tmp_path, [(plain, 0.5), (on_cnn, 0.6), (trees, 0.7)], rows).entries
    }
    assert {label: (each.method, each.backbone, each.changes) for label, each in found.items()} == {
        "softmax": ("softmax", "patch-transformer", {}),
        "mine max_epochs=40, backbone=cnn, normalise=domain": (
            "softmax",
            "cnn",
            {"row": "mine", "max_epochs": "40", "normalise": "domain"},
        ),
        "features-trees standardise=source": ("features-trees", "", {"standardise": "source"}),
    }


def test_old_lines_have_the_network_of_their_method(tmp_path):
    runs = [f"ucihar,{row},2-11,0,90\n" for row in ("transpl-plus", "transpl", "gone")]
    (tmp_path / "old.csv").write_text("dataset,row,pair,seed,accuracy\n" + "".join(runs))
    found = {each.label: each.backbone for each in leaderboard_of_lines([tmp_path / "old.csv"]).entries}
    assert found == {"transpl-plus": "", "transpl": "patch-transformer", "gone": ""}


def test_entries_of_a_folder_have_their_network(tmp_path):
    bench(tmp_path, [(spec("softmax"), 0.5), (spec("softmax", backbone="cnn"), 0.5), (spec("transpl-plus"), 0.5)])
    found = [(each.label, each.backbone) for each in read_leaderboard(tmp_path).entries]
    assert sorted(found) == [
        ("softmax", "patch-transformer"),
        ("softmax, backbone=cnn", "cnn"),
        ("transpl-plus", ""),
    ]


def test_runs_of_a_table_that_no_line_has_are_missing(tmp_path):
    on_cnn = settings_without_seed(entry("softmax").settings("ucihar", "cnn"))
    run = replace(spec("softmax", (2, 11), dataset="ucihar"), settings=on_cnn, normalise="domain")
    board = board_of_lines(tmp_path, [(run, 0.5)], tables=["cnn"])
    row = "softmax, backbone=cnn, normalise=domain"
    standing = standings_of(board, "ucihar")[row]
    assert board.datasets == ("ucihar",)
    assert (standing.finished, standing.planned, standing.complete) == (1, len(PUBLISHED["ucihar"]), False)
    never = {each.entry for each in board.standings if not each.finished}
    assert "cdan, backbone=cnn, normalise=domain" in never
    assert "features-trees, normalise=domain" in never
    assert len(never) == len(paper_table("cnn").rows("ucihar")) - 1


def test_a_preset_is_one_change(tmp_path):
    on_cnn = settings_without_seed(entry("softmax").settings("synthetic", "cnn"))
    plain, scaled = spec("softmax"), replace(spec("softmax"), settings=on_cnn, normalise="domain")
    labels = [entry.label for entry in EntryIndex([plain, scaled]).entries]
    assert labels == ["softmax", "softmax, normalise=domain, preset=cnn"]


def test_an_unfinished_folder_says_what_it_lacks(tmp_path):
    small_bench(tmp_path)
    board = read_leaderboard(tmp_path)
    (failed,), (missing,) = board.in_state(FAILED), board.in_state(NOT_RUN)
    assert (failed.error, failed.attempts) == ("TrainingDiverged: no finite loss.", 2)
    assert failed.entry == missing.entry == "transpl, patch_length=16"
    lacking = standings_of(board)["transpl, patch_length=16"]
    assert (lacking.finished, lacking.planned, lacking.pairs, lacking.of_pairs) == (2, 4, 1, 2)
    assert not lacking.complete
    assert not lacking.best


def test_a_run_that_no_plan_names_counts_too(tmp_path):
    run = spec("softmax")
    Store(tmp_path).write(run, result(run, 0.5), {})
    assert [each.digest for each in read_leaderboard(tmp_path).runs] == [run.digest]


def test_nothing_finished_is_a_leaderboard_without_scores(tmp_path):
    bench(tmp_path, [], not_run=[spec("softmax"), spec("transpl")])
    board = read_leaderboard(tmp_path)
    assert (board.comparisons, board.metrics, board.ranked_by) == ((), (), None)
    assert len(board.in_state(NOT_RUN)) == 2


def test_an_empty_folder_is_refused(tmp_path):
    with refusal(tmp_path, "no runs in it"):
        read_leaderboard(tmp_path)


def test_settings_are_compared_with_the_papers_for_each_data_set(tmp_path):
    runs = [
        spec("transpl", dataset="ucihar"),
        spec("transpl", dataset="wisdm"),  # has another width, because the paper does
        spec("transpl", dataset="ucihar", width=128),
        spec("softmax", dataset="wisdm", patch_length=4),
    ]
    found = EntryIndex(runs)
    assert found.shared_changes == {}
    assert [found.of(run).label for run in runs] == [
        "transpl",
        "transpl",
        "transpl, width=128",
        "softmax, patch_length=4",
    ]


def test_what_all_rows_changed_is_said_once():
    runs = [spec(method, max_epochs=2, **more) for method in ("softmax", "transpl") for more in ({}, {"width": 16})]
    found = EntryIndex(runs)
    assert found.shared_changes == {"max_epochs": "2"}
    assert [each.label for each in found.entries] == ["softmax", "softmax, width=16", "transpl", "transpl, width=16"]


def test_numbers_among_settings_are_ordered_by_size():
    found = EntryIndex([spec("transpl", patch_length=length) for length in (16, 4, 8, 32)])
    assert [each.label.partition("=")[2] for each in found.entries] == ["", "4", "16", "32"]


def test_labelling_and_adapting_are_two_rows():
    found = EntryIndex([spec("transpl"), spec("transpl", goal="label")])
    assert [each.label for each in found.entries] == ["transpl", "transpl (labels only)"]


def test_an_unregistered_method_gets_an_entry_per_varying_setting():
    runs = [spec("mine", seed=seed, settings={"width": 8, "depth": depth}) for seed in (0, 1) for depth in (2, 3)]
    found = EntryIndex(runs)
    assert sorted(each.label for each in found.entries) == ["mine, depth=2", "mine, depth=3"]
    assert all("not registered" in each.remarks[0] for each in found.entries)


def test_a_setting_that_a_run_does_not_know_is_a_difference():
    assert changes_between({"a": "1"}, {"a": "1", "b": "2"}) == {"b": "absent"}
    assert changes_between({"a": "1", "c": "3"}, {"a": "1"}) == {"c": "3"}
    assert changes_between({"a": "1"}, {"a": "1"}) == {}


def test_a_changed_data_set_is_another_one(tmp_path):
    bench(tmp_path, [(spec("softmax", data="a" * 20), 0.5), (spec("softmax", data="b" * 20), 0.9)])
    board = read_leaderboard(tmp_path)
    assert board.datasets == ("synthetic (data aaaaaa)", "synthetic (data bbbbbb)")
    assert [each.scores["accuracy"].mean for each in board.standings] == [50.0, 90.0]


def test_best_is_marked_among_complete_rows_without_target_labels(tmp_path):
    complete = [(spec("softmax", pair), 0.5) for pair in PAIRS] + [(spec("transpl", pair), 0.7) for pair in PAIRS]
    partial = [(spec("shot", PAIRS[0]), 0.99)]
    bound = [(spec("target-only", pair), 0.95) for pair in PAIRS]
    bench(tmp_path, [*complete, *partial, *bound])
    found = standings_of(read_leaderboard(tmp_path))
    assert {label: "accuracy" in each.best for label, each in found.items()} == {
        "target-only": False,
        "softmax": False,
        "shot": False,
        "transpl": True,
    }
    assert "calibration_error" in found["transpl"].best
    assert not any("seconds" in each.best for each in found.values())
    assert found["target-only"].rank is None


def test_rows_that_know_more_are_best_among_themselves_only(tmp_path):
    scores = {"transpl": 0.6, "softmax": 0.5, "transpl-ws": 0.8, "codats-ws": 0.7}
    best = {}
    for names in (scores, ("transpl-ws", "codats-ws")):
        folder = tmp_path / str(len(names))
        bench(folder, [(spec(name, pair), scores[name]) for name in names for pair in PAIRS])
        found = standings_of(read_leaderboard(folder))
        best[len(names)] = {label for label, each in found.items() if "accuracy" in each.best}
        assert all(each.rank is not None for each in found.values())
    assert best == {4: {"transpl"}, 2: {"transpl-ws"}}


def test_equal_as_shown_is_equally_good(tmp_path):
    bench(tmp_path, [(spec("softmax"), 0.70001), (spec("transpl"), 0.70002)])
    found = standings_of(read_leaderboard(tmp_path))
    assert all("accuracy" in each.best for each in found.values())


def test_ranks_rest_on_shared_pairs(tmp_path):
    full = [(spec(name, pair), score) for name, score in (("softmax", 0.5), ("transpl", 0.7)) for pair in PAIRS]
    bench(tmp_path, [*full, (spec("shot", PAIRS[0]), 0.9)])
    board = read_leaderboard(tmp_path)
    (by_accuracy,) = [each for each in board.comparisons if each.metric == "accuracy"]
    assert len(by_accuracy.statistics.pairs) == 3
    assert by_accuracy.unranked == ("shot",)
    ranks = {label: each.rank for label, each in standings_of(board).items()}
    assert ranks == {"softmax": 2.0, "transpl": 1.0, "shot": None}


def test_a_row_with_other_seeds_on_a_pair_is_not_compared_there(tmp_path):
    both = [(spec(name, pair, seed), 0.5) for name in ("softmax", "shot") for pair in PAIRS for seed in (0, 1)]
    partly = [(spec("transpl", pair, seed), 0.7 + 0.2 * seed) for pair in PAIRS for seed in (0, 1)]
    bench(tmp_path, [*both, *partly[:-1], (spec("ncp"), 0.9)])  # transpl lacks the second seed of the last pair
    board = read_leaderboard(tmp_path)
    (by_accuracy,) = [each for each in board.comparisons if each.metric == "accuracy"]
    found = standings_of(board)
    assert by_accuracy.unranked == ("ncp",)
    assert by_accuracy.statistics.pairs == (("synthetic", (0, 1)), ("synthetic", (1, 0)))
    assert by_accuracy.statistics.left_out == (("synthetic", (0, 2)),)
    assert {label for label, each in found.items() if not each.complete} == {"transpl", "ncp"}


def test_a_row_with_fewer_seeds_than_the_others_is_neither_ranked_nor_best(tmp_path):
    full = [(spec(name, pair, seed), 0.5) for name in ("softmax", "shot") for pair in PAIRS for seed in (0, 1)]
    bench(tmp_path, [*full, *((spec("transpl", pair), 0.9) for pair in PAIRS)])
    board = read_leaderboard(tmp_path)
    (by_accuracy,) = [each for each in board.comparisons if each.metric == "accuracy"]
    assert by_accuracy.unranked == ("transpl",)
    found = standings_of(board)
    assert (found["transpl"].rank, found["transpl"].best, found["transpl"].complete) == (None, frozenset(), False)
    assert "accuracy" in found["softmax"].best


@pytest.mark.parametrize("state", ["finished", "planned"])
def test_one_more_seed_of_one_row_takes_nothing_from_the_others(tmp_path, state):
    names = {"softmax": 0.5, "shot": 0.6, "transpl": 0.9}
    rows = [(spec(name, pair, seed), score) for name, score in names.items() for pair in PAIRS for seed in (0, 1)]
    more = [spec("transpl", pair, 2) for pair in PAIRS]
    if state == "planned":
        bench(tmp_path, rows, not_run=more)
    else:
        bench(tmp_path, [*rows, *((run, 0.9) for run in more)])
    found = standings_of(read_leaderboard(tmp_path))
    best = {label for label, each in found.items() if "accuracy" in each.best}
    incomplete = {label for label, each in found.items() if not each.complete}
    assert (best, incomplete) == (({"transpl"}, set()) if state == "planned" else ({"shot"}, {"transpl"}))


def test_seeds_of_an_upper_bound_or_another_goal_do_not_count_for_completeness(tmp_path):
    rows = [(spec(name), 0.5) for name in ("softmax", "transpl")]
    more = [(spec("target-only", seed=seed), 0.9) for seed in (0, 1)]
    labels = [(spec("transpl", seed=seed, goal="label"), 0.5) for seed in (0, 1)]
    bench(tmp_path, [*rows, *more, *labels])
    assert all(each.complete for each in standings_of(read_leaderboard(tmp_path)).values())


def test_an_upper_bound_that_lacks_pairs_is_not_complete(tmp_path):
    rows = [(spec(name, pair), 0.5) for name in ("softmax", "transpl") for pair in PAIRS]
    bench(tmp_path, [*rows, (spec("target-only", PAIRS[0]), 0.9)])
    assert not standings_of(read_leaderboard(tmp_path))["target-only"].complete


def test_several_data_sets_are_also_compared_together(tmp_path):
    runs = [
        (spec(name, pair, dataset=dataset), score)
        for dataset in ("synthetic", "other")
        for name, score in (("softmax", 0.5), ("transpl", 0.7))
        for pair in PAIRS
    ]
    bench(tmp_path, runs)
    found = {
        each.dataset: each.statistics for each in read_leaderboard(tmp_path).comparisons if each.metric == "accuracy"
    }
    assert {name: len(each.pairs) for name, each in found.items()} == {ALL_SETS: 6, "synthetic": 3, "other": 3}


def test_runs_that_only_label_are_ranked_by_their_labels(tmp_path):
    bench(tmp_path, [(spec("softmax", goal="label"), 0.5), (spec("transpl", goal="label"), 0.7)])
    board = read_leaderboard(tmp_path)
    assert board.ranked_by == "label_accuracy"
    assert standings_of(board)["transpl (labels only)"].rank == 1.0
    assert "seconds" not in board.runs[0].scores, "they do not adapt"


@pytest.mark.parametrize(
    ("pairs", "kept"),
    [
        ({"a": "123", "b": "123", "c": "123"}, "abc"),
        ({"a": "123", "b": "123", "c": "1"}, "ab"),  # 2 x 3 > 3 x 1
        ({"a": "12", "b": "12", "c": "12", "d": "1"}, "abc"),
        ({"a": "1", "b": "2", "c": "1"}, "ac"),
        ({"a": "1", "b": "2"}, ""),
        ({"a": "1"}, ""),
        ({}, ""),
    ],
)
def test_as_many_rows_on_as_many_pairs_as_possible(pairs, kept):
    assert "".join(widest_comparison({label: frozenset(found) for label, found in pairs.items()})) == kept


def test_versions_of_all_runs_are_listed(tmp_path):
    first, second = spec("softmax"), spec("transpl")
    store = Store(tmp_path)
    store.write(first, result(first, 0.5, torch="2.12"), {})
    store.write(second, result(second, 0.5), {})
    assert read_leaderboard(tmp_path).versions == {"python": ("3.12",), "torch": ("2.12", "2.13")}


def test_a_damaged_run_is_named(tmp_path):
    store = small_bench(tmp_path)
    path = next(iter(sorted((store.folder / "runs").glob("*.json"))))
    record = json.loads(path.read_text())
    record["result"].pop("test")
    path.write_text(json.dumps(record))
    with pytest.warns(UserWarning, match=f"{path.name}: not a result"):
        read_leaderboard(tmp_path)
