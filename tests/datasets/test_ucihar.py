"""UCI HAR from its text files: AdaTime's windows bit for bit, and damage that is named by file and line."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile
from transpl.datasets.dataset import Dataset
from transpl.datasets.pairs import PUBLISHED
from transpl.datasets.prepared import load_prepared
from transpl.datasets.recipe import Built
from transpl.datasets.recipes.ucihar import CHANNELS, CLASSES, RECIPE, WINDOWS_PER_PERSON, build, check

SHARED = Path(__file__).parents[3] / "shared" / "data"
ORACLE = SHARED / "ucihar.npz"
N_HOST_TRAIN = 7352


def silent(_: str) -> None:
    pass


def write_numbers(path: Path, rows: NDArray[Any]) -> None:
    """Write lines of numbers with blanks between, with as many digits as float32 needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({str(i): np.ascontiguousarray(column) for i, column in enumerate(rows.T)})
    options = pa.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    pa.csv.write_csv(table, path, options)


def render(root: Path, part: str, X: NDArray[np.float32], y: NDArray[Any], person: NDArray[Any]) -> None:
    folder = root / "UCI HAR Dataset" / part
    write_numbers(folder / f"y_{part}.txt", (y + 1)[:, None])
    write_numbers(folder / f"subject_{part}.txt", person[:, None])
    files = [folder / "Inertial Signals" / f"{channel}_{part}.txt" for channel in CHANNELS]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_numbers, files, X.transpose(1, 0, 2)))


def small(root: Path, each: int = 10) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Thirty people with `each` windows, the first twenty in the host's train part."""
    n = 30 * each
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, 9, 128)) * 10.0 ** rng.integers(-6, 6, (n, 9, 1))).astype(np.float32)
    y = np.arange(n) // 2 % 5
    person = np.repeat(np.arange(1, 31), each)
    first = 20 * each
    render(root, "train", X[:first], y[:first], person[:first])
    render(root, "test", X[first:], y[first:], person[first:])
    return X, y, person


@pytest.mark.skipif(not ORACLE.is_file(), reason=f"the shared prepared data are not at {SHARED}")
def test_adatimes_windows_bit_for_bit(tmp_path: Path) -> None:
    oracle = load_prepared(ORACLE)
    with np.load(ORACLE) as file:
        uci_row = file["uci_row"]
    host = np.argsort(uci_row)
    for part, rows in (("train", host[:N_HOST_TRAIN]), ("test", host[N_HOST_TRAIN:])):
        render(tmp_path, part, oracle.X[rows], oracle.y[rows], oracle.domain_ids[rows])
    built = build(tmp_path, silent)
    for field in ("X", "y", "domain_ids", "split"):
        np.testing.assert_array_equal(getattr(built.dataset, field), getattr(oracle, field))
    np.testing.assert_array_equal(built.extras["uci_row"], uci_row)
    for field in ("class_names", "channel_names", "pairs"):
        assert getattr(built.dataset, field) == getattr(oracle, field)
    assert check(built.dataset) == []
    check_published_facts(built.dataset)


def check_published_facts(dataset: Dataset) -> None:
    per_class = {2: (41, 34, 33, 32, 38, 33), 6: (40, 36, 33, 38, 40, 40), 11: (41, 38, 32, 37, 33, 40)}
    for user, counts in per_class.items():
        part = dataset.domain(user)
        assert tuple(np.bincount(part.y_train)) == counts
        assert 0.78 < part.X_train[:, 6].mean() < 0.88  # gravity, in g


def test_a_small_copy_of_the_layout(tmp_path: Path) -> None:
    X, y, person = small(tmp_path)
    said: list[str] = []
    dataset, extras, notes, *_ = built = build(tmp_path, said.append)
    assert isinstance(built, Built)
    rows = extras["uci_row"]
    np.testing.assert_array_equal(np.sort(rows), np.arange(300))
    np.testing.assert_array_equal(dataset.X, X[rows])
    np.testing.assert_array_equal(dataset.y, y[rows])
    np.testing.assert_array_equal(dataset.domain_ids, person[rows])
    np.testing.assert_array_equal(dataset.split, np.tile([0] * 7 + [1] * 3, 30))
    assert (dataset.class_names, dataset.channel_names, dataset.pairs) == (CLASSES, CHANNELS, PUBLISHED["ucihar"])
    assert len(said) == 2
    assert notes == ()
    complaints = check(dataset)
    assert "Person 1: 10 windows, published are 347." in complaints
    assert complaints[-1] == "300 windows, published are 10,299."


