"""What files hold and what adapting would make of them, before anything is trained."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError
from transpl._utils.wording import counted
from transpl.council.shifts.shift import find_triads, is_rotation_rate
from transpl.datasets.recordings.array_files import ARRAYS, holds_windows, read_arrays
from transpl.datasets.recordings.guess import guess_columns
from transpl.datasets.recordings.reading import Recordings, read_recordings, read_table
from transpl.datasets.recordings.several import files_of, read_several
from transpl.datasets.recordings.tables import TABLES, as_text, has_suffix

_ROLES: tuple[str, ...] = ("time_col", "label_col", "group_col", "domain_col")
_UNITS = {"g": (0.8, 1.25), "m/s2": (8.0, 12.5), "mg": (800.0, 1250.0)}  # lengths of gravity
_CLIPPED = 0.01  # share of samples at the very end of a channel's range
_FEW = 10  # windows of a class
_SCALE = 3.0  # how much more or less a channel may vary than the source's
_NEAR = 0.1  # of mean 0 and deviation 1, as standardised channels have
_MOST_WINDOWS = 2000  # that are looked at


@dataclass
class FileCheck:
    """What one file holds; `problem` says why it cannot be used."""

    path: Path
    problem: str | None = None
    rows: int | None = None
    recordings: int | None = None
    domains: dict[str, int] = field(default_factory=dict)
    rows_per_second: float | None = None
    seconds: float | None = None
    channels: dict[str, dict[str, float]] = field(default_factory=dict)
    sensors: list[dict[str, Any]] = field(default_factory=list)
    windows: int = 0
    window: int = 0
    step: int | None = None
    classes: dict[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    left_out: float = 0.0
    changes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.__dict__, "path": str(self.path)}

    def lines(self) -> list[str]:
        """What a person reads."""
        if self.problem is not None:
            return [f"{self.path.name}: cannot be used", f"  {self.problem}"]
        found = [f"{self.path.name}: {self._extent()}"]
        sensors = "; ".join(f"{' '.join(each['axes'])} ({each['unit']})" for each in self.sensors)
        channels = ", ".join(self.channels)
        found.append(f"  channels   {channels}{f'   sensors: {sensors}' if sensors else ''}")
        duration = f" ({self.window / self.rows_per_second:.3g} s)" if self.rows_per_second else ""
        step = f", step {self.step}" if self.step else ", already cut"
        lost = f", {100 * self.left_out:.0f} % of the rows are in none" if self.left_out >= 0.01 else ""
        found.append(f"  windows    {self.windows:,} of {self.window} samples{duration}{step}{lost}")
        if len(self.domains) > 1:
            found.append(f"  domains    {_counted(self.domains)}")
        if self.classes:
            rest = f", {self.unlabelled:,} without label" if self.unlabelled else ""
            found.append(f"  classes    {_counted(self.classes)}{rest}")
        else:
            found.append("  classes    no labels")
        found += [f"  done       {line}" for line in self.changes]
        found += [f"  not used   {', '.join(self.unused)}"] if self.unused else []
        found += [f"  look at    {line}" for line in self.odd]
        return found

    def _extent(self) -> str:
        if self.rows is None:
            return counted(self.windows, "window")
        clock = ""
        if self.rows_per_second is not None and self.seconds is not None:
            clock = f", {self.seconds:,.0f} s at {self.rows_per_second:.4g} per second"
        return f"{counted(self.rows, 'row')} in {counted(self.recordings or 1, 'recording')}{clock}"


@dataclass
class FilesCheck:
    """What several files hold, what they have in common, and the command that adapts from the first to the others."""

    files: list[FileCheck]
    columns: dict[str, str]
    guessed: list[str]
    together: list[str]
    plan: str | None
    command: str | None

    @property
    def usable(self) -> bool:
        """Whether every file can be read."""
        return all(each.problem is None for each in self.files)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.__dict__, "files": [each.as_json() for each in self.files]}

    def lines(self) -> list[str]:
        """What a person reads."""
        found = [
            f"{_option(name)} {self.columns[name]}   (a guess; give it if it is another one)" for name in self.guessed
        ]
        for each in self.files:
            found += ["", *each.lines()] if found else each.lines()
        found += ["", "Together"] if self.together else []
        found += [f"  {line}" for line in self.together]
        if self.plan is not None:
            found += ["", self.plan]
        if self.command is not None:
            found.append(f"  {self.command}")
        return found


def check_files(paths: Sequence[Path], *, label_col: str | None = None, **reading: Any) -> FilesCheck:
    """Look at files as `transpl adapt` would read them: the first as the source, the others as targets.

    Parameters
    ----------
    paths
        files, or folders with the recordings of one person
    label_col, **reading
        as in `read_recordings`; columns for the time, the label, the recording and the person are guessed unless given
    """
    given = {**reading, **({} if label_col is None else {"label_col": label_col})}
    columns = _guess(paths, given)
    guessed = sorted(set(columns) - set(given))
    options: dict[str, Any] = {**columns, **given}
    checks: list[FileCheck] = []
    read: list[Recordings | None] = []
    for path in paths:
        first = next((found for found in read if found is not None), None)
        found = _read(path, options, first)
        checks.append(FileCheck(path, problem=found) if isinstance(found, str) else _look_at(path, found))
        read.append(None if isinstance(found, str) else found)
    known = {name: str(options[name]) for name in _ROLES if name in options}
    together = _compare(checks, read)
    plan, command = _plan(checks, known, given)
    return FilesCheck(checks, known, guessed, together, plan, command)


def _guess(paths: Sequence[Path], given: dict[str, Any]) -> dict[str, str]:
    """Guess columns from the first table; a file that cannot be read says so later."""
    for path in paths:
        try:
            file = files_of(path)[0]
            if not has_suffix(file, TABLES) or (has_suffix(file, ARRAYS) and holds_windows(read_arrays(file))):
                continue
            return guess_columns(read_table(file, sep=given.get("sep"), decimal=given.get("decimal")), given)
        except InputError:
            continue
    return {}


def _read(path: Path, options: dict[str, Any], first: Recordings | None) -> Recordings | str:
    """Read a file like the first one, so that windows and channels are those of the source; say why it cannot be."""
    arguments = {"labels_only_score": first is not None, **options}
    if first is not None:
        arguments["window"] = first.X.shape[2]
        if first.named:
            arguments["channels"] = list(first.channel_names)
        if first.interval is not None:
            arguments["interval"] = first.interval
    try:
        return read_several(files_of(path), read_recordings, **arguments)
    except InputError as error:
        return str(error)


def _look_at(path: Path, found: Recordings) -> FileCheck:
    check = FileCheck(path, windows=len(found), window=found.X.shape[2], step=found.step)
    account = found.account
    if account is not None:
        check.rows, check.recordings = account.rows, account.recordings
        check.left_out, check.changes, check.unused = account.share_left_out, account.changes(), list(account.unused)
        if found.interval:
            check.rows_per_second, check.seconds = 1 / found.interval, account.rows * found.interval
    if found.domain is not None:
        names, counts = np.unique(found.domain, return_counts=True)
        check.domains = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if found.y is not None:
        names, counts = np.unique(found.y[found.y != ""], return_counts=True)
        check.classes = dict(zip(names.tolist(), counts.tolist(), strict=True))
        check.unlabelled = int((found.y == "").sum())
    some = found.X[:: max(1, len(found) // _MOST_WINDOWS)].astype(np.float64)
    for c, name in enumerate(found.channel_names):
        values = some[:, c]
        check.channels[name] = {
            "lowest": float(values.min()),
            "highest": float(values.max()),
            "mean": float(values.mean()),
            "deviation": float(values.std()),
        }
    check.sensors = _sensors(some, found.channel_names)
    check.odd = [line.partition(": ")[2] for line in found.warnings] + _oddities(check, some, found.channel_names)
    return check


def _sensors(some: NDArray[np.float64], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the axes x, y, z that belong together by their names, and the unit that the length of gravity suggests."""
    found = []
    for triad in find_triads(None, names, len(names)):
        axes = [names[c] for c in triad]
        if is_rotation_rate(triad, names):
            unit = "rotation rate"
        else:
            length = float(np.median(np.linalg.norm(some[:, list(triad)].mean(axis=2), axis=1)))
            near = [unit for unit, (low, high) in _UNITS.items() if low <= length <= high]
            unit = f"acceleration in {near[0]}" if near else "no gravity in it"
        found.append({"axes": axes, "unit": unit})
    return found


