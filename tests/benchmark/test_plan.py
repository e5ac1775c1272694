"""From words and files to runs, and the name of each run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from conftest import refusal
from printed_rows import printed_rows
from tiny_bench import CHANGES, plan

from transpl._utils.errors import UnreadableFile
from transpl.benchmark.paper_tables import SETS, TABLES, paper_table
from transpl.benchmark.plan import Plan, Row, only_methods, rows_of, settings_without_seed, with_changes
from transpl.benchmark.plan_files import read_plans
from transpl.benchmark.run_spec import RunSpec, data_fingerprint
from transpl.benchmark.status import distinct_names
from transpl.datasets import make_shifted
from transpl.datasets.pairs import parse_pair
from transpl.methods import registry
from transpl.methods.method_settings import AdaptSettings, SourceSettings
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import entry, names

DATA = make_shifted(n_train=6, n_test=6, length=32)


def test_runs_are_rows_times_pairs_times_seeds():
    specs = plan("no-adapt", "softmax", pairs=[(0, 1), (2, 0)], seeds=(0, 3)).runs(DATA)
    found = [(spec.method, spec.pair, spec.seed) for spec in specs]
    assert len(found) == len(set(found)) == 8
    assert ("softmax", "2-0", 3) in found
    assert {spec.data for spec in specs} == {specs[0].data}


def test_without_pairs_all_pairs_of_the_data_set():
    specs = Plan("synthetic", rows_of(["no-adapt"])).runs(DATA)
    assert [(spec.source, spec.target) for spec in specs] == list(DATA.pairs)


def test_a_run_that_two_rows_ask_for_is_one_run():
    rows = (Row("a", "transpl"), Row("b", "transpl", {"patch_length": 8}), Row("c", "transpl", {"patch_length": 4}))
    assert len(Plan("synthetic", rows, ((0, 1),)).runs(DATA)) == 2


def test_settings_are_those_of_the_method_for_the_data_set():
    (wisdm,) = Plan("wisdm", rows_of(["transpl"])).settings_for(Row("transpl", "transpl"))
    assert wisdm == settings_without_seed(entry("transpl").settings("wisdm"))
    assert (wisdm["width"], wisdm["sigma"]) == (128, 0.1)
    (adatime,) = Plan("wisdm", rows_of(["deepcoral"]), preset="adatime").settings_for(Row("d", "deepcoral"))
    assert adatime == settings_without_seed(entry("deepcoral").settings("wisdm", "adatime"))


def test_changes_go_to_the_methods_that_have_them():
    no_adapt, coral = rows_of(["no-adapt", "deepcoral"], {"coral_weight": 2, "width": 32})
    assert no_adapt.changes == {"width": 32}
    assert coral.changes == {"coral_weight": 2, "width": 32}
    with refusal("changes", "settings of no-adapt, got cral_weight"):
        rows_of(["no-adapt"], {"cral_weight": 2})
    with refusal("changes", "random_state"):
        rows_of(["no-adapt"], {"random_state": 2})


def test_a_setting_that_none_of_the_chosen_methods_has_is_refused():
    with refusal("changes", "settings of no-adapt, softmax, got coral_weight"):
        rows_of(["no-adapt", "softmax"], {"coral_weight": 2, "width": 32})
    with refusal("changes", "settings of deepcoral, got sigma"):
        Plan("small", (Row("transpl", "transpl"), Row("coral", "deepcoral", {"sigma": 0.5})))
    with refusal("grid", "settings of deepcoral, got top_ratio"):
        Plan("small", rows_of(["deepcoral"]), grid={"top_ratio": [0.1, 0.5]})


def test_a_rows_own_changes_win():
    (row,) = with_changes([Row("4", "transpl", {"patch_length": 4})], {"patch_length": 8, "width": 32})
    assert row.changes == {"patch_length": 4, "width": 32}


def test_all_methods():
    """But for those that need groups, which most data sets do not have."""
    everywhere = [name for name in names() if "groups" not in entry(name).method.requires]
    assert [row.method for row in rows_of(["all", "softmax"])] == everywhere
    with refusal("method", "'nobody'"):
        rows_of(["nobody"])


def test_a_method_that_needs_groups_is_refused_where_the_data_set_has_none():
    needing = Plan("small", rows_of(["transpl-plus-groups"]), ((0, 1),))
    with refusal("methods", "transpl-plus-groups"):
        needing.runs(DATA)
    assert needing.runs(replace(DATA, groups=np.arange(len(DATA))))


def test_a_grid_is_every_combination_for_the_methods_that_have_the_setting():
    grid = {"adapt_lr": [1e-3, 5e-4], "width": [16, 32]}
    tried = replace(plan("no-adapt", "softmax"), grid=grid, rows=rows_of(["no-adapt", "softmax"]))
    specs = tried.runs(DATA)
    assert [spec.method for spec in specs].count("no-adapt") == 2
    points = [(spec.settings["adapt_lr"], spec.settings["width"]) for spec in specs if spec.method == "softmax"]
    assert points == [(1e-3, 16), (1e-3, 32), (5e-4, 16), (5e-4, 32)]


def test_a_row_that_changes_a_setting_of_the_grid_keeps_its_value():
    rows = (Row("softmax", "softmax"), Row("slow", "softmax", {"adapt_lr": 1e-5}))
    tried = Plan("small", rows, grid={"adapt_lr": [1e-3, 5e-4]})
    assert [[each["adapt_lr"] for each in tried.settings_for(row)] for row in rows] == [[1e-3, 5e-4], [1e-5]]


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ({"adpt_lr": [1]}, "adpt_lr"),
        ({"width": []}, "list of values for width"),
        ({"width": "16"}, "'16'"),
        ({"width": 16}, "16"),
    ],
)
def test_a_grid_that_means_nothing_is_refused(grid, problem):
    with refusal("grid", problem):
        replace(plan(), grid=grid)


def test_pairs_of_another_data_set_are_refused():
    with refusal("pairs", r"domains of small \(0, 1, 2\), got 11"):
        plan(pairs=[(2, 11)]).runs(DATA)


def test_nothing_to_run_is_refused():
    with refusal("rows"):
        replace(plan(), rows=())
    with refusal("seeds"):
        replace(plan(), seeds=())
    with refusal("seeds", "-1"):
        replace(plan(), seeds=(-1,))
    with refusal("goal"):
        replace(plan(), rows=(Row("a", "transpl", goal="win"),))


@pytest.mark.parametrize("text", ["2", "2-", "a-b", "2-11-3", "-2-11", 2, None])
def test_what_is_no_pair_is_refused(text):
    assert parse_pair("2-11") == (2, 11)
    with refusal("pairs"):
        parse_pair(text)


# The paper's tables


PRINTED = [table for table in TABLES.values() if table.published == table.name]


@pytest.mark.parametrize("table", PRINTED, ids=[table.name for table in PRINTED])
def test_the_rows_of_a_table_are_those_of_the_print(table):
    for dataset in table.datasets:
        ours = [row.label for row in table.rows(dataset)]
        assert ours == [label for label in printed_rows(table.name, dataset) if label in ours]
        assert set(printed_rows(table.name, dataset)) <= set(ours)
        assert len(set(ours)) == len(ours)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("dataset", SETS)
def test_every_row_of_a_table_is_another_run(table, dataset):
    rows = table.rows(dataset)
    specs = Plan(dataset, rows, ((0, 1),)).runs(replace(DATA, groups=np.arange(len(DATA))))
    assert len(specs) == len(rows)


def test_some_methods_of_a_table():
    rows = paper_table("ablation").rows("ucihar")
    assert only_methods(rows, ()) == only_methods(rows, ["all"]) == rows
    assert [row.label for row in only_methods(rows, ["transpl"])] == ["transpl-no-alignment", "transpl"]
    with refusal("methods", "got softmax"):
        only_methods(rows, ["softmax", "transpl"])
    with refusal("table"):
        paper_table("fulll")


# YAML


def read(tmp_path, text):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return read_plans(path)


def test_a_whole_plan(tmp_path):
    one, other = read(
        tmp_path,
        """