def test_the_published_counts_are_consistent() -> None:
    assert sum(WINDOWS_PER_PERSON) == 10_299
    assert len(WINDOWS_PER_PERSON) == 30
    assert RECIPE.build is build
    assert (RECIPE.name, RECIPE.licence) == ("ucihar", "CC BY 4.0")


def test_a_folder_that_lacks_people_builds_and_is_reported(tmp_path: Path) -> None:
    X, y, person = small(tmp_path)
    render(tmp_path, "test", X[200:250], y[200:250], person[200:250])
    dataset = build(tmp_path, silent).dataset
    assert dataset.domains == tuple(range(1, 26))
    assert all(max(pair) <= 25 for pair in dataset.pairs)
    assert "Person 30: 0 windows, published are 383." in check(dataset)


def damaged(root: Path, file: str, line: int | None, text: str) -> str:
    """Replace a line of a sound copy (None: the whole file) and return the complaint."""
    small(root)
    path = next(root.rglob(file))
    lines = path.read_text().split("\n")
    path.write_text(text if line is None else "\n".join([*lines[: line - 1], text, *lines[line:]]))
    with pytest.raises(UnreadableFile) as caught:
        build(root, silent)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message


NUMBERS = " ".join(["0.5"] * 127)


@pytest.mark.parametrize(
    ("file", "line", "text", "complaint"),
    [
        ("body_acc_x_train.txt", 7, NUMBERS, "line 7: expected 128 numbers, got 127"),
        ("body_acc_x_train.txt", 7, f"{NUMBERS} 1 2", "line 7: expected 128 numbers, got 129"),
        ("total_acc_z_test.txt", 100, f"{NUMBERS} zero", "line 100: expected numbers, got 'zero'"),
        ("total_acc_z_test.txt", 1, f"{NUMBERS} nan", "line 1: expected numbers, got 'nan'"),
        ("total_acc_z_test.txt", 3, f"1e39 {NUMBERS}", "line 3: expected numbers, got '1e39'"),
        ("body_gyro_y_test.txt", 2, f"{NUMBERS} \x00\xff", "line 2: expected numbers"),
        ("body_gyro_y_test.txt", 2, "", "99 lines, but y_test.txt has 100"),
        ("body_gyro_y_test.txt", None, "", "the file is empty"),
        ("body_gyro_y_test.txt", None, f"{NUMBERS}\n{NUMBERS}\n", "line 1: expected 128 numbers, got 127"),
        ("y_test.txt", 5, "7", "line 5: expected a whole number from 1 to 6, got '7'"),
        ("y_test.txt", 5, "1.5", "line 5: expected a whole number from 1 to 6, got '1.5'"),
        ("y_test.txt", 5, "walking", "line 5: expected numbers, got 'walking'"),
        ("subject_train.txt", 200, "31", "line 200: expected a whole number from 1 to 30, got '31'"),
        ("subject_train.txt", 200, "", "199 lines, but y_train.txt has 200"),
    ],
)
def test_damage_is_named_by_file_and_line(tmp_path: Path, file: str, line: int, text: str, complaint: str) -> None:
    assert complaint in damaged(tmp_path, file, line, text)


def test_missing_and_doubled_files(tmp_path: Path) -> None:
    small(tmp_path)
    path = next(tmp_path.rglob("body_acc_z_test.txt"))
    path.rename(path.with_suffix(".bak"))
    with pytest.raises(UnreadableFile, match=r"no body_acc_z_test\.txt in it"):
        build(tmp_path, silent)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "y_train.txt").write_text("1\n")
    with pytest.raises(UnreadableFile, match=r"y_train\.txt is in several places"):
        build(tmp_path, silent)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_give_an_error_or_sound_windows(tmp_path: Path, data: st.DataObject) -> None:
    if not (tmp_path / "UCI HAR Dataset").exists():
        small(tmp_path, each=2)
    path = next(tmp_path.rglob(data.draw(st.sampled_from(["y_test.txt", "subject_test.txt", "body_acc_x_test.txt"]))))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, min(len(whole) - 1, 3000)))
    path.write_bytes(whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 3)) :])
    with contextlib.suppress(UnreadableFile):
        assert np.isfinite(build(tmp_path, silent).dataset.X).all()
    path.write_bytes(whole)
