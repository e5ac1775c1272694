import re
import time

import pytest

from transpl._utils import progress
from transpl._utils.progress import PlainLines, display, progress_bar, silence, task, tracked


@pytest.fixture
def at_once(monkeypatch):
    """Lines come after a hundredth of a second and not after seconds."""
    monkeypatch.setattr(progress, "FIRST_LINE_AFTER", 0.01)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")


def work(**options: object) -> None:
    with task("learning", 4, **options) as update:
        update(1)
        time.sleep(0.1)


def test_outside_a_terminal_lines_say_the_share_and_the_time_left(capsys, at_once):
    work(shown=True)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) > 1
    assert all(re.fullmatch(r"learning: 1 of 4 \(25%\), about \d+ s left", line) for line in lines)


def test_a_long_first_step_is_not_silent(capsys, at_once):
    with task("reading", 2, shown=True):
        time.sleep(0.1)
    assert "reading: 0 of 2 (0%), time left not known yet" in capsys.readouterr().err


def test_what_is_done_soon_says_nothing(capsys):
    with task("learning", 4, shown=True) as update:
        update(4)
    assert capsys.readouterr() == ("", "")


def test_no_line_comes_after_the_end(capsys, at_once):
    work(shown=True)
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("shown", "displayed", "seen"),
    [(None, None, False), (True, None, True), (None, True, True), (True, False, False), (None, False, False)],
)
def test_who_decides_what_is_shown(capsys, at_once, shown, displayed, seen):
    if displayed is None:
        work(shown=shown)
    else:
        with display(displayed):
            work(shown=shown)
    assert bool(capsys.readouterr().err) == seen


def test_silence_lasts_until_the_display_ends(capsys, at_once):
    with display(True):
        silence()
        work(shown=True)
        assert progress.is_silent()
    assert not progress.is_silent()
    assert capsys.readouterr().err == ""


def test_a_task_inside_another_is_not_shown(capsys, at_once):
    with display(True), task("outer", 1):
        with task("inner", 1):
            time.sleep(0.05)
        assert list(tracked("ab", "loop", 2)) == ["a", "b"]
    said = capsys.readouterr().err
    assert "outer" in said
    assert "inner" not in said


def test_a_loop_is_counted(capsys, at_once):
    with display(True):
        for _ in tracked("abc", "reading", 3):
            time.sleep(0.05)
    assert re.findall(r"reading: (\d) of 3", capsys.readouterr().err)[-1] == "2"


def test_the_time_left_is_that_of_the_pace_so_far(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = PlainLines("learning", 10)
    now[0] += 20
    lines.update(2, "validation loss 0.5")
    assert lines.line() == "learning: 2 of 10 (20%), about 80 s left; validation loss 0.5"


def test_what_an_earlier_session_did_says_nothing_of_the_pace(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = PlainLines("labelling", 100, first=90)
    assert lines.line() == "labelling: 90 of 100 (90%), time left not known yet"
    now[0] += 20
    lines.update(92)
    assert lines.line() == "labelling: 92 of 100 (92%), about 80 s left"


def test_a_terminal_sees_the_phase_and_the_validation_loss(capsys, terminal):
    with progress_bar("source phase", 3, shown=True) as report:
        report(1, 0.5)
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert "source phase" in drawn.err
    assert "0.5000" in drawn.err


def test_a_terminal_sees_how_much_is_done(capsys, terminal):
    with task("encoding", 5000, shown=True) as update:
        update(4096)
    drawn = capsys.readouterr().err
    assert "encoding" in drawn
    assert "4096/5000" in drawn
