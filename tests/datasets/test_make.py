"""A folder of one's own recordings: what becomes a window, that chunks do not matter, and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError
from transpl._utils.files import read_npz
from transpl.datasets.cards import check_card, read_card
from transpl.datasets.dataset import TEST, TRAIN
from transpl.datasets.prepared import load_prepared
from transpl.datasets.recordings import cutter
from transpl.datasets.recordings.clocks import Clock
from transpl.datasets.recordings.cutter import Run
from transpl.datasets.recordings.make import prepare_recordings
from transpl.datasets.recordings.reading import read_recordings
from transpl.datasets.recordings.samplers import Averager, Resampler
from transpl.datasets.recordings.split import DROPPED, Names, Placed, choose_split, missing_classes, split_windows
from transpl.datasets.recordings.table_stream import Words
from transpl.datasets.recordings.window_sizes import Sizes


def table(n: int = 100, first: float = 0.0, **columns: Any) -> pd.DataFrame:
    """Two channels that say which row they are."""
    row = first + np.arange(n, dtype=float)
    return pd.DataFrame({"ax": row, "ay": -row, "label": "sit", **columns})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


def make(folder: Path, **options: Any) -> Path:
    usual: dict[str, Any] = {"label_col": "label", "window": 10, "split": "by_time", "home": folder.parent / "home"}
    return prepare_recordings(folder, "mine", **{**usual, **options})


def refused(folder: Path, message: str, **options: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make(folder, **options)
    assert "\n" not in str(caught.value)
    home = folder.parent / "home"
    assert not home.exists() or not list(home.iterdir())


def test_files_are_domains(folder: Path) -> None:
    lines: list[str] = []
    table(label=["sit"] * 50 + ["walk"] * 50).to_csv(folder / "b10.csv", index=False)
    table(first=1000).to_csv(folder / "b9.csv.gz", index=False)
    table(first=2000).to_parquet(folder / "a.parquet")
    (folder / "notes.txt").write_text("not a table")
    (folder / ".hidden.csv").write_text("not mine")
    npz = make(folder, log=lines.append)
    dataset = load_prepared(npz)
    card = read_card(npz)
    check_card(npz, card)
    assert card["domain_names"] == {"0": "a", "1": "b9", "2": "b10"}  # numbers in names count by size
    assert dataset.class_names == ("sit", "walk")
    assert dataset.channel_names == ("ax", "ay")
    assert len(dataset.pairs) == 6
    np.testing.assert_array_equal(dataset.X[:, 0], -dataset.X[:, 1])
    np.testing.assert_array_equal(np.diff(dataset.X[:, 0], axis=1), 1)
    assert set(dataset.X[dataset.domain_ids == 0, 0, 0] // 1000) == {2}
    extras = read_npz(npz, ["start", "group", "group_names"])
    np.testing.assert_array_equal(extras["start"], dataset.X[:, 0, 0] % 1000)
    assert extras["group_names"].tolist() == ["a.parquet", "b10.csv", "b9.csv.gz"]
    assert [file["name"] for file in card["origin"]] == ["a.parquet", "b10.csv", "b9.csv.gz"]
    assert any("b10.csv: 100 rows" in line for line in lines)
    assert all(f"mine: {note}" in lines for note in card["notes"])


def test_folders_and_columns_as_domains(folder: Path) -> None:
    for user in ("anna", "bob"):
        (folder / user).mkdir()
        for day in (1, 2):
            table(day=day).to_csv(folder / user / f"{day}.csv", index=False)
    table(day=3).to_csv(folder / "loose.csv", index=False)
    names = read_card(make(folder, domain_from="folder", split="by_time"))["domain_names"]
    assert set(names.values()) == {"anna", "bob", "raw"}
    (folder / "loose.csv").unlink()
    numbered = read_card(make(folder, domain_col="day", force=True))
    assert list(numbered["counts"]) == ["1", "2"]
    assert numbered["channels"] == ["ax", "ay"]
    by_file = read_card(make(folder, force=True))["domain_names"]
    assert set(by_file.values()) == {"anna/1", "anna/2", "bob/1", "bob/2"}


@pytest.mark.parametrize("chunk_rows", [1, 7, 10_000])
def test_a_few_bad_cells_count_as_missing(folder: Path, chunk_rows: int) -> None:
    """As `read_recordings` has it, and whatever a chunk holds."""
    frame = table(300, note="fine", empty="").astype({"ax": object})
    frame.loc[[100, 250], "ax"] = ["-", "True"]
    frame.to_csv(folder / "a.csv", index=False)
    lines: list[str] = []
    npz = make(folder, log=lines.append, chunk_rows=chunk_rows)
    said = "a.csv: channel 'ax' has '-' in row 100 and 1 more instead of a number; such cells count as missing."
    assert "Channels: 'ax', 'ay'. Columns that are not used: 'note', 'empty'." in lines
    assert said in read_card(npz)["notes"]
    assert "Samples filled in, for up to three missing ones on end: 2." in read_card(npz)["notes"]
    whole = read_recordings(folder / "a.csv", label_col="label", window=10)
    assert whole.warnings == (said,)
    assert whole.channel_names == load_prepared(npz).channel_names
    assert set(read_npz(npz, ["start"])["start"].tolist()) <= set(np.asarray(whole.start).tolist())


@pytest.mark.parametrize("chunk_rows", [1, 7, 10_000])
def test_a_column_with_more_than_a_few_bad_cells_is_no_channel(folder: Path, chunk_rows: int) -> None:
    frame = table(100).astype({"ax": object})
    frame.loc[:5, "ax"] = "?"
    frame.to_csv(folder / "a.csv", index=False)
    assert load_prepared(make(folder, chunk_rows=chunk_rows)).channel_names == ("ay",)
    (folder.parent / "home" / "mine.npz").unlink()
    (folder.parent / "home" / "mine.json").unlink()
    both = {"channels": ["ax", "ay"], "chunk_rows": chunk_rows}
    refused(folder, "channel 'ax' of a.csv: expected numbers, got '\\?' in row 0 and 5 more", **both)


def test_channels_are_said_and_columns_of_some_files_noted(folder: Path) -> None:
    table(on=True, word="x").to_csv(folder / "a.csv", index=False)
    table(az=1.0).to_csv(folder / "b.csv", index=False)
    lines: list[str] = []
    npz = make(folder, log=lines.append)
    assert lines[0] == "Channels: 'ax', 'ay'. Columns that are not used: 'on', 'word'."
    note = "Columns that only some files have, not used: 'az' (1 of 2), 'on' (1 of 2), 'word' (1 of 2)."
    assert note in read_card(npz)["notes"]


def test_a_single_file_will_do(folder: Path) -> None:
    table(user=np.repeat(["a", "b"], 50)).to_csv(folder / "all.csv", index=False)
    npz = prepare_recordings(
        folder / "all.csv", "one", label_col="label", domain_col="user", window=10, split="by_time", home=folder
    )
    assert read_card(npz)["windows"] == len(load_prepared(npz))


def noted(note: str) -> int:
    return int(note.rstrip(".").rsplit(": ", 1)[1].replace(",", ""))


def test_every_row_is_accounted_for(folder: Path) -> None:
    """Tails, gaps, missing values, missing and changing labels, each counted under its name."""
    frame = table(200, t=np.arange(200.0))
    frame.loc[100:, "t"] += 7  # run 0-99 ends in a gap
    frame.loc[104:107, "ay"] = np.nan  # 100-103 end before four missing values
    frame.loc[140, "ay"] = np.nan  # one is filled in
    frame.loc[127:129, "label"] = None  # 108-126 end before rows without label
    frame.loc[155:, "label"] = "walk"  # 130-154 end before another label, 155-199 at the end
    frame.to_csv(folder / "a.csv", index=False)
    notes = read_card(make(folder, time_col="t", step=10))["notes"]
    assert notes == [
        "Rows read: 200.",
        "Rows with a missing value: 4.",
        "Samples filled in, for up to three missing ones on end: 1.",
        "Rows without label: 3.",
        "Rows left over before a gap: 4.",
        "Rows left over before a change of label, because no window mixes labels: 14.",
        "Rows left over at the end of a recording: 5.",
    ]
    spaced = read_card(make(folder, time_col="t", step=15, force=True))["notes"]
    assert "Rows between windows, because the step is longer than the window: 45." in spaced
    numbers = [noted(note) for note in spaced if note.startswith("Rows")]
    assert numbers[0] - sum(numbers[1:]) == 10 * (7 + 1 + 2 + 3)


def test_rows_that_go_back_in_time_are_said(folder: Path) -> None:
    table(t=np.concatenate([np.arange(50.0), np.arange(20.0, 70.0)])).to_csv(folder / "a.csv", index=False)
    assert any("Rows with an earlier time" in note for note in read_card(make(folder, time_col="t"))["notes"])
    table(t=np.arange(100.0)[::-1]).to_csv(folder / "a.csv", index=False)
    npz = folder.parent / "home" / "mine.npz"
    before = npz.read_bytes()
    with pytest.raises(InputError, match="Sort each recording by time"):
        make(folder, time_col="t", force=True)
    assert npz.read_bytes() == before
    check_card(npz, read_card(npz))


def test_recordings_may_take_turns_if_there_is_a_clock(folder: Path) -> None:
    frame = pd.DataFrame({"t": np.repeat(np.arange(100), 2), "user": ["a", "b"] * 100, "label": "sit"})
    frame["v"] = frame["t"] + np.where(frame["user"] == "a", 0, 1000)
    frame.to_csv(folder / "a.csv", index=False)
    dataset = load_prepared(make(folder, time_col="t", domain_col="user", chunk_rows=7))
    np.testing.assert_array_equal(np.diff(dataset.X[:, 0], axis=1), 1)
    assert set(dataset.domain_ids) == {0, 1}
    refused_elsewhere = folder.parent / "again"
    refused_elsewhere.mkdir()
    frame.to_csv(refused_elsewhere / "a.csv", index=False)
    with pytest.raises(InputError, match="10 samples on end"):
        make(refused_elsewhere, domain_col="user", channels=["v"], home=folder / "none")


def test_a_recording_that_rests_for_long_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table(90, t=[*range(30), *range(500, 530), *range(30, 60)], user=np.repeat(["a", "b", "a"], 30))
    frame.to_csv(folder / "a.csv", index=False)
    starts = read_npz(make(folder, time_col="t", domain_col="user", step=1), ["start"])["start"]
    assert {25, 28} & set(starts.tolist())  # 30 rows of others in between: joined
    monkeypatch.setattr(cutter, "MAX_PAUSE", 20)
    for chunk_rows in (1, 8, 1000):
        npz = make(folder, time_col="t", domain_col="user", step=1, chunk_rows=chunk_rows, force=True)
        starts = read_npz(npz, ["start"])["start"]
        assert not {25, 28} & set(starts.tolist())


@pytest.mark.parametrize("kind", ["seconds", "dates", "nanoseconds"])
def test_clocks(folder: Path, kind: str) -> None:
    seconds = np.arange(100) * 0.02 + np.where(np.arange(100) >= 60, 5.0, 0.0)
    time: Any = {
        "seconds": seconds,
        "dates": [str(pd.Timestamp("2024-05-01 12:00") + pd.Timedelta(seconds=s)) for s in seconds],
        "nanoseconds": 1_700_000_000_000_000_000 + (seconds * 15_000).astype(np.int64),
    }[kind]
    table(t=time).to_csv(folder / "a.csv", index=False)
    npz = make(folder, time_col="t", step=1, split="by_time", chunk_rows=13)
    starts = set(read_npz(npz, ["start"])["start"].tolist())
    assert starts <= {*range(51), *range(60, 91)}
    assert 50 in starts


def test_resampling_is_linear_and_only_where_asked_or_needed(folder: Path) -> None:
    t = np.cumsum(np.random.default_rng(0).uniform(0.01, 0.03, 400))
    pd.DataFrame({"t": t, "v": 3 * t, "label": "sit"}).to_csv(folder / "a.csv", index=False)
    npz = make(folder, time_col="t", rate=40.0, gap=0.1, channels="v")
    X = load_prepared(npz).X
    np.testing.assert_allclose(np.diff(X[:, 0], axis=1), 3 / 40, atol=1e-4)
    assert "Samples (at 40 per second)" in " ".join(read_card(npz)["notes"])
    usual = load_prepared(make(folder, time_col="t", channels="v", force=True)).X
    np.testing.assert_allclose(np.diff(usual[:, 0], axis=1), 3 * np.diff(t).mean(), rtol=0.05)  # uneven times
    frame = pd.DataFrame({"t": np.arange(400) * 0.02 + 0.002 * (np.arange(400) % 2), "v": t, "label": "sit"})
    frame.to_csv(folder / "a.csv", index=False)
    raw = load_prepared(make(folder, time_col="t", channels="v", force=True)).X
    assert np.isin(raw, t.astype(np.float32)).all()  # even enough to be left as it is
    refused_rate = folder.parent / "other"
    refused_rate.mkdir()
    table().to_csv(refused_rate / "a.csv", index=False)
    with pytest.raises(InputError, match="time_col: expected a column, because rate is given"):
        make(refused_rate, rate=10.0)


@pytest.mark.parametrize(
    ("per_second", "message"),
    [
        (20, "makes 20 samples of a row of a.csv .* choose a lower rate"),
        (1e3, r"rate: expected at most 10 samples per row, got 50, .* 1,000 .*--time-unit ms"),
        (1e6, "makes 1,000,000 samples .*--time-unit us"),
        (1e9, "makes 1,000,000,000 samples .*--time-unit ns"),
    ],
)
def test_a_rate_in_the_wrong_unit_is_refused(folder: Path, per_second: float, message: str) -> None:
    table(t=np.arange(100) * 0.02 * per_second).to_csv(folder / "a.csv", index=False)
    refused(folder, message, time_col="t", rate=50.0)
    refused(folder, message, time_col="t", rate=50.0, gap=1e9)
    unit = {1e3: "ms", 1e6: "us", 1e9: "ns"}.get(per_second)
    assert make(folder, time_col="t", rate=50.0 if unit else 2.5, time_unit=unit).exists()


def test_a_gap_below_the_step_makes_up_nothing(folder: Path) -> None:
    frame = pd.concat([table(100, t=np.arange(100) * 0.02, g="long"), table(2, t=[500.0, 600.0], g="short")])
    frame.to_csv(folder / "a.csv", index=False)
    refused(folder, "makes 5,000 samples", time_col="t", group_col="g", rate=50.0)
    assert read_card(make(folder, time_col="t", group_col="g", rate=50.0, gap=1.0))["windows"] < 20


def test_repeated_times_are_explained(folder: Path) -> None:
    table(t=np.arange(100) // 5).to_csv(folder / "a.csv", index=False)
    refused(folder, r"80 with the same time as the row before.* leave time_col out", time_col="t")
    table(t=[*range(60), *range(59, 99)]).to_csv(folder / "a.csv", index=False)
    notes = read_card(make(folder, time_col="t", chunk_rows=7))["notes"]
    assert "Rows with the same time as the row before, dropped: 1." in notes


def test_different_time_steps_are_noted(folder: Path) -> None:
    for name, step in (("a", 0.01), ("b", 0.02), ("c", 0.0201)):
        table(t=np.arange(100) * step).to_csv(folder / f"{name}.csv", index=False)
    said = "The usual time step differs between files, from 0.01 (a.csv) to 0.0201 (c.csv): give --rate"
    assert said in " ".join(read_card(make(folder, time_col="t"))["notes"])
    assert said not in " ".join(read_card(make(folder, time_col="t", rate=50.0, window=5, force=True))["notes"])
    (folder / "a.csv").unlink()
    assert said[:30] not in " ".join(read_card(make(folder, time_col="t", force=True))["notes"])


def test_an_exact_grid_keeps_its_last_sample() -> None:
    for rate in (3.0, 7.0, 50.0, 100.0):
        time = np.arange(1000) / rate + 0.1
        resampler = Resampler(rate)
        samples, _ = resampler.feed(time[:, None], np.arange(1000), time)
        last, _ = resampler.finish()
        np.testing.assert_allclose(np.concatenate([samples, last])[:, 0], time, rtol=1e-9)


def test_a_lower_rate_takes_means_so_that_vibrations_do_not_turn_into_slow_waves() -> None:
    time = np.arange(2000) / 100
    slow, fast = np.sin(2 * np.pi * time), np.sin(2 * np.pi * 39 * time)  # at 20 Hz, 39 Hz looks like 1 Hz
    run = Run(Sizes(380, 380, 20.0), 2, Clock(0.01, 0.035, even=True))
    ((kept, gone),) = run.feed(np.stack([slow, fast], axis=1), np.arange(2000), time).X
    np.testing.assert_allclose(kept[1:], np.sin(2 * np.pi * np.arange(1, 380) / 20), atol=0.01)
    assert np.abs(gone[1:]).max() < 0.03


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.sampled_from([0.1, 0.3, 0.7]), st.integers(0, 99))
def test_a_mean_is_the_integral_between_its_edges(n: int, rate: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    time, values = np.cumsum(rng.uniform(0.5, 1.5, n)), rng.normal(size=n)
    averager = Averager(rate)
    parts = [averager.feed(values[:, None], np.arange(n), time), averager.finish()]
    got = np.concatenate([samples[:, 0] for samples, _ in parts])
    middles = time[0] + np.arange(int((time[-1] - time[0]) * rate) + 1) / rate
    fine = (np.arange(20_000) + 0.5) / 20_000 - 0.5
    expected = [np.interp(middle + fine / rate, time, values).mean() for middle in middles]
    np.testing.assert_allclose(got, expected, atol=1e-3)
    assert [row for _, rows in parts for row in rows] == [int((time <= middle).sum()) - 1 for middle in middles]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_run_does_not_care_how_it_is_pieced(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 60))
    rate = data.draw(st.sampled_from([None, 0.3, 0.7, 0.8, 1.0, 2.3]))
    sizes = Sizes(data.draw(st.integers(1, 9)), data.draw(st.integers(1, 12)), rate)
    clock = Clock(1.0, 4.5, even=data.draw(st.booleans()))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    time, values = np.cumsum(rng.uniform(0.5, 4.0 if clock.even else 1.5, n)), rng.normal(size=(n, 2))
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=6))})

    def windows(edges: list[int]) -> tuple[np.ndarray, np.ndarray, Run]:
        run, rows = Run(sizes, 2, clock), np.arange(n)
        parts = [run.feed(values[b:e], rows[b:e], time[b:e]) for b, e in pairwise(edges)]
        parts.append(run.finish())
        return np.concatenate([part.X for part in parts]), np.concatenate([part.first for part in parts]), run

    whole, starts, run = windows([0, n])
    pieced, pieced_starts, pieced_run = windows(cuts)
    np.testing.assert_array_equal(whole, pieced)
    np.testing.assert_array_equal(starts, pieced_starts)
    assert (run.left_over, run.between) == (pieced_run.left_over, pieced_run.between)
    if rate is None and clock.even:
        place = np.concatenate([[0], np.cumsum(np.maximum(np.round(np.diff(time)), 1))]).astype(int)
        every = np.stack([np.interp(np.arange(place[-1] + 1), place, channel) for channel in values.T])
        expected = [every[:, i : i + sizes.window] for i in range(0, len(every[0]) - sizes.window + 1, sizes.step)]
        np.testing.assert_array_equal(whole, np.reshape(expected, (-1, 2, sizes.window)).astype(np.float32))


CELLS = st.sampled_from(["1", "2.5", "-3e2", "", "nan", " 7", "x", "inf", "1e40", "1,1", '"', "é"])
HOLES = {"v": ["", "nan"], "w": [""]}
GOOD = st.sampled_from(["1", "2.5", "-3", "0", "4e1", "7", " 8", "9.25", "-0.5", "6", "nan", ""])


@st.composite
def csv_texts(draw: st.DrawFn) -> str:
    """Tables that are mostly sound: some with holes, some with words, some ragged, some not text at all."""
    wild = draw(st.integers(0, 4)) == 0
    n, stay, turn = draw(st.integers(0 if wild else 15, 30)), draw(st.integers(4, 20)), draw(st.integers(3, 20))
    holes = draw(st.sets(st.integers(0, 39), max_size=6))
    jumps = draw(st.dictionaries(st.integers(0, 39), st.sampled_from([5, 0, -3]), max_size=4))
    labels = draw(st.lists(st.sampled_from(["sit", "walk", "sit", ""]), min_size=15, max_size=15))
    t, lines = 0, ["t,user,label,v,w"]
    for row in range(n):
        t += jumps.get(row, 1)
        user = draw(st.sampled_from(["a", "a", "b"])) if wild else "ab"[row // stay % 2]
        v = draw(CELLS if wild and row in holes else GOOD) if row in holes else f"{row / 4}"
        lines.append(f"{t},{user},{labels[row // turn]},{v},{row}")
    text = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    return text + draw(st.sampled_from(["", "\n", "\n\n", "\n1,2", "\n1,2,3,4,5,6,7", "\x00"])) if wild else text


@example(
    text='t,user,label,v,w\n1,a,sit,",0\n2,a,sit,0.25,1\n3,a,sit,0.5,2\n4,a,sit,0.75,3\n5,a,sit,",4\n6,a,sit,1.25,5',
    chunk_rows=1,
    window=1,
    step=1,
    clock=False,
    look=1,
    rate=None,
    channels=None,
)
@given(
    text=csv_texts(),
    chunk_rows=st.sampled_from([1, 4, 5, 7, 10, 15]),
    window=st.integers(1, 4),
    step=st.integers(1, 5),
    clock=st.booleans(),
    look=st.integers(1, 8),
    rate=st.sampled_from([None, None, 0.5, 2.0]),
    channels=st.sampled_from([["v", "w"], None]),
)
def test_any_csv_gives_a_clear_error_or_the_right_windows(
    text: str,
    chunk_rows: int,
    window: int,
    step: int,
    clock: bool,
    look: int,
    rate: float | None,
    channels: list[str] | None,
) -> None:
    """Never a half-written npz; the same bytes for any chunk; the same windows as reading the file whole."""
    options: dict[str, Any] = {"time_col": "t", "gap": 2.0} if clock else {}
    if clock and look < 4:
        del options["gap"]
    rate = rate if clock else None
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutter, "CLOCK_ROWS", look)
        home, path = Path(place) / "home", Path(place) / "raw.csv"
        path.write_text(text, encoding="utf-8", newline="")
        kinds = {"label_col": "label", "domain_col": "user"}
        sizes = {"window": window, "step": step, "rate": rate, "home": home, "channels": channels, **options}
        outcomes = [attempt(path, f"c{n}", chunk_rows=n, **kinds, **sizes) for n in (chunk_rows, 10_000)]
        assert outcomes[0] == outcomes[1]
        found = sorted(file.name for file in home.iterdir()) if home.exists() else []
        event("refused" if outcomes[0] is None else "made")
        if outcomes[0] is None:
            assert not found
            return
        assert found == sorted(f"c{n}.{kind}" for n in (chunk_rows, 10_000) for kind in ("json", "npz"))
        npz = home / "c10000.npz"
        check_card(npz, read_card(npz))
        assert read_card(npz)["notes"] == read_card(home / f"c{chunk_rows}.npz")["notes"]
        dataset = load_prepared(npz)
        assert np.isfinite(dataset.X).all()
        assert set(dataset.channel_names) >= (set(channels or ["w"]) | ({"v"} if mostly_numbers(text, 3) else set()))
        if rate is None:
            assert_as_defined(pd.read_csv(path, keep_default_na=False, na_values=HOLES), npz, window)
        if rate is None and not clock:
            whole = read_recordings(path, window=window, step=step, channels=dataset.channel_names, **kinds)
            assert whole.start is not None
            assert whole.y is not None
            wanted = set(whole.start[whole.y != ""].tolist())
            assert set(read_npz(npz, ["start"])["start"].tolist()) <= wanted
            across = [noted(note) for note in read_card(npz)["notes"] if note.startswith("Windows across")]
            assert len(dataset) + sum(across) == len(wanted)


def attempt(path: Path, name: str, **options: Any) -> bytes | None:
    """The npz that is made, or None if the file is refused in one line."""
    try:
        return prepare_recordings(path, name, split="by_time", **options).read_bytes()
    except InputError as error:
        message = str(error)
    assert "\n" not in message
    assert ": " in message
    return None


def mostly_numbers(text: str, column: int) -> bool:
    """Of a text without quotes, which would join lines to one cell."""
    if '"' in text:
        return False
    cells = [line.split(",")[column].strip() for line in text.splitlines()[1:] if line.count(",") == 4]
    filled = [cell for cell in cells if cell not in ("", "nan")]
    return bool(filled) and sum(cell in ("x", "é") for cell in filled) <= 0.05 * len(filled)


def assert_as_defined(frame: pd.DataFrame, npz: Path, window: int) -> None:
    """Every window is consecutive rows of one user and one label, without holes, as the file has them."""
    dataset = load_prepared(npz)
    starts = read_npz(npz, ["start"])["start"]
    names = json.loads(npz.with_suffix(".json").read_text())["domain_names"]
    user, label = frame["user"].to_numpy(), frame["label"].to_numpy()
    values = frame[list(dataset.channel_names)].apply(pd.to_numeric, errors="coerce").to_numpy(np.float32)
    for i, start in enumerate(starts):
        rows = start + np.flatnonzero(user[start:] == names[str(dataset.domain_ids[i])])[:window]
        np.testing.assert_array_equal(values[rows].T, dataset.X[i])
        assert set(label[rows]) == {dataset.class_names[dataset.y[i]]}


def placed(recording: Any, y: Any, window: int = 4, step: int = 2) -> Placed:
    recording, y = np.array(recording), np.array(y)
    first = np.arange(len(y)) * step
    return Placed(y, recording // 10, recording, first, first + window - 1)


def test_split_by_group_keeps_recordings_whole_and_classes_on_both_sides() -> None:
    recording = np.repeat(np.arange(20), 5)
    y = np.repeat(np.arange(20) % 2, 5)
    parts = split_windows(placed(recording, y), "by_group", 0.3, seed=0)
    for r in range(20):
        assert len(set(parts[recording == r])) == 1
    for domain in (0, 1):
        for k in (0, 1):
            rows = (recording // 10 == domain) & (y == k)
            assert {TRAIN, TEST} == set(parts[rows])
            assert (parts[rows] == TEST).sum() == 10  # 2 of 5 recordings: 1.5 is rounded to even
    np.testing.assert_array_equal(parts, split_windows(placed(recording, y), "by_group", 0.3, seed=0))
    assert (parts != split_windows(placed(recording, y), "by_group", 0.3, seed=1)).any()


def test_split_by_group_leaves_every_class_to_train_on_if_it_can() -> None:
    recording = np.repeat(np.arange(4), 5)
    y = np.array([0] * 5 + [0, 0, 0, 0, 1] + [0] * 5 + [0, 0, 0, 1, 2])
    for seed in range(20):
        parts = split_windows(placed(recording, y), "by_group", 0.5, seed=seed)
        assert set(y[parts == TRAIN]) == {0, 1, 2}
        assert (parts == TEST).sum() == 10
    mixed = placed(np.repeat([0, 1], 5), [0, 0, 0, 1, 1, 1, 1, 1, 0, 0])
    assert set(split_windows(mixed, "by_group", 0.3, seed=0)) == {TRAIN, TEST}
    torn = placed(np.repeat([0, 1], 5), [0, 0, 0, 0, 1, 0, 0, 0, 2, 3])
    parts = split_windows(torn, "by_group", 0.3, seed=0)
    assert set(torn.y[parts == TEST]) == {0, 1}  # one of them has to: the one that takes fewer classes along
    names = Names(["a", "b", "c", "d", "e"], {0: "anna"})
    assert missing_classes(torn, parts, names) == [
        "Domain 'anna' has no window of class 'e'.",
        "Domain 'anna' has no train window of class 'b'.",
        "Domain 'anna' has no test window of class 'c', 'd'.",
    ]
    assert choose_split(torn, names, 0.3, 0) == (
        "by_time",
        "Split by_time was chosen: by recordings, domain 'anna' could not train on 'b'.",
    )


def test_the_split_is_chosen_and_said(folder: Path) -> None:
    for user in ("anna", "bob"):
        table(user=user).to_csv(folder / f"{user}1.csv", index=False)
    alone = read_card(make(folder, split=None, domain_col="user"))
    assert alone["options"]["split"] == "by_time"
    said = "Split by_time was chosen: by recordings, domain 'anna' would have no test window."
    assert said in alone["notes"]
    for user in ("anna", "bob"):
        table(user=user).to_csv(folder / f"{user}2.csv", index=False)
    two = read_card(make(folder, split=None, domain_col="user", force=True))
    assert two["options"]["split"] == "by_group"
    assert any(note.startswith("Split by_group was chosen") for note in two["notes"])


def test_what_no_window_is_of_is_noted(folder: Path) -> None:
    table(label=["sit"] * 91 + ["run"] * 9, user=["a"] * 85 + ["b"] * 15).to_csv(folder / "a.csv", index=False)
    notes = read_card(make(folder, domain_col="user"))["notes"]
    assert "Classes that no window is of: 'run'." in notes
    assert "Domains that no window is of: 'b'." in notes


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=40),
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(0.05, 0.95),
)
def test_split_by_time_shares_no_row(rows: list[tuple[int, int]], window: int, step: int, share: float) -> None:
    recording, y = np.array(sorted(rows)).T
    where = placed(recording, y, window, step)
    parts = split_windows(where, "by_time", share, seed=0)
    for r in range(3):
        for k in range(2):
            here = (recording == r) & (y == k)
            train, test = here & (parts == TRAIN), here & (parts == TEST)
            assert train.any() == here.any()
            if test.any():
                assert where.last[train].max() < where.first[test].min()
    assert set(parts) <= {TRAIN, TEST, DROPPED}


def test_the_same_recordings_by_group(folder: Path) -> None:
    for i in range(4):
        table(label="sit" if i % 2 else "walk", user=i // 2).to_csv(folder / f"{i}.csv", index=False)
    refused(
        folder,
        "split: expected a train and a test window .* got no test window in domain '0'",
        split="by_group",
        domain_col="user",
    )
    for i in range(4, 8):
        table(label="sit" if i % 2 else "walk", user=i // 2 % 2).to_csv(folder / f"{i}.csv", index=False)
    npz = make(folder, split="by_group", domain_col="user")
    group, split = (read_npz(npz, [key])[key] for key in ("group", "split"))
    assert all(len(set(split[group == g])) == 1 for g in set(group))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_col": "class"}, r"label_col: expected a column of a.csv \('ax', 'ay', 'label'\), got 'class'"),
        ({"time_col": "t"}, "time_col: expected a column"),
        ({"group_col": "g"}, "group_col: expected a column"),
        ({"domain_col": "g"}, "domain_col: expected a column"),
        ({"channels": ["az"]}, "channels: expected a column"),
        ({"channels": []}, "channels: expected one or more"),
        ({"channels": ["ax", "label"]}, "channels: expected one or more"),
        ({"window": 101}, "101 samples on end .* got none among 100 rows"),
        ({"window": 0}, "window: expected"),
        ({"step": 0}, "step: expected"),
        ({"rate": -1.0, "time_col": "ax"}, "rate: expected a positive number"),
        ({"gap": 1.0}, "time_col: expected a column, because gap is given"),
        ({"split": "random"}, "split: expected one of 'by_group', 'by_time'"),
        ({"split": "by_group"}, "split: expected a train and a test window"),
        ({"test_share": 1.5}, "test_share: expected a share"),
        ({"domain_from": "name"}, "domain_from: expected one of 'file', 'folder'"),
        ({"domain_col": "label", "domain_from": "file"}, "domain_from: expected nothing beside domain_col"),
    ],
)
def test_misuse(folder: Path, options: dict[str, Any], message: str) -> None:
    table().to_csv(folder / "a.csv", index=False)
    refused(folder, message, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "b.csv: the file is empty"),
        ("ax,ay,label\n", "b.csv: no rows"),
        ("ax,label\n1,sit\n", "channels: expected a column of b.csv"),
        ("ax,ay,label\n1,2,sit\n1,x,sit\n", "'ay' of b.csv: expected numbers, got 'x' in row 1"),
        ("ax,ay,label\n1,2,sit\n1,2,sit,4\n", "b.csv: not readable"),
        ("ax,ay,label\n1,2,sit\n1,inf,sit\n", "channel 'ay' of b.csv: expected finite .* got inf in row 1"),
        ("ax,ay,label\n1,1e36,sit\n", "channel 'ay' of b.csv"),
    ],
)
def test_one_bad_file_stops_all_and_is_named(folder: Path, text: str, message: str) -> None:
    table().to_csv(folder / "a.csv", index=False)
    (folder / "b.csv").write_text(text)
    refused(folder, message)
    refused(folder, message, chunk_rows=1)


def test_clocks_that_fail_are_named(folder: Path) -> None:
    table(t=[*range(99), "soon"]).to_csv(folder / "a.csv", index=False)
    refused(folder, "time_col 't' of a.csv: .* got 'soon' in row 99", time_col="t")
    late = table(20_000, t=[*range(19_999), "12.5"])
    late.to_csv(folder / "a.csv", index=False)
    refused(folder, "'t' of a.csv: expected whole numbers as in its first rows, got '12.5' in row 19999", time_col="t")
    table(user=["a"] * 99 + [""]).to_csv(folder / "a.csv", index=False)
    refused(folder, "'user' of a.csv: expected an entry in every row, got an empty one in row 99", domain_col="user")


def test_folders_without_tables(folder: Path) -> None:
    refused(folder, "no file that ends in .csv")
    refused(folder / "absent", "not a folder and not a table", home=folder.parent / "home")


def test_a_crash_leaves_the_old_data_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table().to_csv(folder / "a.csv", index=False)
    npz = make(folder)
    before = npz.read_bytes()
    refusing = pytest.raises(InputError, match="exists already")
    with refusing:
        make(folder)

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("transpl.datasets.recordings.make.np.lib.format.write_array", crash)
    with pytest.raises(KeyboardInterrupt):
        make(folder, step=1, force=True)
    assert npz.read_bytes() == before
    check_card(npz, read_card(npz))
    assert sorted(path.name for path in npz.parent.iterdir()) == ["mine.json", "mine.npz"]


def test_a_whole_number_is_the_same_word_with_and_without_decimals() -> None:
    """One file may hold integers, another the same as floats, because some are missing."""
    words = Words()
    assert words.codes(pd.Series(["1", "2.0", "NaN", " 1.0"])).tolist() == [0, 1, -1, 0]
    assert words.codes(pd.Series([2.0, np.nan, 1.0])).tolist() == [1, -1, 0]
    assert words.known == ["1", "2"]


@pytest.mark.parametrize("clock", [None, "t"])
def test_reading_and_making_cut_the_same_windows(folder: Path, clock: str | None) -> None:
    rng = np.random.default_rng(0)
    frame = table(600, t=np.cumsum(rng.choice([1.0, 1.0, 1.0, 9.0], 600)), g=np.repeat(["x", "y", "z"], 200))
    frame["label"] = np.repeat(rng.choice(["sit", "walk"], 15), 40)
    frame.loc[rng.integers(0, 600, 9), "ay"] = np.nan
    frame.to_csv(folder / "a.csv", index=False)
    columns: dict[str, Any] = {"label_col": "label", "group_col": "g", "time_col": clock, "channels": ["ax", "ay"]}
    found = read_recordings(folder / "a.csv", window=6, **columns)
    npz = make(folder, window=6, chunk_rows=50, **columns, test_share=0.01)
    made = read_npz(npz, ["X", "y", "start", "class_names"])
    kept = np.isin(np.asarray(found.start), made["start"])  # windows across the border of the split are left out
    assert kept.sum() == len(made["start"]) > 0.5 * len(found)
    order = np.argsort(made["start"])
    np.testing.assert_array_equal(found.X[kept], made["X"][order])
    assert found.y is not None
    assert found.y[kept].tolist() == made["class_names"][made["y"][order]].tolist()


def test_groups_of_a_file_are_recordings(folder: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for name in ("a.h5", "b.h5"):
        with h5py.File(folder / name, "w") as file:
            for number, length in enumerate([45, 60]):
                file[f"day/{number}/ax"] = np.arange(float(length)) + 100 * number
                file[f"day/{number}/label"] = "sit"
    dataset = load_prepared(make(folder))
    np.testing.assert_array_equal(np.diff(dataset.X, axis=2), 1)
    assert set(dataset.X[:, 0, 0] // 100) == {0, 1}


def test_titles_and_units_are_no_rows(folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("watch 7\nax,ay,label\ng,g,-\n" + table().to_csv(index=False, header=False))
    npz = make(folder)
    np.testing.assert_array_equal(read_npz(npz, ["start"])["start"], load_prepared(npz).X[:, 0, 0])
