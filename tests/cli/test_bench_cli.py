"""`transpl bench` and `transpl table`, as a person types them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from dataclasses import replace

import pytest
from command_line import transpl
from tiny_bench import COUNTED, SET, keep, plan, write_data

from transpl.benchmark.paper_tables import TABLES
from transpl.benchmark.plan import Plan, rows_of
from transpl.benchmark.store import Store
from transpl.cli.bench import _settings_and_grid
from transpl.datasets import make_shifted
from transpl.methods import registry
from transpl.methods.softmax import Softmax


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    write_data(tmp_path / "data")
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    return tmp_path


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command; returns exit code, what it printed, and what it said on the side."""

    def run(*words):
        code = transpl(monkeypatch, *words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


SMALL = ["bench", "--dataset", "small", "--pairs", "0-1", *SET, "--backend", "inline"]


def methods(*names):
    return [word for name in names for word in ("--methods", name)]


def test_bench_then_status_then_table_then_nothing_left(command):
    code, out, err = command(*SMALL, *methods("no-adapt", "softmax"), "--seeds", "2")
    assert (code, out) == (0, "")
    first, *lines, last = err.splitlines()
    assert first == "4 runs, 0 of them finished"
    lines = [line for line in lines if not line.startswith("benchmark: ")]  # how far it is, if it takes long
    assert len(lines) == 4
    assert all(": accuracy " in line for line in lines)
    assert last == "4 of 4 runs finished; results in transpl-bench"

    code, out, err = command("bench", "--status")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "4 runs: 4 finished, 0 missing, 0 of them failed"

    code, out, err = command("table", "transpl-bench", *SET, "--which", "full")
    assert code == 0
    assert "| no-adapt " in out
    assert "small Acc" in out
    assert "± " in out
    assert "small deepcoral (all 2)" in out

    code, _, err = command(*SMALL, *methods("no-adapt", "softmax"), "--seeds", "2")
    assert (code, err.splitlines()[0]) == (0, "4 runs, 4 of them finished")
    assert len(err.splitlines()) == 2


def test_another_machine_goes_on_where_the_lines_end(command, home):
    bench = [*SMALL, *methods("no-adapt"), "--save-lines", "lines.csv"]
    assert command(*bench)[0] == 0
    (line,) = csv.DictReader((home / "lines.csv").read_text().splitlines())
    assert line["row"].split()[0] == line["method"] == "no-adapt"
    assert "max_epochs=2" in line["row"].split()

    code, _, err = command(*bench, "--seeds", "2", "--out", "other")
    assert (code, err.splitlines()[:2]) == (0, ["1 of 2 runs have a line in lines.csv", "1 runs, 0 of them finished"])
    assert [spec.seed for spec, _ in Store(home / "other").results()] == [1]

    code, out, _ = command("table", "lines.csv", *SET, *methods("no-adapt"))
    assert code == 0
    assert "seeds (0, 1)" in out
    code, _, err = command("table", "lines.csv", "--runs")
    assert (code, err.startswith("error: --runs: ")) == (2, True)

    code, _, err = command(*SMALL, *methods("no-adapt"), "--done", "no.csv")
    assert (code, err) == (2, "error: no.csv: no such file. Check the path.\n")
    rest = [*SMALL, *methods("no-adapt"), "--seeds", "3", "--out", "x", "--done", "lines.csv", "--dry-run"]
    code, out, _ = command(*rest)
    assert (code, len(out.splitlines())) == (0, 2)


def test_runs_that_a_folder_has_already_get_their_lines(command, home):
    assert command(*SMALL, *methods("no-adapt"))[0] == 0
    code, _, err = command(*SMALL, *methods("no-adapt"), "--save-lines", "lines.csv")
    assert (code, err.splitlines()[0]) == (0, "1 runs, 1 of them finished")
    assert len((home / "lines.csv").read_text().splitlines()) == 2


def test_a_dry_run_lists_and_does_nothing(command, home):
    code, out, _ = command(*SMALL, *methods("no-adapt", "softmax"), "--dry-run")
    assert code == 0
    assert out.splitlines() == [
        "small 0-1 no-adapt seed 0  ?",
        "small 0-1 softmax seed 0  ?",
        "2 runs: 0 finished, 2 missing, 0 of them failed; no estimate of the time yet",
    ]
    assert not (home / "transpl-bench").exists()


@pytest.mark.parametrize("table", TABLES)
def test_the_runs_of_a_table(command, table):
    code, out, _ = command("bench", "--table", table, "--dataset", "small", "--pairs", "0-1", *SET, "--dry-run")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == len(TABLES[table].rows("small")) + 1
    assert len(set(lines)) == len(lines), "no two alike"


def test_a_table_restricted_to_some_methods(command):
    words = ["bench", "--table", "ablation", "--dataset", "small", "--pairs", "0-1", "--dry-run"]
    _, out, _ = command(*words, *methods("transpl"))
    assert out.splitlines()[:2] == [
        "small 0-1 transpl seed 0 channel_alignment=False  ?",
        "small 0-1 transpl seed 0 channel_alignment=True  ?",
    ]
    code, _, err = command(*words, *methods("softmax"))
    assert (code, err) == (
        2,
        "error: methods: expected methods of the table (transpl, transpl-ws), got softmax. "
        "Leave out --table to run other methods.\n",
    )


def test_a_plan_file(command, home):
    (home / "plan.yaml").write_text(
        "dataset: small\nmethods: [no-adapt]\npairs: [0-1, 1-0]\nchanges: {max_epochs: 1, width: 16}\n"
    )
    code, out, _ = command("bench", "--plan", "plan.yaml", "--dry-run")
    assert code == 0
    assert out.splitlines()[0] == "small 0-1 no-adapt seed 0  ?"
    for more in (["--seeds", "2"], ["--pairs", "0-1"], ["--preset", "paper"], ["--set", "width=8"], SMALL[1:3]):
        code, _, err = command("bench", "--plan", "plan.yaml", *more)
        assert (code, err) == (2, "error: plan: a plan says itself what to run. Leave out the other options.\n")


def test_a_failed_run_is_reported_and_made_next_time(command, monkeypatch, home):
    def fail(self, target, prior):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(Softmax, "_adapt", fail)
        code, _, err = command(*SMALL, *methods("no-adapt", "softmax"), "--retries", "0")
    assert code == 1
    assert "small 0-1 softmax seed 0: failed: RuntimeError: out of luck\n" in err
    assert err.endswith("1 of 2 runs finished; results in transpl-bench\n")
    code, out, _ = command("bench", "--status")
    assert "failed: small 0-1 softmax seed 0: RuntimeError: out of luck" in out
    assert "1 missing, 1 of them failed" in out
    (record,) = (home / "transpl-bench" / "failures").glob("*.json")
    assert "in fail" in json.loads(record.read_text())["traceback"]
    assert command(*SMALL, *methods("no-adapt", "softmax"))[0] == 0


def test_results_that_were_deleted_under_a_bench_are_no_success(command, monkeypatch, home):
    adapt = Softmax._adapt

    def delete(self, *args):
        shutil.rmtree(home / "transpl-bench" / "runs")
        return adapt(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Softmax, "_adapt", delete)
        code, _, err = command(*SMALL, *methods("no-adapt", "softmax"))
    assert code == 1
    assert err.endswith("1 of 2 runs finished; results in transpl-bench\n")
    assert command(*SMALL, *methods("no-adapt", "softmax"))[0] == 0


def test_a_method_from_a_file_in_bench_and_table(command, home, monkeypatch):
    (home / "counted.py").write_text(COUNTED)
    monkeypatch.setenv("COUNT_FILE", str(home / "count"))
    monkeypatch.delitem(sys.modules, "transpl_plugin_counted", raising=False)
    words = methods("no-adapt", "counted")
    code, _, err = command(*SMALL, *words, "--import", "counted.py")
    assert code == 0, err
    code, out, _ = command("table", "transpl-bench", *SET, *words, "--import", "counted.py")
    assert code == 0
    rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| ")]
    assert rows[2:] == ["no-adapt", "counted"]
    assert "Missing runs" not in out


def test_an_estimator_by_name_in_options_and_in_a_plan(command, home):
    name = "sklearn:sklearn.neighbors.KNeighborsClassifier"
    words = [*methods(name), "--set", "n_neighbors=3", "--set", "input=flat"]
    code, _, err = command("bench", "--dataset", "small", "--pairs", "0-1", "--backend", "inline", *words)
    assert (code, err.splitlines()[-1][:9]) == (0, "1 of 1 ru")
    ((spec, result),) = Store(home / "transpl-bench").results()
    assert spec.settings == {"standardise": "domain", "input": "flat", "n_neighbors": 3}
    assert result.test["accuracy"] > 0.5

    rows = f"[{{label: kNN, method: '{name}', changes: {{n_neighbors: 3, input: flat}}}}]"
    (home / "plan.yaml").write_text(f"dataset: small\npairs: [0-1]\nrows: {rows}\n")
    code, _, err = command("bench", "--plan", "plan.yaml", "--save-lines", "lines.csv")
    assert (code, err.splitlines()[0]) == (0, "1 runs, 1 of them finished")
    assert (home / "lines.csv").read_text().splitlines()[1].startswith("small,kNN,0-1,0,")

    code, out, _ = command("table", "transpl-bench", *words)
    assert (code, f"| {name} " in out) == (0, True)


def test_reading_a_folder_imports_no_estimator(command, home, monkeypatch):
    (home / "not_asked_for.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(home)
    (spec,) = plan("no-adapt").runs()
    spec = replace(spec, method="sklearn:not_asked_for.Estimator")
    store = Store(home / "runs")
    store.plan([spec])
    keep(store, spec)
    for words in (["table", "runs"], ["bench", "--out", "runs", "--status"], ["report", "runs"]):
        assert command(*words)[0] == 0
    assert "not_asked_for" not in sys.modules


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("words", "answer"),
    [(["bench", "--status"], "1 finished, 1 missing"), (["table", "transpl-bench", *SET], "small no-adapt (all 1)")],
)
def test_damage_is_named_once_and_does_not_stop(command, home, words, answer):
    specs = plan("no-adapt", "softmax").runs()
    store = Store(home / "transpl-bench")
    store.plan(specs)
    for spec in specs:
        keep(store, spec)
    bad = store.folder / "runs" / f"{specs[0].digest}.json"
    bad.write_text(bad.read_text()[:50])
    code, out, err = command(*words)
    assert code == 0
    assert answer in out
    (note,) = err.splitlines()
    assert note.startswith("note: ")
    assert bad.name in note


# Tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Made-up results of every table on two pairs with the paper's settings."""
    store = Store(tmp_path_factory.mktemp("full"))
    data = make_shifted(n_train=6, n_test=6, length=32)
    books = {"reconstruction_error": 0.1, "codebooks": {"coarse": {"dead": 1, "codes": 8}}}
    for table in TABLES.values():
        specs = Plan("small", table.rows("small"), ((0, 1), (1, 2)), (0, 1)).runs(data)
        store.plan(specs)
        for i, spec in enumerate(specs):
            keep(store, spec, 0.3 + 0.001 * i, details=books)
    return store.folder


@pytest.mark.parametrize("which", [*TABLES, "pairs"])
def test_every_table_in_every_format(command, folder, home, which):
    words = ["table", folder, "--which", which, "--dataset", "small"]
    code, markdown, err = command(*words)
    assert (code, err) == (0, "")
    assert markdown.startswith("### ")
    assert "Missing runs" not in markdown
    code, latex, _ = command(*words, "--format", "latex")
    assert code == 0
    assert latex.startswith(r"\begin{table}")
    assert latex.count("{") == latex.count("}")
    code, text, _ = command(*words, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 0
    assert {"mean", "std", "published", "missing"} <= rows[0].keys()
    assert {row["missing"] for row in rows} == {"0"}
    code, out, err = command(*words, "--format", "csv", "--out", home / "t" / "table.csv")
    assert (code, out, err) == (0, "", f"wrote {home / 't' / 'table.csv'}\n")
    assert (home / "t" / "table.csv").read_text() == text


def test_statistics_follow_the_table(command, folder):
    code, out, _ = command("table", folder, "--statistics", "--metric", "macro_f1")
    assert code == 0
    assert "macro_f1 over 2 pairs (0 incomplete ones left out), average rank:" in out
    first, *others = re.findall(r"^ +[0-9.]{4,5}  (\S+)$", out, flags=re.M)
    assert f"{first} against each: mean difference, pairs won-tied-lost, p:\n" in out
    against = re.findall(r"^ +[+-][0-9.]+ +(\d)-(\d)-(\d)  [01]\.\d{3}  (\S+)$", out, flags=re.M)
    assert [name for *_, name in against] == others
    assert all(sum(map(int, counts)) == 2 for *counts, _ in against)
    assert "not told apart: " in out
    (least,) = re.findall(r"told apart are average ranks that differ by (\d+\.\d\d) or more", out)
    assert float(least) > 9  # two pairs


BAD_TABLES = [
    (["--which", "fulll"], "which: expected one of 'full', "),
    (["--format", "html"], "format: "),
    (["--metric", "recall"], "metric: "),
    (["--select", "luck"], "select: "),
    (["--preset", "mine"], "preset: "),
    (["--set", "width"], "--set: expected name=value"),
    (["--set", "wdith=3"], "changes: "),
    (["--grid", "adpt_lr=1,2"], "grid: "),
    (
        ["--grid", "width=8,16", "--set", "width=8"],
        "grid: expected settings that changes leave open, got width",
    ),
    (["--which", "patch", "--methods", "softmax"], "methods: "),
    (["--statistics", "--format", "csv"], "--statistics: expected --format markdown"),
    (["--statistics", "--runs"], "--statistics: expected --format markdown, got --runs"),
    (["--statistics", "--methods", "softmax"], "--statistics: expected two methods or more"),
    (["--runs", "--which", "pairs", "--dataset", "ucihar"], "--runs: expected another table"),
    (["--runs", "--format", "latex"], "--runs: expected another table"),
    (["--import", "nothing.py"], "import: "),
    (["--metric", "binary_f1", "--which", "pairs", "--dataset", "small"], "metric: expected a score of small"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD_TABLES)
def test_bad_arguments_of_table(command, folder, words, complaint):
    code, out, err = command("table", folder, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {complaint}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["table", "nowhere"], ["bench", "--status", "--out", "nowhere"], ["table", "data"]])
def test_a_folder_that_no_benchmark_wrote(command, words):
    code, _, err = command(*words)
    assert code == 2
    assert "expected a folder that `transpl bench` wrote" in err


BAD_BENCHES = [
    ([], "dataset: expected a name, got none. Pass --dataset ucihar, or --table full."),
    (["--dataset", "nowhere"], "name: expected one of"),
    (["--dataset", "small", "--methods", "nobody"], "method: "),
    (["--dataset", "small", "--table", "fulll"], "table: "),
    (["--dataset", "small", "--table", "full", "--methods", "nobody"], "methods: "),
    (["--dataset", "small", "--pairs", "2"], "pairs: expected source and target as 2-11"),
    (["--dataset", "small", "--pairs", "2-11"], "pairs: expected domains of small (0, 1, 2, 3, 4), got 11"),
    (["--dataset", "small", "--set", "=3"], "--set: "),
    (["--dataset", "small", "--set", "random_state=3"], "changes: "),
    (["--dataset", "small", "--methods", "no-adapt", "--set", "width=-3"], "width: "),
    (["--dataset", "small", "--grid", "width="], "--grid: "),
    (
        ["--dataset", "small", "--grid", "width=8,16", "--set", "width=8"],
        "grid: expected settings that changes leave open",
    ),
    (["--dataset", "small", "--preset", "mine"], "preset: "),
    (["--dataset", "small", "--backend", "threads"], "backend: "),
    (["--dataset", "small", "--address", "here:1"], "address: "),
    (["--plan", "none.yaml"], "none.yaml: no such file"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD_BENCHES)
def test_bad_arguments_of_bench(command, words, complaint):
    code, out, err = command("bench", *words)
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith(f"error: {complaint}")


@pytest.mark.parametrize("words", [["--seeds", "0"], ["--jobs", "0"], ["--retries", "-1"]])
def test_numbers_are_checked(command, words):
    code, _, err = command("bench", "--dataset", "small", *words)
    assert code == 2
    assert words[0] in err


def test_values_on_the_command_line():
    changes, grid = _settings_and_grid(
        ["a=3", "b=1e-3", "c=true", "d=None", "e=each epoch", "f=(1, 2)"], ["g=1e-3,5e-4", "h=x,y"]
    )
    assert changes == {"a": 3, "b": 1e-3, "c": True, "d": None, "e": "each epoch", "f": (1, 2)}
    assert grid == {"g": [1e-3, 5e-4], "h": ["x", "y"]}


@pytest.mark.parametrize("word", ["bench", "table"])
def test_help_has_an_example(command, word):
    code, out, _ = command(word, "--help")
    assert code == 0
    assert f"Example: transpl {word}" in out.replace("`", "")


# What a folder holds


@pytest.fixture
def held(home):
    """Runs of two methods with changed settings, and one with others."""
    store = Store(home / "held")
    data = make_shifted(n_train=6, n_test=6, length=32)
    some = Plan("small", rows_of(["no-adapt", "dann"], {"width": 16}), ((0, 1), (1, 2)), (0,)).runs(data)
    store.plan(some)
    for i, spec in enumerate(some):
        keep(store, spec, 0.3 + 0.1 * i)
    return store


def names_of(table: str) -> list[str]:
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    return [row.replace("\\", "") for row in rows[2:]]


def test_by_default_a_table_shows_what_the_folder_holds(command, held):
    code, out, err = command("table", held.folder)
    assert (code, err) == (0, "")
    assert names_of(out) == ["no-adapt", "dann"]
    assert "\N{EN DASH}" not in out
    assert "bracket" not in out
    assert "Missing" not in out


def test_rows_of_other_settings_are_rows_of_their_own(command, held):
    more = Plan("small", rows_of(["dann"], {"width": 32}), ((0, 1),), (0,)).runs(make_shifted(6, 6, length=32))
    held.plan(more)
    keep(held, more[0])
    _, out, _ = command("table", held.folder)
    assert names_of(out) == ["no-adapt, width=16", "dann, width=16", "dann, width=32"]
    _, out, _ = command("table", held.folder, "--set", "width=16", "--methods", "dann")
    assert names_of(out) == ["dann"]
    code, _, err = command("table", held.folder, "--methods", "shot")
    assert (code, err.count("\n")) == (2, 1)


def test_a_table_of_the_paper_finds_runs_with_changed_settings(command, held):
    code, out, _ = command("table", held.folder, "--which", "full", "--json")
    assert code == 0
    found = json.loads(out)
    (row,) = [row for row in found["rows"] if row["name"] == "no-adapt"]
    assert row["small Acc"]["n"] == 2
    assert "Settings changed: width=16." in found["caption"]


def test_settings_that_differ_are_named_with_how_to_ask_for_them(command, held):
    more = Plan("small", rows_of(["no-adapt"], {"width": 32}), ((0, 1),), (0,)).runs(make_shifted(6, 6, length=32))
    held.plan(more)
    keep(held, more[0])
    _, out, _ = command("table", held.folder, "--which", "full")
    assert re.search(r"3 finished runs .*\(width=.*--set", out.replace("\\", ""))


def test_the_only_data_set_need_not_be_named_for_pairs(command, held, folder):
    code, out, _ = command("table", folder, "--which", "pairs")
    assert code == 0
    assert "small, every pair" in out
    other = Plan("other", rows_of(["no-adapt"]), ((0, 1),), (0,)).runs(make_shifted(6, 6, length=32))
    held.plan(other)
    code, _, err = command("table", held.folder, "--which", "pairs")
    assert code == 2
    assert err.startswith("error: dataset: expected one data set for pairs, got other, small")


def test_lists_with_commas_plan_the_same_runs(command):
    _, one, _ = command(*SMALL, "--methods", "no-adapt,softmax", "--seeds", "0,2", "--dry-run")
    _, other, _ = command(*SMALL, *methods("no-adapt", "softmax"), "--seeds", "3", "--dry-run")
    found = [line for line in one.splitlines() if " seed " in line]
    assert found == [line for line in other.splitlines() if " seed " in line and "seed 1" not in line]
    _, out, _ = command(*SMALL, "--methods", "no-adapt", "--pairs", "1-0,1-2", "--dry-run")
    assert [line.split()[1] for line in out.splitlines()[:-1]] == ["0-1", "1-0", "1-2"]


def test_the_state_as_json(command):
    code, out, _ = command(*SMALL, *methods("no-adapt", "softmax"), "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["runs"], found["finished"], found["failed"]) == (2, 0, 0)
    assert [each["method"] for each in found["missing"]] == ["no-adapt", "softmax"]
    assert command(*SMALL, *methods("no-adapt"), "--json")[0] == 2


def test_a_quiet_benchmark_says_nothing_but_failures(command, monkeypatch):
    def fail(self, target, prior):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(Softmax, "_adapt", fail)
        code, out, err = command(*SMALL, *methods("no-adapt", "softmax"), "--retries", "0", "--quiet")
    assert (code, out) == (1, "")
    assert err == "small 0-1 softmax seed 0: failed: RuntimeError: out of luck\n"
