from transpl._utils.progress import progress_bar, windows_bar


def test_nothing_is_drawn_outside_a_terminal(capsys):
    with progress_bar("source", 3, shown=True) as report:
        report(0, None)
        report(1, 0.5)
    with windows_bar("encoding", 3, shown=True) as report_windows:
        report_windows(2)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_the_phase_and_the_validation_loss(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with progress_bar("source phase", 3, shown=True) as report:
        report(1, 0.5)
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert "source phase" in drawn.err
    assert "0.5000" in drawn.err


def test_a_terminal_sees_how_many_windows_are_done(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with windows_bar("encoding", 5000, shown=True) as report:
        report(4096)
    drawn = capsys.readouterr().err
    assert "encoding" in drawn
    assert "4096/5000" in drawn