def _oddities(check: FileCheck, some: NDArray[np.float64], names: tuple[str, ...]) -> list[str]:
    found = []
    for c, name in enumerate(names):
        values, facts = some[:, c], check.channels[name]
        if facts["lowest"] == facts["highest"]:
            found.append(f"{name} never changes ({facts['lowest']:g}).")
            continue
        twin = next((other for other in names[:c] if np.array_equal(values, some[:, names.index(other)])), None)
        if twin is not None:
            found.append(f"{name} is the same as {twin}.")
        ends = max((values == facts["lowest"]).mean(), (values == facts["highest"]).mean())
        if ends > _CLIPPED and len(np.unique(values)) > _FEW:
            found.append(f"{name} may be clipped: {100 * ends:.0f} % of its samples are at the end of its range.")
    if len(names) > 1 and all(
        abs(facts["mean"]) < _NEAR and abs(facts["deviation"] - 1) < _NEAR for facts in check.channels.values()
    ):
        found.append("all channels look standardised, so that a turned sensor or another unit cannot be noticed.")
    if "-1" in check.classes:
        found.append("-1 is taken as a class. Empty these cells if it means that nobody knows.")
    few = {name: n for name, n in check.classes.items() if n < _FEW}
    if few:
        found.append(f"few windows of {_counted(few)}.")
    return found


