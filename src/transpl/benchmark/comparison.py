"""Methods side by side on many pairs, in Python: one table of all runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import pandas as pd

from transpl._utils.errors import check_int, invalid
from transpl.benchmark.run import SourceModels, chosen_methods, run_chosen
from transpl.benchmark.store import Result
from transpl.datasets import Dataset
from transpl.methods.estimators import entries_of
from transpl.nn import Execution

_FIRST = ("dataset", "pair", "method", "seed", "accuracy", "macro_f1")
_LAST = ("label_accuracy", "label_macro_f1", "seconds", "cpu_seconds", "error")
_STAGES = ("start", "adapt", "predict")  # without the source model, which methods share
_Pair = tuple[int, int]


def compare(
    dataset: Dataset,
    methods: Iterable[Any] | Mapping[str, Any],
    pairs: _Pair | Iterable[_Pair] | None = None,
    seeds: int | Sequence[int] = 1,
    *,
    execution: Execution | None = None,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Compare methods over pairs of domains and seeds.

    Parameters
    ----------
    dataset : Dataset
    methods : list, or dict from names of your own
        Registered names (see `transpl methods`), `sklearn:package.module.Class`, or scikit-learn classifiers and
        pipelines.
    pairs : (source, target), or several of them, optional
        Default: all pairs of the data set.
    seeds : int or sequence of int
        How many seeds (3 is 0, 1 and 2), or which.
    execution : Execution, optional
        Device, threads and progress bar.
    preset, changes
        See `settings_of`.

    Returns
    -------
    DataFrame
        One row per pair, seed and method: `dataset`, `pair`, `method`, `seed`, scores on the target's test part between
        0 and 1, `label_accuracy` and `label_macro_f1` of the pseudo-labels of its train part, `seconds` and
        `cpu_seconds` without the source model, and `error`, None unless the method failed. A method that fails has no
        scores, and the others go on; invalid arguments are refused before anything runs.

    See Also
    --------
    run_pair : Yields the full results on one pair one by one.
    run_plan : Keeps results on disk, runs in parallel, and can be resumed.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from transpl import datasets
    >>> from transpl.benchmark import compare
    >>> table = compare(datasets.load("synthetic"), ["features-linear", KNeighborsClassifier(3)])
    >>> table.groupby("method", sort=False)["accuracy"].count().to_dict()
    {'features-linear': 6, 'KNeighborsClassifier': 6}
    """
    entries = entries_of(methods)
    of_seed = [chosen_methods(entries, dataset.name, seed, preset, changes) for seed in _seeds(seeds)]
    execution, models = Execution() if execution is None else execution, SourceModels()
    table = pd.DataFrame(
        [
            _row(result)
            for pair in _pairs(dataset, pairs)
            for chosen in of_seed
            for result in run_chosen(dataset, pair, chosen, execution, models)
        ]
    )
    scores = [name for name in table if name not in (*_FIRST, *_LAST)]
    return table.reindex(columns=[*_FIRST, *scores, *_LAST])


def _row(result: Result) -> dict[str, Any]:
    labels = result.pseudo_labels.get("initial", {})
    seconds = {"seconds": sum(result.seconds[stage] for stage in _STAGES)} if result.seconds else {}
    return {
        "dataset": result.dataset,
        "pair": f"{result.pair[0]}-{result.pair[1]}",
        "method": result.method,
        "seed": result.seed,
        **result.test,
        **{f"label_{name}": labels[name] for name in ("accuracy", "macro_f1") if name in labels},
        **seconds,
        "cpu_seconds": result.cpu_seconds,
        "error": result.error,
    }


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if not isinstance(seeds, Sequence):
        check_int("seeds", seeds, least=1)
        return list(range(seeds))
    if not seeds:
        raise invalid("seeds", expected="one or more", got="none", advice="Pass how many, or which.")
    return list(seeds)


def _pairs(dataset: Dataset, pairs: _Pair | Iterable[_Pair] | None) -> list[_Pair]:
    """The pairs, all of known domains; one alone is a list of one."""
    found: list[Any] = list(dataset.pairs if pairs is None else pairs)
    if len(found) == 2 and all(isinstance(domain, Integral) for domain in found):
        found = [tuple(found)]
    wrong = [pair for pair in found if len(pair) != 2 or not set(pair) <= set(dataset.domains)]
    if wrong or not found:
        expected = f"(source, target) of the domains {', '.join(map(str, dataset.domains))}"
        got = wrong[0] if wrong else "none"
        raise invalid("pairs", expected=expected, got=got, advice="Pass (0, 1), or a list of such pairs.")
    return [(int(source), int(target)) for source, target in found]
