"""PTB Diagnostic ECG Database: heart beats of healthy people and of patients with an infarction, by age.

Which records, classes and age groups: `ptb_headers`. How their signals are read: `ptb_signals`. How beats are found
and cut: `ptb_beats`. Here they become a data set.

Split     not published, hence chosen here: 30 % of the patients of each class and age group test. A split by beat
          (`split="beat"`) puts beats of one record, which are nearly alike, on both sides.
Size      344 records remain: about 50,000 beats of 15 x 300, 0.9 GB in memory as float32. `beats_per_record=20`, evenly
          spread over each record, makes 6,880 beats, 0.12 GB.
Rounding  until all records are read, values wait in half precision, so building takes half as much memory again as
          the result. A value of 4 to 8 deviations is then exact to 0.002, which is about the recorder's own step
          (0.5 microvolt; a deviation is some 300). It also makes the compressed file a third smaller.
Extras    `group` (patient), `record`, `beat` (its number in the record, from 0).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, check_choice, check_int, invalid, unreadable_file
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pairs import PUBLISHED, Pairs, default_pairs
from transpl.datasets.recipe import (
    SEED,
    Built,
    Log,
    Recipe,
    RemoteFile,
    group_test_rows,
    stratified_test_rows,
    windows_per_domain,
)
from transpl.datasets.recipes.ptb_beats import (
    CLASSES,
    DETECTORS,
    DOMAINS,
    LEADS,
    LENGTH,
    LONGEST_RR,
    PUBLISHED_PATIENTS,
    Header,
    cut_beats,
    find_beats,
    missing_file,
    patients_per_group,
    r_peaks,
    read_headers,
    read_signals,
    rr_interval,
    selected,
    standardised,
)

SPLITS = ("patient", "beat")
PUBLISHED_RECORDS = {1: 33, 2: 87, 3: 107, 4: 117}  # after the slow ones are left out
_SAY_EVERY = 20
_LARGEST_SEED = 2**32 - 1  # of the generator that splits by beat


class RecordBeats(NamedTuple):
    """The beats of one record: windows (n, leads, 300) and their numbers in the record."""

    header: Header
    windows: NDArray[np.float16]
    numbers: NDArray[np.int64]


def build(
    folder: Path,
    log: Log,
    *,
    detector: str = "published",
    beats_per_record: int | None = None,
    split: str = "patient",
    seed: int = SEED,
    partial: bool | str = False,
) -> Built:
    """Make the data set of all records in `folder` or below it, one after the other.

    partial : records with missing files are left out; by default they are an error. "true" and "false" are understood
    """
    _check_options(detector, beats_per_record, split, seed)
    leave_out = _as_bool("partial", partial)
    headers = read_headers(folder)
    wanted = _wanted(headers, folder)
    absent = _absent(folder, headers, wanted)
    if absent and not leave_out:
        raise _incomplete(folder, absent)
    present = [header for header in wanted if missing_file(header) is None]
    kept, slow = _read_all(present, log, detector, beats_per_record)
    if not kept:
        problem = "none of its records has signals of a heart that is fast enough"
        raise unreadable_file(folder, problem=problem, advice="Fetch more of the database.")
    notes = [*_notes(headers, wanted, absent, slow), *check_patients([record.header for record in kept])]
    extras = _extras(kept)
    rule = rule_of(detector, beats_per_record, split, seed)
    return Built(_dataset(kept, extras["group"], split, seed), extras, tuple(notes), rule=rule)


def rule_of(
    detector: str = "published", beats_per_record: int | None = None, split: str = "patient", seed: int = SEED
) -> str:
    """How windows, classes, domains and split come about."""
    place = {
        "published": "the median over leads of their i-th R peak (as published)",
        "consensus": "the R peak that most leads see at the same time (consensus, not the published rule)",
    }
    how_many = "" if beats_per_record is None else f"At most {beats_per_record} beats of each record, evenly spread. "
    tested = {
        "patient": "30 % of the patients of each class and domain",
        "beat": "30 % of the beats of each class and domain, so that patients are on both sides,",
    }
    return (
        "Windows: beats at 250 Hz, each lead standardised over its record, half an RR interval to both sides of "
        f"{place[detector]}, zeros up to 300. {how_many}Classes: healthy control, myocardial infarction, by reason for "
        "admission. Domains: ages 31-40, 41-50, 51-60, 61-70. Records with a median RR interval above 1.2 s are left "
        f"out. Split: {tested[split]} test, seed {seed}."
    )


def check(dataset: Dataset) -> list[str]:
    """Log which domains have fewer windows than records, and whether windows have another shape.

    How many beats a domain has is not published; its patients are, and `build` notes where they differ.
    """
    windows = windows_per_domain(dataset)
    problems = [
        f"Domain {domain} has {windows.get(domain, 0)} windows, fewer than the {records} records it should have."
        for domain, records in PUBLISHED_RECORDS.items()
        if windows.get(domain, 0) < records
    ]
    shape = (len(LEADS), LENGTH)
    if dataset.X.shape[1:] != shape:
        problems.append(f"Windows have shape {dataset.X.shape[1:]}, published are {shape}.")
    return problems


def check_patients(headers: Iterable[Header]) -> list[str]:
    """Log which age groups have other numbers of patients than the paper's table."""
    found = patients_per_group(headers)
    return [
        f"Age group {group} has {found[group][0]} healthy people and {found[group][1]} with an infarction; "
        f"the paper has {healthy} and {ill}."
        for group, (healthy, ill) in PUBLISHED_PATIENTS.items()
        if found[group] != (healthy, ill)
    ]


