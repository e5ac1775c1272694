"""Finished runs as lines of a CSV file that outlives their folder, so that another machine goes on where one stopped.

A line has the scores of a run in percent (as the paper's tables print them), its CPU seconds, and what identifies it:

run         digest of its spec: data, pair, method, seed, settings and goal; runs that have a line are finished
settings    digest of method, settings and scaling alone, the same for all runs of a table's row
data        fingerprint of the data set

`backbone` and `normalise` tell rows of one name apart: the paper's encoder from the CNN, raw from scaled channels.

Lines of earlier versions have only dataset, row, pair, seed and scores: tables read them, but they finish no run.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from transpl._utils.errors import InputError, first_repeated, unreadable_file
from transpl._utils.files import third_party, write_text
from transpl._utils.locks import file_lock
from transpl.benchmark.measures import has_metric, metric_value
from transpl.benchmark.plan import Plan, settings_of, settings_without_seed
from transpl.benchmark.run_spec import RunSpec, backbone_of, run_identity
from transpl.benchmark.store import Result
from transpl.datasets.pairs import parse_pair
from transpl.methods.method_settings import BACKBONES

if TYPE_CHECKING:
    from transpl.benchmark.runner import RunOutcome

KEYS = ("dataset", "row", "pair", "seed")
PLACE = (*KEYS, "backbone", "normalise")
SCORES = ("accuracy", "macro_f1", "calibration_error", "seconds", "binary_f1")
COLUMNS = (
    *KEYS,
    *SCORES,
    *("label_accuracy", "label_macro_f1", "mse", "dead_codes", "cpu_seconds", "backbone", "normalise"),
    *("method", "goal", "settings", "run", "data", "version"),
)
_OF_TEST = ("accuracy", "macro_f1", "calibration_error", "binary_f1")
_OF_LABELS = ("accuracy", "macro_f1")
_OF_CODES = ("mse", "dead_codes")
_DECIMALS = 3
_LONGEST = 1e9  # seconds

Line = dict[str, str]
RowNames = Mapping[tuple[str, str, str], str]  # (data set, digest of method and settings, goal) -> row


def row_names(plans: Iterable[Plan]) -> dict[tuple[str, str, str], str]:
    """What the lines of each row are called: its label, and the settings that differ from the plan's preset."""
    names = {}
    for plan in plans:
        for row in plan.rows:
            usual = settings_without_seed(settings_of([row.method], plan.dataset, preset=plan.preset)[row.method])
            in_label = row.changes if row.label != row.method else {}
            for settings in plan.settings_for(row):
                other = [
                    f"{name}={value}"
                    for name, value in settings.items()
                    if usual.get(name) != value and name not in in_label
                ]
                identity = run_identity(row.method, settings, plan.normalise)
                names[plan.dataset, identity, row.goal] = " ".join([row.label, *other])
    return names


