"""Exit codes and the one line on stderr, for every way in which a command can end."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import warnings

import pytest

from transpl import cli
from transpl._utils.errors import invalid
from transpl.cli.exit import run_and_exit


def ended(monkeypatch, capsys, command):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # put back after the test
    with pytest.raises(SystemExit) as leaving:
        run_and_exit(command)
    return leaving.value.code, capsys.readouterr().err


def raising(error):
    def command():
        raise error

    return command


ENDS = {
    "nothing wrong": (lambda: None, 0, ""),
    "a part failed": (lambda: 1, 1, ""),
    "Ctrl-C": (lambda: 130, 130, "interrupted. The same command"),
    "input": (
        raising(invalid("X", expected="a", got="b\nc", advice="Do d.")),
        2,
        "error: X: expected a, got b c. Do d.",
    ),
    "no such file": (
        raising(FileNotFoundError(errno.ENOENT, "No such file", "a.csv")),
        1,
        "error: a.csv: no such file. Choose",
    ),
    "full disk": (
        raising(OSError(errno.ENOSPC, "No space left on device", "a.csv")),
        1,
        "error: a.csv: no space left on device. Make room and run it again, or choose another path.",
    ),
    "no file named": (raising(OSError("odd\nthing")), 1, "error: OSError: odd thing"),
    "inside": (raising(RuntimeError("broken\n  twice")), 1, "error: RuntimeError: broken twice"),
    "told to leave": (lambda: os.kill(os.getpid(), signal.SIGTERM), 128 + signal.SIGTERM, "interrupted. The same"),
}


@pytest.mark.parametrize(("command", "code", "line"), ENDS.values(), ids=ENDS.keys())
def test_every_end_has_a_code_and_at_most_one_line(monkeypatch, capsys, command, code, line):
    found, said = ended(monkeypatch, capsys, command)
    assert found == code
    assert said.startswith(line)
    assert said.count("\n") == bool(line)


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(ZeroDivisionError):
        run_and_exit(lambda: 1 // 0)


def test_signals_are_taken_only_while_the_command_runs(monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)
    during = []
    ended(monkeypatch, capsys, lambda: during.append(signal.getsignal(signal.SIGTERM)))
    assert during != [before]
    assert signal.getsignal(signal.SIGTERM) == before


def test_ctrl_c_that_a_library_turns_into_an_error_is_still_ctrl_c(monkeypatch, capsys):
    def command():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("as a callback from C may do") from None

    before = signal.getsignal(signal.SIGINT)
    code, told = ended(monkeypatch, capsys, command)
    assert code == 130
    assert told.startswith("interrupted.")
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_may_run_a_command(monkeypatch, capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(ended(monkeypatch, capsys, lambda: 0)[0]))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.filterwarnings("always:careful")
def test_warnings_are_notes(monkeypatch, capsys):
    assert ended(monkeypatch, capsys, lambda: warnings.warn("careful", stacklevel=1)) == (0, "note: careful\n")


# what was typed wrongly

FILES = ["--source", "a", "--target", "b", "--out", "c"]


def typed(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["transpl", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    said = capsys.readouterr()
    return int(caught.value.code or 0), said.out, said.err


@pytest.mark.parametrize(
    ("words", "named", "command"),
    [
        (["adapt", *FILES, "--epochs", "0"], "--epochs", "adapt"),
        (["adapt", *FILES, "--epochs=many"], "--epochs", "adapt"),
        (["adapt", "--epochs"], "--epochs", "adapt"),
        (["label", "m", "w", "--adapt=1"], "--adapt", "label"),
        (["label", "m", "w", "--out", "o", "--chunk", "0"], "--chunk", "label"),
        (["adapt", "--sauce", "a"], "--sauce", "adapt"),
        (["--sauce"], "--sauce", ""),
        (["adapt"], "--source", "adapt"),
        (["label", "m"], "windows", "label"),
        (["report", "a", "b"], "(b)", "report"),
        (["adopt"], "adopt", ""),
        (["datasets", "cook"], "cook", "datasets"),
        (["bench", "--out", __file__], "--out", "bench"),
        (["bench", "--jobs", "x"], "--jobs", "bench"),
        (["monitor", "--json", "--model"], "--model", "monitor"),
    ],
)
def test_one_line_names_what_was_wrong_and_where_help_is(monkeypatch, capsys, words, named, command):
    code, out, err = typed(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert named in err
    assert err.endswith(f"See {' '.join(['transpl', *command.split()])} --help.\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("value", "expected"), [("0", "1"), ("many", "integer")])
@pytest.mark.parametrize("joint", [" ", "="])
def test_a_value_that_cannot_be_used_is_told(monkeypatch, capsys, value, expected, joint):
    _, _, err = typed(monkeypatch, capsys, "adapt", *FILES, *f"--epochs{joint}{value}".split())
    assert "--epochs" in err
    assert expected in err


def test_a_similar_option_is_named(monkeypatch, capsys):
    _, _, err = typed(monkeypatch, capsys, "demo", "--epoch", "3")
    assert "--epochs" in err


@pytest.mark.parametrize("words", [["label", "--model", "results", "w.npy"], ["export", "--model=results"]])
def test_an_argument_typed_as_an_option_is_shown_in_its_place(monkeypatch, capsys, words):
    code, _, err = typed(monkeypatch, capsys, *words)
    assert code == 2
    assert f"transpl {words[0]} MODEL" in err
    assert "Possible options" not in err
    assert err.count("\n") == 1


def test_no_command_at_all_shows_what_one_needs_first(monkeypatch, capsys):
    code, out, err = typed(monkeypatch, capsys)
    assert (code, err) == (0, "")
    commands = re.findall(r"^  transpl (\w+)  +\S", out, flags=re.M)
    assert commands[0] == "demo"
    assert len(commands) == 5
    assert {"adapt", "predict"} <= set(commands)
    assert "transpl --help" in out


def test_no_command_of_a_group_is_answered_with_its_help(monkeypatch, capsys):
    code, out, err = typed(monkeypatch, capsys, "datasets")
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

    monkeypatch.setattr("transpl.datasets.recordings.several.expand_patterns", cut_off)
    code, _, err = typed(monkeypatch, capsys, "adapt", *FILES)
    assert (code, err.strip()) == (1, "error: EOFError: Ran out of input")


def test_ctrl_c_in_the_middle_says_how_to_go_on(tmp_path):
    """The signal comes in our own code: some libraries swallow what is raised in theirs."""
    words = ["demo", "--dataset", "synthetic", "--out", str(tmp_path / "out")]
    code = f"""
import os, signal, sys, time
sys.argv = {["transpl", *words]!r}
from transpl.cli import main
from transpl.council import Council
Council.learn = lambda *_: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    *_, before, last = done.stderr.splitlines()
    assert before.startswith("source phase")
    assert last == f"interrupted. The same command goes on where this one stopped: transpl {' '.join(words)}"
