"""HHAR's csv: streams of several phones, runs, chunks that do not matter, and damage named by line."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.pairs import PUBLISHED
from transpl.datasets.prepared import load_prepared
from transpl.datasets.recipe import Built
from transpl.datasets.recipes.hhar import (
    ADATIME_TEST_WINDOWS,
    CLASSES,
    PEOPLE,
    RAW_FILE,
    RECIPE,
    build,
    check,
    read_samples,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"
HEADER = "Index,Arrival_Time,Creation_Time,x,y,z,User,Model,Device,gt"
START = 1_424_696_633_908  # ms


class Row(NamedTuple):
    time: int
    x: float
    y: float
    z: float
    user: str
    device: str
    gt: str

    def __str__(self) -> str:
        model = self.device.split("_")[0]
        return f"0,{self.time},{self.time}000123,{self.x},{self.y},{self.z},{self.user},{model},{self.device},{self.gt}"


def silent(_: str) -> None:
    pass


def stretch(user: str, device: str, gt: str, n: int, *, start: int = START, step: int = 7) -> list[Row]:
    """`n` rows on end: x counts them, y and z tell whose they are."""
    activity = (*CLASSES, "null").index(gt)
    return [
        Row(start + i * step, float(i), PEOPLE.index(user) + activity / 8, float(device[-1]), user, device, gt)
        for i in range(n)
    ]


def write(folder: Path, rows: Sequence[Row | str], header: str = HEADER) -> Path:
    path = folder / "Activity recognition exp" / RAW_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *map(str, rows)]) + "\n")
    return path


def built(rows: Sequence[Row | str], **options: Any) -> Built:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        return build(Path(folder), silent, **options)


def everyone(n: int = 140) -> list[Row]:
    later = START
    rows = []
    for user in reversed(PEOPLE):
        for device in ("s3_2", "s3_1"):
            for gt in ("walk", "null", "bike", "stand", "sit", "stairsup", "stairsdown"):
                rows += stretch(user, device, gt, n, start=later)
                later += n * 7
    return rows


def same(a: Built, b: Built) -> None:
    for field in ("X", "y", "domain_ids", "split"):
        np.testing.assert_array_equal(getattr(a.dataset, field), getattr(b.dataset, field))
    np.testing.assert_array_equal(a.extras["device"], b.extras["device"])
    assert a.notes == b.notes


def test_a_whole_file() -> None:
    dataset, extras, notes, *_ = built(everyone())
    assert dataset.X.shape == (9 * 2 * 6, 3, 128)
    assert dataset.domains == tuple(range(9))
    assert dataset.class_names == CLASSES == tuple(sorted(CLASSES))
    assert dataset.pairs == PUBLISHED["hhar"]
    np.testing.assert_array_equal(dataset.X[:, 1], np.repeat((dataset.domain_ids + dataset.y / 8)[:, None], 128, 1))
    np.testing.assert_array_equal(dataset.X[:, 0], np.tile(np.arange(128), (108, 1)))
    np.testing.assert_array_equal(dataset.X[:, 2, 0], [int(name[-1]) for name in extras["device"]])
    for i in dataset.domains:
        assert len(dataset.domain(i).y_test) == 4
    assert notes == (
        "17,640 rows of s3_1, s3_2; 2,520 of them are null or lack a reading and were dropped.",
        "Runs were cut 0 times where the clock goes back and 0 times where it jumps by more than 1 s.",
        "108 windows, one every 128 samples.",
    )


STRETCHES = st.lists(
    st.tuples(
        st.sampled_from("abi"),
        st.sampled_from(["s3_1", "s3_2", "nexus4_1"]),
        st.sampled_from(["walk", "bike", "null"]),
        st.integers(1, 300),
        st.sampled_from([START, START + 1000, START + 50_000]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(stretches=STRETCHES, seed=st.integers(0, 1000), chunks=st.lists(st.integers(60, 700), min_size=2, max_size=2))
def test_windows_do_not_depend_on_the_chunks(stretches: list[Any], seed: int, chunks: list[int]) -> None:
    rows = stretch("b", "s3_1", "sit", 260) + interleaved(
        [stretch(user, device, gt, n, start=start) for user, device, gt, n, start in stretches], seed
    )
    whole = built(rows, rows_at_once=10**6)
    for size in chunks:
        same(built(rows, rows_at_once=size), whole)


def test_every_size_of_chunk() -> None:
    rows = interleaved([stretch("a", "s3_1", "walk", 150), stretch("c", "s3_2", "sit", 131)], seed=1)
    whole = built(rows)
    assert len(whole.dataset) == 2
    for size in (7, 64, 127, 128, 129, 280, 281, 282):
        same(built(rows, rows_at_once=size), whole)


def interleaved(streams: list[list[Row]], seed: int) -> list[Row]:
    """Mix rows of several stretches at random; each keeps its own order."""
    chance = np.random.default_rng(seed)
    which = chance.permutation(np.repeat(np.arange(len(streams)), [len(stream) for stream in streams]))
    iterators = [iter(stream) for stream in streams]
    return [next(iterators[i]) for i in which]


def test_rows_of_other_phones_do_not_cut_a_run() -> None:
    alone = built(stretch("a", "s3_1", "walk", 300))
    mixed = built(
        interleaved([stretch("a", "s3_1", "walk", 300), stretch("b", "nexus4_1", "walk", 300, start=5)], seed=3)
    )
    same(alone, mixed)


def first_samples(rows: list[Row], **options: Any) -> list[float]:
    return sorted(built(rows, **options).dataset.X[:, 0, 0].tolist())


def test_runs_end_at_label_gap_and_backward_clock() -> None:
    walk = stretch("a", "s3_1", "walk", 300)

    def at(i: int, **change: Any) -> list[Row]:
        return [*walk[:i], walk[i]._replace(**change), *walk[i + 1 :]]

    def shifted(i: int, by: int) -> list[Row]:
        return walk[:i] + [row._replace(time=row.time + by) for row in walk[i:]]

    assert first_samples(walk) == [0, 128]
    assert first_samples(at(150, gt="null")) == [0, 151]
    assert first_samples(at(150, gt="bike")) == [0, 151]
    assert first_samples(at(150, x=float("nan"))) == [0, 151]
    assert first_samples(at(150, x="")) == [0, 151]
    assert first_samples(at(150, x=1e30)) == [0, 151]
    assert first_samples(shifted(140, 993)) == [0, 128]  # 1,000 ms after the row before
    assert first_samples(shifted(140, 994)) == [0, 140]
    assert first_samples(shifted(140, -7)) == [0, 128]  # in the same millisecond
    assert first_samples(shifted(140, -8)) == [0, 140]
    notes = built(shifted(140, -8) + shifted(140, 994)).notes
    assert "cut 2 times where the clock goes back and 1 times" in notes[1]


def test_overlap() -> None:
    walk = stretch("a", "s3_1", "walk", 300)
    assert first_samples(walk, overlap=0.5) == [0, 64, 128]
    assert first_samples(walk, overlap=0.999) == list(range(173))


def test_resampling_keeps_straight_lines_straight() -> None:
    walk = stretch("a", "s3_1", "walk", 400, step=10)
    dataset, _, notes, *_ = built(walk, resample_hz=50)
    np.testing.assert_allclose(dataset.X[0, 0], np.arange(0, 256, 2), rtol=1e-6)
    assert len(dataset) == 1  # 200 samples are left
    assert notes[-1] == "1 windows, one every 128 samples, interpolated to 50 Hz."
    bursts = [row._replace(time=START + 20 * (i // 2)) for i, row in enumerate(walk)]
    np.testing.assert_allclose(built(bursts, resample_hz=50).dataset.X[0, 0], np.arange(0, 256, 2) + 0.5, rtol=1e-6)
    assert len(built(walk, resample_hz=100).dataset) == 3
    assert len(built([*walk, walk[-1]._replace(gt="bike")], resample_hz=100).dataset) == 3  # a run of one row


def test_choosing_phones() -> None:
    rows = [row for device in ("s3_1", "s3_2", "s3mini_1", "nexus4_2") for row in stretch("a", device, "sit", 128)]
    assert built(rows).extras["device"].tolist() == ["s3_1", "s3_2"]
    assert sorted(built(rows, models="s3mini, nexus4").extras["device"]) == ["nexus4_2", "s3mini_1"]
    assert built(rows, device="s3_2").extras["device"].tolist() == ["s3_2"]
    chosen = built(rows, models=("s3mini", "s3"), device=["s3mini_1", "s3_2"])
    assert sorted(chosen.extras["device"]) == ["s3_2", "s3mini_1"]
    np.testing.assert_array_equal(chosen.dataset.X[:, 2, 0], [int(name[-1]) for name in chosen.extras["device"]])


def test_the_rule_is_true_of_the_options() -> None:
    rows = [row for device in ("s3_1", "s3_2", "nexus4_1") for row in stretch("a", device, "sit", 300)]
    assert built(rows).rule == RECIPE.rule
    assert "one every 128, " in RECIPE.rule
    assert "phones: s3, each at its own rate" in RECIPE.rule
    other = built(rows, models="nexus4", resample_hz=80, overlap=0.5).rule
    assert "one every 64, " in other
    assert "phones: nexus4, interpolated linearly to 80 Hz" in other
    assert "phones: s3_2, each" in built(rows, device="s3_2").rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": "iphone"}, "models: expected one of 'nexus4', 's3', 's3mini', 'samsungold', got 'iphone'"),
        ({"models": ()}, "models: expected at least one name"),
        ({"models": 5}, "models: expected names with commas between, or a list, got 5"),
        ({"models": None}, "models: expected names with commas between, or a list, got None"),
        ({"models": ["s3", 5]}, "models: expected names .*, got \\['s3', 5\\]"),
        ({"models": {"s3": 1}}, "models: expected names"),
        ({"models": ""}, "models: expected one of 'nexus4'"),
        ({"device": 5}, "device: expected names with commas between, or a list, got 5"),
        ({"models": "samsungold"}, f"models: expected a phone in {RAW_FILE}, got samsungold"),
        ({"device": "s3_9"}, "device: expected one of 's3_1', got 's3_9'"),
        ({"overlap": 1.0}, "overlap: expected a share"),
        ({"resample_hz": 0}, "resample_hz: expected a positive number"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        built(stretch("a", "s3_1", "sit", 128), **options)
    assert "\n" not in str(caught.value)


SOUND = stretch("a", "s3_1", "sit", 200)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (str(SOUND[0]).replace("0.0", "zero", 1), "line 152: expected a number for x, got 'zero'"),
        (str(SOUND[0])[:40], "line 152: expected 10 fields, got"),
        (f"0,{SOUND[0]}", "line 152: expected 10 fields, got 11"),
        (str(SOUND[0]._replace(user="z")), "line 152: expected one of a, b, c, d, e, f, g, h, i for User, got 'z'"),
        (str(SOUND[0]._replace(gt="swim")), "for gt, got 'swim'"),
        (str(SOUND[0]._replace(gt="")), "for gt, got ''"),
        (str(SOUND[0]).replace(str(START), "1.5", 1), "line 152: expected a whole number for Arrival_Time, got '1.5'"),
        (str(SOUND[0]).replace(str(START), "9" * 30, 1), "line 152: expected a whole number for Arrival_Time, got '99"),
    ],
)
@pytest.mark.parametrize("rows_at_once", [64, 1000])
def test_damage_is_named_by_line(tmp_path: Path, line: str, complaint: str, rows_at_once: int) -> None:
    path = write(tmp_path, [*SOUND[:150], line, *SOUND[150:]])
    with pytest.raises(UnreadableFile) as caught:
        build(tmp_path, silent, rows_at_once=rows_at_once)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_blank_lines_do_not_shift_the_number(tmp_path: Path) -> None:
    write(tmp_path, [*SOUND[:10], "", *SOUND[10:], "", "damage"])
    with pytest.raises(UnreadableFile, match="line 204: expected 10 fields, got 1"):
        build(tmp_path, silent, rows_at_once=50)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=f"no {RAW_FILE} in it"):
        build(tmp_path, silent)
    for header in ("", "a,b,c", HEADER.replace("gt", "User")):
        write(tmp_path, SOUND, header)
        with pytest.raises(UnreadableFile, match="line 1: expected"):
            build(tmp_path, silent)
    write(tmp_path, [])
    with pytest.raises(InputError, match="models: expected a phone in"):
        build(tmp_path, silent)
    write(tmp_path, SOUND[:127])
    with pytest.raises(UnreadableFile, match="no 128 rows on end"):
        build(tmp_path, silent)


def test_a_column_of_devices_that_is_something_else(tmp_path: Path) -> None:
    write(tmp_path, [str(row).replace("s3_1", f"s3_{i}") for i, row in enumerate(SOUND * 6)])
    with pytest.raises(UnreadableFile, match="more than 1000 devices, the last 's3_"):
        build(tmp_path, silent)


def test_the_csv_of_phones_lying_still_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, SOUND)
    still = tmp_path / "Still exp" / RAW_FILE
    still.parent.mkdir()
    still.write_text("something else\n")
    assert len(build(tmp_path, silent).dataset) == 1
    path.rename(tmp_path / RAW_FILE)
    still.unlink()
    path.parent.rmdir()
    assert len(build(tmp_path, silent).dataset) == 1


def windows_or_complaint(lines: Sequence[Row | str], rows_at_once: int) -> int | str:
    try:
        return len(built(lines, rows_at_once=rows_at_once).dataset)
    except InputError as error:
        return str(error)


ODD_LINE = st.one_of(
    st.sampled_from(["", *map(str, SOUND[:5])]), st.text(alphabet='0123456789,.-eEabnulsit3_\r\n" \x00')
)


@given(
    n_sound=st.sampled_from([0, 3, 130, 200]),
    odd=st.lists(st.tuples(st.integers(0, 200), ODD_LINE), max_size=12),
    rows_at_once=st.sampled_from([1, 7, 20, 64, 500]),
)
@example(n_sound=200, odd=[], rows_at_once=7)
@example(n_sound=200, odd=[(0, ""), (150, "")], rows_at_once=7)
@example(n_sound=200, odd=[(150, "1,2,3")], rows_at_once=7)
def test_no_text_breaks_the_reader(n_sound: int, odd: list[tuple[int, str]], rows_at_once: int) -> None:
    """Whatever lies between sound rows: windows, or one line that says why not; windows for certain if nothing does."""
    lines = [*map(str, SOUND[:n_sound])]
    for place, text in odd:
        lines.insert(place, text)
    found = windows_or_complaint(lines, rows_at_once)
    if n_sound >= 128 and not any(text for _, text in odd):
        assert found == 1
    assert isinstance(found, int) or "\n" not in found


def test_the_reader_goes_on_after_odd_rows_that_are_sound() -> None:
    back = [*map(str, SOUND[:150]), str(SOUND[0]), "", *map(str, SOUND[150:])]
    assert windows_or_complaint(back, 20) == 1
    assert windows_or_complaint([*map(str, SOUND[:20]), *map(str, SOUND[:150])], 20) == 1
    assert "line 152: expected 10 fields" in str(windows_or_complaint([*SOUND[:150], "1,2,3"], 20))


def test_values_are_the_nearest_float32(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(0, 10, (300, 3)).astype(np.float32)
    rows = [
        row._replace(x=x, y=y, z=z) for row, (x, y, z) in zip(stretch("d", "s3_2", "sit", 300), values, strict=True)
    ]
    samples = read_samples(write(tmp_path, rows), silent, models=("s3",))
    np.testing.assert_array_equal(samples.values, values)


def test_check_names_what_is_not_as_published() -> None:
    dataset = built(stretch("b", "s3_1", "walk", 1280)).dataset
    assert check(dataset) == [
        "of 9 people published, these have no windows: 0, 2, 3, 4, 5, 6, 7, 8.",
        "of 6 activities published, these have no windows: bike, sit, stairsdown, stairsup, stand.",
        "test windows of a person (in brackets AdaTime's): 0: 0 (457), 1: 3 (536), 2: 0 (475), 3: 0 (457), 4: 0 (501), "
        "5: 0 (517), 6: 0 (501), 7: 0 (479), 8: 0 (513).",
    ]
    assert RECIPE.check is check
    assert set(RECIPE.options) == {"models", "device", "resample_hz", "overlap"}


@pytest.mark.skipif(not (SHARED / "hhar.npz").is_file(), reason=f"the shared prepared data are not at {SHARED}")
def test_adatimes_test_sizes() -> None:
    """The shared file is AdaTime's test part."""
    adatime = load_prepared(SHARED / "hhar.npz")
    assert tuple(np.bincount(adatime.domain_ids)) == ADATIME_TEST_WINDOWS
    assert adatime.class_names == CLASSES
