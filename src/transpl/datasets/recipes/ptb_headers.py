"""What the headers of the PTB Diagnostic ECG Database say: who, how old, and why admitted. Plain text, no wfdb.

`patientNNN/sXXXX.hea` is one record: a first line `name leads Hz samples`, one line per lead, then comments.
549 records, 290 patients, 15 leads at 1000 Hz. 15 patients have no age ("n/a").

Classes   Healthy control (0) and Myocardial infarction (1), by the reason for admission, word for word:
          448 records of 200 patients.
Domains   age groups, closed on the right: (30, 40] is 1, (40, 50] is 2, (50, 60] is 3, (60, 70] is 4. The paper prints
          decades without saying where 40, 50 and 60 belong; only these edges give its table of patients. That table
          is of patients after the records with a slow heart are gone (see `ptb_beats`): of the 200 it loses 273 and
          277, and with 273 the oldest group goes from 48 infarctions to the printed 47.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from transpl._utils.errors import invalid, unreadable_file

CLASSES = ("healthy_control", "myocardial_infarction")
LEADS = ("i", "ii", "iii", "avr", "avl", "avf", "v1", "v2", "v3", "v4", "v5", "v6", "vx", "vy", "vz")
HZ = 1000
DOMAINS = (1, 2, 3, 4)
PUBLISHED_PATIENTS = {1: (11, 4), 2: (6, 25), 3: (9, 43), 4: (6, 47)}  # healthy, infarction

_LABELS = {"Healthy control": 0, "Myocardial infarction": 1}
_UNKNOWN = ("", "n/a")
_OLDEST = 120
_FOLDER = re.compile(r"patient(\d{1,6})")
_RECORD_LINE = re.compile(r"(\S+) +(\d{1,6}) +(\d{1,9}) +(\d{1,12})")
_LEAD_LINE = re.compile(r"(\S+) .* (\S+)")
_COMMENT = re.compile(r"#\s*([^:]+?)\s*:\s*(.*?)\s*")
_ADVICE = "Fetch this file anew from physionet.org/files/ptbdb/1.0.0."


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
        """The class index, None for any other reason for admission."""
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
    """Read every patientNNN/*.hea in `folder` or below it, ordered by patient and record."""
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
    """Read one header; a damaged one is refused."""
    lines = _lines(path)
    comments = {match[1]: match[2] for match in map(_COMMENT.fullmatch, lines) if match}
    return Header(
        path=path,
        patient=_patient(path),
        record=path.stem,
        samples=_samples(lines, path),
        age=_age(_comment("age", comments, path), path),
        reason=_comment("Reason for admission", comments, path),
    )


def selected(headers: Iterable[Header]) -> list[Header]:
    """Keep the records of healthy controls and of infarctions."""
    return [header for header in headers if header.label is not None]


def patients_per_group(headers: Iterable[Header]) -> dict[int, tuple[int, int]]:
    """Count patients of each age group: (healthy, infarction)."""
    patients = {(header.group, header.label, header.patient) for header in headers}
    keys = [(group, label) for group, label, _ in patients]
    return {group: (keys.count((group, 0)), keys.count((group, 1))) for group in DOMAINS}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="latin-1").splitlines()  # which no byte offends
    except OSError as error:
        raise unreadable_file(path, problem=f"cannot be read ({error.strerror})", advice="Check the path.") from None


def _patient(path: Path) -> int:
    match = _FOLDER.fullmatch(path.parent.name)
    if match is None:
        advice = "Keep the folders of the archive; they say who a record is of."
        raise invalid(str(path), expected="a folder named patientNNN", got=repr(path.parent.name), advice=advice)
    return int(match[1])


def _samples(lines: list[str], path: Path) -> int:
    first = _RECORD_LINE.match(lines[0]) if lines else None
    if first is None or first[1] != path.stem:
        problem = f"not the header of {path.stem} (its first line should be '{path.stem} {len(LEADS)} {HZ} samples')"
        raise unreadable_file(path, problem=problem, advice=_ADVICE)
    leads = tuple(match[2] for match in map(_LEAD_LINE.fullmatch, lines[1 : 1 + len(LEADS)]) if match)
    if (int(first[2]), int(first[3])) != (len(LEADS), HZ) or leads != LEADS:
        problem = f"expected the {len(LEADS)} leads {LEADS[0]}..{LEADS[-1]} at {HZ} Hz, got {len(leads)} at {first[3]}"
        raise unreadable_file(path, problem=problem, advice=_ADVICE)
    return int(first[4])


def _comment(name: str, comments: dict[str, str], path: Path) -> str:
    if name not in comments:
        raise unreadable_file(path, problem=f"no comment '# {name}: ...'", advice=_ADVICE)
    return comments[name]


def _age(text: str, path: Path) -> int | None:
    if text.lower() in _UNKNOWN:
        return None
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > _OLDEST:
        raise unreadable_file(path, problem=f"age {text[:20]!r} is neither years nor n/a", advice=_ADVICE)
    return int(text)
