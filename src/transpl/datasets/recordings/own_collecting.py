"""All tables of a folder through the cutter: windows to the disk, and what each window is, in a settled order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid
from transpl.datasets.recipe import Log
from transpl.datasets.recordings.own_clock import Clock, describe_gap, different_steps
from transpl.datasets.recordings.own_cutting import FileCutter, Found, Tally
from transpl.datasets.recordings.own_rows import Layout, Vocabulary, Words, partial_columns, read_steps
from transpl.datasets.recordings.own_runs import Sizes
from transpl.datasets.recordings.own_split import Names, Placed
from transpl.datasets.recordings.tables import CSV, PARQUET, has_suffix
from transpl.datasets.recordings.window_file import WindowFile

Ints = NDArray[np.int64]


class OwnFiles(NamedTuple):
    """What to read: tables below `root`; `domain_from` is None if a column names the domain."""

    root: Path
    tables: list[Path]
    layout: Layout
    domain_from: str | None


class Own(NamedTuple):
    """What was cut; window i of `placed` is at `order[i]` in the window file."""

    placed: Placed
    order: Ints
    names: Names
    recordings: list[str]
    tally: Tally
    remarks: list[str]  # sentences about what the files have


def collect(files: OwnFiles, sizes: Sizes, gap: float | None, chunk_rows: int, windows: WindowFile, say: Log) -> Own:
    """Cut every table; windows go to the window file as they come."""
    words, tally = Vocabulary(Words(), Words(), Words(), Counter(), []), Tally()
    batches: list[_Batch] = []
    clocks: dict[str, list[Clock]] = {}
    for number, path in enumerate(files.tables):
        cutter, before = FileCutter(title(path, files.root), sizes, gap), windows.count
        given = words.domain.add(_domain_of(path, files)) if files.domain_from else None
        for found in _cut(path, files.layout, words, chunk_rows, cutter):
            windows.append(found.pieces.X)
            batches.append(_Batch(number, found.domain if given is None else given, *found[1:3], *found.pieces[1:]))
        tally.add(cutter.tally)
        clocks[title(path, files.root)] = cutter.clocks
        say(f"{title(path, files.root)}: {cutter.tally.rows:,} rows, {windows.count - before:,} windows")
    if not batches:
        raise _nothing(files.root, sizes, tally, [clock for some in clocks.values() for clock in some])
    own = _settled(batches, files, words, tally)
    return own if sizes.rate is not None else own._replace(remarks=own.remarks + different_steps(clocks))


def title(path: Path, root: Path) -> str:
    """A table's name below the folder."""
    return path.name if path == root else path.relative_to(root).as_posix()


class _Batch(NamedTuple):
    """Windows of one recording with one label."""

    file: int
    domain: int
    group: int
    label: int
    first: Ints
    last: Ints


def _cut(path: Path, layout: Layout, words: Vocabulary, chunk_rows: int, cutter: FileCutter) -> Iterator[Found]:
    for steps in read_steps(path, layout, words, chunk_rows):
        yield from cutter.feed(steps)
    yield from cutter.finish()


def _settled(batches: list[_Batch], files: OwnFiles, words: Vocabulary, tally: Tally) -> Own:
    """Bring windows into an order that no chunk has a say in: files, their recordings by first window, time."""
    sizes = [len(batch.first) for batch in batches]
    keys = np.repeat([[batch.file, batch.domain, batch.group, batch.label] for batch in batches], sizes, axis=0)
    first, last = (np.concatenate([batch[i] for batch in batches]) for i in (4, 5))
    known, code = np.unique(keys[:, :3], axis=0, return_inverse=True)
    code = code.reshape(-1)
    begin = np.full(len(known), np.iinfo(np.int64).max)
    np.minimum.at(begin, code, first)
    rank = np.lexsort((known[:, 2], known[:, 1], begin, known[:, 0]))
    recording = np.argsort(rank)[code]
    order = np.argsort(recording, kind="stable")
    class_names, y = _sorted_words(words.label, keys[order, 3])
    domain_names, domain = _domain_ids(*_sorted_words(words.domain, keys[order, 1]))
    return Own(
        Placed(y, domain, recording[order], first[order], last[order]),
        order,
        Names(class_names, domain_names),
        [_recording_name(known[i], files, words) for i in rank],
        tally,
        [
            *_without_window("Classes", words.label, class_names),
            *_without_window("Domains", words.domain, list(domain_names.values())),
            *partial_columns(words.columns, len(files.tables)),
            *words.doubts,
        ],
    )


def _without_window(what: str, words: Words, found: list[str]) -> list[str]:
    lost = sorted(set(words.known) - set(found))
    return [f"{what} that no window is of: {', '.join(map(repr, lost))}."] if lost else []


def _sorted_words(words: Words, codes: Ints) -> tuple[list[str], Ints]:
    """Return the words that occur, sorted with numbers by size, and the codes into them."""
    present = np.unique(codes)
    names = [words[int(i)] for i in present]
    rank = sorted(range(len(names)), key=lambda i: [_as_number(part) for part in re.split(r"(\d+)", names[i])])
    place = np.argsort(rank)
    return [names[i] for i in rank], place[np.searchsorted(present, codes)].astype(np.int64)


def _as_number(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdecimal() else (1, 0, part)


def _domain_ids(names: list[str], codes: Ints) -> tuple[dict[int, str], Ints]:
    """Use the users' own numbers as ids if all domains have one, else 0, 1, ..."""
    numbered = all(re.fullmatch(r"0|[1-9]\d{0,8}", name) for name in names)
    ids = np.array([int(name) if numbered else i for i, name in enumerate(names)], np.int64)
    return dict(zip(ids.tolist(), names, strict=True)), ids[codes]


def _domain_of(path: Path, files: OwnFiles) -> str:
    name = title(path, files.root)
    if files.domain_from == "folder":
        return Path(name).parent.as_posix() if "/" in name else files.root.resolve().name
    suffix = has_suffix(path, CSV + PARQUET) or ""
    return name[: len(name) - len(suffix)]


def _recording_name(key: Ints, files: OwnFiles, words: Vocabulary) -> str:
    parts = [title(files.tables[int(key[0])], files.root)]
    if files.domain_from is None:
        parts.append(words.domain[int(key[1])])
    if files.layout.group_col is not None:
        parts.append(words.group[int(key[2])])
    return " / ".join(parts)


def _nothing(root: Path, sizes: Sizes, tally: Tally, clocks: list[Clock]) -> InputError:
    counts = [f"{tally.missing:,} with a missing value", f"{tally.unlabelled:,} unlabelled"]
    advice = ["Choose a shorter window, or check time_col, group_col, gap and the channels."]
    if tally.gaps:
        counts.append(f"{tally.gaps:,} after a gap, a time step of more than {describe_gap(clocks)}")
        advice.append("If the clock is only uneven, give a larger --gap.")
    if tally.standing:
        counts.append(f"{tally.standing:,} with the same time as the row before")
        advice.append("Rows of the same time cut too: give each its own time, or leave time_col out.")
    if tally.backwards:
        advice.append("Sort each recording by time: in some rows it goes back.")
    return invalid(
        str(root),
        expected=f"{sizes.window} samples on end (the window) with one label and without gap or missing value",
        got=f"none among {tally.rows:,} rows ({', '.join(counts)})",
        advice=" ".join(advice),
    )
