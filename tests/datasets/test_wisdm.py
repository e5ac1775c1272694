"""WISDM's raw text: every trap of the file, segments, windows, split and scale."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets import load
from transpl.datasets.cards import read_card
from transpl.datasets.pairs import PUBLISHED
from transpl.datasets.prepare import prepare
from transpl.datasets.prepared import load_prepared
from transpl.datasets.recipes.wisdm import (
    ADATIME_TEST_WINDOWS,
    CLASSES,
    RAW_FILE,
    RECIPE,
    RECORDS_PER_CLASS,
    Records,
    build,
    check,
    read_records,
    segment_breaks,
    standardised,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"
STEP = 50_000_000  # ns


class Record(NamedTuple):
    user: int
    activity: str
    time: int
    x: float
    y: float
    z: float

    def __str__(self) -> str:
        return ",".join(map(str, self))


def silent(_: str) -> None:
    pass


def write(folder: Path, text: str) -> Path:
    path = folder / "WISDM_ar_v1.1" / RAW_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="latin1", newline="")
    return path


def read(text: str) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        return read_records(write(Path(folder), text))


def stretch(user: int, activity: str, n: int, *, start: int = 49_105_962_326_000, step: int = STEP) -> list[Record]:
    """`n` records on end; x counts them, so that a window tells where it is from."""
    return [Record(user, activity, start + i * step, float(i), user / 2, -9.81) for i in range(n)]


def plain(records: Sequence[Record]) -> str:
    return "".join(f"{record};\n" for record in records)


def everyone(n: int = 640) -> list[Record]:
    """36 people, last first, each walking and jogging."""
    return [record for user in range(36, 0, -1) for name in ("Walking", "Jogging") for record in stretch(user, name, n)]


def agree(found: Records, records: Sequence[Record]) -> None:
    np.testing.assert_array_equal(found.person, [record.user - 1 for record in records])
    np.testing.assert_array_equal(found.activity, [CLASSES.index(record.activity.lower()) for record in records])
    np.testing.assert_array_equal(found.time, [record.time for record in records])
    np.testing.assert_array_equal(found.values, np.array([record[3:] for record in records]).reshape(-1, 3))


A, B = Record(33, "Jogging", 49105962326000, -0.6946377, 12.680544, 0.50395286), Record(17, "Walking", 0, 1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "text",
    [
        f"{A};\n{B};\n",
        f"{A};{B};",
        f"{A};{B}",
        f"{A}\n{B}\n",
        f"{A},;\n{B},;\n",
        f"\n\n{A};\n\n ;;\n;{B};\n\n",
        f"{A};\r\n{B};\r\n",
        f"  {A} ; {B} , ;\n",
        f"{A};\n17,walking,,1.0,2.0,3.0;\n",
        f"{A};\n17,Walking,-5,1,2,3;\n",
        f"{A};\n17,Walking,99999999999999999999999,1,2,3;\n",
    ],
)
def test_two_records_however_they_are_written(text: str) -> None:
    found = read(text)
    agree(found, [A, B])
    assert not found.dropped


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("33,Jogging,49105962326000,-0.69,12.68,;", "without three coordinates"),
        ("33,Jogging,49105962326000,-0.69,,0.5;", "without three coordinates"),
        ("33,Jogging,49105962326000,-0.69,nan,0.5;", "without three coordinates"),
        ("33,Jogging,49105962326000,-0.69,1e300,0.5;", "without three coordinates"),
        ("33,Jogging,49105962326000,-0.69,inf,0.5;", "without three coordinates"),
        ("33,Jogging,49105962326000,-0.69,0.5;", "without six fields"),
        ("33,Jogging,49105962326000,-0.69,0.5,1.0,7;", "without six fields"),
        (f"{A},{A};", "without six fields"),
        ("33;", "without six fields"),
        ("0,Jogging,49105962326000,1,2,3;", "without a person from 1 to 36"),
        ("37,Jogging,49105962326000,1,2,3;", "without a person from 1 to 36"),
        (",Jogging,49105962326000,1,2,3;", "without a person from 1 to 36"),
        ("33,Swimming,49105962326000,1,2,3;", "without a known activity"),
        ("33,,49105962326000,1,2,3;", "without a known activity"),
    ],
)
def test_damaged_records_are_counted_by_kind(text: str, kind: str) -> None:
    found = read(f"{A};\n{text}\n{B};\n")
    agree(found, [A, B])
    assert found.dropped == {kind: 1}


RECORD = st.builds(
    Record,
    user=st.integers(1, 36),
    activity=st.sampled_from([name.capitalize() for name in CLASSES]),
    time=st.one_of(st.just(0), st.integers(1, 2**60)),
    x=st.floats(-20, 20),
    y=st.floats(-20, 20),
    z=st.floats(-20, 20),
)
TRAPS = ("33,Jogging,1,2,3,;", "33,Jogging,;", "33,Nothing,1,1,2,3;", "99,Jogging,1,1,2,3;")


@settings(max_examples=150, deadline=None)
@given(records=st.lists(RECORD, max_size=40), seed=st.integers(0, 2**32))
def test_any_records_survive_the_traps(records: list[Record], seed: int) -> None:
    chance = random.Random(seed)
    text, n_traps = "", 0
    for record in records:
        text += str(record) + chance.choice([";\n", ";", "\n", ",;\n", ",;", " ;\r\n", ";\n\n \n"])
        if chance.random() < 0.3:
            text, n_traps = text + chance.choice(TRAPS) + chance.choice(["\n", ""]), n_traps + 1
    found = read(text)
    agree(found, records)
    assert found.dropped.total() == n_traps


@given(
    pieces=st.lists(
        st.one_of(
            RECORD.map(lambda record: f"{record};"), st.text(alphabet="0123456789,;.-eE\nJoginfa_ \x00ÿ"), st.text()
        ),
        max_size=30,
    )
)
def test_no_text_breaks_the_reader(pieces: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "")
        path.write_bytes("".join(pieces).encode("utf-8", "surrogatepass"))
        found = read_records(path)
        assert (np.abs(found.values) <= 1e6).all()
        assert len(segment_breaks(found)) == len(found.time)
        with pytest.raises(UnreadableFile, match=r"no 128 records on end") as caught:
            build(Path(folder), silent)
        assert "\n" not in str(caught.value)


def starts_of(records: Sequence[Record]) -> list[int]:
    return np.flatnonzero(segment_breaks(read(plain(records)))).tolist()


def test_segments_end_where_person_activity_or_clock_change() -> None:
    usual = stretch(5, "Sitting", 10)
    later = usual[-1].time
    assert starts_of(usual) == []
    assert starts_of(usual + stretch(6, "Sitting", 3, start=later + STEP)) == [10]
    assert starts_of(usual + stretch(5, "Walking", 3, start=later + STEP)) == [10]
    assert starts_of(usual + stretch(5, "Sitting", 3, start=later - 1)) == [10]
    assert starts_of(usual + stretch(5, "Sitting", 3, start=later)) == []
    assert starts_of(usual + stretch(5, "Sitting", 3, start=later + 1_000_000_000)) == []
    assert starts_of(usual + stretch(5, "Sitting", 3, start=later + 1_000_000_001)) == [10]


def test_a_zero_timestamp_says_nothing() -> None:
    unknown = stretch(5, "Sitting", 40, start=0, step=0)
    usual = stretch(5, "Sitting", 10)
    later = usual[-1].time
    assert starts_of(unknown) == []
    assert starts_of(unknown + usual) == []
    assert starts_of(usual + unknown + stretch(5, "Sitting", 3, start=later + 41 * STEP)) == []
    assert starts_of(usual + unknown + stretch(5, "Sitting", 3, start=later + 1_000_000_000 + 40 * STEP + 1)) == [50]
    assert starts_of(usual + unknown + stretch(5, "Sitting", 3, start=later - 1)) == [50]
    # The clock of another person is not compared with.
    assert starts_of(usual + stretch(6, "Sitting", 5, start=0, step=0) + stretch(6, "Sitting", 5, start=1)) == [10]


def test_standardised_windows_are_not_scaled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "home"))
    raw = write(tmp_path / "raw", plain(everyone())).parent
    options = {"standardise": "adatime"}
    npz = prepare("wisdm", source=raw, options=options)
    card = read_card(npz)
    assert card["normalise"] == "adatime"
    assert "standard deviation 1 over the train windows" in card["rule"]
    before = npz.read_bytes()
    for rule in ("per_split", "domain"):
        with pytest.raises(InputError, match=r"normalise: expected 'none', because wisdm.npz was .* 'adatime'"):
            load("wisdm", normalise=rule)
        with pytest.raises(InputError, match=r"normalise: expected 'none', because the options scale .*\(adatime\)"):
            prepare("wisdm", source=raw, options=options, normalise=rule)
    assert npz.read_bytes() == before
    said: list[str] = []
    prepare("wisdm", source=raw, options=options, log=said.append)
    assert said == [f"wisdm: already prepared, {npz}"]
    assert read_card(prepare("wisdm", source=raw, normalise="per_split"))["normalise"] == "per_split"
    card = read_card(prepare("wisdm", source=raw))
    assert (card["normalise"], card["rule"]) == ("none", RECIPE.rule)
    assert RECIPE.rule.endswith("Values as the host has them.")
    load("wisdm", normalise="per_split")


def test_windows_of_a_whole_file(tmp_path: Path) -> None:
    records = everyone()
    write(tmp_path, plain(records).replace(";\n", ";", 5000))
    dataset, extras, notes, *_ = build(tmp_path, silent)
    assert dataset.X.shape == (36 * 10, 3, 128)
    assert dataset.domains == tuple(range(36))
    assert dataset.pairs == PUBLISHED["wisdm"]
    np.testing.assert_array_equal(dataset.X[:, 1, 0], (dataset.domain_ids + 1) / 2)
    np.testing.assert_array_equal(np.diff(dataset.X[:, 0], axis=1), 1)
    np.testing.assert_array_equal(dataset.X[:, 0, 0] % 128, 0)
    np.testing.assert_array_equal(dataset.split, np.tile([0] * 7 + [1] * 3, 36))
    for window, first in zip(dataset.X, extras["wisdm_record"], strict=True):
        np.testing.assert_array_equal(window[:, 0], np.float32(records[first][3:]))
    activities = {CLASSES.index(records[first].activity.lower()) for first in extras["wisdm_record"]}
    assert activities == set(dataset.y.tolist()) == {1, 5}
    assert "46,080 records count; dropped: none." in notes
    assert "72 segments; 0 records at their ends fill no window." in notes
    assert any("sitting 0 (59,939)" in note for note in notes)


def test_repeated_sessions_are_not_joined(tmp_path: Path) -> None:
    session = stretch(1, "Walking", 200)
    write(tmp_path, plain(session + stretch(2, "Walking", 200) + session + stretch(1, "Jogging", 128)))
    dataset, _, notes, *_ = build(tmp_path, silent)
    assert sorted(zip(dataset.domain_ids.tolist(), dataset.y.tolist(), strict=True)) == [(0, 1), (0, 5), (0, 5), (1, 5)]
    np.testing.assert_array_equal(dataset.X[:, 0, 0], 0)
    assert "4 segments; 216 records at their ends fill no window." in notes


def test_a_class_with_one_window_trains(tmp_path: Path) -> None:
    write(tmp_path, plain(stretch(1, "Walking", 1280) + stretch(1, "Sitting", 130)))
    part = build(tmp_path, silent).dataset.domain(0)
    assert (np.bincount(part.y_train).tolist(), len(part.y_test)) == ([0, 0, 1, 0, 0, 6], 4)


def test_standardised_like_adatime(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noisy = [record._replace(x=round(rng.normal(3, 5), 3), y=rng.normal(record.user, 2)) for record in everyone()]
    write(tmp_path, plain(noisy))
    raw, scaled = build(tmp_path, silent).dataset, build(tmp_path, silent, standardise="adatime").dataset
    np.testing.assert_array_equal(raw.split, scaled.split)
    for i in raw.domains:
        train, test = raw.domain(i).X_train.astype(np.float64), raw.domain(i).X_test
        mean, spread = train.mean(axis=0), train.std(axis=0)
        found = scaled.domain(i)
        np.testing.assert_allclose(found.X_train.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(found.X_train[:, :2].std(axis=0), 1, atol=1e-5)
        np.testing.assert_allclose(found.X_test[:, :2], ((test - mean) / np.maximum(spread, 1e-9))[:, :2], atol=1e-5)
        np.testing.assert_array_equal(found.X_test[:, 2], 0)  # a constant channel is centred and not divided
    with pytest.raises(InputError, match="standardise: expected one of 'none', 'adatime', got 'zscore'"):
        build(tmp_path, silent, standardise="zscore")


@pytest.mark.skipif(not (SHARED / "wisdm.npz").is_file(), reason=f"the shared prepared data are not at {SHARED}")
def test_adatimes_files_are_standardised_in_that_way() -> None:
    """Scaling them once more changes nothing."""
    adatime = load_prepared(SHARED / "wisdm.npz")
    np.testing.assert_allclose(standardised(adatime).X, adatime.X, atol=2e-5)
    tested = np.bincount(adatime.domain_ids[adatime.split == 1])
    assert {i: tested[i] for i in ADATIME_TEST_WINDOWS} == ADATIME_TEST_WINDOWS


def test_check_names_what_is_not_as_published(tmp_path: Path) -> None:
    write(tmp_path, plain(stretch(2, "Walking", 256)))
    people, classes, tested = check(build(tmp_path, silent).dataset)
    assert people.startswith("of 36 people published, these have no windows: 0, 2, 3, ")
    assert classes.startswith(
        "windows (in brackets what the host's records make at most): downstairs 0 (784), jogging "
    )
    assert classes.endswith(", walking 2 (3,315).")
    assert tested.startswith("test windows of a person (in brackets AdaTime's): 4: 0 (66), 11: 0 (76), ")
    assert tested.count("(") == 1 + len(ADATIME_TEST_WINDOWS)
    assert sum(RECORDS_PER_CLASS) == 1_098_207
    assert RECIPE.check is check


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=f"no {RAW_FILE} in it"):
        build(tmp_path, silent)
