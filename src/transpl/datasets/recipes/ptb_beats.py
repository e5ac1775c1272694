"""From the files of the PTB Diagnostic ECG Database to heart beats: headers, signals, R peaks, beats, windows.

Records     `patientNNN/sXXXX.hea` is plain text: `name leads Hz samples`, a line per lead, then comments with age and
            reason for admission. 549 records of 290 patients, 15 leads at 1000 Hz; 15 patients have no age ("n/a").
            The signals, 12 leads in sXXXX.dat and Frank's three in sXXXX.xyz, are read by wfdb, which does not compare
            the checksums that the header gives; `read_signals` does.
Classes     Healthy control (0) and Myocardial infarction (1), by the exact reason for admission: 448 records of 200
            patients.
Domains     age groups, closed on the right: (30, 40] is 1, (40, 50] is 2, (50, 60] is 3, (60, 70] is 4. The paper
            prints decades without saying where 40, 50 and 60 belong; only these edges give its table of patients. That
            table excludes records with a slow heart (see below), and so two of the 200 patients, 273 and 277; without
            273 the oldest group has the printed 47 infarctions instead of 48.
Published   COMET's steps (Wang et al. 2023), whose beats TransPL uses. Linear interpolation from 1000 to 250 Hz;
            z-score of each lead over the record; R peaks of each lead by neurokit2. The record's RR interval is the
            median over leads of their median intervals; records with one above 300 samples (1.2 s) are left out,
            because a beat must fit the window. Beat i lies at the median over leads of *their i-th peak*; its window
            reaches int(RR / 2) to both sides, is clipped to the record, and is padded with zeros to 300, half on each
            side.
The flaw    Leads are counted separately. A lead that misses a beat, or takes noise for one, is a beat off from there
            to the end of the record. As long as most leads are in step, the median still falls on a beat. Otherwise it
            jumps to a neighbour, and a beat is cut twice or left out; over an even number of leads it can fall between
            two. The last beats are those of the leads that counted most.
Consensus   Peaks are matched by time instead. At any moment a lead has a vote if one of its peaks is at most 0.1 s
            away. A beat is a moment of most votes, and needs those of more than half of the leads that have peaks at
            all; of two that are less than 0.3 s apart, the one with more votes stays. It lies at the median of the
            voting leads' peaks. A lead's mistake costs its vote for one beat only, and stray peaks of a few leads never
            make a majority. RR interval, selection of records and windows are as published; only the centres differ.
Measured    On 14 records, all 15 leads have their peak within 0.2 s of the centre in 50 % of the published beats and
            87 % of the consensus beats; in the rest of the latter, some lead does not see the beat. Yet the median
            forgives almost all of it: of the 1,560 published beats, 3 are cut twice and 2 are guesses of a few leads
            at the end of a record; the other 1,555 are the consensus beats, at most 0.02 s off.
            `python -m benchmarks.ptb_detectors` repeats the measurement.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, invalid, unreadable_file
from transpl._utils.files import third_party
from transpl._utils.locks import process_state
from transpl.datasets.recipe import import_extra
from transpl.windows import evenly_spaced

Floats = NDArray[np.float64]
Peaks = Sequence[NDArray[np.int64]]  # the R peaks of each lead, in samples

CLASSES = ("healthy_control", "myocardial_infarction")
LEADS = ("i", "ii", "iii", "avr", "avl", "avf", "v1", "v2", "v3", "v4", "v5", "v6", "vx", "vy", "vz")
DOMAINS = (1, 2, 3, 4)
PUBLISHED_PATIENTS = {1: (11, 4), 2: (6, 25), 3: (9, 43), 4: (6, 47)}  # healthy, infarction
HZ, BEAT_HZ = 1000, 250  # of the records and of the beats
LENGTH = 300
MAX_RR = 300  # samples at 250 Hz
DETECTORS = ("published", "consensus")

_LABELS = {"Healthy control": 0, "Myocardial infarction": 1}
_MAX_AGE = 120
_FOLDER = re.compile(r"patient(\d{1,6})")
_RECORD_LINE = re.compile(r"(\S+) +(\d{1,6}) +(\d{1,9}) +(\d{1,12})")
_LEAD_LINE = re.compile(r"(\S+) .* (\S+)")
_COMMENT = re.compile(r"#\s*([^:]+?)\s*:\s*(.*?)\s*")
_FETCH_HEADER = "Fetch this file again from physionet.org/files/ptbdb/1.0.0."
_FETCH_SIGNALS = "Fetch its .dat and .xyz again from physionet.org/files/ptbdb/1.0.0."
_AGREE = BEAT_HZ // 5  # 0.2 s
_VOTE = BEAT_HZ // 10  # 0.1 s
_REFRACTORY = 3 * BEAT_HZ // 10  # 0.3 s; the heart cannot beat faster, nor does neurokit2 look
_MIN_SAMPLES = BEAT_HZ  # neurokit2's filters need about a second


class Header(NamedTuple):
    """One record, as its header describes it."""

    path: Path
    patient: int
    record: str
    samples: int
    age: int | None
    reason: str

    @property
    def label(self) -> int | None:
        """The class index; None for any other reason for admission."""
        return _LABELS.get(self.reason)

    @property
    def group(self) -> int | None:
        """The domain; None without an age or outside the groups."""
        return None if self.age is None else age_group(self.age)


def age_group(age: int) -> int | None:
    """Return 1 for ages in (30, 40], up to 4 for (60, 70]; None for others."""
    group = (age - 1) // 10 - 2
    return group if group in DOMAINS else None


def read_headers(folder: Path) -> list[Header]:
    """Read every patientNNN/*.hea in or below `folder`, ordered by patient and record."""
    paths = [path for path in folder.rglob("*.hea") if _FOLDER.fullmatch(path.parent.name)]
    if not paths:
        raise unreadable_file(folder, problem="no patientNNN/*.hea in it", advice="Unpack the whole archive there.")
    headers = sorted(map(read_header, paths), key=lambda header: (header.patient, header.record, header.path))
    for one, other in pairwise(headers):
        if one.record == other.record:
            problem = f"{one.record}.hea is also in {one.path.parent}"
            raise unreadable_file(other.path, problem=problem, advice="Keep only one copy.")
    return headers


def read_header(path: Path) -> Header:
    """Read one header."""
    with third_party(path, "cannot be read", "Check its permissions."):
        lines = path.read_text(encoding="latin-1").splitlines()
    folder = _FOLDER.fullmatch(path.parent.name)
    if folder is None:
        advice = "Keep the folders of the archive; they say which patient a record is of."
        raise invalid(str(path), expected="a folder named patientNNN", got=repr(path.parent.name), advice=advice)

    first = _RECORD_LINE.match(lines[0]) if lines else None
    if first is None or first[1] != path.stem:
        problem = f"not the header of {path.stem} (its first line should be '{path.stem} {len(LEADS)} {HZ} samples')"
        raise unreadable_file(path, problem=problem, advice=_FETCH_HEADER)
    leads = tuple(match[2] for match in map(_LEAD_LINE.fullmatch, lines[1 : 1 + len(LEADS)]) if match)
    if (int(first[2]), int(first[3])) != (len(LEADS), HZ) or leads != LEADS:
        problem = f"expected the {len(LEADS)} leads {LEADS[0]}..{LEADS[-1]} at {HZ} Hz, got {len(leads)} at {first[3]}"
        raise unreadable_file(path, problem=problem, advice=_FETCH_HEADER)

    comments = {match[1]: match[2] for match in map(_COMMENT.fullmatch, lines) if match}
    for name in ("age", "Reason for admission"):
        if name not in comments:
            raise unreadable_file(path, problem=f"no comment '# {name}: ...'", advice=_FETCH_HEADER)
    age = comments["age"]
    if age.lower() not in ("", "n/a") and (not re.fullmatch(r"[0-9]{1,3}", age) or int(age) > _MAX_AGE):
        raise unreadable_file(path, problem=f"age {age[:20]!r} is neither years nor n/a", advice=_FETCH_HEADER)
    return Header(
        path=path,
        patient=int(folder[1]),
        record=path.stem,
        samples=int(first[4]),
        age=int(age) if age.isdecimal() else None,
        reason=comments["Reason for admission"],
    )


def selected(headers: Iterable[Header]) -> list[Header]:
    """Return the records of healthy controls and of infarctions."""
    return [header for header in headers if header.label is not None]


def patients_per_group(headers: Iterable[Header]) -> dict[int, tuple[int, int]]:
    """Count the patients of each age group: (healthy, infarction)."""
    patients = {(header.group, header.label, header.patient) for header in headers}
    keys = [(group, label) for group, label, _ in patients]
    return {group: (keys.count((group, 0)), keys.count((group, 1))) for group in DOMAINS}


def missing_file(header: Header) -> Path | None:
    """Return the first signal file that should be beside the header and is not."""
    paths = [header.path.with_suffix(suffix) for suffix in (".dat", ".xyz")]
    return next((path for path in paths if not path.is_file()), None)


def read_signals(header: Header) -> Floats:
    """Return the (time, leads) signals in mV; files that are absent, short or altered are refused."""
    wfdb = import_extra("wfdb", "reading PTB's records", "ecg")
    if missing := missing_file(header):
        advice = f"It belongs beside {header.path.name}. {_FETCH_SIGNALS}"
        raise unreadable_file(missing, problem="no such file", advice=advice)
    with third_party(header.path, "its signals cannot be read", _FETCH_SIGNALS):
        record = wfdb.rdrecord(str(header.path.with_suffix("")), physical=False)
        # The checksum is the sum of a lead's samples, modulo 2^16.
        intact = (np.subtract(record.calc_checksum(), record.checksum) % (1 << 16) == 0).all()
        signals = np.asarray(record.dac(), dtype=np.float64)
    if not intact or signals.shape != (header.samples, len(LEADS)) or not np.isfinite(signals).all():
        problem = "its signals do not have the checksums it gives"
        raise unreadable_file(header.path, problem=problem, advice=_FETCH_SIGNALS)
    return signals


def beats_of(header: Header, detector: str, most: int | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cut the beats of a record: windows (n, leads, 300) and their numbers in the record.

    `most` limits them to so many, evenly spread. A heart too slow for the window gives none.
    """
    signals = standardised(read_signals(header))
    peaks = r_peaks(signals)
    rr = rr_interval(peaks)
    centres = find_beats(peaks, detector).centres if rr <= MAX_RR else np.empty(0)
    numbers = evenly_spaced(len(centres), len(centres) if most is None else most)
    return cut_beats(signals, centres[numbers], rr), numbers


def standardised(record: NDArray[Any]) -> Floats:
    """Take a (time, leads) record at 1000 Hz to 250 Hz, each lead with mean 0 and deviation 1 (a flat lead: 0)."""
    before, after = len(record), int(len(record) / HZ * BEAT_HZ)
    moments = np.linspace(0, before - 1, after)  # both ends are kept, so the step is a little more than 4
    values = np.stack([np.interp(moments, np.arange(before), lead) for lead in record.T], axis=1)
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def r_peaks(signals: Floats) -> list[NDArray[np.int64]]:
    """Find the R peaks of each lead of a (time, leads) record at 250 Hz; a lead may have none."""
    nk = import_extra("neurokit2", "finding R peaks", "ecg")
    if len(signals) < _MIN_SAMPLES:
        return [np.empty(0, np.int64) for _ in signals.T]
    peaks = []
    with process_state, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lead in signals.T:
            cleaned = nk.ecg_clean(np.ascontiguousarray(lead), sampling_rate=BEAT_HZ, method="neurokit")
            _, found = nk.ecg_peaks(cleaned, sampling_rate=BEAT_HZ, method="neurokit", correct_artifacts=False)
            peaks.append(np.asarray(found["ECG_R_Peaks"], dtype=np.int64))
    return peaks


def rr_interval(peaks: Peaks) -> float:
    """Return the median over leads of their median interval in samples; NaN if no lead has two peaks."""
    medians = [float(np.median(np.diff(lead))) for lead in peaks if len(lead) > 1]
    return float(np.median(medians)) if medians else float("nan")


class Beats(NamedTuple):
    """The beats of a record, in samples at 250 Hz."""

    centres: Floats  # (n,)
    peaks: Floats  # (n, leads), the R peak that each lead contributes; NaN where it has none


def find_beats(peaks: Peaks, detector: str = "published") -> Beats:
    """Find beats from the leads' peaks by the rule `detector`: "published" or "consensus"."""
    check_choice("detector", detector, DETECTORS)
    return published_beats(peaks) if detector == "published" else consensus_beats(peaks)


def published_beats(peaks: Peaks) -> Beats:
    """Put beat i at the median over leads of their i-th peak, which drifts once a lead misses or invents a beat."""
    n = max(map(len, peaks), default=0)
    paired = np.full((n, len(peaks)), np.nan)
    for lead, found in enumerate(peaks):
        paired[: len(found), lead] = found
    return Beats(np.nanmedian(paired, axis=1) if n else np.empty(0), paired)


def consensus_beats(peaks: Peaks) -> Beats:
    """Put a beat wherever more than half of the leads have a peak within 0.1 s, at the median of those peaks."""
    moments = _majority_moments(peaks)
    nearest = np.stack([_nearest(lead, moments) for lead in peaks], axis=1)
    voting = np.where(np.abs(nearest - moments[:, None]) <= _VOTE, nearest, np.nan)
    centres = np.nanmedian(voting, axis=1) if len(moments) else np.empty(0)
    return Beats(centres, np.where(np.abs(nearest - centres[:, None]) <= _AGREE, nearest, np.nan))


def agreement(beats: Beats) -> float:
    """Return the share of beats for which the peaks of all leads are within 0.2 s of the centre."""
    near = np.abs(beats.peaks - beats.centres[:, None]) <= _AGREE  # False where a lead has none
    return float(near.all(axis=1).mean()) if len(near) else float("nan")


def cut_beats(signals: Floats, centres: Floats, rr: float) -> NDArray[np.float32]:
    """Cut int(rr / 2) samples to both sides of each centre, padded with zeros: (n, leads, 300).

    As published, the padding is halved even if the record's end clips a window on one side, so the R peak of the first
    and last beat may be off the middle.
    """
    half = int(rr / 2) if len(centres) else 0  # without beats the interval may be NaN
    windows = np.zeros((len(centres), signals.shape[1], LENGTH), np.float32)
    for window, centre in zip(windows, centres.astype(np.int64), strict=True):
        beat = signals[max(centre - half, 0) : centre + half].T
        left = (LENGTH - beat.shape[1]) // 2
        window[:, left : left + beat.shape[1]] = beat
    return windows


def _majority_moments(peaks: Peaks) -> NDArray[np.int64]:
    length = 1 + max((int(lead[-1]) for lead in peaks if len(lead)), default=0)
    votes = sum((_votes(lead, length) for lead in peaks), np.zeros(length + 2 * _VOTE + 2))
    majority = sum(len(lead) > 0 for lead in peaks) // 2 + 1
    from scipy.signal import find_peaks  # loads slowly, and a list of data sets loads this module

    moments, _ = find_peaks(votes, height=majority, distance=_REFRACTORY)
    return moments - _VOTE - 1


def _votes(lead: NDArray[np.int64], length: int) -> Floats:
    """Mark the moments within 0.1 s of a peak; moment t is entry t + 26, so that every hill has two sides."""
    steps = np.zeros(length + 2 * _VOTE + 2)
    np.add.at(steps, lead + 1, 1)
    np.add.at(steps, lead + 2 * _VOTE + 2, -1)
    return (steps.cumsum() > 0).astype(np.float64)


def _nearest(lead: NDArray[np.int64], moments: NDArray[np.int64]) -> Floats:
    """Return the lead's peak next to each moment; NaN if it has no peaks."""
    if not len(lead):
        return np.full(len(moments), np.nan)
    after = np.searchsorted(lead, moments).clip(0, len(lead) - 1)
    before = (after - 1).clip(0)
    closer = np.abs(lead[before] - moments) < np.abs(lead[after] - moments)
    return np.where(closer, lead[before], lead[after]).astype(np.float64)
