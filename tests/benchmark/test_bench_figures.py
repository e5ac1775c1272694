"""Figures of a benchmark folder: which runs, from the stored source networks, without any training."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import refusal
from tiny_bench import keep, plan, write_data

from transpl import cli
from transpl._utils.errors import UnreadableFile
from transpl.benchmark import source_store
from transpl.benchmark.plan import settings_without_seed
from transpl.benchmark.runner import restore_run, run_plan
from transpl.benchmark.store import Store
from transpl.methods.registry import entry
from transpl.report.figures import RunChoice, make_figure
from transpl.report.figures.from_results import choose_runs

PAIRS = ((0, 1), (2, 3))


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Two pairs of TransPL and one of another method, made once."""
    home = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSPL_DATA", str(home / "data"))
        write_data(home / "data")
        runs = [*plan("transpl", pairs=PAIRS).runs(), *plan("no-adapt").runs()]
        assert all(done.error is None for done in run_plan(runs, home / "bench", backend="inline"))
        yield home / "bench"


def figure(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["transpl", "figure", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0), capsys.readouterr()


def test_a_run_starts_again_as_it_was_and_nothing_is_trained(bench, monkeypatch):
    def never(model):
        raise AssertionError("trained")

    monkeypatch.setattr(source_store, "train_source", never)
    (spec,) = plan("transpl").runs()
    method, pair = restore_run(spec, bench)
    again = method.one_shot_labels(pair.target).probabilities
    stored = Store(bench).arrays(spec)["initial_probabilities"]
    np.testing.assert_array_equal(again, stored)


def test_a_folder_without_the_source_network_is_refused(bench, tmp_path):
    shutil.copytree(bench, tmp_path / "bench", ignore=shutil.ignore_patterns("sources"))
    with refusal(tmp_path / "bench" / "sources", "domain 0", UnreadableFile):
        make_figure("codes", tmp_path / "bench")


def test_corruption_shows_all_pairs(bench, monkeypatch, capsys):
    code, said = figure(
        monkeypatch, capsys, "corruption", bench, "--channel", "1", "--noise", "0,2", "--noise-seeds", 1
    )
    assert code == 0
    assert "the mean rank of channel_1 among 2 channels" in said.out
    assert f"open {bench / 'figures' / 'corruption.html'}" in said.out
    data = json.loads((bench / "figures" / "corruption.json").read_text())
    assert [pair["name"] for pair in data["pairs"]] == ["small 0 → 1", "small 2 → 3"]
    assert "reading small 2-3, seed 0" in said.err


def test_a_figure_of_one_pair_takes_the_first_or_the_one_that_is_named(bench):
    make_figure("alignment", bench)
    assert json.loads((bench / "figures" / "alignment.json").read_text())["name"] == "small 0 → 1"
    make_figure("alignment", bench, RunChoice(pairs=((2, 3),)))
    assert json.loads((bench / "figures" / "alignment.json").read_text())["name"] == "small 2 → 3"
    with refusal("pairs", "one pair"):
        make_figure("alignment", bench, RunChoice(pairs=PAIRS))


def test_what_the_folder_lacks_is_refused(bench, tmp_path):
    for choice, words in (
        (RunChoice(dataset="ucihar"), "dataset"),
        (RunChoice(pairs=((1, 0),)), "pairs"),
        (RunChoice(seed=5), "seed"),
        (RunChoice(settings={"patch_length": 99}), "patch_length"),
    ):
        with refusal(words):
            make_figure("codes", bench, choice)
    store = Store(tmp_path)
    (other,) = plan("no-adapt").runs()
    keep(store, other)
    with refusal("folder", "finished runs of transpl"):
        make_figure("codes", tmp_path)


def test_of_several_settings_the_papers_are_taken_or_one_must_be_named(bench, tmp_path):
    store, (first,) = Store(tmp_path), plan("transpl").runs()
    keep(store, first)
    (other,) = plan("transpl", patch_length=8).runs()
    keep(store, other)
    with refusal("set", "differ in patch_length"):
        choose_runs(tmp_path, RunChoice())
    assert choose_runs(tmp_path, RunChoice(settings={"patch_length": 8})) == [other]
    papers = replace(first, settings=settings_without_seed(entry("transpl").settings("small")))
    keep(store, papers)
    assert choose_runs(tmp_path, RunChoice()) == [papers]


def test_of_every_pair_the_smallest_seed_is_taken_and_goals_do_not_matter(tmp_path):
    store = Store(tmp_path)
    runs = plan("transpl", pairs=((0, 1), (1, 0)), seeds=(0, 1)).runs()
    for spec in runs:
        if (spec.source, spec.seed) != (0, 0):
            keep(store, spec)
            keep(store, replace(spec, goal="label"))
    assert [(spec.source, spec.seed) for spec in choose_runs(tmp_path, RunChoice())] == [(0, 1), (1, 0)]
    assert [(spec.source, spec.seed) for spec in choose_runs(tmp_path, RunChoice(seed=1))] == [(0, 1), (1, 1)]


def test_two_data_sets_need_a_name(tmp_path):
    store, (spec,) = Store(tmp_path), plan("transpl").runs()
    keep(store, spec)
    keep(store, replace(spec, dataset="other"))
    with refusal("dataset", "other, small"):
        make_figure("corruption", tmp_path)