def record_beats(header: Header, detector: str, most: int | None) -> RecordBeats:
    """Cut the beats of a record, evenly spread if `most` limits them; none if its heart is too slow for the window."""
    signals = standardised(read_signals(header))
    peaks = r_peaks(signals)
    rr = rr_interval(peaks)
    centres = find_beats(peaks, detector).centres if rr <= LONGEST_RR else np.empty(0)
    numbers = _evenly(len(centres), most)
    return RecordBeats(header, cut_beats(signals, centres[numbers], rr).astype(np.float16), numbers)


def _check_options(detector: str, beats_per_record: int | None, split: str, seed: int) -> None:
    check_choice("detector", detector, DETECTORS)
    check_choice("split", split, SPLITS)
    if beats_per_record is not None:
        check_int("beats_per_record", beats_per_record, least=1)
    check_int("seed", seed, least=0)
    if seed > _LARGEST_SEED:
        raise invalid("seed", expected=f"at most {_LARGEST_SEED}", got=seed, advice="Choose a smaller number.")


def _as_bool(argument: str, value: bool | str) -> bool:
    """Take also the words that people type on the command line."""
    meant = {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value
    if not isinstance(meant, bool):
        raise invalid(argument, expected="one of true, false", got=repr(value), advice="Choose one of these words.")
    return meant


def _read_all(
    headers: list[Header], log: Log, detector: str, most: int | None
) -> tuple[list[RecordBeats], list[Header]]:
    """Return the records that have beats, and those that are too slow."""
    kept, slow = [], []
    for number, header in enumerate(headers, start=1):
        record = record_beats(header, detector, most)
        if len(record.windows):
            kept.append(record)
        else:
            slow.append(header)
        if number % _SAY_EVERY == 0 or number == len(headers):
            beats = sum(len(record.windows) for record in kept)
            log(f"ptb: {number} of {len(headers)} records read, {beats:,} beats")
    return kept, slow


def _wanted(headers: list[Header], folder: Path) -> list[Header]:
    """The records of the two classes in the four age groups, youngest group first."""
    wanted = [header for header in selected(headers) if header.group in DOMAINS]
    if not wanted:
        problem = f"none of its {len(headers)} records is of a healthy person or an infarction between 31 and 70 years"
        raise unreadable_file(folder, problem=problem, advice="Fetch more of the database.")
    return sorted(wanted, key=lambda header: (header.group or 0, header.patient, header.record))


def _absent(folder: Path, headers: list[Header], wanted: list[Header]) -> list[str]:
    """Files that should be there: signals of the wanted records, and headers of the records listed in RECORDS."""
    known = {header.record for header in headers}
    listed = [
        line.strip() for path in sorted(folder.rglob("RECORDS")) for line in path.read_text("latin-1").splitlines()
    ]
    unheard = [f"{name}.hea" for name in listed if name and name.rsplit("/", 1)[-1] not in known]
    silent = [str(path.relative_to(folder)) for path in map(missing_file, wanted) if path is not None]
    return unheard + silent


def _incomplete(folder: Path, absent: list[str]) -> InputError:
    more = f", and {len(absent) - 1} more like it" if len(absent) > 1 else ""
    advice = "Fetch the rest, or build from what is there with partial=True."
    return unreadable_file(folder, problem=f"{absent[0]} is missing{more}", advice=advice)


def _evenly(n: int, most: int | None) -> NDArray[np.int64]:
    if most is None or most >= n:
        return np.arange(n)
    return np.linspace(0, n - 1, most).round().astype(np.int64)


def _notes(headers: list[Header], wanted: list[Header], absent: list[str], slow: list[Header]) -> list[str]:
    patients = len({header.patient for header in headers} - {header.patient for header in wanted})
    notes = [
        f"{len(headers) - len(wanted)} of {len(headers)} records ({patients} patients) are left out: "
        "another reason for admission, or no age from 31 to 70."
    ]
    if absent:
        notes.append(f"Records left out because a file of theirs is missing: {len(absent)}.")
    if slow:
        names = ", ".join(header.record for header in slow)
        notes.append(f"Records left out because their median RR interval is above 1.2 s: {len(slow)} ({names}).")
    return notes


def _extras(records: list[RecordBeats]) -> dict[str, NDArray[Any]]:
    counts = [len(record.windows) for record in records]
    return {
        "group": np.repeat([record.header.patient for record in records], counts),
        "record": np.repeat([record.header.record for record in records], counts),
        "beat": np.concatenate([record.numbers for record in records]),
    }


def _dataset(records: list[RecordBeats], patients: NDArray[Any], split: str, seed: int) -> Dataset:
    counts = [len(record.windows) for record in records]
    y = np.repeat([record.header.label or 0 for record in records], counts)
    domains = np.repeat([record.header.group or 0 for record in records], counts)
    parts = _parts(domains, y, patients, split, seed)
    return Dataset(
        name="ptb",
        X=_joined([record.windows for record in records]),
        y=y,
        domain_ids=domains,
        split=parts,
        class_names=CLASSES,
        channel_names=LEADS,
        pairs=_pairs(np.unique(domains).tolist()),
    )


def _joined(windows: list[NDArray[np.float16]]) -> NDArray[np.float32]:
    whole = np.empty((sum(map(len, windows)), len(LEADS), LENGTH), np.float32)
    np.concatenate(windows, out=whole)
    return whole


def _parts(domains: NDArray[Any], y: NDArray[Any], patients: NDArray[Any], by: str, seed: int) -> NDArray[np.int8]:
    parts = np.full(len(y), TRAIN, np.int8)
    for domain in np.unique(domains):
        rows = np.flatnonzero(domains == domain)
        if by == "patient":
            test = group_test_rows(patients[rows], y[rows], seed=seed).test
        else:
            test = stratified_test_rows(y[rows], seed=seed).test
        parts[rows[test]] = TEST
    return parts


def _pairs(domains: list[int]) -> Pairs:
    """The published pairs whose domains are there, or all pairs if none is."""
    whole = tuple(pair for pair in PUBLISHED["ptb"] if set(pair) <= set(domains))
    return whole or default_pairs(domains)


RECIPE = Recipe(
    name="ptb",
    title="PTB Diagnostic ECG Database: infarction or healthy, from one heart beat in 15 leads, by age",
    homepage="https://physionet.org/content/ptbdb/1.0.0/",
    licence="ODC-By 1.0 (Open Data Commons Attribution)",
    citation=(
        "Bousseljot, Kreiseler, Schnabel: Nutzung der EKG-Signaldatenbank CARDIODAT der PTB über das Internet. "
        "Biomedizinische Technik 40 (1995), Ergänzungsband 1, S 317. doi:10.13026/C28C71. Goldberger et al.: "
        "PhysioBank, PhysioToolkit, and PhysioNet. Circulation 101 (2000), e215-e220."
    ),
    files=(
        RemoteFile(
            name="ptb-diagnostic-ecg-database-1.0.0.zip",
            urls=("https://physionet.org/static/published-projects/ptbdb/ptb-diagnostic-ecg-database-1.0.0.zip",),
            instead=(  # packed when asked for, so its bytes may be others
                RemoteFile(
                    name="ptbdb-get-zip-1.0.0.zip", urls=("https://physionet.org/content/ptbdb/get-zip/1.0.0/",)
                ),
            ),
        ),
    ),
    layout="patientNNN/sXXXX.hea, .dat and .xyz of each record, in the folder or anywhere below it",
    rule=rule_of(),
    build=build,
    check=check,
    options={
        "detector": "published (i-th peak of each lead) or consensus (one R peak that most leads see)",
        "beats_per_record": "at most so many beats of each record, evenly spread (default: all, 0.9 GB in memory)",
        "split": "patient (no patient on both sides) or beat",
        "seed": "of the split",
        "partial": "build from the records that are there even if others are incomplete",
    },
)
