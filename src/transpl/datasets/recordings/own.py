"""A folder of a user's own recordings to a prepared data set, with a card that says what was left out and why.

One file is read at a time, a csv a chunk at a time, and windows go to the disk as they are cut: neither a file nor
the data set has to fit in memory. The result does not depend on the size of the chunks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_int, check_positive, invalid
from transpl.datasets.cards import Provenance, card_path, publish
from transpl.datasets.pairs import default_pairs
from transpl.datasets.prepare import archive_origin, refuse_to_replace, scratch_folder
from transpl.datasets.prepared import prepared_path
from transpl.datasets.recipe import Log
from transpl.datasets.recordings.own_collecting import Own, OwnFiles, collect, title
from transpl.datasets.recordings.own_cutting import Tally
from transpl.datasets.recordings.own_rows import Layout, find_tables, settle_channels
from transpl.datasets.recordings.own_runs import Sizes
from transpl.datasets.recordings.own_split import (
    DROPPED,
    check_parts,
    check_split,
    choose_split,
    describe_gaps,
    split_windows,
)
from transpl.datasets.recordings.window_file import WindowFile

CHUNK_ROWS = 200_000
DOMAIN_FROM = ("file", "folder")


def prepare_own(
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
    split: str | None = None,
    test_share: float = 0.3,
    seed: int = 0,
    home: Path | None = None,
    force: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    say: Log = lambda _: None,
) -> Path:
    """Cut the csv and parquet files in `folder` into windows, write `name`.npz and its card, and return the npz.

    domain_col, domain_from : the column that says whose a row is; or "file" or "folder" (default: "file")
    group_col : the column that names the recording; without it a file is one recording per domain
    channels : default: the columns of the first file that are left and hold numbers, all but 5 % of the first rows
    time_col : the clock. Rows are taken in the file's order, for a file need not fit in memory: sort them before
    rate : resample every uninterrupted run to so many samples per unit of `time_col` (per second for dates), linearly
    gap : a longer step of `time_col` cuts; default: 1.5 times the recording's usual step
    split : "by_group" or "by_time"; None: whichever suits the recordings, see `transpl.datasets.recordings.own_split`
    """
    step = max(1, window // 2) if step is None else step
    _check(window=window, step=step, rate=rate, gap=gap, time_col=time_col, chunk_rows=chunk_rows)
    check_split(split, test_share)
    check_int("seed", seed, least=0)
    domain_from = _domain_rule(domain_col, domain_from)
    npz = prepared_path(name, home)
    refuse_to_replace(npz, force)
    root = Path(folder)
    tables = find_tables(root)
    names = None if channels is None else tuple([channels] if isinstance(channels, str) else channels)
    layout = settle_channels(tables[0], Layout(label_col, domain_col, group_col, time_col, names), say)
    sizes = Sizes(window, step, rate)
    with scratch_folder(npz.parent) as scratch, WindowFile(scratch / "windows") as windows:
        own = collect(OwnFiles(root, tables, layout, domain_from), sizes, gap, chunk_rows, windows, say)
        split, choice = (split, "") if split else choose_split(own.placed, own.names, test_share, seed)
        parts = split_windows(own.placed, split, test_share, seed)
        check_parts(own.placed, parts, own.names.domains, split)
        notes = [*_notes(own.tally, parts, rate), *own.remarks, *describe_gaps(own.placed, parts, own.names)]
        notes += [choice] if choice else []
        _pack(scratch / npz.name, windows, own, parts, layout.channels or ())
        options = {**layout._asdict(), "domain_from": domain_from, **sizes._asdict(), "gap": gap}
        options |= {"split": split, "test_share": test_share, "seed": seed}
        card = publish(scratch / npz.name, npz, _provenance(root, tables, options, notes))
    for note in notes:
        say(f"{name}: {note}")
    say(f"{name}: {card['windows']:,} windows of {len(card['counts'])} domains; wrote {npz} and {card_path(npz).name}")
    return npz


def _check(
    *, window: int, step: int, rate: float | None, gap: float | None, time_col: str | None, chunk_rows: int
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


def _pack(npz: Path, windows: WindowFile, own: Own, parts: NDArray[np.int8], channels: tuple[str, ...]) -> None:
    """Write the windows that are kept, and what they are."""
    kept = np.flatnonzero(parts != DROPPED)
    domains = np.unique(own.placed.domain[kept]).tolist()
    arrays: dict[str, NDArray[Any]] = {
        "y": own.placed.y[kept],
        "domain": own.placed.domain[kept],
        "split": parts[kept],
        "class_names": np.array(own.names.classes),
        "channel_names": np.array(channels),
        "pairs": np.array(default_pairs(domains), np.int64).reshape(-1, 2),
        "domain_names": np.array([own.names.domains[domain] for domain in domains]),
        "group": own.placed.recording[kept],
        "group_names": np.array(own.recordings),
        "start": own.placed.first[kept],
    }
    windows.pack(npz, own.order[kept], arrays)


def _provenance(root: Path, tables: list[Path], options: dict[str, Any], notes: list[str]) -> Provenance:
    return Provenance(
        made_by="make",
        title=f"recordings in {root.resolve().name}",
        rule=(
            "Windows of one recording, label and uninterrupted run. "
            f"Domain: {options['domain_col'] or options['domain_from']}. Split: {options['split']}."
        ),
        origin=[{**archive_origin(path), "name": title(path, root)} for path in tables],
        options=options,
        notes=notes,
    )


def _notes(tally: Tally, parts: NDArray[np.int8], rate: float | None) -> list[str]:
    """One sentence for every reason why rows are in no window, and how many."""
    unit = "Rows" if rate is None else f"Samples (at {rate:g} per unit of time)"
    reasons = {
        "Rows read": tally.rows,
        "Rows with a missing value": tally.missing,
        "Rows without label": tally.unlabelled,
        f"{unit} left over before a gap in time or a missing value": tally.before_gap,
        f"{unit} left over before a change of label, because no window mixes labels": tally.before_label,
        f"{unit} left over at the end of a recording": tally.at_end,
        f"{unit} between windows, because the step is longer than the window": tally.between,
        "Rows with an earlier time than the row before (sort each recording by time)": tally.backwards,
        "Rows with the same time as the row before, which cut": tally.standing,
        "Windows across the border between train and test, left out": int((parts == DROPPED).sum()),
    }
    return [f"{words}: {n:,}." for words, n in reasons.items() if n]