def _compare(checks: list[FileCheck], read: list[Recordings | None]) -> list[str]:
    """Say what is different between the first file and each of the others."""
    source = checks[0]
    if source.problem is not None:
        return []
    others = (check for check, found in zip(checks[1:], read[1:], strict=True) if found is not None)
    return [line for check in others for line in (*_other_labels(check, source), *_other_signals(check, source))]


def _other_labels(check: FileCheck, source: FileCheck) -> Iterator[str]:
    name = check.path.name
    if check.path.resolve() == source.path.resolve():
        yield f"{name} is given twice."
    unknown = sorted(set(check.classes) - set(source.classes))
    if source.classes and unknown:
        yield f"{name} has labels that {source.path.name} lacks: {', '.join(unknown)}."
    absent = sorted(set(source.classes) - set(check.classes))
    if check.classes and absent:
        yield f"{name} has no window labelled {', '.join(absent)}."


def _other_signals(check: FileCheck, source: FileCheck) -> Iterator[str]:
    name = check.path.name
    for here, there in zip(check.sensors, source.sensors, strict=False):
        if here["unit"] != there["unit"]:
            yield f"{' '.join(here['axes'])}: {here['unit']} in {name}, {there['unit']} in {source.path.name}."
    for channel, facts in check.channels.items():
        usual = source.channels.get(channel, {}).get("deviation", 0.0)
        factor = facts["deviation"] / usual if usual > 0 else 1.0
        if not 1 / _SCALE <= factor <= _SCALE:
            yield f"{channel} varies {factor:.2g} times as much in {name} as in {source.path.name}."


def _plan(checks: list[FileCheck], columns: dict[str, str], given: dict[str, Any]) -> tuple[str | None, str | None]:
    """What `transpl adapt` would do with the files, and the command."""
    source, targets = checks[0], [check for check in checks[1:] if check.problem is None]
    if source.problem is not None:
        return None, None
    if len(source.classes) < 2:
        return (
            f"adapt needs labels of two classes or more in {source.path.name}: name their column (--label-col).",
            None,
        )
    learned = f"adapt would learn {counted(len(source.classes), 'class')} from"
    plan = f"{learned} {counted(source.windows - source.unlabelled, 'window')} of {source.path.name}"
    if targets:
        scored = sum(sum(check.classes.values()) for check in targets)
        windows = sum(check.windows for check in targets)
        plan += f" and label {counted(windows, 'window')}"
        plan += f", of which {scored:,} have labels to score by" if scored else ""
    words = ["transpl", "adapt", "--source", str(source.path)]
    words += ["--target", *(str(check.path) for check in targets)] if targets else ["--target", "FILE"]
    for name, value in {**columns, **given}.items():
        words += [_option(name), ",".join(value) if isinstance(value, list) else str(as_text([value])[0])]
    return f"{plan}:", shlex.join([*words, "--out", "results"])


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())
