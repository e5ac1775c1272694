"""The options that say how recordings are read, and what the commands that read some do with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import transpl


def walk(seed: int, n: int = 1500, jitter: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    t = np.arange(n) / 50
    moving = np.arange(n) % 600 < 300
    wave = np.where(moving, 3.0, 0.1)
    return pd.DataFrame(
        {
            "t": t + rng.normal(0, jitter, n),
            "ax": wave * np.sin(12 * t) + rng.normal(0, 0.1, n),
            "ay": 9.8 + wave * np.cos(12 * t) + rng.normal(0, 0.1, n),
            "activity": np.where(moving, "walk", "sit"),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    walk(0).to_csv(folder / "lab.csv", index=False)
    walk(1).to_csv(folder / "lab2.csv", index=False)
    walk(2, jitter=0.005).to_csv(folder / "home.csv", index=False)
    (folder / "people").mkdir()
    for name in ("lab", "lab2"):
        (folder / "people" / f"{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
    return folder


@pytest.fixture(scope="module")
def adapted(files: Path) -> Path:
    with pytest.MonkeyPatch.context() as monkeypatch:
        words = ["--source", files / "lab.csv", "--source", files / "lab2.csv", "--target", files / "home.csv"]
        words += [
            "--label-col",
            "activity",
            "--time-col",
            "t",
            "--window",
            "1s",
            "--rate",
            "25",
            "--out",
            files / "out",
        ]
        assert transpl(monkeypatch, "adapt", *words) == 0
    return files / "out"


def test_every_source_counts(files: Path, adapted: Path) -> None:
    summary = json.loads((adapted / "summary.json").read_text())
    assert summary["source"]["name"] == "lab, lab2"
    assert summary["source"]["windows"] > 2 * 40
    assert summary["target"]["name"] == "home"


def test_seconds_become_samples_and_are_remembered(adapted: Path) -> None:
    reading = json.loads((adapted / "model" / "reading.json").read_text())
    assert (reading["window"], reading["step"], reading["rate"], reading["time_col"]) == (25, 12, 25.0, "t")
    assert set(reading) <= {"window", "step", "rate", "time_col", "channels", "interval"}


def test_a_folder_is_one_person_and_a_pattern_several(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    common = ["--label-col", "activity", "--time-col", "t", "--window", "50"]
    words = ["--source", files / "people", "--target", files / "people", "--out", files / "folder", *common]
    assert transpl(monkeypatch, "adapt", *words) == 0
    table = pd.read_csv(files / "folder" / "predictions.csv")
    assert set(table["group"]) == {"lab.csv", "lab2.csv"}
    words = ["--source", f"{files}/lab*.csv", "--target", f"{files}/people/*.csv", "--out", files / "many", *common]
    assert transpl(monkeypatch, "adapt", *words, "--backend", "inline") == 0
    assert {path.parent.name for path in files.glob("many/*/segments.csv")} == {"lab", "lab2"}


def test_the_source_as_target_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path
) -> None:
    words = ["--source", files / "lab.csv", "--target", files / "lab.csv", "--out", files / "same"]
    assert transpl(monkeypatch, "adapt", *words, "--label-col", "activity", "--time-col", "t", "--window", "50") == 0
    assert "both source and target" in capsys.readouterr().err


def test_predictions_have_times_and_segments(monkeypatch: pytest.MonkeyPatch, files: Path, adapted: Path) -> None:
    known = pd.read_csv(adapted / "predictions.csv")
    assert (known["time_end"] > known["time"]).all()
    assert (adapted / "segments.csv").is_file()
    words = ["--model", adapted, "--input", files / "home.csv", "--out", files / "p.csv", "--segments", files / "s.csv"]
    assert transpl(monkeypatch, "predict", *words) == 0
    table, segments = pd.read_csv(files / "p.csv"), pd.read_csv(files / "s.csv")
    assert segments["windows"].sum() == len(table)
    assert (table["label"] == known["label"]).all()
    assert segments["start"].iloc[0] == pytest.approx(table["time"].min(), abs=1e-6)


def test_neighbours_speak_for_each_other(monkeypatch: pytest.MonkeyPatch, files: Path, adapted: Path) -> None:
    words = ["--model", adapted, "--input", files / "home.csv"]
    assert transpl(monkeypatch, "predict", *words, "--out", files / "alone.csv") == 0
    assert transpl(monkeypatch, "predict", *words, "--smooth", "--out", files / "smooth.csv") == 0
    alone, smooth = (pd.read_csv(files / f"{name}.csv") for name in ("alone", "smooth"))
    assert (alone["time"] == smooth["time"]).all()
    assert (smooth["confidence"] > alone["confidence"]).mean() > 0.8


def test_windows_already_cut_have_no_segments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path, adapted: Path
) -> None:
    np.savez(files / "cut.npz", X=np.zeros((3, 2, 25)), channel_names=["ax", "ay"])
    words = ["--model", adapted, "--input", files / "cut.npz", "--segments", files / "none.csv"]
    assert transpl(monkeypatch, "predict", *words) == 2
    assert "--segments: expected recordings" in capsys.readouterr().err
    assert not (files / "none.csv").exists()


def test_one_file_cannot_hold_both_windows_and_segments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path, adapted: Path
) -> None:
    words = ["--model", adapted, "--input", files / "home.csv", "--out", files / "one.csv"]
    assert transpl(monkeypatch, "predict", *words, "--segments", files / "." / "one.csv") == 2
    assert "--segments: expected another file" in capsys.readouterr().err
    assert not (files / "one.csv").exists()


def test_windows_at_a_change_of_label_are_reviewed_last(
    monkeypatch: pytest.MonkeyPatch, files: Path, adapted: Path
) -> None:
    assert transpl(monkeypatch, "review", "--model", adapted, "--n", "8", "--out", files / "few.csv") == 0
    listed, known = pd.read_csv(files / "few.csv"), pd.read_csv(adapted / "predictions.csv")
    label = known["label"].to_numpy()
    at_change = np.flatnonzero(np.r_[False, label[:-2] != label[2:], False])
    assert len(at_change)
    assert not set(listed["window"]) & set(at_change.tolist())
    assert (listed["time"].to_numpy() == known["time"][listed["window"]].to_numpy()).all()


def test_a_channel_that_the_model_needs_cannot_be_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path, adapted: Path
) -> None:
    walk(3).drop(columns="ay").to_csv(files / "lacking.csv", index=False)
    assert transpl(monkeypatch, "predict", "--model", adapted, "--input", files / "lacking.csv") == 2
    told = capsys.readouterr().err
    assert "adapt again" in told
    assert "Name the channels" not in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--window", "soon"], "window: expected samples"),
        (["--window", "0s"], "window: expected samples"),
        (["--step", "0.001s"], "step: expected at least one sample"),
        (["--gap", "-1"], "gap: expected"),
        (["--time-unit", "h"], "time_unit: expected one of"),
        (["--sep", "x"], "sep: expected one of comma"),
        (["--decimal", ";"], "decimal: expected one of"),
    ],
)
def test_bad_options(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: Path,
    options: list[str],
    message: str,
) -> None:
    words = ["--source", files / "lab.csv", "--target", files / "home.csv", "--out", files / "no"]
    assert transpl(monkeypatch, "adapt", *words, "--label-col", "activity", "--time-col", "t", *options) == 2
    told = capsys.readouterr().err.splitlines()
    assert message in told[-1]
    assert told[-1].startswith("error: ")


def test_seconds_need_a_clock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path) -> None:
    words = ["--source", files / "lab.csv", "--target", files / "home.csv", "--out", files / "no"]
    assert transpl(monkeypatch, "adapt", *words, "--label-col", "activity", "--window", "1s") == 2
    assert "time_col: expected a column, because window is given in seconds" in capsys.readouterr().err


def test_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path) -> None:
    assert transpl(monkeypatch, "check", files / "lab.csv", files / "home.csv") == 0
    told = capsys.readouterr().out
    assert "transpl adapt --source" in told
    assert "interpolated" in told
    assert transpl(monkeypatch, "check", files / "lab.csv", files / "home.csv", "--json") == 0
    assert [each["rows"] for each in json.loads(capsys.readouterr().out)["files"]] == [1500, 1500]
    (files / "bad.csv").write_text("nothing\n")
    assert transpl(monkeypatch, "check", files / "lab.csv", files / "bad.csv") == 1
    assert "cannot be used" in capsys.readouterr().out
