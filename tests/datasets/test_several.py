"""Several files read as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from transpl._utils.errors import InputError
from transpl.datasets.recordings.reading import read_recordings
from transpl.datasets.recordings.several import expand_patterns, files_of, read_several


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(["a.csv", "b.csv", "c.csv"]):
        n = np.arange(40.0) + 100 * number
        table = pd.DataFrame({"t": n / 10, "ax": n, "ay": -n, "activity": ["walk", "sit", "walk"][number]})
        table.to_csv(tmp_path / name, index=False)
    (tmp_path / "notes.txt").write_text("not a table")
    return tmp_path


def test_windows_are_joined_and_know_their_file(folder: Path) -> None:
    found = read_several(files_of(folder), read_recordings, window=10, step=5, time_col="t", label_col="activity")
    one = read_recordings(folder / "b.csv", window=10, step=5, time_col="t", label_col="activity")
    assert len(found) == 3 * len(one)
    assert found.group is not None
    here = found.group == "b.csv"
    np.testing.assert_array_equal(found.X[here], one.X)
    assert found.start is not None
    assert found.time is not None
    np.testing.assert_array_equal(found.start[here], one.start)
    np.testing.assert_array_equal(found.time[here], one.time)
    assert found.y is not None
    assert set(found.y[here]) == {"sit"}


def test_the_first_file_decides_channels_and_window(folder: Path) -> None:
    frame = pd.read_csv(folder / "b.csv")
    frame.assign(extra=1.0)[["extra", "ay", "activity", "ax", "t"]].to_csv(folder / "b.csv", index=False)
    found = read_several(files_of(folder), read_recordings, window="1s", time_col="t", label_col="activity")
    assert found.channel_names == ("ax", "ay")
    np.testing.assert_array_equal(found.X[:, 0], -found.X[:, 1])
    assert found.X.shape[2] == 10


def test_another_rate_is_said_or_mended(folder: Path) -> None:
    frame = pd.read_csv(folder / "b.csv")
    frame.assign(t=2 * frame["t"]).to_csv(folder / "b.csv", index=False)
    assert any(
        "--rate 10" in line
        for line in read_several(files_of(folder), read_recordings, window=10, time_col="t").warnings
    )
    mended = read_several(files_of(folder), read_recordings, window=10, time_col="t", rate=10.0)
    assert mended.warnings == ()
    assert mended.group is not None
    assert (mended.group == "b.csv").sum() > (mended.group == "a.csv").sum()


def test_windows_of_different_lengths_are_refused(tmp_path: Path) -> None:
    for name, length in (("a", 8), ("b", 9)):
        np.savez(tmp_path / f"{name}.npz", X=np.zeros((2, 1, length)))
    with pytest.raises(InputError, match="windows of one length"):
        read_several([tmp_path / "a.npz", tmp_path / "b.npz"], read_recordings)


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file that ends in"):
        files_of(tmp_path)
    with pytest.raises(InputError, match="source: expected files"):
        expand_patterns([tmp_path / "*.csv"], "source")
