"""The few windows worth labelling: list them in a csv for a person to fill in, and read that csv back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl import TransPL
from transpl._utils.errors import InputError, check_int, first_repeated, invalid, unreadable_file
from transpl._utils.files import is_stream
from transpl.council import load_explanation
from transpl.datasets.recordings.reading import Recordings
from transpl.datasets.recordings.tables import as_text, read_table, require_columns
from transpl.jobs.folder import CHECK, PROBABILITY, TRUE_LABEL, require_complete_predictions, require_finished
from transpl.jobs.target import origin_of, predictions_table

ORIGIN = ("window", "domain", "group", "start")
COLUMNS = (*ORIGIN, "label", "confidence", "runner_up", "runner_up_probability", TRUE_LABEL, "explanation")
_TEXT = ("domain", "group", "label", "runner_up", TRUE_LABEL, "explanation")
_ROUNDING = 6e-4  # spreadsheets may keep three digits only
_SAME_RECORDING = "Label the windows of this very recording, read in the same way."
_Explain = Callable[[NDArray[np.int64]], Sequence[str]]  # row numbers -> a sentence for each


def least_confident(labels: ArrayLike, confidence: ArrayLike, n: int, *, spread: bool = False) -> NDArray[np.int64]:
    """Positions of the n least confident windows, least confident first; of equal ones, the first.

    Parameters
    ----------
    confidence
        or any other number by which to sort, such as the column `check` of predictions.csv
    spread
        take turns among the labels: the least confident window of each, then the second ones, and so on

    Examples
    --------
    >>> from transpl.jobs import least_confident
    >>> least_confident(["a", "a", "b"], [0.5, 0.6, 0.9], 2)
    array([0, 1])
    >>> least_confident(["a", "a", "b"], [0.5, 0.6, 0.9], 2, spread=True)
    array([0, 2])
    """
    table = pd.DataFrame({"label": np.asarray(labels), "confidence": np.asarray(confidence, dtype=np.float64)})
    table = table.sort_values("confidence", kind="stable")
    if spread:
        turn = table.groupby("label").cumcount()
        table = table.loc[turn.sort_values(kind="stable").index]
    return table.index.to_numpy(np.int64)[:n]


def review_recordings(
    model: TransPL, recordings: Recordings, n: int, *, spread: bool = False, earlier: Path | None = None
) -> pd.DataFrame:
    """List the n windows of recordings to check first, as the model labels them now; see `check_order`.

    Parameters
    ----------
    spread
        as in `least_confident`
    earlier
        file of an earlier list, if there is one. Labels typed into it are kept; a file that is not a list of these
        windows is refused
    """

    def explain(rows: NDArray[np.int64]) -> list[str]:
        found = model.explain(recordings.X[rows], channel_names=recordings.channel_names, nearest=0)
        return [found.sentence(position) for position in range(len(found))]

    table = predictions_table(model, recordings.X, origin_of(recordings))
    typed = None if earlier is None else _typed_rows(earlier, table)
    return _list(table, explain, n, spread, typed)


def review_job(folder: Path, n: int, *, spread: bool = False, earlier: Path | None = None) -> pd.DataFrame:
    """List the n windows of a job to check first, without those that a person labelled before; see `check_order`.

    Parameters
    ----------
    folder
        results of `transpl adapt`
    spread, earlier
        as in `review_recordings`
    """
    require_finished(folder)
    path = folder / "predictions.csv"
    if not path.is_file():
        advice = "Point at a folder written by transpl adapt, or give recordings (--input)."
        raise unreadable_file(folder, problem="no predictions.csv in it", advice=advice)
    table = read_table(path, text=["domain", "group", "label", TRUE_LABEL], exact=True)  # the last bit decides ranks
    require_complete_predictions(folder, table)
    if odd := _odd_column(table):
        problem = f"not written by transpl adapt, or damaged (column {odd})"
        raise unreadable_file(path, problem=problem, advice="Run transpl adapt again.")
    typed = None if earlier is None else _typed_rows(earlier, table)
    if TRUE_LABEL in table:
        table = table[as_text(table[TRUE_LABEL]) == ""].reset_index(drop=True)
    return _list(table, _saved_sentences(folder / "explanation.npz"), n, spread, typed)


def read_labels(paths: Sequence[Path], recordings: Recordings, classes: Sequence[str]) -> dict[int, str]:
    """Read the labels that a person typed into lists: {window: label} of all rows with a `true_label`.

    A file of other windows or classes is refused. Windows are known by their number, and by domain, group and start
    where both the file and the recordings have them.
    """
    found: dict[int, str] = {}
    known = origin_of(recordings)
    for path in paths:
        table = read_table(path, text=[TRUE_LABEL, "domain", "group"])
        for column in ("window", TRUE_LABEL):
            require_columns(table, path, labels=column)
        table = table[as_text(table[TRUE_LABEL]) != ""].reset_index(drop=True)
        numbers = pd.to_numeric(table["window"], errors="coerce")
        unknown = ~(numbers.between(0, len(known) - 1) & (numbers % 1 == 0))
        if unknown.any():
            expected, got = f"windows 0..{len(known) - 1} of the target", f"window {table['window'][unknown].iloc[0]}"
            raise invalid(path.name, expected=expected, got=got, advice=_SAME_RECORDING)
        windows, labels = numbers.astype(int).tolist(), as_text(table[TRUE_LABEL]).tolist()
        _check_origin(table, known.iloc[windows], path)
        again = first_repeated([*found, *windows])
        for window, label in zip(windows, labels, strict=True):
            if label not in classes:
                expected, got = f"classes of the source ({', '.join(classes)})", f"{label!r} for window {window}"
                advice = "Check the spelling; a class that the source does not have cannot be learnt from a few labels."
                raise invalid(path.name, expected=expected, got=got, advice=advice)
            if window == again:
                got = f"window {window} again"
                raise invalid(path.name, expected="every window once", got=got, advice="Keep one row.")
        found |= dict(zip(windows, labels, strict=True))
    if not found:
        names = ", ".join(path.name for path in paths)
        raise invalid("labels", expected=f"a {TRUE_LABEL} in some row", got=f"none in {names}", advice="Fill some in.")
    return found


def _odd_column(table: pd.DataFrame) -> str | None:
    """A column of predictions that is absent or holds something else than `_list` needs; None if all are sound."""
    if odd := sorted({"window", "label", "confidence"} - set(table.columns)):
        return odd[0]
    if sum(str(name).startswith(PROBABILITY) for name in table) < 2:
        return f"{PROBABILITY}..."
    numbers = {name: table[name] for name in ("window", "confidence", CHECK) if name in table}
    sound = {name: pd.api.types.is_numeric_dtype(each) and np.isfinite(each).all() for name, each in numbers.items()}
    sound["window"] = sound["window"] and pd.api.types.is_integer_dtype(table["window"])
    return next((name for name, is_sound in sound.items() if not is_sound), None)


def _check_origin(table: pd.DataFrame, known: pd.DataFrame, path: Path) -> None:
    """Raise unless the rows of a list come from the same domain, group and start as the windows they number."""
    for column in ORIGIN[1:]:
        if column in table and column in known:
            here, there = as_text(known[column]).tolist(), as_text(table[column]).tolist()
            for window, expected, got in zip(known["window"], here, there, strict=True):
                if got != expected:
                    place = f"{column} {expected!r} for window {window}, as in the target"
                    raise invalid(path.name, expected=place, got=repr(got), advice=_SAME_RECORDING)


def _list(table: pd.DataFrame, explain: _Explain, n: int, spread: bool, typed: pd.DataFrame | None) -> pd.DataFrame:
    """Choose n rows of a table of predictions; labels typed into an earlier list are kept."""
    check_int("n", n, least=1)
    by = CHECK if CHECK in table else "confidence"  # results of earlier versions have no ranks
    rows = least_confident(as_text(table["label"]), table[by], n, spread=spread)
    chosen = table.iloc[rows].reset_index(drop=True)
    columns = [name for name in chosen.columns if name.startswith(PROBABILITY)]
    p = chosen[columns].to_numpy(np.float64)
    second = np.argsort(-p, axis=1, kind="stable")[:, 1]
    found = pd.DataFrame(
        {
            **{name: chosen[name] for name in ORIGIN if name in chosen},
            "label": chosen["label"],
            "confidence": chosen["confidence"],
            "runner_up": np.array([name.removeprefix(PROBABILITY) for name in columns])[second],
            "runner_up_probability": p[np.arange(len(p)), second],
            TRUE_LABEL: "",
            "explanation": explain(chosen["window"].to_numpy(np.int64)),
        }
    )
    if typed is None or typed.empty:
        return found
    labels = dict(zip(as_text(typed["window"]), typed[TRUE_LABEL], strict=True))
    windows = as_text(found["window"])
    found[TRUE_LABEL] = [labels.get(window, "") for window in windows]
    rest = typed[~np.isin(as_text(typed["window"]), windows)]  # no longer listed: they follow at the end
    return pd.concat([found, rest.reindex(columns=found.columns)], ignore_index=True) if len(rest) else found


def _saved_sentences(path: Path) -> _Explain:
    """Sentences of the windows that a job explained; the others have none."""
    if not path.is_file():
        return lambda rows: [""] * len(rows)
    found = load_explanation(path)
    place = {int(window): position for position, window in enumerate(found.windows)}
    return lambda rows: [found.sentence(place[row]) if row in place else "" for row in rows.tolist()]


def _typed_rows(path: Path, known: pd.DataFrame) -> pd.DataFrame:
    """The rows of the list at `path` that have a label; none if there is no list yet.

    known : all windows as they are labelled now. A file that is not a list, or whose labels are not of these windows,
        is refused. They are if origin, label and confidence agree, or if the label was given to the job before.
    """
    if is_stream(path) or not path.is_file() or path.stat().st_size == 0:
        return pd.DataFrame(columns=list(COLUMNS))
    try:
        rows = read_table(path, text=_TEXT)
    except InputError:
        raise _refused(f"{path}, which cannot be read as such") from None
    others = [name for name in rows.columns if name not in COLUMNS]
    if others or not {"window", TRUE_LABEL} <= set(rows.columns):
        raise _refused(f"{path}, with column {others[0]!r}" if others else f"{path}, without its columns")
    rows = rows[as_text(rows[TRUE_LABEL]) != ""].reset_index(drop=True)
    windows = as_text(rows["window"])
    now = known.set_index(pd.Index(as_text(known["window"])))
    now = now[~now.index.duplicated()].reindex(windows).reset_index(drop=True)
    unknown = np.flatnonzero(~_is_same(rows, now) | pd.Series(windows).duplicated().to_numpy())
    if len(unknown):
        typed = rows[TRUE_LABEL][unknown[0]]
        raise _refused(f"{path}, with {typed!r} typed for window {windows[unknown[0]]} of another list")
    return rows


def _is_same(rows: pd.DataFrame, now: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether each row of an earlier list is about the window in the same row of `now`."""
    same = now["label"].notna().to_numpy()
    for column in ORIGIN[1:]:
        if column in rows or column in now:
            same &= column in rows and column in now and as_text(rows[column]) == as_text(now[column])
    given = as_text(now[TRUE_LABEL]) == as_text(rows[TRUE_LABEL]) if TRUE_LABEL in now else np.zeros(len(rows), bool)
    if not {"label", "confidence"} <= set(rows.columns):
        return same & given
    then = pd.to_numeric(rows["confidence"], errors="coerce").to_numpy(np.float64)
    close = np.isclose(then, now["confidence"].to_numpy(np.float64), rtol=0, atol=_ROUNDING)
    return same & (given | (close & (as_text(rows["label"]) == as_text(now["label"]))))


def _refused(got: str) -> InputError:
    expected = "a new file, or an earlier list of the same windows"
    return invalid("out", expected=expected, got=got, advice="Choose another file, so that its content is kept.")
