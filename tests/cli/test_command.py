"""What all commands have in common: help in two lengths, lists with commas, JSON, silence, light imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import typer
from command_line import transpl

from transpl.cli import app
from transpl.cli.options import read_seeds, split_assignments, split_commas
from transpl.methods import registry
from transpl.methods.listing import listed_methods

MOST_SHOWN = 14


def all_commands() -> dict[str, object]:
    top = typer.main.get_command(app)
    found = {(name,): command for name, command in top.commands.items() if not hasattr(command, "commands")}
    groups = {name: command for name, command in top.commands.items() if hasattr(command, "commands")}
    return found | {(name, sub): each for name, group in groups.items() for sub, each in group.commands.items()}


COMMANDS = all_commands()


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^│ +\*? *(--[a-z-]+)", text, flags=re.M))


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command; returns exit code, what it printed, and what it said on the side."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        code = transpl(monkeypatch, *words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_shows_about_a_dozen_options_and_help_all_shows_every_one(command, words):
    every = {opt for param in COMMANDS[words].params for opt in param.opts if opt.startswith("--")} | {"--help"}
    code, short, _ = command(*words, "--help")
    assert code == 0
    assert len(options_in(short)) <= MOST_SHOWN
    code, long, _ = command(*words, "--help-all") if "--help-all" in every else (0, None, "")
    assert code == 0
    if long is not None:
        assert "--help-all" in options_in(short)
        assert options_in(long) == every
    assert "Example: transpl " in short


def test_an_option_that_help_leaves_out_is_completed(monkeypatch):
    for name, value in {"COMPLETE": "complete_bash", "WORDS": "transpl adapt --sig", "CWORD": "2"}.items():
        monkeypatch.setenv(f"{'_TRANSPL_' if name == 'COMPLETE' else 'COMP_'}{name}", value)
    script = [sys.executable, "-c", "from transpl.cli import main; main()"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert "--sigma" in done.stdout


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["a,b", "c"], ["a", "b", "c"]),
        (["a, b,"], ["a", "b"]),
        ([], []),
        (None, None),
    ],
)
def test_lists_with_commas(typed, found):
    assert split_commas(typed) == found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["a=1,b=2", "c=3"], ["a=1", "b=2", "c=3"]),
        (["adapt_lr=1e-3,5e-4,width=8,16"], ["adapt_lr=1e-3,5e-4", "width=8,16"]),
        (["undo=turn,unit"], ["undo=turn,unit"]),
        (["witnesses=('codes', 'linear'), sigma=0.3"], ["witnesses=('codes', 'linear')", "sigma=0.3"]),
        (["width"], ["width"]),
        (None, None),
    ],
)
def test_assignments_with_commas(typed, found):
    assert split_assignments(typed) == found


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (0, 1, 2)), ("1", (0,)), ("0,1,2", (0, 1, 2)), ("4,2", (4, 2)), ("5,", (5,))]
)
def test_seeds_are_a_number_or_a_list(text, seeds):
    assert read_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1,1", "0,-1", "1.5", ","])
def test_other_seeds_are_refused(text):
    with pytest.raises(ValueError, match=r"\A--seeds: "):
        read_seeds(text)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_but_the_server_prints_json(words):
    options = {opt for param in COMMANDS[words].params for opt in param.opts}
    assert ("--json" in options) == (words != ("serve",))


@pytest.mark.parametrize(
    "words", [["methods"], ["methods", "softmax"], ["datasets", "list"], ["datasets", "info", "synthetic"]]
)
def test_json_is_all_that_is_on_stdout(command, words):
    code, out, _ = command(*words, "--json")
    assert code == 0
    assert json.loads(out)


def test_the_json_of_data_sets_has_what_the_list_shows(command):
    _, out, _ = command("datasets", "list", "--json")
    found = json.loads(out)
    _, table, _ = command("datasets", "list")
    assert [each["name"] for each in found["datasets"]] == [
        line.split()[0] for line in table.splitlines()[1:-1] if not line.startswith(" ")
    ]
    assert found["kept_in"] in table


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_leaves_results_and_errors(command, tmp_path, place):
    rng = np.random.default_rng(0)
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(20, 2, 32)), y=np.arange(20) % 2)
    words = ["adapt", "--source", tmp_path / "a.npz", "--target", tmp_path / "b.npz", "--out", tmp_path / "out"]
    words = ["--quiet", *words] if place == "before" else [*words, "--quiet"]
    code, out, err = command(*words, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["metrics"]["after"]["windows"] == 20
    assert found["report"] == str(tmp_path / "out" / "report.html")
    code, out, err = command(*words, "--mode", "magic")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    code, _, err = command(*[word for word in words if word != "--quiet"])
    assert "a.npz: 20 windows" in err  # the next command is not silent


def test_predictions_as_json_are_those_of_the_csv(command, tmp_path):
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(20, 2, 32)), y=np.arange(20) % 2)
    paths = ["--source", tmp_path / "a.npz", "--target", tmp_path / "a.npz", "--out", tmp_path / "out"]
    assert command("adapt", *paths)[0] == 0
    words = ["predict", "--model", tmp_path / "out", "--input", tmp_path / "a.npz"]
    _, out, _ = command(*words, "--json")
    _, table, _ = command(*words)
    head, *lines = table.splitlines()
    rows = json.loads(out)
    assert [list(row) for row in rows] == [head.split(",")] * len(lines)
    assert [float(line.split(",")[-1]) for line in lines] == pytest.approx([row["p_1"] for row in rows], abs=1e-14)


# Imports: what a command does not need it must not load, as that takes seconds.

HEAVY = {"torch", "sklearn", "pandas", "plotly", "ot", "scipy"}


def modules_after(*words: str) -> set[str]:
    code = f"""
import sys
sys.argv = {["transpl", *words]!r}
from transpl.cli import main
try:
    main()
except SystemExit as leaving:
    assert not leaving.code, leaving.code
finally:
    print("modules:", *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules:")[2].split())


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["--version"], ["methods"], ["adapt", "--help"], ["datasets", "list"]]
)
def test_static_answers_load_nothing_heavy(words):
    allowed = {"pandas"} if words == ["datasets", "list"] else set()
    assert not modules_after(*words) & (HEAVY - allowed)


def test_the_list_of_methods_that_is_read_is_the_one_that_is_registered():
    known = registry.entries()
    expected = [(name, known[name].family, known[name].needs, known[name].reference) for name in registry.names()]
    listed = {each.name for each in listed_methods()}
    assert [tuple(each) for each in listed_methods()] == [each for each in expected if each[0] in listed]
    ours = {name for name, each in known.items() if each.method.__module__.startswith("transpl.")}
    assert listed == ours