def line_of(spec: RunSpec, result: Result, names: RowNames) -> Line:
    """The line of a finished run."""
    settings = run_identity(spec.method, spec.settings, spec.normalise)
    labels = result.pseudo_labels.get("initial", {})
    numbers = {
        **{name: 100 * result.test[name] for name in _OF_TEST if name in result.test},
        **{f"label_{name}": 100 * labels[name] for name in _OF_LABELS if name in labels},
        "seconds": result.seconds.get("adapt"),
        "cpu_seconds": result.cpu_seconds,
        **{name: metric_value("labels", result, name) for name in _OF_CODES if has_metric(name, result)},
    }
    about = {
        "dataset": spec.dataset,
        "row": names.get((spec.dataset, settings, spec.goal), spec.method),
        "pair": spec.pair,
        "seed": str(spec.seed),
        "backbone": backbone_of(spec.method, spec.settings),
        "normalise": spec.normalise,
        "method": spec.method,
        "goal": spec.goal,
        "settings": settings,
        "run": spec.digest,
        "data": spec.data,
        "version": result.versions.get("transpl", ""),
    }
    return about | {name: str(round(value, _DECIMALS)) for name, value in numbers.items() if value is not None}


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, every value as it is written; a file that has none of our columns is refused."""
    with third_party(path, "not readable as CSV", "Write it again."):
        # Not by pandas, which takes minutes for a header of very many equal names.
        with open(path, newline="", encoding="utf-8-sig") as stream:
            columns, *rows = [row for row in csv.reader(stream, strict=True) if row] or [[]]
        if twice := first_repeated(columns):
            raise ValueError(f"column {twice} twice")
        if odd := [i for i, row in enumerate(rows, start=2) if len(row) != len(columns)]:
            raise ValueError(f"row {odd[0]} is not as long as the header")
    missing = [name for name in KEYS if name not in columns]
    if missing:
        problem = f"not a file of runs: no column {', '.join(missing)}"
        raise unreadable_file(path, problem=problem, advice="`transpl bench --save-lines` writes such files.")
    return [dict(zip(columns, row, strict=True)) for row in rows]


def finished_runs(paths: Iterable[Path]) -> set[str]:
    """The digests of the runs that have a line."""
    return {line["run"] for path in paths for line in read_lines(path) if line.get("run")}


def add_lines(path: Path, lines: Sequence[Line]) -> None:
    """Append the lines of runs that the file lacks; other processes may append at the same time."""
    with file_lock(path.with_name(f".{path.name}.lock")):
        before = read_lines(path) if path.exists() else []
        known = {line.get("run") for line in before}
        new = [line for line in lines if line["run"] not in known]
        if not new:
            return
        columns = list(dict.fromkeys([*(before[0] if before else ()), *COLUMNS]))
        text = io.StringIO()
        pd.DataFrame([*before, *new], columns=columns).to_csv(text, index=False, lineterminator="\n")
        write_text(path, text.getvalue())


def saving_lines(outcomes: Iterable[RunOutcome], path: Path, names: RowNames) -> Iterator[RunOutcome]:
    """Pass outcomes on, each after its line is in the file."""
    for outcome in outcomes:
        if outcome.result is not None:
            add_lines(path, [line_of(outcome.spec, outcome.result, names)])
        yield outcome


class RowDescription(NamedTuple):
    """What a reader has to know of a row.

    label : its name, with backbone and scaling where they are not the paper's
    backbone : the network that the method trains; empty if it trains none
    changes : what the label says besides method and backbone: settings, scaling, and the row if it is not the method
    """

    label: str
    method: str
    backbone: str
    changes: dict[str, str]


class LineRun(NamedTuple):
    """The run of a line.

    identity : of its row: the digest of method and settings, or, in lines of earlier versions, its name
    spec : without settings
    """

    identity: str
    row: RowDescription
    spec: RunSpec
    result: Result


def runs_of_lines(path: Path) -> dict[str, LineRun]:
    """The runs of a file, each under a name of its own; of an earlier version only where no newer one replaces them."""
    found: dict[str, LineRun] = {}
    newer: set[str] = set()
    for i, line in enumerate(read_lines(path), start=2):
        try:
            run = _parse(line)
        except (InputError, ValueError) as error:
            raise unreadable_file(path, problem=f"line {i} is not a run ({error})", advice="Correct it.") from None
        usual = {"backbone": BACKBONES[0], "normalise": "none"}
        place = " ".join(line.get(name) or usual.get(name, "") for name in PLACE)
        found[line.get("run") or place] = run
        if line.get("run"):
            newer.add(place)
    return {key: run for key, run in found.items() if key not in newer}


def identity_of_row(label: str) -> str:
    """What identifies a row by its name alone."""
    return f"row {label}"


def _parse(line: Line) -> LineRun:
    def number(name: str, most: float = _LONGEST) -> float | None:
        if not line.get(name):
            return None
        value = float(line[name])
        if not 0 <= value <= most:
            raise ValueError(f"{name}: {value} is not in 0..{most:g}")
        return value

    def scores(names: Iterable[str], prefix: str = "") -> dict[str, float]:
        given = {name: number(prefix + name, 100) for name in names}
        return {name: value / 100 for name, value in given.items() if value is not None}

    source, target = parse_pair(line["pair"])
    method, goal = line.get("method") or _split_row(line["row"])[0], line.get("goal") or "adapt"
    seed, normalise = int(line["seed"]), line.get("normalise") or "none"
    spec = RunSpec(line["dataset"], line.get("data", ""), source, target, method, seed, {}, goal, normalise)
    labels, seconds, version = scores(_OF_LABELS, "label_"), number("seconds"), line.get("version")
    values: dict[str, Any] = {
        "test": scores(_OF_TEST),
        "pseudo_labels": {"initial": labels} if labels else {},
        "seconds": {} if seconds is None else {"adapt": seconds},
        "versions": {"transpl": version} if version else {},
        "cpu_seconds": number("cpu_seconds"),
    }
    result = Result(spec.dataset, (source, target), method, spec.seed, {}, **values)
    backbone = line.get("backbone", "") if line.get("run") else backbone_of(method, {})
    about = describe_row(line["row"], method, backbone, normalise)
    return LineRun(line.get("settings") or identity_of_row(line["row"]), about, spec, result)


def describe_row(row: str, method: str, backbone: str, normalise: str) -> RowDescription:
    """Describe the row of a line."""
    name, changes = _split_row(row)
    own = {"row": name} if name != method else {}
    scaling = {"normalise": normalise} if normalise != "none" else {}
    network = {"backbone": backbone} if backbone not in ("", BACKBONES[0]) else {}
    label = ", ".join([row, *(f"{key}={value}" for key, value in (network | scaling).items())])
    return RowDescription(label, method, backbone, own | changes | scaling)


def _split_row(row: str) -> tuple[str, dict[str, str]]:
    """The label of a table's row, and the settings that `row_names` added."""
    name, *changes = re.split(r" (?=\w+=)", row)
    return name, {key: value for key, _, value in (each.partition("=") for each in changes)}
