"""What a look at files finds, before anything is trained."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from transpl.datasets.recordings.guess import guess_columns
from transpl.jobs.file_check import FilesCheck, check_files


def recording(n: int = 1200, gravity: float = 9.81, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    t = np.arange(n) / 50
    ay = gravity + rng.normal(0, 0.1 * gravity, n)
    activity = np.where(np.arange(n) % 600 < 300, "walk", "sit")
    noise = rng.normal(0, 0.1 * gravity, (2, n))
    return pd.DataFrame({"t": t, "acc_x": noise[0], "acc_y": ay, "acc_z": noise[1], "activity": activity})


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    recording().to_csv(tmp_path / "lab.csv", index=False)
    return tmp_path / "lab.csv"


def look(*frames: pd.DataFrame, lab: Path, **options: object) -> FilesCheck:
    paths = [lab]
    for number, frame in enumerate(frames):
        frame.to_csv(lab.parent / f"home{number}.csv", index=False)
        paths.append(lab.parent / f"home{number}.csv")
    found = check_files(paths, **options)
    json.dumps(found.as_json(), allow_nan=False)
    assert all("\n" not in line for line in found.lines())
    return found


def test_what_is_in_a_file(lab: Path) -> None:
    (found,) = look(lab=lab).files
    assert (found.rows, found.recordings, found.window, found.problem) == (1200, 1, 128, None)
    assert found.rows_per_second == pytest.approx(50)
    assert found.seconds == pytest.approx(24)
    assert found.sensors == [{"axes": ["acc_x", "acc_y", "acc_z"], "unit": "acceleration in m/s2"}]
    assert sum(found.classes.values()) == found.windows
    assert found.odd[-1] == f"few windows of sit {found.classes['sit']}, walk {found.classes['walk']}."


def test_an_axis_is_no_label() -> None:
    frame = pd.DataFrame({"x": [1, 2] * 9, "y": [1, 2] * 9, "acc_y": [0.0, 1.0] * 9, "activity": ["a", "b"] * 9})
    assert guess_columns(frame, {}) == {"label_col": "activity"}
    assert guess_columns(frame[["acc_y", "y"]], {}) == {"label_col": "y"}


def test_columns_are_guessed_and_options_overrule(lab: Path) -> None:
    found = look(lab=lab)
    assert found.columns == {"time_col": "t", "label_col": "activity"}
    assert sorted(found.guessed) == ["label_col", "time_col"]
    given = look(lab=lab, label_col="activity", channels=["acc_x"])
    assert given.guessed == ["time_col"]
    assert list(given.files[0].channels) == ["acc_x"]


@pytest.mark.parametrize(
    ("column", "values", "role"),
    [
        ("timestamp", np.arange(50), "time_col"),
        ("Time (s)", np.arange(50) / 10, "time_col"),
        ("class", [0, 1] * 25, "label_col"),
        ("subjectId", [3] * 50, "domain_col"),
        ("session", ["m", "e"] * 25, "group_col"),
        ("mood", ["good", "bad"] * 25, "label_col"),
    ],
)
def test_guesses(column: str, values: object, role: str) -> None:
    frame = pd.DataFrame({"ax": np.linspace(0.1, 0.9, 50), column: values})
    assert guess_columns(frame, {}) == {role: column}
    assert guess_columns(frame, {role: "ax"}).get(role) is None


def test_the_plan_is_a_command_that_runs(lab: Path) -> None:
    found = look(recording(seed=1), lab=lab, window=64)
    assert found.command is not None
    words = shlex.split(found.command)
    assert words[:2] == ["transpl", "adapt"]
    assert words[words.index("--target") + 1].endswith("home0.csv")
    assert words[words.index("--window") + 1] == "64"
    assert words[words.index("--time-col") + 1] == "t"


def test_the_plan_says_what_is_missing(lab: Path) -> None:
    found = look(lab=lab, label_col="t", time_col="t")
    assert found.command is None
    unlabelled = look(lab=lab, channels=["acc_x"])
    assert unlabelled.command is not None
    recording().assign(activity="walk").to_csv(lab, index=False)
    one_class = look(lab=lab)
    assert one_class.command is None
    assert one_class.plan is not None
    assert "two classes" in one_class.plan


def test_differences_between_files(lab: Path) -> None:
    other = recording(gravity=1.0, seed=1)
    other["activity"] = other["activity"].replace("walk", "run")
    told = " ".join(look(other, lab=lab).together)
    assert "acceleration in g in home0.csv" in told
    assert "labels that lab.csv lacks: run" in told
    assert "no window labelled walk" in told
    assert "acc_x varies 0.1 times as much" in told
    assert "given twice" in " ".join(check_files([lab, lab]).together)


def test_oddities(lab: Path) -> None:
    frame = recording().assign(still=1.0, twin=lambda table: table["acc_x"])
    frame["clipped"] = np.clip(np.random.default_rng(0).normal(size=len(frame)), -1, 1)
    frame.to_csv(lab, index=False)
    told = " ".join(look(lab=lab).files[0].odd)
    assert "still never changes" in told
    assert "twin is the same as acc_x" in told
    assert "clipped may be clipped" in told
    recording().to_csv(lab, index=False)
    signals = recording().select_dtypes("number").drop(columns="t")
    standardised = ((signals - signals.mean()) / signals.std()).assign(t=recording()["t"], activity="x")
    assert "look standardised" in " ".join(look(standardised, lab=lab).files[1].odd)


def test_rows_that_would_be_dropped_are_said(lab: Path) -> None:
    gaps = recording(seed=1)[lambda table: table.index % 400 < 170]
    found = look(gaps, lab=lab).files[1]
    assert found.left_out > 0.1
    assert any("in no window" in line for line in found.odd)


def test_a_file_that_cannot_be_used_does_not_stop_the_others(lab: Path) -> None:
    found = look(recording().drop(columns="acc_z"), recording(seed=2), lab=lab)
    assert not found.usable
    assert [check.problem is None for check in found.files] == [True, False, True]
    assert found.command is not None
    assert "home0" not in found.command


def test_windows_that_are_already_cut(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2, 16))
    np.savez(tmp_path / "cut.npz", X=X, y=np.arange(20) % 2)
    found = check_files([tmp_path / "cut.npz"])
    assert (found.files[0].windows, found.files[0].rows, found.columns) == (20, None, {})
    assert found.command is not None


def test_a_class_called_minus_one_is_odd(lab: Path) -> None:
    frame = recording().assign(activity=np.where(recording()["activity"] == "walk", 1, -1))
    frame.to_csv(lab, index=False)
    (found,) = look(lab=lab).files
    assert any(line.startswith("-1 is taken as a class") for line in found.odd)