- dataset: small
  methods: [no-adapt, softmax]
  pairs: [0-1, [2, 0]]
  seeds: 2
  changes: {max_epochs: 3, width: 16}
  grid: {adapt_lr: [1e-3, 5e-4]}
- dataset: ucihar
  rows:
    - transpl
    - {label: short patches, method: transpl, changes: {patch_length: 4, source_lr: 1e-3}, goal: label}
  seeds: [0, 7]
  preset: adatime
""",
    )
    assert one.pairs == ((0, 1), (2, 0))
    assert one.seeds == (0, 1)
    assert one.grid == {"adapt_lr": [1e-3, 5e-4]}
    assert [(row.method, row.changes["max_epochs"]) for row in one.rows] == [("no-adapt", 3), ("softmax", 3)]
    assert len(one.runs(DATA)) == (1 + 2) * 2 * 2
    assert (other.pairs, other.seeds, other.preset) == ((), (0, 7), "adatime")
    assert other.rows[0] == Row("transpl", "transpl")
    assert other.rows[1] == Row("short patches", "transpl", {"patch_length": 4, "source_lr": 1e-3}, "label")


def test_changes_of_a_file_may_be_for_its_methods_or_for_its_rows(tmp_path):
    (found,) = read(tmp_path, "{dataset: small, methods: [deepcoral], rows: [transpl], changes: {sigma: 0.5}}")
    assert [row.changes for row in found.rows] == [{}, {"sigma": 0.5}]


def test_one_mapping_is_one_plan_and_one_word_one_method(tmp_path):
    (found,) = read(tmp_path, "dataset: small\nmethods: all\n")
    assert found.rows == rows_of(["all"])
    assert found.seeds == (0,)


def test_the_command_line_and_a_file_plan_the_same_runs(tmp_path):
    changes = "".join(f"\n  {name}: {value}" for name, value in CHANGES.items())
    (found,) = read(tmp_path, f"dataset: small\nmethods: [softmax]\npairs: 0-1\nchanges:{changes}\n")
    assert [spec.digest for spec in found.runs(DATA)] == [spec.digest for spec in plan("softmax").runs(DATA)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a plan"),
        ("just words", "not a plan"),
        ("dataset: small", "methods or rows"),
        ("{dataset: small, methods: [no-adapt], sedes: 3}", "not a plan"),
        ("dataset: [unclosed", "not YAML"),
        ("{dataset: small, methods: [nobody]}", "method: .*'nobody'"),
        ("{dataset: small, methods: [no-adapt], seeds: many}", "seeds: "),
        ("{dataset: small, methods: [no-adapt], seeds: [0, x]}", "seeds: "),
        ("{dataset: small, methods: [no-adapt], seeds: 0}", "seeds: "),
        ("{dataset: small, methods: [no-adapt], pairs: [2]}", "pairs: "),
        ("{dataset: small, methods: [no-adapt], pairs: {a: 3}}", "pairs: expected a list"),
        ("{dataset: small, methods: [no-adapt], changes: [1]}", "changes: expected names"),
        ("{dataset: small, methods: [no-adapt], changes: {wdith: 3}}", "changes: .*wdith"),
        ("{dataset: small, methods: [no-adapt], grid: {width: 3}}", "grid.width: "),
        (
            "{dataset: small, methods: [softmax], changes: {width: 8}, grid: {width: [8, 16]}}",
            "grid: .*open, got width",
        ),
        ("{dataset: small, rows: {transpl: 1}}", "rows: expected a list"),
        ("{dataset: small, rows: [{label: x}]}", "rows: not a row"),
        ("{dataset: small, rows: [{method: transpl, goal: win}]}", "goal: "),
        ("{dataset: small, rows: []}", "rows: expected one or more"),
        ("{dataset: small, methods: [], changes: {max_epochs: 3}}", "rows: expected one or more"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line_that_names_it(tmp_path, text, problem):
    with refusal(tmp_path / "plan.yaml", problem, UnreadableFile):
        read(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path):
    with refusal(tmp_path / "none.yaml", "no such file"):
        read_plans(tmp_path / "none.yaml")


SPEC = RunSpec("ucihar", "d21825b723eb9a349ee9", 2, 11, "softmax", 0, {"width": 64, "sizes": (1, 2), "prior": None})
DATA = make_shifted(n_train=6, n_test=6, length=16)


@dataclass(frozen=True)
class WithTuple(SourceSettings):
    """sizes : of something"""

    sizes: tuple[int, ...] = (1, 2)
    limit: float | None = None


class OfTuples(NoAdapt):
    """Has settings that JSON turns into lists."""

    Settings = WithTuple


@pytest.fixture
def method_with_tuple(monkeypatch):
    registry.names()
    known = registry.Entry("of-tuples", OfTuples, "own", "source", "-")
    monkeypatch.setitem(registry._entries, "of-tuples", known)


def test_the_digest_is_the_same_in_every_process_and_release():
    """Results on disk are found by it: if this fails, every stored run is lost."""
    assert SPEC.digest == "c73aad837f315e614e8b"


def test_the_order_of_settings_does_not_matter():
    assert replace(SPEC, settings=dict(reversed(SPEC.settings.items()))).digest == SPEC.digest


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"source": 3},
        {"goal": "label"},
        {"data": "other"},
        {"method": "sp"},
        {"settings": {"width": 63}},
        {"normalise": "domain"},
    ],
)
def test_whatever_decides_the_numbers_is_in_the_digest(change):
    assert replace(SPEC, **change).digest != SPEC.digest


def test_a_spec_that_went_through_json_equals_itself():
    again = RunSpec.from_dict(json.loads(json.dumps(SPEC.as_dict())))
    assert again == SPEC
    assert again.digest == SPEC.digest
    assert again.settings == {"width": 64, "sizes": [1, 2], "prior": None}


def test_a_spec_of_scaled_channels_went_through_json_too():
    scaled = replace(SPEC, normalise="domain")
    assert RunSpec.from_dict(json.loads(json.dumps(scaled.as_dict()))) == scaled
    assert scaled.seen_data not in (SPEC.seen_data, replace(SPEC, normalise="per_split").seen_data)


def test_an_unknown_scaling_is_refused():
    with refusal("normalise", "per_split"):
        replace(SPEC, normalise="source")


def test_a_method_gets_its_tuples_back(method_with_tuple):
    settings = WithTuple(sizes=(3, 4), random_state=7)
    spec = replace(SPEC, method="of-tuples", seed=7, settings=settings_without_seed(settings))
    again = RunSpec.from_dict(json.loads(json.dumps(spec.as_dict())))
    assert again.method_settings() == settings
    assert hash(again.method_settings()) == hash(settings)


def test_the_seed_is_not_among_the_settings():
    one, two = (settings_without_seed(SourceSettings(random_state=seed)) for seed in (0, 1))
    assert one == two
    assert "random_state" not in one


def test_a_whole_number_is_the_same_setting_as_the_fraction_it_equals():
    whole, fraction = (
        settings_without_seed(AdaptSettings(adapt_lr=1)),
        settings_without_seed(AdaptSettings(adapt_lr=1.0)),
    )
    assert json.dumps(whole) == json.dumps(fraction)
    assert isinstance(whole["width"], int)


def test_a_setting_that_is_gone_renames_no_older_run():
    settings = settings_without_seed(entry("transpl").settings("ucihar"))
    assert settings["vote"] == "mean"
    spec = replace(SPEC, method="transpl", settings=settings)
    assert spec.method_settings() == entry("transpl").settings("ucihar", random_state=SPEC.seed)
    with refusal("settings", "got vote=product"):
        replace(spec, settings={**settings, "vote": "product"}).method_settings()


def test_numbers_of_numpy_are_plain_numbers():
    assert replace(SPEC, source=np.int64(2), seed=np.int64(0)).digest == SPEC.digest


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, np.int64(3)])
def test_settings_that_json_cannot_hold_are_refused(value):
    with refusal("settings", "JSON"):
        replace(SPEC, settings={"width": value})


def test_what_is_no_spec_is_refused():
    with refusal("goal"):
        replace(SPEC, goal="win")
    with refusal("seed"):
        replace(SPEC, seed=-1)
    with refusal("values", "a difference in seed"):
        RunSpec.from_dict({name: value for name, value in SPEC.as_dict().items() if name != "seed"})
    with refusal("run.source", "int"):
        RunSpec.from_dict({**SPEC.as_dict(), "source": "2"})


def test_an_unknown_method_is_a_spec_all_the_same():
    stranger = replace(SPEC, method="not-installed")
    assert RunSpec.from_dict(stranger.as_dict()) == stranger
    with refusal("method", "not-installed"):
        stranger.method_settings()


@pytest.mark.parametrize("part", ["X", "y", "domain_ids", "split"])
def test_every_value_of_the_data_counts(part):
    values = getattr(DATA, part).copy()
    values.flat[0] = values.flat[-1]
    assert (values != getattr(DATA, part)).any()
    assert data_fingerprint(replace(DATA, **{part: values})) != data_fingerprint(DATA)


def test_equal_data_have_equal_fingerprints():
    again = make_shifted(n_train=6, n_test=6, length=16)
    assert data_fingerprint(again) == data_fingerprint(DATA)


def test_names_say_the_goal_and_what_tells_alike_runs_apart():
    one = plan("transpl").runs(DATA)[0]
    other = plan("transpl", width=32).runs(DATA)[0]
    elsewhere = replace(other, source=1, target=2, goal="label")
    names = distinct_names([one, other, elsewhere])
    assert names[one.digest] == "small 0-1 transpl seed 0 width=16"
    assert names[other.digest] == "small 0-1 transpl seed 0 width=32"
    assert names[elsewhere.digest] == "small 1-2 transpl seed 0 (labels only)"
    old = replace(one, data="old")
    assert distinct_names([one, old])[old.digest] == "small 0-1 transpl seed 0 data=old"
