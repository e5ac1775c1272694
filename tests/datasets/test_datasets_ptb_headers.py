"""PTB headers: who is in which class and age group, on all 549 of them; damaged ones get one line."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.recipes.ptb_beats import (
    LEADS,
    PUBLISHED_PATIENTS,
    Header,
    age_group,
    patients_per_group,
    read_header,
    read_headers,
    selected,
)

HEADERS = Path(__file__).parents[3] / "shared" / "data" / "ptbdb_headers.tgz"
TOO_SLOW = {273, 277}  # patients whose only record has a median RR interval above 1.2 s
shared = pytest.mark.skipif(not HEADERS.is_file(), reason=f"the shared copy of the headers is not at {HEADERS}")


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> list[Header]:
    folder = tmp_path_factory.mktemp("ptbdb")
    with tarfile.open(HEADERS) as archive:
        archive.extractall(folder, filter="data")
    return read_headers(folder)


@shared
def test_the_host_counts(headers: list[Header]) -> None:
    assert len(headers) == 549
    assert len({header.patient for header in headers}) == 290
    assert not {124, 132, 134, 161} & {header.patient for header in headers}
    assert len({header.patient for header in headers if header.age is None}) == 15
    assert min(header.age for header in headers if header.age is not None) == 17
    assert max(header.age for header in headers if header.age is not None) == 87


@shared
def test_two_reasons_for_admission_are_selected(headers: list[Header]) -> None:
    chosen = selected(headers)
    assert len(chosen) == 448
    assert len({header.patient for header in chosen}) == 200
    assert [sum(header.label == label for header in chosen) for label in (0, 1)] == [80, 368]


@shared
def test_patients_per_group_are_the_papers(headers: list[Header]) -> None:
    chosen = selected(headers)
    assert patients_per_group(chosen) == {**PUBLISHED_PATIENTS, 4: (6, 48)}
    fast_enough = [header for header in chosen if header.patient not in TOO_SLOW]
    assert patients_per_group(fast_enough) == {1: (11, 4), 2: (6, 25), 3: (9, 43), 4: (6, 47)} == PUBLISHED_PATIENTS


@shared
def test_groups_closed_on_the_left_would_not_give_the_papers_table(headers: list[Header]) -> None:
    older = [header._replace(age=header.age + 1) for header in selected(headers) if header.age is not None]
    found = patients_per_group(header for header in older if header.patient not in TOO_SLOW)
    assert found != PUBLISHED_PATIENTS


@shared
def test_a_patient_is_in_one_class_and_one_group(headers: list[Header]) -> None:
    assert len({(h.patient, h.label, h.group) for h in headers}) == len({h.patient for h in headers})


@pytest.mark.parametrize(
    ("age", "group"), [(30, None), (31, 1), (40, 1), (41, 2), (50, 2), (51, 3), (60, 3), (61, 4), (70, 4), (71, None)]
)
def test_edges_of_the_groups(age: int, group: int | None) -> None:
    assert age_group(age) == group


@given(st.integers(0, 120))
def test_groups_are_decades_closed_on_the_right(age: int) -> None:
    group = age_group(age)
    assert (group is not None) == (30 < age <= 70)
    if group is not None:
        assert 10 * group + 20 < age <= 10 * group + 30


def text(record: str = "s0001_re", age: str = "52", reason: str = "Healthy control") -> str:
    leads = [f"{record}.{'dat' if i < 12 else 'xyz'} 16 2000 16 0 0 0 0 {lead}" for i, lead in enumerate(LEADS)]
    comments = [f"# age: {age}", "# sex: female", "# Diagnose:", f"# Reason for admission: {reason}"]
    return "\n".join([f"{record} 15 1000 32000", *leads, "", *comments, ""])


def write(folder: Path, content: str, patient: str = "patient007", record: str = "s0001_re") -> Path:
    path = folder / patient / f"{record}.hea"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="latin-1")
    return path


def test_what_a_header_says(tmp_path: Path) -> None:
    header = read_header(write(tmp_path, text()))
    assert (header.patient, header.record, header.samples) == (7, "s0001_re", 32000)
    assert (header.age, header.reason) == (52, "Healthy control")
    assert (header.label, header.group) == (0, 3)


@pytest.mark.parametrize("age", ["n/a", "N/A", ""])
def test_an_unknown_age_is_no_group(tmp_path: Path, age: str) -> None:
    header = read_header(write(tmp_path, text(age=age)))
    assert header.age is None
    assert header.group is None


def test_another_reason_is_no_class(tmp_path: Path) -> None:
    assert read_header(write(tmp_path, text(reason="Myocarditis"))).label is None
    assert read_header(write(tmp_path, text(reason="Myocardial infarction"))).label == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "not the header of s0001_re"),
        ("\x00\xff\x80 garbage", "not the header of s0001_re"),
        (text("s0002_re"), "not the header of s0001_re"),
        (text().replace("15 1000", "12 1000"), "15 leads"),
        (text().replace("15 1000", "15 500"), "at 1000 Hz, got 15 at 500"),
        (text().replace(" vz", " vq"), "15 leads"),
        (text().replace("# age: 52\n", ""), "no comment '# age: ...'"),
        (text().replace("# Reason for admission", "# Reason"), "no comment '# Reason for admission"),
        (text(age="old"), "age 'old' is neither years nor n/a"),
        (text(age="1999"), "age '1999'"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, content: str, problem: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(UnreadableFile) as caught:
        read_header(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_read_or_refused_in_one_line(tmp_path: Path, data: st.DataObject) -> None:
    whole = text().encode()
    at, byte = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 255))
    damaged = data.draw(st.sampled_from([whole[:at], whole[:at] + bytes([byte]) + whole[at + 1 :]]))
    path = write(tmp_path, damaged.decode("latin-1"))
    try:
        assert read_header(path).patient == 7
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no patientNNN"):
        read_headers(tmp_path)
    with pytest.raises(InputError, match="expected a folder named patientNNN, got 'someone'"):
        read_header(write(tmp_path, text(), patient="someone"))
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_header(tmp_path / "patient007" / "absent.hea")


def test_headers_are_found_anywhere_but_only_once(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "er", text(), "patient010")
    write(tmp_path, text("s0002_re"), "patient002", "s0002_re")
    assert [header.patient for header in read_headers(tmp_path)] == [2, 10]
    write(tmp_path / "copy", text(), "patient010")
    with pytest.raises(UnreadableFile, match="Keep only one copy"):
        read_headers(tmp_path)
