"""PTB Diagnostic ECG Database: heart beats of healthy people and of patients with an infarction, by age.

`transpl.datasets.recipes.ptb_beats` reads the records and cuts the beats; this module makes them a data set.

Split     not published, so chosen here: 30 % of the patients of each class and age group test. A split by beat
          (`split="beat"`) puts beats of one record, which are nearly alike, on both sides.
Size      344 records remain: about 50,000 beats of 15 x 300, 0.9 GB in memory as float32. `beats_per_record=20`, evenly
          spread over each record, makes 6,880 beats, 0.12 GB.
Rounding  until all records are read, values are kept in half precision, so building takes half as much memory again as
          the result. A value of 4 to 8 deviations is then exact to 0.002, which is about the recorder's own step
          (0.5 microvolt; a deviation is some 300). It also makes the compressed file a third smaller.
Extras    `group` (patient), `record`, `beat` (its number in the record, from 0).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_int, invalid, unreadable_file
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pairs import PUBLISHED, default_pairs
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
    PUBLISHED_PATIENTS,
    Header,
    beats_of,
    missing_file,
    patients_per_group,
    read_headers,
    selected,
)

SPLITS = ("patient", "beat")
PUBLISHED_RECORDS = {1: 33, 2: 87, 3: 107, 4: 117}  # without those of slow hearts
_MAX_SEED = 2**32 - 1  # of the generator that splits by beat
_LOG_EVERY = 20  # records


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
    """Read all records in or below `folder`, cut their beats and split the patients.

    With `partial` (also as text, "true"), records with missing files are left out instead of being an error.
    """
    check_choice("detector", detector, DETECTORS)
    check_choice("split", split, SPLITS)
    if beats_per_record is not None:
        check_int("beats_per_record", beats_per_record, least=1)
    check_int("seed", seed, least=0)
    if seed > _MAX_SEED:
        raise invalid("seed", expected=f"at most {_MAX_SEED}", got=seed, advice="Choose a smaller number.")
    leave_out = {"true": True, "false": False}.get(partial.strip().lower()) if isinstance(partial, str) else partial
    if not isinstance(leave_out, bool):
        raise invalid("partial", expected="one of true, false", got=repr(partial), advice="Choose one of these words.")

    headers = read_headers(folder)
    wanted = [header for header in selected(headers) if header.group in DOMAINS]
    wanted.sort(key=lambda header: (header.group or 0, header.patient, header.record))
    if not wanted:
        problem = f"none of its {len(headers)} records is of a healthy person or an infarction between 31 and 70 years"
        raise unreadable_file(folder, problem=problem, advice="Fetch more of the database.")
    absent = _absent_files(folder, headers, wanted)
    if absent and not leave_out:
        more = f", and {len(absent) - 1} more like it" if len(absent) > 1 else ""
        advice = "Fetch the rest, or build from what is there with partial=True."
        raise unreadable_file(folder, problem=f"{absent[0]} is missing{more}", advice=advice)

    kept: list[Header] = []
    slow: list[Header] = []
    windows: list[NDArray[np.float16]] = []
    numbers: list[NDArray[np.int64]] = []
    present = [header for header in wanted if missing_file(header) is None]
    for i, header in enumerate(present, start=1):
        beats, number = beats_of(header, detector, beats_per_record)
        if len(beats):
            kept.append(header)
            windows.append(beats.astype(np.float16))
            numbers.append(number)
        else:
            slow.append(header)
        if i % _LOG_EVERY == 0 or i == len(present):
            log(f"ptb: {i} of {len(present)} records read, {sum(map(len, windows)):,} beats")
    if not kept:
        problem = "none of its records has signals of a heart that is fast enough"
        raise unreadable_file(folder, problem=problem, advice="Fetch more of the database.")

    counts = [len(beats) for beats in windows]
    X = np.empty((sum(counts), len(LEADS), LENGTH), np.float32)
    np.concatenate(windows, out=X)
    y = np.repeat([header.label or 0 for header in kept], counts)
    domains = np.repeat([header.group or 0 for header in kept], counts)
    patients = np.repeat([header.patient for header in kept], counts)
    found = set(domains.tolist())
    dataset = Dataset(
        name="ptb",
        X=X,
        y=y,
        domain_ids=domains,
        split=_split(domains, y, patients, split, seed),
        class_names=CLASSES,
        channel_names=LEADS,
        pairs=tuple(pair for pair in PUBLISHED["ptb"] if set(pair) <= found) or default_pairs(sorted(found)),
    )
    extras = {
        "group": patients,
        "record": np.repeat([header.record for header in kept], counts),
        "beat": np.concatenate(numbers),
    }
    notes = _notes(headers, wanted, absent, slow, kept)
    return Built(dataset, extras, notes, rule=rule_of(detector, beats_per_record, split, seed))


def rule_of(
    detector: str = "published", beats_per_record: int | None = None, split: str = "patient", seed: int = SEED
) -> str:
    """Return how windows, classes, domains and split are made."""
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
    """Say which domains have fewer windows than records, and whether windows have another shape.

    The number of beats per domain is not published. The number of patients is; `build` notes where it differs.
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


def _absent_files(folder: Path, headers: list[Header], wanted: list[Header]) -> list[str]:
    """Return which files are missing: headers of the records listed in RECORDS, and signals of wanted records."""
    known = {header.record for header in headers}
    listed = [
        line.strip() for path in sorted(folder.rglob("RECORDS")) for line in path.read_text("latin-1").splitlines()
    ]
    no_header = [f"{name}.hea" for name in listed if name and name.rsplit("/", 1)[-1] not in known]
    no_signals = [str(path.relative_to(folder)) for path in map(missing_file, wanted) if path is not None]
    return no_header + no_signals


def _split(domains: NDArray[Any], y: NDArray[Any], patients: NDArray[Any], by: str, seed: int) -> NDArray[np.int8]:
    split = np.full(len(y), TRAIN, np.int8)
    for domain in np.unique(domains):
        rows = np.flatnonzero(domains == domain)
        if by == "patient":
            parts = group_test_rows(patients[rows], y[rows], seed=seed)
        else:
            parts = stratified_test_rows(y[rows], seed=seed)
        split[rows[parts.test]] = TEST
    return split


def _notes(
    headers: list[Header], wanted: list[Header], absent: list[str], slow: list[Header], kept: list[Header]
) -> tuple[str, ...]:
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
    found = patients_per_group(kept)
    for group, (healthy, ill) in PUBLISHED_PATIENTS.items():
        if found[group] != (healthy, ill):
            notes.append(
                f"Age group {group} has {found[group][0]} healthy people and {found[group][1]} with an infarction; "
                f"the paper has {healthy} and {ill}."
            )
    return tuple(notes)


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
            instead=(  # packed on demand, so its bytes may differ
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
