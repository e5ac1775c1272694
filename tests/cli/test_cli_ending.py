"""Exit codes and the one line, for every way in which a command can end."""

from __future__ import annotations

import errno
import os
import signal
import threading
import warnings

import pytest

from transpl._utils.errors import invalid
from transpl.cli.ending import run_and_exit


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
    "Ctrl-C": (lambda: 130, 130, "interrupted. Run the same command again"),
    "input": (
        raising(invalid("X", expected="a", got="b\nc", advice="Do d.")),
        2,
        "error: X: expected a, got b c. Do d.",
    ),
    "no such file": (
        raising(FileNotFoundError(errno.ENOENT, "No such file", "a.csv")),
        1,
        "error: a.csv: no such file. Choose a path that can be read or written.",
    ),
    "full disk": (
        raising(OSError(errno.ENOSPC, "No space left on device", "a.csv")),
        1,
        "error: a.csv: no space left on device. Make room and run it again, or choose another path.",
    ),
    "no file named": (raising(OSError("odd\nthing")), 1, "error: OSError: odd thing"),
    "inside": (raising(RuntimeError("broken\n  twice")), 1, "error: RuntimeError: broken twice"),
    "told to leave": (lambda: os.kill(os.getpid(), signal.SIGTERM), 128 + signal.SIGTERM, "interrupted. Run the same"),
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


def test_another_thread_may_run_a_command(monkeypatch, capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(ended(monkeypatch, capsys, lambda: 0)[0]))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.filterwarnings("always:careful")
def test_warnings_are_notes(monkeypatch, capsys):
    assert ended(monkeypatch, capsys, lambda: warnings.warn("careful", stacklevel=1)) == (0, "note: careful\n")
