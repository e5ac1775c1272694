"""What was typed wrongly is told in one line on stderr, with code 2, by every command."""

from __future__ import annotations

import sys

import pytest

from transpl import cli

FILES = ["--source", "a", "--target", "b", "--out", "c"]


def typed(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["transpl", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    said = capsys.readouterr()
    return int(caught.value.code or 0), said.out, said.err


@pytest.mark.parametrize(
    ("words", "begins", "ends"),
    [
        (["adapt", *FILES, "--epochs", "0"], "--epochs: ", "See transpl adapt --help."),
        (["adapt", *FILES, "--epochs=many"], "--epochs: ", "See transpl adapt --help."),
        (["adapt", "--epochs"], "--epochs: ", "See transpl adapt --help."),
        (["label", "m", "w", "--adapt=1"], "--adapt: ", "See transpl label --help."),
        (["label", "m", "w", "--out", "o", "--chunk", "0"], "--chunk: ", "See transpl label --help."),
        (["adapt", "--sauce", "a"], "--sauce: expected an option of transpl adapt", "See transpl adapt --help."),
        (["--sauce"], "--sauce: expected an option of transpl", "See transpl --help."),
        (["adapt"], "--source: expected a value, got none", "See transpl adapt --help."),
        (["label", "m"], "WINDOWS: expected a value, got none", "See transpl label --help."),
        (["report", "a", "b"], "transpl report: ", "See transpl report --help."),
        (["adopt"], "transpl: no such command 'adopt'", "See transpl --help."),
        (["datasets", "cook"], "transpl datasets: no such command 'cook'", "See transpl datasets --help."),
        (["bench", "--out", __file__], "--out: dir", "' is a file. See transpl bench --help."),
        (["bench", "--seeds", "x"], "--seeds: ", "See transpl bench --help."),
        (["monitor", "--json", "--model"], "--model: ", "See transpl monitor --help."),
    ],
)
def test_one_line_names_what_was_wrong_and_where_help_is(monkeypatch, capsys, words, begins, ends):
    code, out, err = typed(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {begins}")
    assert err.endswith(f"{ends}\n")
    assert err.count("\n") == 1
    assert "?." not in err


@pytest.mark.parametrize(("value", "expected"), [("0", "1"), ("many", "integer")])
@pytest.mark.parametrize("joint", [" ", "="])
def test_a_value_that_cannot_be_used_is_told(monkeypatch, capsys, value, expected, joint):
    _, _, err = typed(monkeypatch, capsys, "adapt", *FILES, *f"--epochs{joint}{value}".split())
    assert value in err
    assert expected in err


def test_a_similar_option_is_named(monkeypatch, capsys):
    _, _, err = typed(monkeypatch, capsys, "demo", "--epoch", "3")
    assert "Did you mean --epochs?" in err


@pytest.mark.parametrize("words", [[], ["datasets"]])
def test_no_command_at_all_is_answered_with_the_help(monkeypatch, capsys, words):
    code, out, err = typed(monkeypatch, capsys, *words)
    assert code == 2
    assert "Usage:" in out + err
    assert "error:" not in err


@pytest.mark.parametrize("words", [["--help"], ["adapt", "--help"], ["--version"]])
def test_help_and_version_are_no_errors(monkeypatch, capsys, words):
    code, out, err = typed(monkeypatch, capsys, *words)
    assert (code, err) == (0, "")
    assert "transpl" in out


def test_the_end_of_a_file_inside_a_command_is_told_as_such(monkeypatch, capsys):
    def cut_off(*_):
        raise EOFError("Ran out of input")

    monkeypatch.setattr("transpl.jobs.expand_patterns", cut_off)
    code, _, err = typed(monkeypatch, capsys, "adapt", *FILES)
    assert (code, err.strip()) == (1, "error: EOFError: Ran out of input")
