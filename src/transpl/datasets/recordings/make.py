"""A folder of a user's own recordings into a prepared data set, with a card that says what was left out and why.

One file is read at a time, a csv in chunks, and windows go to the disk as they are cut: neither a file nor the data set
has to fit in memory. The result does not depend on the size of the chunks.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, check_choice, check_int, check_positive, invalid
from transpl._utils.files import replacing
from transpl._utils.locks import writing
from transpl._utils.progress import tracked
from transpl.datasets.cards import Provenance, card_path, publish
from transpl.datasets.pairs import default_pairs
from transpl.datasets.prepare import archive_origin, refuse_built_in, refuse_to_replace, scratch_folder
from transpl.datasets.prepared import prepared_path
from transpl.datasets.recipe import Log
from transpl.datasets.recordings.clocks import UNITS, Clock, Ints
from transpl.datasets.recordings.cutter import FileCutter
from transpl.datasets.recordings.split import (
    DROPPED,
    Names,
    Placed,
    check_parts,
    check_split,
    choose_split,
    missing_classes,
    split_windows,
)
from transpl.datasets.recordings.table_rows import Tally
from transpl.datasets.recordings.table_stream import Layout, Vocabulary, Words, find_tables, name_layout, stream_rows
from transpl.datasets.recordings.tables import TABLES, has_suffix
from transpl.datasets.recordings.window_sizes import Sizes

CHUNK_ROWS = 200_000
DOMAIN_FROM = ("file", "folder")
_SAME_STEP = 1.1  # files whose usual time steps differ by a larger factor are sampled differently
_BLOCK_BYTES = 1 << 24
_FAST = 1  # zlib's level: sensor noise hardly shrinks further


def prepare_recordings(
    folder: str | os.PathLike[str],
    name: str,
    *,
    label_col: str,
    domain_col: str | None = None,
    domain_from: str | None = None,
    time_col: str | None = None,
    group_col: str | None = None,
    channels: Sequence[str] | None = None,
    window: int = 128,
    step: int | None = None,
    rate: float | None = None,
    gap: float | None = None,
    time_unit: str | None = None,
    split: str | None = None,
    test_share: float = 0.3,
    seed: int = 0,
    home: Path | None = None,
    force: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    log: Log = lambda _: None,
) -> Path:
    """Cut the tables in `folder` into windows, and write `name`.npz and its card.

    Parameters
    ----------
    folder : path of a folder, or of a single table
    name : str
        Of the data set.
    label_col, time_col, group_col : str
        Columns with the label, the clock and the recording. Without `group_col`, a file is one recording per domain.
        Rows are taken in the file's order, for a file need not fit in memory: sort them by time before.
    domain_col, domain_from : str, optional
        The column that names the domain; or "file" (the default) or "folder".
    channels : sequence of str, optional
        By default the other columns of the first file that hold numbers in 95 % of its first rows.
    window, step : int
        In samples; the step is half a window by default.
    rate : float, optional
        Resample every uninterrupted run to this many samples per second: points of the straight lines between rows
        or, of a faster recording, means. Without it, only runs of uneven times are interpolated, at their usual rate.
    gap : float, optional
        Seconds without a row that end a run; by default more than three missing samples on end.
    time_unit : {"s", "ms", "us", "ns"}, optional
        Of a `time_col` of numbers. By default that of numbers which are dates since 1970, else seconds.
    split : {"by_group", "by_time"}, optional
        By default whichever suits the recordings, see `transpl.datasets.recordings.split`.
    test_share : float
    seed : int
        Of the choice of test recordings.
    home : Path, optional
        Where to write; by default the folder of prepared data sets.
    force : bool
        Replace a data set of this name.
    log : callable
        Takes progress messages.

    Returns
    -------
    Path
        Of the npz.
    """
    step = max(1, window // 2) if step is None else step
    _check_numbers(window, step, rate, gap, time_col, chunk_rows)
    if time_unit is not None:
        check_choice("time_unit", time_unit, tuple(UNITS))
    check_split(split, test_share)
    check_int("seed", seed, least=0)
    domain_from = _domain_rule(domain_col, domain_from)
    npz = prepared_path(name, home)
    refuse_built_in(npz)
    root = Path(folder)
    tables = find_tables(root)
    names = None if channels is None else tuple([channels] if isinstance(channels, str) else channels)
    layout = name_layout(tables[0], Layout(label_col, domain_col, group_col, time_col, names, time_unit), log)
    sizes = Sizes(window, step, rate)
    with (
        writing(npz.parent, npz.name),
        scratch_folder(npz.parent) as scratch,
        _WindowFile(scratch / "windows") as windows,
    ):
        refuse_to_replace(npz, force)
        made = _cut_tables(_Tables(root, tables, layout, domain_from), sizes, gap, chunk_rows, windows, log)
        split, choice = (split, "") if split else choose_split(made.placed, made.names, test_share, seed)
        parts = split_windows(made.placed, split, test_share, seed)
        check_parts(made.placed, parts, made.names.domains, split)
        notes = [*_notes(made.tally, parts, rate), *made.notes, *missing_classes(made.placed, parts, made.names)]
        notes += [choice] if choice else []
        _pack(scratch / npz.name, windows, made, parts, layout.channels or ())
        options = {**layout._asdict(), "domain_from": domain_from, **sizes._asdict(), "gap": gap}
        options |= {"split": split, "test_share": test_share, "seed": seed}
        card = publish(scratch / npz.name, npz, _provenance(root, tables, options, notes))
    for note in notes:
        log(f"{name}: {note}")
    log(f"{name}: {card['windows']:,} windows of {len(card['counts'])} domains; wrote {npz} and {card_path(npz).name}")
    return npz


def _check_numbers(
    window: int, step: int, rate: float | None, gap: float | None, time_col: str | None, chunk_rows: int
) -> None:
    check_int("window", window, least=1)
    check_int("step", step, least=1)
    check_int("chunk_rows", chunk_rows, least=1)
    for argument, value in (("rate", rate), ("gap", gap)):
        if value is not None:
            check_positive(argument, value)
            if time_col is None:
                advice = "Name the column with the time."
                raise invalid("time_col", expected=f"a column, because {argument} is given", got=None, advice=advice)


def _domain_rule(domain_col: str | None, domain_from: str | None) -> str | None:
    if domain_col is not None and domain_from is not None:
        raise invalid("domain_from", expected="nothing beside domain_col", got=repr(domain_from), advice="Choose one.")
    if domain_col is not None:
        return None
    check_choice("domain_from", domain_from or "file", DOMAIN_FROM)
    return domain_from or "file"


class _Tables(NamedTuple):
    """The tables below `root`; `domain_from` is None if a column names the domain."""

    root: Path
    paths: list[Path]
    layout: Layout
    domain_from: str | None


class _Made(NamedTuple):
    """The windows that were cut; window i of `placed` is at `order[i]` in the window file."""

    placed: Placed
    order: Ints
    names: Names
    recordings: list[str]
    tally: Tally
    notes: list[str]


def _cut_tables(
    files: _Tables, sizes: Sizes, gap: float | None, chunk_rows: int, windows: _WindowFile, log: Log
) -> _Made:
    """Cut every table; windows go to the window file as they come."""
    words, tally = Vocabulary(), Tally()
    batches: list[_Batch] = []
    clocks: dict[str, list[Clock]] = {}
    for number, path in enumerate(tracked(files.paths, "cutting windows, files", len(files.paths))):
        name, before = _title(path, files.root), windows.count
        cutter = FileCutter(name, sizes, gap)
        given = words.domain.add(_domain_of(path, files)) if files.domain_from else None
        found = chain.from_iterable(cutter.feed(rows) for rows in stream_rows(path, files.layout, words, chunk_rows))
        for domain, group, label, (X, first, last) in chain(found, cutter.finish()):
            windows.append(X)
            batches.append(_Batch(number, domain if given is None else given, group, label, first, last))
        tally.add(cutter.tally)
        clocks[name] = cutter.clocks
        log(f"{name}: {cutter.tally.rows:,} rows, {windows.count - before:,} windows")
    if not batches:
        raise _no_windows(files.root, sizes, tally, [clock for some in clocks.values() for clock in some])
    made = _in_order(batches, files, words, tally)
    return made if sizes.rate is not None else made._replace(notes=made.notes + _different_steps(clocks))


def _title(path: Path, root: Path) -> str:
    """Name a table by its path below the folder."""
    return path.name if path == root else path.relative_to(root).as_posix()


class _Batch(NamedTuple):
    """Windows of one recording with one label."""

    file: int
    domain: int
    group: int
    label: int
    first: Ints
    last: Ints


def _in_order(batches: list[_Batch], files: _Tables, words: Vocabulary, tally: Tally) -> _Made:
    """Put windows in an order that does not depend on chunks: by file, recording (by first window), time."""
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
    return _Made(
        Placed(y, domain, recording[order], first[order], last[order]),
        order,
        Names(class_names, domain_names),
        [_recording_name(known[i], files, words) for i in rank],
        tally,
        [
            *_without_window("Classes", words.label, class_names),
            *_without_window("Domains", words.domain, list(domain_names.values())),
            *_partial_columns(words.columns, len(files.paths)),
            *words.warnings,
        ],
    )


def _partial_columns(columns: Mapping[str, int], n_files: int) -> list[str]:
    partial = [f"{column!r} ({n:,} of {n_files:,})" for column, n in sorted(columns.items()) if n < n_files]
    return [f"Columns that only some files have, not used: {', '.join(partial)}."] if partial else []


def _different_steps(files: Mapping[str, list[Clock]]) -> list[str]:
    """Return a sentence if the usual time step differs between files."""
    known = {name: [clock.step for clock in clocks if clock.step > 0] for name, clocks in files.items()}
    usual = {name: float(np.median(steps)) for name, steps in known.items() if steps}
    if not usual:
        return []
    shortest, longest = min(usual, key=usual.__getitem__), max(usual, key=usual.__getitem__)
    if usual[longest] <= _SAME_STEP * usual[shortest]:
        return []
    span = f"from {usual[shortest]:g} ({shortest}) to {usual[longest]:g} ({longest})"
    return [f"The usual time step differs between files, {span}: give --rate, so that windows last equally long."]


def _without_window(what: str, words: Words, found: list[str]) -> list[str]:
    lost = sorted(set(words.known) - set(found))
    return [f"{what} that no window is of: {', '.join(map(repr, lost))}."] if lost else []


def _sorted_words(words: Words, codes: Ints) -> tuple[list[str], Ints]:
    """Return the words that occur, sorted (numbers by size), and the codes into them."""
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


def _domain_of(path: Path, files: _Tables) -> str:
    name = _title(path, files.root)
    if files.domain_from == "folder":
        return Path(name).parent.as_posix() if "/" in name else files.root.resolve().name
    suffix = has_suffix(path, TABLES) or ""
    return name[: len(name) - len(suffix)]


def _recording_name(key: Ints, files: _Tables, words: Vocabulary) -> str:
    parts = [_title(files.paths[int(key[0])], files.root)]
    if files.domain_from is None:
        parts.append(words.domain[int(key[1])])
    if files.layout.group_col is not None:
        parts.append(words.group[int(key[2])])
    return " / ".join(parts)


def _no_windows(root: Path, sizes: Sizes, tally: Tally, clocks: list[Clock]) -> InputError:
    counts = [f"{tally.missing:,} with a missing value", f"{tally.unlabelled:,} unlabelled"]
    advice = ["Choose a shorter window, or check time_col, group_col, gap and the channels."]
    if tally.gaps:
        gaps = sorted({clock.gap for clock in clocks})
        span = f"{gaps[0]:g}" if len(gaps) == 1 else f"{gaps[0]:g} to {gaps[-1]:g}, by recording"
        counts.append(f"{tally.gaps:,} after a gap, a time step of more than {span}")
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


def _pack(npz: Path, windows: _WindowFile, made: _Made, parts: NDArray[np.int8], channels: tuple[str, ...]) -> None:
    """Write the windows that are kept, with their labels, domains and origin."""
    kept = np.flatnonzero(parts != DROPPED)
    domains = np.unique(made.placed.domain[kept]).tolist()
    arrays: dict[str, NDArray[Any]] = {
        "y": made.placed.y[kept],
        "domain": made.placed.domain[kept],
        "split": parts[kept],
        "class_names": np.array(made.names.classes),
        "channel_names": np.array(channels),
        "pairs": np.array(default_pairs(domains), np.int64).reshape(-1, 2),
        "domain_names": np.array([made.names.domains[domain] for domain in domains]),
        "group": made.placed.recording[kept],
        "group_names": np.array(made.recordings),
        "start": made.placed.first[kept],
    }
    windows.pack(npz, made.order[kept], arrays)


def _provenance(root: Path, tables: list[Path], options: dict[str, Any], notes: list[str]) -> Provenance:
    return Provenance(
        made_by="make",
        title=f"recordings in {root.resolve().name}",
        rule=(
            "Windows of one recording, label and uninterrupted run. "
            f"Domain: {options['domain_col'] or options['domain_from']}. Split: {options['split']}."
        ),
        origin=[{**archive_origin(path), "name": _title(path, root)} for path in tables],
        options=options,
        notes=notes,
    )


def _notes(tally: Tally, parts: NDArray[np.int8], rate: float | None) -> list[str]:
    """Return a sentence for every reason why rows are in no window, with their number."""
    unit = "Rows" if rate is None else f"Samples (at {rate:g} per second)"
    reasons = {
        "Rows read": tally.rows,
        "Rows with a missing value": tally.missing - tally.bridged,
        "Samples filled in, for up to three missing ones on end": tally.filled,
        "Times are uneven; rows interpolated at the usual rate": tally.uneven,
        "Rows without label": tally.unlabelled,
        f"{unit} left over before a gap": tally.before_gap,
        f"{unit} left over before a change of label, because no window mixes labels": tally.before_label,
        f"{unit} left over at the end of a recording": tally.at_end,
        f"{unit} between windows, because the step is longer than the window": tally.between,
        "Rows with an earlier time than the row before (sort each recording by time)": tally.backwards,
        "Rows with the same time as the row before, dropped": tally.standing,
        "Windows across the border between train and test, left out": int((parts == DROPPED).sum()),
    }
    return [f"{words}: {n:,}." for words, n in reasons.items() if n]


class _WindowFile:
    """Windows on disk while they are made: appended in batches, packed into an npz at the end."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        self.shape: tuple[int, ...] = ()
        self._path = path
        self._stream = open(path, "wb")  # noqa: SIM115  # closed by close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def append(self, windows: NDArray[np.float32]) -> None:
        """Add (n, channels, time)."""
        self.shape = windows.shape[1:]
        self.count += len(windows)
        self._stream.write(np.ascontiguousarray(windows, "<f4").tobytes())

    def pack(self, npz: Path, order: NDArray[np.int64], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write an npz with the windows `order` as X, and `arrays`, atomically."""
        self._stream.flush()
        with replacing(npz) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=_FAST) as archive:
            with archive.open("X.npy", "w", force_zip64=True) as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": (len(order), *self.shape)}
                np.lib.format.write_array_header_1_0(member, header)
                for block in self._blocks(order):
                    member.write(block)
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    def _blocks(self, order: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the bytes of the windows `order`, neighbours together."""
        size = 4 * int(np.prod(self.shape))
        most = max(1, _BLOCK_BYTES // size)
        edges = np.flatnonzero(np.diff(order) != 1) + 1
        with open(self._path, "rb") as stream:
            for stretch in np.split(order, edges):
                for at in range(0, len(stretch), most):
                    stream.seek(int(stretch[at]) * size)
                    yield stream.read(min(most, len(stretch) - at) * size)
