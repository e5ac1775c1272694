"""PTB's headers and beats: who is in which class and group, damaged files, the published rule and the consensus."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.recipes.ptb_beats import (
    LEADS,
    LENGTH,
    PUBLISHED_PATIENTS,
    Header,
    age_group,
    agreement,
    consensus_beats,
    cut_beats,
    find_beats,
    patients_per_group,
    published_beats,
    r_peaks,
    read_header,
    read_headers,
    read_signals,
    rr_interval,
    selected,
    standardised,
)

RAW = Path(__file__).parents[3] / "shared" / "data" / "ptbdb_raw"
N_LEADS = 15
BEATS = np.arange(100, 4000, 200)


def all_alike(beats: np.ndarray = BEATS) -> list[np.ndarray]:
    return [beats.copy() for _ in range(N_LEADS)]


def ecg(seconds: float = 20, rate: float = 1.2, hz: int = 1000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A (time, 15) record of R and T waves with noise, and the times of its R peaks in seconds."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * hz)) / hz
    r = np.arange(0.5, seconds - 0.4, 1 / rate)
    wave = sum(np.exp(-(((t - at) / 0.012) ** 2)) + 0.2 * np.exp(-(((t - at - 0.25) / 0.05) ** 2)) for at in r)
    gains = rng.uniform(0.5, 2, N_LEADS)
    return wave[:, None] * gains + 0.01 * rng.standard_normal((len(t), N_LEADS)), r


def test_both_rules_agree_when_leads_do() -> None:
    for detector in ("published", "consensus"):
        beats = find_beats(all_alike(), detector)
        np.testing.assert_array_equal(beats.centres, BEATS)
        assert beats.peaks.shape == (len(BEATS), N_LEADS)
        assert agreement(beats) == 1


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match=r"detector: expected one of 'published', 'consensus', got 'best'"):
        find_beats(all_alike(), "best")


def test_published_rule_drifts_after_one_missed_beat_and_consensus_does_not() -> None:
    peaks = all_alike()
    for lead in range(8):  # a majority
        peaks[lead] = np.delete(BEATS, 5)
    published, consensus = published_beats(peaks), consensus_beats(peaks)
    np.testing.assert_array_equal(published.centres[:5], BEATS[:5])
    np.testing.assert_array_equal(published.centres[5:-1], BEATS[6:])  # beat 5 is lost
    assert published.centres[-1] == BEATS[-1]  # and the last is there twice
    assert agreement(published) == pytest.approx(5 / len(BEATS))
    np.testing.assert_array_equal(consensus.centres, np.delete(BEATS, 5))  # seven of fifteen are no majority
    assert agreement(consensus) == 1


def test_a_lead_that_misses_a_beat_costs_only_that_beat() -> None:
    peaks = all_alike()
    peaks[3] = np.delete(BEATS, 5)
    consensus = consensus_beats(peaks)
    np.testing.assert_array_equal(consensus.centres, BEATS)
    assert np.argwhere(np.isnan(consensus.peaks)).tolist() == [[5, 3]]
    assert agreement(consensus) == pytest.approx(1 - 1 / len(BEATS))
    assert agreement(published_beats(peaks)) == pytest.approx(5 / len(BEATS))


def test_published_centre_can_lie_between_two_beats() -> None:
    peaks = [BEATS, np.delete(BEATS, 0)]
    assert published_beats(peaks).centres[0] == (BEATS[0] + BEATS[1]) / 2


def test_leads_without_peaks_have_no_vote() -> None:
    peaks = [*[BEATS] * 5, *[np.empty(0, np.int64)] * 10]
    np.testing.assert_array_equal(consensus_beats(peaks).centres, BEATS)
    assert agreement(consensus_beats(peaks)) == 0


def test_nothing_to_find() -> None:
    silent = [np.empty(0, np.int64)] * N_LEADS
    assert np.isnan(rr_interval(silent))
    for detector in ("published", "consensus"):
        beats = find_beats(silent, detector)
        assert len(beats.centres) == 0
        assert np.isnan(agreement(beats))
        assert cut_beats(np.zeros((1000, N_LEADS)), beats.centres, float("nan")).shape == (0, N_LEADS, LENGTH)


@st.composite
def planted(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray]]:
    """Beats, and what leads see of them: each within 0.03 s; any beat missed by up to 3, and 3 leads with noise."""
    gaps = draw(st.lists(st.integers(100, 320), min_size=2, max_size=25))
    beats = np.cumsum([draw(st.integers(0, 300)), *gaps])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    seen = np.ones((N_LEADS, len(beats)), bool)
    for i in range(len(beats)):
        seen[rng.choice(N_LEADS, draw(st.integers(0, 3)), replace=False), i] = False
    peaks = [np.sort(np.maximum(beats + rng.integers(-7, 8, len(beats)), 0)[row]) for row in seen]
    for lead in rng.choice(N_LEADS, draw(st.integers(0, 3)), replace=False):
        noise = draw(st.lists(st.integers(0, int(beats[-1]) + 200), max_size=12))
        peaks[lead] = np.union1d(peaks[lead], np.array(noise, np.int64))
    return beats, peaks


@settings(max_examples=150, deadline=None)
@given(planted())
def test_consensus_finds_each_planted_beat_once(case: tuple[np.ndarray, list[np.ndarray]]) -> None:
    beats, peaks = case
    found = consensus_beats(peaks)
    assert len(found.centres) == len(beats)
    assert np.abs(found.centres - beats).max() <= 7
    assert (np.isfinite(found.peaks).sum(axis=1) > N_LEADS // 2).all()


@settings(max_examples=50, deadline=None)
@given(planted(), st.integers(0, 2**32 - 1))
def test_consensus_does_not_depend_on_the_order_of_leads(case: tuple[np.ndarray, list[np.ndarray]], seed: int) -> None:
    _, peaks = case
    order = np.random.default_rng(seed).permutation(N_LEADS)
    np.testing.assert_array_equal(
        consensus_beats(peaks).centres, consensus_beats([peaks[lead] for lead in order]).centres
    )


def test_standardised_is_250_hz_with_deviation_1() -> None:
    record, _ = ecg(seconds=8.003)
    record[:, 4] = 7
    signals = standardised(record)
    assert signals.shape == (2000, N_LEADS)
    np.testing.assert_allclose(signals.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.delete(signals.std(axis=0), 4), 1)
    assert (signals[:, 4] == 0).all()


def test_standardised_keeps_both_ends_and_a_line_straight() -> None:
    line = np.arange(1000.0)[:, None]
    signals = standardised(line)[:, 0]
    np.testing.assert_allclose(np.diff(signals), np.diff(signals)[0])
    assert signals[-1] == pytest.approx(-signals[0])


def test_windows_are_centred_clipped_and_filled_with_zeros() -> None:
    signals = np.arange(1.0, 1001)[:, None] * np.ones(N_LEADS)
    first, middle, last = cut_beats(signals, np.array([30.0, 500.5, 980.0]), rr=201.0)
    assert middle.shape == (N_LEADS, LENGTH)
    np.testing.assert_array_equal(middle[0, 50:250], np.arange(401, 601))
    assert (middle[:, :50] == 0).all()
    assert (middle[:, 250:] == 0).all()
    np.testing.assert_array_equal(first[0][first[0] != 0], np.arange(1, 131))
    assert first[0, 84] == 0 != first[0, 85]  # floor of half the zeros on the left
    np.testing.assert_array_equal(last[0][last[0] != 0], np.arange(881, 1001))


def test_the_longest_interval_fills_the_window() -> None:
    assert (cut_beats(np.ones((1000, 1)), np.array([500.0]), rr=300.0) == 1).all()


def test_rr_interval_is_a_median_of_medians() -> None:
    assert rr_interval(all_alike()) == 200
    spoilt = all_alike()
    spoilt[0], spoilt[1], spoilt[2] = np.array([5]), np.array([5, 900]), np.empty(0, np.int64)
    assert rr_interval(spoilt) == 200


def test_peaks_of_a_made_up_heart() -> None:
    pytest.importorskip("neurokit2", reason='neurokit2 is not installed: pip install "transpl[ecg]"')
    record, r = ecg()
    record[:, 2] = 0
    peaks = r_peaks(standardised(record))
    assert len(peaks[2]) == 0
    for detector in ("published", "consensus"):
        centres = find_beats(peaks, detector).centres
        assert len(centres) == len(r)
        assert np.abs(centres / 250 - r).max() < 0.02


def test_too_short_a_record_has_no_peaks() -> None:
    pytest.importorskip("neurokit2", reason='neurokit2 is not installed: pip install "transpl[ecg]"')
    assert [len(lead) for lead in r_peaks(np.random.default_rng(0).standard_normal((249, 3)))] == [0, 0, 0]
    r_peaks(np.random.default_rng(0).standard_normal((250, 3)))


def test_without_neurokit_the_pip_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "neurokit2", None)
    with pytest.raises(InputError, match=r'pip install "transpl\[ecg\]"') as caught:
        r_peaks(np.zeros((1000, 15)))
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not RAW.is_dir(), reason=f"the raw records are not at {RAW}")
def test_leads_of_real_records_agree_more_by_consensus() -> None:
    pytest.importorskip("wfdb", reason='wfdb is not installed: pip install "transpl[ecg]"')
    pytest.importorskip("neurokit2", reason='neurokit2 is not installed: pip install "transpl[ecg]"')
    published, consensus = [], []
    for header in read_headers(RAW):
        peaks = r_peaks(standardised(read_signals(header)))
        published.append(published_beats(peaks))
        consensus.append(consensus_beats(peaks))
        away = np.abs(consensus[-1].centres[:, None] - published[-1].centres).min(axis=1)
        assert away.max() <= 5  # both find the same beats, but
        assert 0 <= len(published[-1].centres) - len(consensus[-1].centres) <= 1  # one is cut twice or off
        assert np.diff(consensus[-1].centres).min() > 0.5 * rr_interval(peaks)
    assert [share_of(beats) for beats in (published, consensus)] == pytest.approx([0.496, 0.874], abs=0.01)
    assert all(agreement(c) >= agreement(p) for p, c in zip(published, consensus, strict=True))


def share_of(records: list[Any]) -> float:
    return sum(agreement(beats) * len(beats.centres) for beats in records) / sum(len(b.centres) for b in records)


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
    with pytest.raises(UnreadableFile, match="no such file"):
        read_header(tmp_path / "patient007" / "absent.hea")


def test_headers_are_found_anywhere_but_only_once(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "er", text(), "patient010")
    write(tmp_path, text("s0002_re"), "patient002", "s0002_re")
    assert [header.patient for header in read_headers(tmp_path)] == [2, 10]
    write(tmp_path / "copy", text(), "patient010")
    with pytest.raises(UnreadableFile, match="Keep only one copy"):
        read_headers(tmp_path)
