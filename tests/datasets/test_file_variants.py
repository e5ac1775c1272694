"""One recording written in every way that people write it: the windows are the same, or one line says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from transpl._utils.errors import InputError
from transpl.datasets.recordings.reading import Recordings, read_recordings

N, RATE = 600, 50
Write = Callable[[pd.DataFrame, Path], dict[str, Any]]


def recording() -> pd.DataFrame:
    """Two smooth channels at 50 per second, and the activity."""
    t = np.arange(N) / RATE
    return pd.DataFrame(
        {
            "t": t,
            "ax": np.sin(2 * np.pi * t).round(6),
            "ay": (0.5 * np.cos(2 * np.pi * t) + 2).round(6),
            "activity": np.where(np.arange(N) < 300, "walk", "sit"),
        }
    )


def read(path: Path, **options: Any) -> Recordings:
    return read_recordings(path, **{"time_col": "t", "label_col": "activity", "window": 50, **options})


def csv(suffix: str = ".csv", **options: Any) -> Write:
    def write(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
        frame.to_csv(folder / f"walk{suffix}", index=False, **options)
        return {"path": folder / f"walk{suffix}"}

    return write


def changed(change: Callable[[pd.DataFrame], pd.DataFrame], **options: Any) -> Write:
    def write(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
        change(frame).to_csv(folder / "walk.csv", index=False)
        return {"path": folder / "walk.csv", **options}

    return write


def frames(suffix: str, method: str) -> Write:
    def write(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
        pytest.importorskip("pyarrow")
        getattr(frame, method)(folder / f"walk{suffix}")
        return {"path": folder / f"walk{suffix}"}

    return write


def matlab(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    from scipy.io import savemat

    arrays = {name: frame[name].to_numpy() for name in ("t", "ax", "ay")}
    arrays["activity"] = frame["activity"].to_numpy(object)
    savemat(folder / "walk.mat", {"trial": arrays})
    return {"path": folder / "walk.mat"}


def hdf5(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "walk.h5", "w") as file:
        for name in ("t", "ax", "ay"):
            file[f"signals/{name}"] = frame[name].to_numpy()
        file["activity"] = frame["activity"].to_numpy(object)
    return {"path": folder / "walk.h5"}


def matlab_structs(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    from scipy.io import savemat

    halves = [frame[:300], frame[300:]]
    structs = [{**{name: half[name].to_numpy() for name in ("t", "ax", "ay")}, "fs": 50.0} for half in halves]
    trials = [{**struct, "activity": half["activity"].iloc[0]} for struct, half in zip(structs, halves, strict=True)]
    savemat(folder / "walk.mat", {"trials": np.array(trials, dtype=object)})
    return {"path": folder / "walk.mat"}


def hdf5_groups(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "walk.h5", "w") as file:
        for trial, half in (("one", frame[:300]), ("two", frame[300:])):
            for name in ("t", "ax", "ay"):
                file[f"{trial}/{name}"] = half[name].to_numpy()
            file[f"{trial}/activity"] = half["activity"].to_numpy(object)
    return {"path": folder / "walk.h5"}


def lines(change: Callable[[str, str], str], **options: Any) -> Write:
    """Write a csv whose text is changed, given its header and its rows."""

    def write(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
        header, rows = frame.to_csv(index=False, lineterminator="\n", **options).split("\n", 1)
        (folder / "walk.csv").write_text(change(header, rows), encoding="utf-8")
        return {"path": folder / "walk.csv"}

    return write


def netcdf(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    from scipy.io import netcdf_file

    with netcdf_file(folder / "walk.nc", "w") as file:
        file.createDimension("time", N)
        for name in ("t", "ax", "ay"):
            file.createVariable(name, "d", ("time",))[:] = frame[name].to_numpy()
        file.createVariable("activity", "i", ("time",))[:] = (frame["activity"] == "walk").to_numpy(int)
    return {"path": folder / "walk.nc"}


def times(make: Callable[[pd.Series], Any]) -> Write:
    return changed(lambda frame: frame.assign(t=make(frame["t"])))


def seconds_since(start: str, t: pd.Series) -> pd.Series:
    return pd.Timestamp(start) + pd.to_timedelta(t, unit="s")


def vibrating(frame: pd.DataFrame) -> pd.DataFrame:
    """Four times the rows, and a vibration that looks slow in every fourth."""
    t = np.arange(4 * len(frame)) / (4 * RATE)
    vibration = 0.5 * np.sin(2 * np.pi * 1.9 * RATE * t)
    signals = {name: np.interp(t, frame["t"], frame[name]) + vibration for name in ("ax", "ay")}
    return pd.DataFrame({"t": t, **signals, "activity": frame["activity"].repeat(4).to_numpy()})


def written_index(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    frame.to_csv(folder / "walk.csv")
    return {"path": folder / "walk.csv"}


SAME = {
    "csv": csv(),
    "csv, packed": csv(".csv.gz"),
    "semicolons": csv(sep=";"),
    "semicolons and decimal commas": csv(sep=";", decimal=","),
    "quoted decimal commas": csv(decimal=","),
    "tabs": csv(".tsv", sep="\t"),
    "blanks": csv(".txt", sep=" "),
    "bars": csv(sep="|"),
    "a byte order mark": csv(encoding="utf-8-sig"),
    "UTF-16, as spreadsheets write it": csv(".txt", sep="\t", encoding="utf-16"),
    "Windows letters": changed(lambda frame: frame.assign(**{"Länge (m/s²)": "x"})),
    "Windows line ends": csv(lineterminator="\r\n"),
    "comments above the header": lines(lambda header, rows: f"# watch 7, left\n# 3 May\n{header}\n{rows}"),
    "a header that is a comment": lines(lambda header, rows: f"# made by numpy\n# {header}\n{rows}"),
    "titles above the header": lines(lambda header, rows: f"sep=,\nDevice,watch 7\nSite,home,,\n\n{header}\n{rows}"),
    "a row of units below the header": lines(lambda header, rows: f"{header}\ns,g,[g],\n{rows}"),
    "a separator at the end of the rows": lines(
        lambda header, rows: header + "\n" + rows.replace("\n", ";\n"), sep=";", decimal=","
    ),
    "parquet": frames(".parquet", "to_parquet"),
    "feather": frames(".feather", "to_feather"),
    "MATLAB": matlab,
    "HDF5": hdf5,
    "MATLAB, a struct for each recording": matlab_structs,
    "HDF5, a group for each recording": hdf5_groups,
    "NetCDF": netcdf,
    "a written-out index": written_index,
    "columns in another order": changed(lambda frame: frame[["activity", "ay", "t", "ax"]], channels=["ax", "ay"]),
    "columns in other spelling": changed(
        lambda frame: frame.rename(columns={"ax": "AX (m/s2)", "ay": " a_Y", "t": "T", "activity": "Activity"}),
        channels=["ax", "ay"],
    ),
    "more columns": changed(lambda frame: frame.assign(battery=97, note="ok"), channels=["ax", "ay"]),
    "rows in another order": changed(lambda frame: frame.sample(frac=1, random_state=0)),
    "rows logged twice": changed(lambda frame: pd.concat([frame, frame[100:160]])),
    "up to three lost samples on end": changed(lambda frame: frame.drop(index=[40, 200, 201, 450, 451, 452])),
    "empty cells": changed(lambda frame: frame.assign(ax=frame["ax"].where(~frame.index.isin([40, 200, 201])))),
    "a channel at half the rate, empty cells between": changed(
        lambda frame: frame.assign(ay=frame["ay"].where(frame.index % 2 == 0))
    ),
    "two sensors that take turns, empty cells between": changed(
        lambda frame: frame.assign(
            ax=frame["ax"].where((frame.index % 2 == 1) | (frame.index == 0)),
            ay=frame["ay"].where((frame.index % 2 == 0) | (frame.index == N - 1)),
        )
    ),
    "a few words among numbers": changed(
        lambda frame: frame.assign(ax=frame["ax"].astype(object).mask(frame.index == 40, "?"))
    ),
    "ISO dates": times(lambda t: seconds_since("2026-03-01 12:00", t).dt.strftime("%Y-%m-%dT%H:%M:%S.%f")),
    "ISO dates with a time zone": times(
        lambda t: [each.isoformat() for each in seconds_since("2026-03-01 12:00+05:30", t)]
    ),
    "ISO dates over the end of summer time": times(
        lambda t: [each.isoformat() for each in seconds_since("2026-10-25 00:59:56Z", t).dt.tz_convert("Europe/Berlin")]
    ),
    "local dates over the end of summer time": times(
        lambda t: seconds_since("2026-10-25 00:59:54Z", t).dt.tz_convert("Europe/Berlin").dt.tz_localize(None)
    ),
    "a comma before the milliseconds": times(
        lambda t: seconds_since("2026-03-01 12:00", t).dt.strftime("%Y-%m-%d %H:%M:%S,%f")
    ),
    "times of day over midnight": times(
        lambda t: seconds_since("2026-03-01 23:59:57", t).dt.strftime("%H:%M:%S.%f").str[:-4]
    ),
    "a clock that begins again": times(lambda t: (t % 6).round(6)),
    "dates that begin with the day": times(
        lambda t: seconds_since("2026-04-03 23:59:55", t).dt.strftime("%d.%m.%Y %H:%M:%S.%f")
    ),
    "unix seconds": times(lambda t: 1.7e9 + t),
    "unix milliseconds": times(lambda t: (1.7e12 + 1e3 * t).astype(np.int64)),
    "unix microseconds": times(lambda t: (1.7e15 + 1e6 * t).astype(np.int64)),
    "unix nanoseconds": times(lambda t: 1_700_000_000_000_000_000 + (1e9 * t).round().astype(np.int64)),
    "milliseconds from the start, said": changed(lambda frame: frame.assign(t=1e3 * frame["t"]), time_unit="ms"),
    "a row for each time and channel": changed(lambda frame: frame.melt(["t", "activity"], var_name="channel")),
    "labels as numbers": changed(lambda frame: frame.assign(activity=(frame["activity"] == "walk").astype(int))),
    "labels as numbers, some missing": changed(
        lambda frame: frame.assign(activity=(frame["activity"] == "walk").astype(float).where(frame.index < 590))
    ),
}
NEARLY = {  # other samples of the same signal
    "a jittered clock": times(lambda t: t + np.random.default_rng(0).normal(0, 0.006, N)),
    "a clock in whole seconds": times(np.floor),
    "half the sampling rate, with --rate": changed(lambda frame: frame[::2], rate=float(RATE)),
    "four times the sampling rate, and vibrations, with --rate": changed(vibrating, rate=float(RATE)),
    "windows in seconds": changed(lambda frame: frame, window="1s"),
}
REFUSED = {
    "a spreadsheet": (lambda frame, folder: {"path": _touch(folder / "walk.xlsx")}, "Save the sheet as csv"),
    "no names in the first line": (csv(header=False), "(its first line has numbers|expected a column)"),
    "more names than fields": (
        lines(lambda header, rows: f"time,{header}\n{rows}"),
        "5 names, but most rows have 4 fields",
    ),
    "two columns of one name": (csv(header=["t", "ax", "ax", "activity"]), "two columns are called 'ax'"),
    "a MATLAB file that is none": (lambda frame, folder: {"path": _touch(folder / "walk.mat")}, "not readable as .mat"),
    "an HDF5 file without arrays": (lambda frame, folder: {"path": _no_arrays(folder)}, "no array of numbers"),
    "a gap in every window": (changed(lambda frame: frame[frame.index % 50 < 40]), "samples on end"),
    "milliseconds from the start, not said": (
        changed(lambda frame: frame.assign(t=1e3 * frame["t"]), rate=50.0),
        "--time-unit ms",
    ),
    "a channel at a fiftieth of the rate, empty cells between": (
        changed(lambda frame: frame.assign(ay=frame["ay"].where(frame.index % 50 == 0))),
        "'ay' is empty in 98 %.*--channels",
    ),
    "rows of two people by number, not said": (
        changed(lambda frame: pd.concat([frame.assign(who=1), frame.assign(who=2)]).sort_values("t")),
        "--domain-col",
    ),
    "rows of two people, not said": (
        changed(lambda frame: pd.concat([frame.assign(who="ann"), frame.assign(who="bob")])),
        "--domain-col",
    ),
}


def _touch(path: Path) -> Path:
    path.write_bytes(b"nothing")
    return path


def _no_arrays(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "walk.h5", "w") as file:
        file.attrs["made"] = "by hand"
    return folder / "walk.h5"


def written(write: Write, folder: Path) -> Recordings:
    options = write(recording(), folder)
    return read(options.pop("path"), **options)


@pytest.fixture
def plain(tmp_path: Path) -> Recordings:
    (tmp_path / "plain").mkdir()
    return written(csv(), tmp_path / "plain")


@pytest.mark.parametrize("variant", SAME)
def test_the_windows_are_the_same(variant: str, tmp_path: Path, plain: Recordings) -> None:
    found = written(SAME[variant], tmp_path)
    assert len(found) >= len(plain) - 1
    smooth = 0.02 if any(word in variant for word in ("lost", "empty", "words")) else 2e-6  # straight lines, float32
    np.testing.assert_allclose(found.X, plain.X[: len(found)], atol=smooth)
    assert found.interval == pytest.approx(1 / RATE, rel=1e-3)
    assert found.channel_names == ("ax", "ay")
    assert found.y is not None
    assert plain.y is not None
    assert len(set(zip(found.y, plain.y, strict=False))) == 2


@pytest.mark.parametrize("variant", NEARLY)
def test_the_windows_are_nearly_the_same(variant: str, tmp_path: Path, plain: Recordings) -> None:
    found = written(NEARLY[variant], tmp_path)
    assert abs(len(found) - len(plain)) <= 2
    first = slice(0, 8)  # of the first activity; later ones may begin a sample earlier
    assert np.abs(found.X[first] - plain.X[first]).mean() < 0.1


@pytest.mark.parametrize("variant", REFUSED)
def test_one_line_says_why_not(variant: str, tmp_path: Path) -> None:
    write, message = REFUSED[variant]
    with pytest.raises(InputError, match=message) as caught:
        written(write, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_guide_lists_every_variant() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in guide.splitlines() if line.startswith("| ")}
    assert {*SAME, *NEARLY, *REFUSED} <= rows
