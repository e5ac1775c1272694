"""Checks of what a caller passes to the estimator: labels, class proportions, domains, held-out rows, seed."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from transpl._utils.errors import InputError, check_int, invalid
from transpl.markov import check_prior
from transpl.windows import UNKNOWN, Labelled, Windows, plain_array

HOLDOUT_SHARE = 0.3
_LARGEST_SEED = 2**32 - 1  # numpy's limit
_SHORT = 16  # time steps; a window needs more
_NEAR_ONE = 0.02  # shares that people round


def warn_truncated_tail(windows: Windows, patch_length: int, name: str) -> None:
    """Warn about time steps at the end of windows that fill no patch."""
    rest = int((windows.lengths % patch_length).max())
    if rest:
        warnings.warn(
            f"{name}: the last time steps of a window (up to {rest}) fill no patch of {patch_length} and are ignored.",
            stacklevel=3,
        )


def warn_layout(windows: Windows, name: str) -> None:
    """Warn about windows that may be (n, time, channels)."""
    D, T = windows.values.shape[1:]
    if T < _SHORT <= D:
        warnings.warn(
            f"{name}: {D} channels of {T} time steps. Windows are (n, channels, time); if these are (n, time, "
            "channels), pass X.transpose(0, 2, 1).",
            stacklevel=3,
        )


def to_python(value: Any) -> Any:
    """Convert numpy numbers (from a parameter grid, say) to Python numbers, and sequences to lists of them."""
    if isinstance(value, list | tuple | np.ndarray):
        return [to_python(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def group_numbers(groups: ArrayLike | None, n: int) -> NDArray[np.int64] | None:
    """Number the groups of n windows in the order in which their names appear, (n,)."""
    if groups is None:
        return None
    names = plain_array(groups, object)
    if names.shape != (n,):
        got = "a single name" if names.ndim == 0 else f"shape {names.shape}"
        raise invalid("groups", expected=f"{n} names, one per window", got=got, advice="Name each window's recording.")
    numbers, _ = pd.factorize(names)
    if (numbers < 0).any():
        row = int(np.flatnonzero(numbers < 0)[0])
        raise invalid("groups", expected="a name for every window", got=f"none for window {row}", advice="Fill it in.")
    return numbers.astype(np.int64)


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """The seed that `random_state` stands for: itself, or drawn from a generator (None is numpy's global one)."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    check_int("random_state", random_state, least=0)
    if random_state > _LARGEST_SEED:
        raise invalid("random_state", expected=f"at most {_LARGEST_SEED}", got=random_state, advice="Lower it.")
    return int(random_state)


def check_labels(y: ArrayLike | None, n: int, is_target: NDArray[np.bool_]) -> NDArray:
    """Return the labels of the source rows as one plain type; the target's are never read."""
    if y is None:
        raise InputError("y: requires y to be passed, but the target y is None. Pass one label per window.")
    labels = column_or_1d(plain_array(y), warn=True)
    if len(labels) != n:
        raise invalid("y", expected=f"{n} labels, one per window", got=len(labels), advice="Pass matching X and y.")
    source = labels[~is_target]
    if pd.isna(source).any():
        got = "NaN, None, NA or a masked entry"
        raise invalid("y", expected="a label for every source row", got=got, advice="Drop unlabelled rows.")
    if source.dtype == object and len({isinstance(value, str) for value in source}) > 1:
        raise invalid("y", expected="labels of one type", got="text and others", advice="Convert all of them to text.")
    if source.dtype == object and not isinstance(source[0], str):
        source = np.array(source.tolist())  # whole numbers in an array of objects are numbers
    try:
        check_classification_targets(source)
    except (TypeError, ValueError) as error:
        raise invalid("y", expected="class labels", got=error, advice="Cut a continuous target into classes.") from None
    found = np.unique(source)
    if len(found) < 2:
        raise invalid("y", expected="2 or more classes", got=f"1 class ({found[0]})", advice="Add another class.")
    return source


def class_indices(y: ArrayLike | None, n: int, classes: NDArray, name: str) -> NDArray[np.int64]:
    """Return the positions of labels in `classes`."""
    labels = plain_array(y)
    if y is None or labels.shape != (n,):
        got = "None" if y is None else f"shape {labels.shape}"
        raise invalid(name, expected=f"{n} labels, one per window", got=got, advice="Pass them beside the windows.")
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise invalid(name, expected="classes of y", got=f"also {unknown[:5]}", advice="Drop those rows.")
    return np.searchsorted(classes, labels).astype(np.int64)


def few_label_indices(few_labels: Any, n: int, classes: NDArray) -> NDArray[np.int64] | None:
    """Convert labels of some of n windows to positions in `classes`, (n,), -1 where unknown; None without any label.

    few_labels : {row: label}, or n labels of which None, NaN, pandas' NA, "" and masked ones are unknown
    """
    if few_labels is None:
        return None
    given = few_labels if isinstance(few_labels, Mapping) else _known_labels(few_labels, n)
    rows = [row for row in given if not _is_row(row, n)]
    if rows:
        raise invalid("few_labels", expected=f"rows 0..{n - 1}", got=rows[:5], advice="Number the target's windows.")
    place = {label: k for k, label in enumerate(classes.tolist())}
    unknown = {row: label for row, label in given.items() if not _is_among(to_python(label), place)}
    if unknown:
        advice = "Check the spelling; a class that the source does not have cannot be learnt from a few labels."
        row, label = next(iter(unknown.items()))
        got = f"{to_python(label)!r} for window {row}"
        raise invalid("few_labels", expected=f"classes of the source, {list(place)}", got=got, advice=advice)
    y = np.full(n, UNKNOWN, np.int64)
    for row, label in given.items():
        y[row] = place[to_python(label)]
    return y if given else None


def _is_among(label: Any, place: Mapping[Any, int]) -> bool:
    return isinstance(label, Hashable) and label in place


def _is_row(row: Any, n: int) -> bool:
    return isinstance(row, int | np.integer) and not isinstance(row, bool) and bool(0 <= row < n)


def _known_labels(few_labels: Any, n: int) -> dict[int, Any]:
    labels = plain_array(few_labels, object)
    if labels.shape != (n,):
        expected = f"{n} labels, one per target window, None where unknown, or {{row: label}}"
        raise invalid("few_labels", expected=expected, got=f"shape {labels.shape}", advice="Pass them beside X_target.")
    return {row: label for row, label in enumerate(labels) if not _is_unknown(label)}


def _is_unknown(label: Any) -> bool:
    return label is None or label is pd.NA or bool(label != label) or (isinstance(label, str) and label == "")


def prior_shares(prior: ArrayLike | dict[Any, float] | None, classes: NDArray) -> NDArray[np.float64] | None:
    """Class proportions in the order of `classes`, (K,).

    A dict gives them by label; it may leave out labels that do not occur if the others add up to 1.
    """
    if prior is None:
        return None
    if not isinstance(prior, dict):
        return check_prior(plain_array(prior), len(classes))
    known = classes.tolist()
    unknown = [label for label in prior if label not in known]
    if unknown:
        raise invalid("prior", expected=f"labels among {known}", got=unknown, advice="Check spelling.")
    shares = [prior.get(label, 0.0) for label in known]
    checked, left_out = check_prior(shares, len(classes)), [label for label in known if label not in prior]
    if left_out and abs(sum(shares) - 1) > _NEAR_ONE:
        got = f"{sum(shares):g} without {', '.join(map(str, left_out))}"
        advice = "Give the share of every class, 0 for one that does not occur."
        raise invalid("prior", expected="shares that add up to 1", got=got, advice=advice)
    return checked


def is_table(X: Any) -> bool:
    """Whether X is (n, time): rows of numbers."""
    if isinstance(X, list | tuple):  # perhaps of unequal length: not an array as a whole
        return _n_axes(X[0]) == 1
    return _n_axes(X) == 2


def _n_axes(X: Any) -> int:
    return int(X.ndim) if hasattr(X, "ndim") else np.asarray(X).ndim  # numpy does not read a tensor with a gradient


def target_rows(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """Which rows belong to the target (negative domain), (n,)."""
    if sample_domain is None:
        return np.zeros(n, dtype=bool)
    domains = plain_array(sample_domain)
    if domains.shape != (n,) or domains.dtype.kind not in "iu":
        raise invalid(
            "sample_domain",
            expected=f"{n} whole numbers, >= 0 source and < 0 target",
            got=f"{domains.dtype} of shape {domains.shape}",
            advice="One per window.",
        )
    if (domains < 0).all():
        raise invalid(
            "sample_domain", expected="some source rows (>= 0)", got="none", advice="Mark source rows with 1."
        )
    return domains < 0


def held_out_rows(y: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Select a stratified share of the rows for validation; a class with one row stays in training."""
    random = np.random.RandomState(seed)
    held = np.zeros(len(y), dtype=bool)
    for k in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == k))
        held[rows[: round(HOLDOUT_SHARE * len(rows))]] = True
    return held


def hold_out(source: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """Split off rows for validation, as `held_out_rows` selects them."""
    held = held_out_rows(source.y, seed)
    if not held.any():
        warnings.warn("X: too few windows to hold any out; training is validated on itself.", stacklevel=3)
        return source, source
    kept, out = (Labelled(source.windows[rows], source.y[rows], source.n_classes) for rows in (~held, held))
    return kept, out
