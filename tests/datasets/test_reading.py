"""Users' own files: what becomes a window, what is left out, and what is refused."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.prepared import save_prepared
from transpl.datasets.recipes.synthetic import make_shifted
from transpl.datasets.recordings.reading import Recordings, rate_warnings, read_recordings, read_table
from transpl.datasets.recordings.signals import clock_warnings


def table(n: int = 100, **columns: Any) -> pd.DataFrame:
    """Two channels that say which row they are: ax = row, ay = -row."""
    return pd.DataFrame({"ax": np.arange(n, dtype=float), "ay": -np.arange(n, dtype=float), **columns})


def read(tmp_path: Path, frame: pd.DataFrame, name: str = "walk.csv", **options: Any) -> Recordings:
    frame.to_csv(tmp_path / name, index=False)
    return read_recordings(tmp_path / name, **{"window": 10, **options})


def refused(path: Path, message: str, **options: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_recordings(path, **{"window": 10, **options})
    assert "\n" not in str(caught.value)


def refused_frame(tmp_path: Path, frame: pd.DataFrame, message: str, **options: Any) -> None:
    frame.to_csv(tmp_path / "walk.csv", index=False)
    refused(tmp_path / "walk.csv", message, **options)


def assert_consecutive(found: Recordings) -> None:
    """Every window holds consecutive rows from its start; channel 0 says the row, channel 1 its negative."""
    assert found.start is not None
    rows = found.start[:, None] + np.arange(found.X.shape[2])
    np.testing.assert_array_equal(found.X[:, 0], rows)
    np.testing.assert_array_equal(found.X[:, 1], -rows)


def test_windows_of_a_plain_table(tmp_path: Path) -> None:
    found = read(tmp_path, table(103))
    assert_consecutive(found)
    assert found.start is not None
    np.testing.assert_array_equal(found.start, np.arange(0, 91, 5))
    assert found.X.dtype == np.float32
    assert found.channel_names == ("ax", "ay")
    assert (found.y, found.domain, found.group) == (None, None, None)
    assert found.description == (
        "walk.csv: 103 rows, 2 channels (ax, ay), 1 group -> 19 windows of 10, step 5; 3 rows in gaps or tails left out"
    )


@pytest.mark.parametrize("name", ["walk.csv", "walk.CSV", "walk.csv.gz", "walk.parquet", "walk.pq"])
def test_formats_give_the_same(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow") if name.endswith(("parquet", "pq")) else None
    frame = table(label=["sit"] * 50 + ["walk"] * 50, user=[1] * 70 + [2] * 30)
    path = tmp_path / name
    frame.to_csv(path, index=False) if "csv" in name.lower() else frame.to_parquet(path)
    found = read_recordings(path, window=10, label_col="label", domain_col="user")
    assert_consecutive(found)
    assert found.y is not None
    assert found.domain is not None
    assert found.start is not None
    np.testing.assert_array_equal(found.y, np.where(found.start < 50, "sit", "walk"))
    np.testing.assert_array_equal(found.domain, np.where(found.start < 70, "1", "2"))


def test_named_columns_are_not_channels(tmp_path: Path) -> None:
    frame = table(t=np.arange(100), user=1, session=2, label=3, note="x")
    found = read(tmp_path, frame, time_col="t", domain_col="user", group_col="session", label_col="label")
    assert found.channel_names == ("ax", "ay")
    assert found.y is not None
    assert set(found.y) == {"3"}


def test_a_written_out_index_is_not_a_channel(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "walk.csv")
    assert read_recordings(tmp_path / "walk.csv", window=10).channel_names == ("ax", "ay")


def test_channels_are_taken_in_the_given_order(tmp_path: Path) -> None:
    found = read(tmp_path, table(), channels=["ay", "ax"])
    assert found.channel_names == ("ay", "ax")
    assert (found.X[1:, 0] < 0).all()
    assert read(tmp_path, table(), channels="ay").channel_names == ("ay",)


def test_no_window_spans_a_change_of_label(tmp_path: Path) -> None:
    found = read(tmp_path, table(label=["a"] * 33 + ["b"] * 67), label_col="label", step=1)
    assert found.start is not None
    np.testing.assert_array_equal(found.start, [*range(24), *range(33, 91)])


def test_no_window_spans_four_missing_values(tmp_path: Path) -> None:
    frame = table()
    frame.loc[40:43, "ay"] = np.nan
    found = read(tmp_path, frame, step=1)
    assert found.start is not None
    np.testing.assert_array_equal(found.start, [*range(31), *range(44, 91)])
    assert "4 rows in gaps or tails left out" in found.description


@pytest.mark.parametrize("clock", [{}, {"time_col": "t"}])
def test_up_to_three_missing_samples_are_filled_in(tmp_path: Path, clock: dict[str, str]) -> None:
    frame = table(t=np.arange(100) / 50)
    frame.loc[40:42, "ay"] = np.nan
    frame = frame.drop(index=[70, 71]) if clock else frame
    frame.to_csv(tmp_path / "walk.csv", index=False)
    found = read_recordings(tmp_path / "walk.csv", window=10, step=1, channels=["ax", "ay"], **clock)
    np.testing.assert_allclose(np.diff(found.X, axis=2), [[[1], [-1]]] * 91 * np.ones(9), atol=1e-4)
    assert f"{5 if clock else 3} missing samples filled in" in found.description
    assert "left out" not in found.description
    assert found.warnings == ()


@pytest.mark.parametrize("channels", [None, ["ax", "ay"]])
@pytest.mark.parametrize("bad", ["?", "n/a", "#DIV/0!", ""])
def test_a_few_bad_cells_are_missing_values(tmp_path: Path, bad: str, channels: list[str] | None) -> None:
    frame = table().astype({"ay": object})
    frame.loc[[40, 41, 42, 43, 70], "ay"] = bad  # four cut, one is filled in
    found = read(tmp_path, frame, step=1, channels=channels)
    starts = np.array([*range(31), *range(44, 91)])
    np.testing.assert_array_equal(found.X[:, 0], starts[:, None] + np.arange(10))
    np.testing.assert_array_equal(found.X[:, 1], -found.X[:, 0])
    told = f"walk.csv: channel 'ay' has {bad!r} in row 40 and 4 more instead of a number; such cells count as missing."
    assert (told in found.warnings) == (bad in ("?", "#DIV/0!"))  # pandas takes the others for empty cells


def test_columns_of_words_are_told_and_not_used(tmp_path: Path) -> None:
    words = {"az": [*range(94), *"??????"], "note": "x", "on": True, "none": [None] * 100}
    found = read(tmp_path, table(**words))
    assert found.channel_names == ("ax", "ay")
    assert found.description.endswith("; columns not used: az, note, on, none")
    refused_frame(tmp_path, table(none=[None] * 100), "got at most 0", channels=["ax", "none"])


def test_digits_that_a_parquet_holds_as_text_are_no_channel(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table(who=["07"] * 100).to_parquet(tmp_path / "walk.parquet")
    assert read_recordings(tmp_path / "walk.parquet", window=10).channel_names == ("ax", "ay")


@pytest.mark.parametrize("kind", ["seconds", "dates", "mixed fractions", "nanoseconds"])
def test_no_window_spans_a_gap_in_time(tmp_path: Path, kind: str) -> None:
    seconds = np.arange(100) * 0.02 + np.where(np.arange(100) >= 60, 5.0, 0.0)
    dates = pd.Timestamp("2024-05-01 12:00") + pd.to_timedelta(seconds, unit="s")
    time: Any = {
        "seconds": seconds,
        "dates": dates.strftime("%Y-%m-%d %H:%M:%S.%f"),
        "mixed fractions": [str(date) for date in dates],  # "12:00:00" and "12:00:00.020000"
        "nanoseconds": 1_700_000_000_000_000_000 + (seconds * 15_000).astype(np.int64),  # steps of 300: not float64
    }[kind]
    found = read(tmp_path, table(t=time), time_col="t", step=1)
    assert_consecutive(found)
    assert found.start is not None
    np.testing.assert_array_equal(found.start, [*range(51), *range(60, 91)])


def test_rows_are_sorted_by_time_within_their_group(tmp_path: Path) -> None:
    """Two users whose rows alternate and run backwards in the file."""
    time = np.arange(50)
    frame = pd.DataFrame({"t": np.repeat(time, 2)[::-1], "user": ["a", "b"] * 50, "v": np.repeat(time, 2)[::-1]})
    found = read(tmp_path, frame, time_col="t", domain_col="user")
    assert found.X.shape == (18, 1, 10)
    np.testing.assert_array_equal(np.diff(found.X[:, 0], axis=1), 1)
    assert found.domain is not None
    assert sorted(found.domain) == ["a"] * 9 + ["b"] * 9
    assert found.start is not None
    np.testing.assert_array_equal(frame["v"].to_numpy()[found.start], found.X[:, 0, 0])


def test_without_a_clock_blocks_of_one_group_are_not_joined(tmp_path: Path) -> None:
    found = read(tmp_path, table(group=["a"] * 15 + ["b"] * 60 + ["a"] * 25), group_col="group", step=1)
    assert_consecutive(found)
    assert found.start is not None
    assert set(found.start) == {*range(6), *range(15, 66), *range(75, 91)}
    assert "2 groups" in found.description


@pytest.mark.parametrize("column", ["domain_col", "group_col"])
def test_a_column_that_tells_recordings_apart_may_be_optional(tmp_path: Path, column: str) -> None:
    wanted: dict[str, Any] = {column: "user", "optional": [column], "step": 1, "channels": ["ax", "ay"]}
    apart = read(tmp_path, table(user=["a"] * 40 + ["b"] * 60), **wanted)
    assert (len(apart), apart.warnings) == (31 + 51, ())
    for frame, problem in (table(), "is not there"), (table(user=[None] * 100), "is empty"):
        found = read(tmp_path, frame, **wanted)
        assert len(found) == 91
        assert (found.domain, found.group) == (None, None)
        told = f"walk.csv: 'user' ({column}) {problem}, so all rows are taken as of one."
        assert found.warnings == (told,)
        refused_frame(tmp_path, frame, "'user'", **{column: "user"})
    refused_frame(tmp_path, table(user=["a"] * 99 + [None]), "an empty one in row 99", **wanted)
    refused_frame(tmp_path, table(), "domain_col: expected the column to find domain 'a' in", **wanted, domain="a")


def test_a_clock_may_be_optional(tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"time_col": "t", "optional": ["time_col"], "step": 1, "channels": ["ax", "ay"]}
    assert len(read(tmp_path, table(t=[*range(40), *range(90, 150)]), **wanted)) == 31 + 51
    found = read(tmp_path, table(), **wanted)
    assert (len(found), found.interval) == (91, None)
    assert found.warnings == ("walk.csv: 't' (time_col) is not there, so all rows are taken in the file's order.",)
    refused_frame(tmp_path, table(), "'t'", time_col="t")


def test_domain_selects_rows_and_compares_as_text(tmp_path: Path) -> None:
    frame = table(user=["01"] * 40 + ["2"] * 60)
    assert len(read(tmp_path, frame, domain="01", domain_col="user")) == 7
    found = read(tmp_path, frame, domain=2, domain_col="user")
    assert_consecutive(found)
    assert found.start is not None
    assert found.start.min() == 40
    assert found.description.startswith("walk.csv, domain 2: 60 rows")
    refused_frame(tmp_path, frame, r"\('01', '2'\), got '1'", domain="1", domain_col="user")
    refused_frame(tmp_path, frame, "domain_col", domain="1")


def test_whole_numbers_with_missing_ones_stay_whole(tmp_path: Path) -> None:
    """A parquet column of integers with gaps is float: 2.0 is still domain 2."""
    pytest.importorskip("pyarrow")
    table(user=[np.nan] * 40 + [2.0] * 60).to_parquet(tmp_path / "walk.parquet")
    found = read_recordings(tmp_path / "walk.parquet", window=10, domain="2", domain_col="user")
    assert found.domain is not None
    assert set(found.domain) == {"2"}


@pytest.mark.parametrize("name", ["walk.csv", "walk.parquet"])
def test_a_label_is_the_same_text_in_every_file(tmp_path: Path, name: str) -> None:
    """Integers, floats because some are missing, and either as text."""
    pytest.importorskip("pyarrow")
    for label in (
        [1] * 50 + [2] * 50,
        [1.0] * 50 + [2.0] * 40 + [None] * 10,
        ["1.0"] * 50 + ["2 "] * 40 + ["nan"] * 10,
    ):
        frame = table(label=label, user=1.0)
        frame.to_csv(tmp_path / name, index=False) if name.endswith("csv") else frame.to_parquet(tmp_path / name)
        found = read_recordings(tmp_path / name, window=10, label_col="label", domain_col="user", domain="1")
        assert found.y is not None
        assert {*found.y} - {""} == {"1", "2"}
    refused(tmp_path / name, "got 'nan'", domain="nan", domain_col="label")


def test_a_named_index_of_a_parquet_is_a_column(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table().set_index(pd.Index(np.arange(100) * 2.0, name="t")).to_parquet(tmp_path / "walk.parquet")
    assert len(read_recordings(tmp_path / "walk.parquet", window=10, time_col="t")) == 19


def test_missing_labels(tmp_path: Path) -> None:
    frame = table(label=["a"] * 40 + [None] * 20 + ["None"] * 40)
    found = read(tmp_path, frame, label_col="label")
    assert found.y is not None
    assert found.start is not None
    np.testing.assert_array_equal(found.y[found.start == 40], [""])
    np.testing.assert_array_equal(found.y[found.start == 60], ["None"])
    assert "3 windows without label" in found.description


def test_no_label_at_all(tmp_path: Path) -> None:
    assert read(tmp_path, table(label=[None] * 100), label_col="label").y is None
    assert read(tmp_path, table(), label_col="label", labels_only_score=True).y is None
    refused_frame(tmp_path, table(), "label_col: expected a column", label_col="label")


@pytest.mark.parametrize("argument", ["label_col", "domain_col", "group_col", "time_col", "channels"])
def test_a_missing_column_lists_those_there_are(tmp_path: Path, argument: str) -> None:
    value = ["az"] if argument == "channels" else "az"
    refused_frame(tmp_path, table(), rf"{argument}: .*\('ax', 'ay'\), got 'az'", **{argument: value})


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"note": ["x"] * 100}, {"channels": ["ax", "note"]}, "'note' of walk.csv: expected numbers, got 'x' in row 0"),
        ({"ax": [*range(94), *"??????"]}, {"channels": ["ax"]}, r"got '\?' in row 94 and 5 more"),
        ({}, {"channels": []}, "channels: expected one or more"),
        ({}, {"channels": ["ax", "ax"]}, "each once"),
        ({}, {"channels": ["ax"], "time_col": "ax"}, "none of them the domain"),
        ({}, {"window": 101}, "at least 101 samples on end .* got at most 100"),
        ({"label": list(range(100))}, {"label_col": "label"}, "got at most 1"),
        ({"t": ["soon"] * 100}, {"time_col": "t"}, "time_col 't' of walk.csv: .* got 'soon' in row 0"),
        ({"t": [*range(99), None]}, {"time_col": "t"}, "got an empty cell in row 99"),
        ({"t": [*range(99), -np.inf]}, {"time_col": "t"}, "got '-inf' in row 99"),
        ({"t": range(100)}, {"time_col": "t", "label_col": "t"}, "time_col: expected a column with no other role"),
        ({"user": ["a"] * 99 + [None]}, {"domain_col": "user"}, "an empty one in row 99"),
        ({"ax": [1.0] * 7 + [np.inf] * 93}, {}, "channel 'ax' of walk.csv: expected .*, got inf in row 7"),
        ({}, {"window": 0}, "window: expected"),
        ({}, {"step": 0}, "step: expected"),
    ],
)
def test_misuse_is_named_in_one_line(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    refused_frame(tmp_path, table(**columns), message, **options)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("ax,ay\n")
    (tmp_path / "long.csv").write_text("ax,ay\n1,2,3\n4,5,6\n")
    (tmp_path / "short.csv").write_text("time,ax,ay\n1,2\n4,5\n")
    (tmp_path / "ragged.csv").write_text("ax,ay\n1,2\n4,5,6\n")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "words.csv").write_text("a,b\nx,y\n")
    (tmp_path / "plain.csv.gz").write_text("ax,ay\n1,2\n")
    (tmp_path / "numbers.csv").write_text("1.5,2\n2.5,3\n")
    (tmp_path / "twice.csv").write_text("ax, ax\n1,2\n")
    (tmp_path / "sheet.xlsx").touch()
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "empty.csv", "the file is empty")
    refused(tmp_path / "header.csv", "no rows")
    refused(tmp_path / "long.csv", "rows have more fields than the first line")
    refused(tmp_path / "short.csv", "3 names, but most rows have 2 fields")
    refused(tmp_path / "numbers.csv", "its first line has numbers, not names")
    refused(tmp_path / "twice.csv", "two columns are called 'ax'")
    refused(tmp_path / "ragged.csv", "not readable")
    refused(tmp_path / "binary.csv", "not readable")
    refused(tmp_path / "words.csv", "expected a numeric column")
    refused(tmp_path / "plain.csv.gz", "not readable")
    refused(tmp_path / "sheet.xlsx", "ending in .csv, .* got sheet.xlsx. Save the sheet as csv")
    refused(tmp_path, "got the folder")
    refused(tmp_path / "folder.csv", "a folder, not a file")
    refused(tmp_path / "absent.csv", "no such file")
    with pytest.raises(InputError, match="ending in"):
        read_table(tmp_path / "sheet.xlsx")


def test_a_damaged_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table().to_parquet(tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-20])
    refused(tmp_path / "cut.parquet", "not readable")
    refused(tmp_path / "absent.parquet", "no such file")


def test_without_pyarrow_the_pip_command_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("Missing optional dependency 'pyarrow'")

    (tmp_path / "walk.parquet").touch()
    monkeypatch.setattr(pd, "read_parquet", missing)
    refused(tmp_path / "walk.parquet", r'pip install "transpl\[parquet\]"')


def test_byte_order_mark_and_spaces(tmp_path: Path) -> None:
    lines = ["ax, ay, label", *(f"{i}, {-i}, sit" for i in range(20))]
    (tmp_path / "walk.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    found = read_recordings(tmp_path / "walk.csv", window=10, label_col="label")
    assert found.channel_names == ("ax", "ay")
    assert found.y is not None
    assert set(found.y) == {"sit"}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    groups=st.lists(st.sampled_from("ab"), min_size=1, max_size=12),
    holes=st.sets(st.integers(0, 59), max_size=4),
    window=st.integers(1, 8),
    step=st.integers(1, 8),
)
def test_windows_are_exactly_those_that_span_nothing(
    tmp_path: Path, groups: list[str], holes: set[int], window: int, step: int
) -> None:
    """Against a slow definition: a window every `step` rows of each run of one group, across at most three holes."""
    frame = table(5 * len(groups), group=np.repeat(groups, 5))
    frame.loc[sorted(hole for hole in holes if hole < len(frame)), "ax"] = np.nan
    frame["ay"] = -np.arange(len(frame), dtype=float)
    expected: list[int] = []
    run: list[int] = []  # filled rows, and holes between them
    for row in range(len(frame) + 1):
        ends = row == len(frame) or (run and frame["group"][row] != frame["group"][run[-1]])
        if not ends and np.isnan(frame["ax"][row]):
            continue
        if run and (ends or row - run[-1] > 4):
            expected += run[: len(run) - window + 1 : step] if len(run) >= window else []
            run = []
        if row < len(frame) and not np.isnan(frame["ax"][row]):
            run += range(run[-1] + 1, row + 1) if run else [row]
    if not expected:
        refused_frame(tmp_path, frame, "samples on end", group_col="group", window=window, step=step)
        return
    found = read(tmp_path, frame, group_col="group", window=window, step=step)
    starts = np.sort(found.X[:, 0, 0])
    np.testing.assert_array_equal(starts, sorted(expected))
    np.testing.assert_array_equal(found.X[:, 0] - found.X[:, 0, :1], np.arange(window) * np.ones((len(starts), 1)))
    used = {row for start in expected for row in range(start, start + window)}
    left_out = len(frame) - len(used)
    if not holes:
        assert (f"{left_out} row" in found.description.split("->")[1]) == (left_out > 0)


def npz(tmp_path: Path, **arrays: Any) -> Path:
    np.savez(tmp_path / "cut.npz", **{"X": np.arange(24.0).reshape(4, 2, 3), **arrays})
    return tmp_path / "cut.npz"


def test_windows_already_cut(tmp_path: Path) -> None:
    found = read_recordings(npz(tmp_path))
    assert found.X.shape == (4, 2, 3)
    assert found.channel_names == ("channel_0", "channel_1")
    assert (found.y, found.domain, found.group, found.start) == (None, None, None, None)
    assert found.description == "cut.npz: 4 windows of 3, already cut, 2 channels (channel_0, channel_1)"


def test_class_names_turn_integers_into_words(tmp_path: Path) -> None:
    y = np.array([1, 0, -1, 1])
    named = read_recordings(npz(tmp_path, y=y, class_names=np.array(["sit", "walk"])))
    assert named.y is not None
    assert named.y.tolist() == ["walk", "sit", "", "walk"]
    bare = read_recordings(npz(tmp_path, y=y))
    assert bare.y is not None
    assert bare.y.tolist() == ["1", "0", "", "1"]
    coded = read_recordings(npz(tmp_path, y=np.char.encode(["où", "b", "", "où"], "utf-8")))
    assert coded.y is not None
    assert coded.y.tolist() == ["où", "b", "", "où"]
    words = read_recordings(npz(tmp_path, y=np.array(["a", "b", "", "a"])))
    assert words.y is not None
    assert words.y.tolist() == ["a", "b", "", "a"]
    floats = np.array([1.0, 0.0, np.nan, 1.0])
    for names, expected in ({"class_names": np.array(["sit", "walk"])}, named.y), ({}, bare.y):
        found = read_recordings(npz(tmp_path, y=floats, **names)).y
        assert found is not None
        assert found.tolist() == expected.tolist()
    halves = read_recordings(npz(tmp_path, y=floats / 2)).y
    assert halves is not None
    assert halves.tolist() == ["0.5", "0", "", "0.5"]
    keyed = npz(tmp_path, truth=y)
    assert read_recordings(keyed, label_col="truth", labels_only_score=True).y is not None
    assert read_recordings(keyed, label_col="other", labels_only_score=True).y is None
    refused(npz(tmp_path, y=y, class_names=np.array(["sit"])), r"y of cut.npz: expected indices in 0\.\.0")


def test_npz_domain_and_channels(tmp_path: Path) -> None:
    path = npz(tmp_path, domain=np.array([3, 3, 4, 4]), group=np.arange(4), channel_names=np.array(["ax", "ay"]))
    found = read_recordings(path, domain=4, channels=["ay"])
    np.testing.assert_array_equal(found.X, np.arange(24.0).reshape(4, 2, 3)[2:, 1:])
    assert found.group is not None
    assert found.group.tolist() == ["2", "3"]
    assert found.channel_names == ("ay",)
    refused(path, r"\('3', '4'\), got '5'", domain="5")
    refused(path, "channels of cut.npz", channels=["az"])


def test_npz_channels_are_found_by_name(tmp_path: Path) -> None:
    X = np.arange(24.0).reshape(4, 2, 3)
    found = read_recordings(npz(tmp_path, channel_names=np.array(["ax", "ay"])), channels=["ay", "ax"])
    np.testing.assert_array_equal(found.X, X[:, ::-1])
    assert found.named
    one = read_recordings(npz(tmp_path, channel_names=np.array(["ax", "ay"])), channels=["ay"])
    assert one.description.endswith("1 channel (ay); channels not used: ax")
    refused(npz(tmp_path, channel_names=np.array(["ax", "ax"])), "each name once, got 'ax' again")


def test_npz_channels_without_names_are_taken_by_place(tmp_path: Path) -> None:
    found = read_recordings(npz(tmp_path), channels=["ax", "ay"])
    np.testing.assert_array_equal(found.X, np.arange(24.0).reshape(4, 2, 3))
    assert found.channel_names == ("ax", "ay")
    assert not found.named
    assert found.warnings == ("cut.npz: it names no channels; they are taken to be ax, ay, in this order.",)
    by_number = read_recordings(npz(tmp_path), channels=["channel_1"])
    assert (by_number.channel_names, by_number.warnings) == (("channel_1",), ())
    refused(npz(tmp_path), "Save their names as channel_names", channels=["ax"])
    refused(npz(tmp_path), "(n, time, channels)", channels=["ax", "ay", "az"])  # of 3 samples, 2 channels


def test_npz_keys_may_be_optional(tmp_path: Path) -> None:
    path = npz(tmp_path, domain=np.array(["a", "b", "a", "b"]))
    found = read_recordings(path, domain_col="user", group_col="session", optional=["domain_col", "group_col"])
    assert found.domain is not None
    assert (found.domain.tolist(), found.group) == (["a", "b", "a", "b"], None)
    refused(path, "domain_col: expected a key", domain_col="user")


def test_npz_of_another_length_is_a_warning(tmp_path: Path) -> None:
    told = "cut.npz: its windows have 3 samples and not 10; they are already cut, and taken as they are."
    assert read_recordings(npz(tmp_path), window=10).warnings == (told,)
    assert read_recordings(npz(tmp_path), window=3).warnings == ()


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"X": np.full((4, 2, 3), np.nan)}, {}, "X of cut.npz: expected finite"),
        ({"X": np.zeros((1, 1, 1, 1))}, {}, "X of cut.npz"),
        ({"y": np.zeros(3, int)}, {}, r"y of cut.npz: expected one entry per window \(4\)"),
        ({"y": np.array([b"a", b"b", b"\xff", b"a"])}, {}, "y of cut.npz: expected text, got bytes"),
        ({"y": np.array(["a", "b", None, "a"], object)}, {}, r"cut.npz: y contains pickled objects.*astype\(str\)"),
        ({"channel_names": np.array(["x"])}, {}, "channel_names of cut.npz: expected 2 names"),
        ({}, {"label_col": "target"}, r"label_col: expected a key of cut.npz \(X\), got 'target'"),
        ({}, {"domain": 1}, "no domain in it"),
    ],
)
def test_npz_misuse(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], message: str) -> None:
    refused(npz(tmp_path, **arrays), message, **options)


def test_npz_without_windows(tmp_path: Path) -> None:
    np.savez(tmp_path / "no.npz", y=np.zeros(3))
    refused(tmp_path / "no.npz", "no X in it")
    (tmp_path / "text.npz").write_text("ax,ay\n1,2\n")
    refused(tmp_path / "text.npz", "not an npz")
    refused(tmp_path / "absent.npz", "no such file")


def test_a_prepared_data_set_is_a_recording_too(tmp_path: Path) -> None:
    dataset = make_shifted(n_train=6, n_test=4)
    save_prepared(dataset, tmp_path / "made.npz")
    found = read_recordings(tmp_path / "made.npz", domain=1)
    rows = dataset.domain_ids == 1
    np.testing.assert_array_equal(found.X, dataset.X[rows])
    assert found.y is not None
    assert found.y.tolist() == [dataset.class_names[k] for k in dataset.y[rows]]


@pytest.mark.parametrize("factor", [1, 1.05, 0.95, 1000, 1e6, 1e-3, 1.05e-9])
def test_the_same_rate_in_any_unit_of_time_is_no_warning(factor):
    assert rate_warnings(0.02 * factor, 0.02) == []


@pytest.mark.parametrize(("factor", "said"), [(2, "2"), (0.5, "0.5"), (1.2, "1.2"), (2000, "2"), (5e-4, "0.5")])
def test_anrate_warnings_is_told_whatever_the_unit(factor, said):
    (line,) = rate_warnings(0.02 * factor, 0.02)
    assert line.startswith(f"its rows are {said} times as far apart in time as the source's")


def test_without_times_nothing_is_known():
    assert rate_warnings(None, 0.02) == rate_warnings(0.02, None) == []


def test_a_channel_that_only_grows_may_be_the_time():
    still, grows = np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.5, 2.0])
    (line,) = clock_warnings(np.column_stack([still, grows]), ("x", "t"))
    assert line.startswith("'t' is taken as a channel")


def test_two_rows_tell_nothing():
    assert clock_warnings(np.array([[0.0], [1.0]]), ("t",)) == []


# files that were damaged, or made by something else


def test_very_wide_tables_take_time_in_proportion_to_their_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(40_000)]  # compared in pairs, they would take minutes
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + (",".join(["1.5"] * len(names)) + "\n") * 12)
    np.savez(tmp_path / "wide.npz", X=np.zeros((2, len(names), 4), np.float32), channel_names=np.array(names))
    begin = time.process_time()
    assert read_recordings(tmp_path / "wide.csv", window=10).X.shape[1] == len(names)
    assert read_recordings(tmp_path / "wide.npz", channels=names[::-1]).X.shape[1] == len(names)
    with pytest.raises(InputError) as caught:
        read_recordings(tmp_path / "wide.csv", label_col="none")
    assert time.process_time() - begin < 30
    assert len(str(caught.value)) < 1500
    (tmp_path / "twice.csv").write_text(",".join([*names, "c77"]) + "\n" + ",".join(["1"] * (len(names) + 1)) + "\n")
    refused(tmp_path / "twice.csv", "two columns are called 'c77'")
    np.savez(tmp_path / "twice.npz", X=np.zeros((2, 3, 4)), channel_names=np.array(["a", "b", "a"]))
    refused(tmp_path / "twice.npz", "'a' again")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["walk.csv", "walk.csv.gz", "walk.parquet", "walk.npz", "stdin"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, "a pipe or a device, not a file. Write it to a file first")


@pytest.mark.parametrize(
    "metadata",
    [b"{}", b"[]", b"null", b'{"index_columns": ["none"], "columns": []}', b'{"columns": 5}', b"\xff", b'{"a": NaN}'],
)
def test_odd_metadata_of_a_parquet_never_shows_a_traceback(tmp_path: Path, metadata: bytes) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = pa.Table.from_pandas(table(40).set_index("ax"))
    pq.write_table(made.replace_schema_metadata({b"pandas": metadata}), tmp_path / "walk.parquet")
    try:
        found = read_recordings(tmp_path / "walk.parquet", window=10)
    except UnreadableFile as error:
        assert str(error).startswith(f"{tmp_path / 'walk.parquet'}: not readable as .parquet")  # noqa: PT017
    else:
        assert {"ax", "ay"} >= set(found.channel_names)


def test_columns_of_a_parquet_that_cannot_be_their_role(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, n = tmp_path / "walk.parquet", 40
    frame = table(n).assign(flag=np.arange(n) % 2 == 0, pair=[[1, 2]] * n, who=[{"a": i} for i in np.arange(n) // 20])
    frame.to_parquet(path)
    for column, got in (("flag", "'True' in row 0"), ("pair", r"'\[1 2\]' in row 0")):
        problem = f"time_col '{column}' of walk.parquet: expected a number or date in every row, got {got}"
        refused(path, problem, time_col=column)
    found = read_recordings(path, domain_col="who", window=10)
    assert np.unique(found.domain).tolist() == ["{'a': 0}", "{'a': 1}"]


def test_labels_of_an_npz_that_are_not_single_numbers_or_words(tmp_path: Path) -> None:
    path = tmp_path / "walk.npz"
    for y in (np.zeros(4, "i4,f4"), np.zeros(4, complex)):
        np.savez(path, X=np.zeros((4, 1, 8)), y=y)
        refused(path, "y of walk.npz: expected numbers or text")
    broken = np.frombuffer(np.array([0x110000] * 4, "<u4").tobytes(), "<U1")  # beyond Unicode
    surrogate = np.array(["\ud800"] * 4)
    for y in (broken, surrogate):
        np.savez(path, X=np.zeros((4, 1, 8)), y=y)
        refused(path, "y of walk.npz: expected text")


@pytest.mark.parametrize("keep", [0, 1, 12, 100, -8, -1])
def test_a_half_written_csv_gz(tmp_path: Path, keep: int) -> None:
    content = gzip.compress(table(400).to_csv(index=False).encode())
    (tmp_path / "walk.csv.gz").write_bytes(content[:keep])
    refused(tmp_path / "walk.csv.gz", "walk.csv.gz: ")


def test_the_header_is_the_first_line_that_is_not_blank(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_bytes(b'\xef\xbb\xbf\r\n  \r\n "ax" , "a""y"\r\n' + b"1,2\r\n" * 12)
    assert read_recordings(tmp_path / "walk.csv", window=10).channel_names == ("ax ", 'a"y')


def test_a_first_row_without_values_is_no_row_of_units(tmp_path: Path) -> None:
    frame = table(40, label="walk").astype({"ax": object, "ay": object})
    frame.loc[0, ["ax", "ay"]] = None
    found = read(tmp_path, frame, label_col="label")
    assert found.start is not None
    assert found.start[0] == 1
    assert_consecutive(found)


@pytest.mark.parametrize("above", ["", "# a\n", "title\n\n", "a;b;;\n"])
def test_rows_are_counted_below_the_header(tmp_path: Path, above: str) -> None:
    text = table(40, label="walk").to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "walk.csv").write_text(above + text)
    assert_consecutive(read_recordings(tmp_path / "walk.csv", window=10, label_col="label"))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trials=st.lists(st.integers(12, 60), min_size=2, max_size=5), named=st.booleans())
def test_trials_that_begin_at_0_are_apart(tmp_path: Path, trials: list[int], named: bool) -> None:
    frame = table(sum(trials), t=np.concatenate([np.arange(n) / 10 for n in trials]), who="ann")
    found = read(tmp_path, frame, time_col="t", group_col="who" if named else None)
    assert_consecutive(found)
    assert found.group is not None
    assert found.start is not None
    trial = np.searchsorted(np.cumsum(trials), found.start, side="right")
    names = ["ann", *(f"ann ({n})" for n in range(2, 9))] if named else [str(n) for n in range(1, 9)]
    np.testing.assert_array_equal(found.group, np.array(names)[trial])


def test_rows_that_come_late_are_put_in_their_place(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    late = np.argsort(np.arange(400) + np.where(rng.random(400) < 0.05, rng.integers(1, 30, 400), 0), kind="stable")
    found = read(tmp_path, table(400, t=np.arange(400) / 10).iloc[late], time_col="t")
    np.testing.assert_array_equal(np.diff(found.X[:, 0], axis=1), 1)
    assert found.group is None


def test_rows_at_rest_on_a_coarse_clock_are_kept(tmp_path: Path) -> None:
    frame = table(400, t=np.arange(400) // 20).assign(ax=np.arange(400) // 4, ay=0.0)
    found = read(tmp_path, frame, time_col="t")
    assert len(found) == 79
    np.testing.assert_allclose(found.X[:, 0], (found.start[:, None] + np.arange(10)) // 4)


def test_an_empty_cell_does_not_change_other_channels(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=60)
    frame = table(60, t=np.arange(60) / 10).assign(ax=noise)
    frame.loc[frame.index % 3 > 0, "ay"] = np.nan
    found = read(tmp_path, frame, time_col="t", step=10)
    np.testing.assert_allclose(found.X[:, 0].ravel()[:50], noise[:50], rtol=1e-6)
    np.testing.assert_allclose(found.X[:, 1].ravel()[:50], -np.arange(50), atol=1e-5)


def test_a_slow_channel_is_bridged_if_asked(tmp_path: Path) -> None:
    frame = table(100, t=np.arange(100) / 50)
    frame.loc[frame.index % 50 > 0, "ay"] = np.nan
    found = read(tmp_path, frame[:51], time_col="t", gap=1.1)
    np.testing.assert_allclose(found.X[0], [np.arange(10), -np.arange(10)], atol=1e-5)


def test_words_that_take_turns_are_pointed_out(tmp_path: Path) -> None:
    frame = table(60, t=np.arange(60) / 10, who=["ann", "bob"] * 30)
    assert any("--domain-col" in line for line in read(tmp_path, frame, time_col="t").warnings)


def test_words_of_shuffled_rows_do_not_take_turns(tmp_path: Path) -> None:
    frame = table(60, t=np.arange(60) / 10, doing=["walk"] * 30 + ["sit"] * 30).sample(frac=1, random_state=0)
    assert not any("--domain-col" in line for line in read(tmp_path, frame, time_col="t").warnings)


def test_groups_are_recordings_without_being_named(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "walk.h5", "w") as file:
        for number, length in enumerate([25, 40]):
            file[f"day/{number}/ax"] = np.arange(float(length)) + 100 * number
            file[f"day/{number}/rate"] = 50.0
    found = read_recordings(tmp_path / "walk.h5", window=10)
    assert found.group is not None
    assert found.channel_names == ("ax",)
    np.testing.assert_array_equal(np.diff(found.X, axis=2), 1)
    np.testing.assert_array_equal(found.group, np.where(found.X[:, 0, 0] < 100, "day/0", "day/1"))


def test_a_channel_that_may_name_something_is_pointed_out(tmp_path: Path) -> None:
    found = read(tmp_path, table(60, trial=[1] * 30 + [2] * 30, subject=1.5), label_col=None)
    assert [line for line in found.warnings if "--group-col" in line]
    assert not [line for line in found.warnings if "--domain-col" in line]
    named = read(tmp_path, table(60, trial=[1] * 30 + [2] * 30), group_col="trial")
    assert not [line for line in named.warnings if "--group-col" in line]


@pytest.mark.parametrize("names", [("acc", "gyro"), ("subject1/left_wrist", "subject1/right_wrist"), ("imu1", "imu2")])
def test_groups_of_sensors_are_side_by_side(tmp_path: Path, names: tuple[str, str]) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "walk.h5", "w") as file:
        for name in names:
            file[f"{name}/x"] = np.arange(40.0)
    found = read_recordings(tmp_path / "walk.h5", window=10)
    assert found.channel_names == tuple(f"{name}/x" for name in names)
    with h5py.File(tmp_path / "walk.h5", "a") as file:
        del file[f"{names[1]}/x"]
        file[f"{names[1]}/x"] = np.arange(20.0)
    refused(tmp_path / "walk.h5", "different numbers of rows")


def test_a_unit_that_was_said_of_the_source_does_not_spoil_a_target_in_seconds(tmp_path: Path) -> None:
    found = read(tmp_path, table(60, t=np.arange(60) / 50), time_col="t", time_unit="ms", interval=0.02, rate=50.0)
    assert found.interval == pytest.approx(0.02)
    assert_consecutive(found)


def test_labels_of_a_target_do_not_decide_which_rows_repeat_another(tmp_path: Path) -> None:
    t = np.arange(80) / 10
    frame = pd.concat([table(80, t=t, label="sit"), table(80, t=t, label="walk")])
    apart = read(tmp_path, frame, time_col="t", label_col="label")
    assert set(apart.y.tolist()) == {"sit", "walk"}
    without = read(tmp_path, frame.drop(columns="label"), time_col="t")
    found = read(tmp_path, frame, time_col="t", label_col="label", labels_only_score=True)
    np.testing.assert_array_equal(found.X, without.X)
