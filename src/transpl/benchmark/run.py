"""One method on one pair, from a source model to scores; and several methods from the same source models."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl import __version__
from transpl._utils.clock import work_seconds
from transpl._utils.hashing import hash_bytes
from transpl.benchmark.plan import settings_of_entries
from transpl.benchmark.protocol import Evaluator, Pair, split_pair
from transpl.benchmark.selection import all_risks
from transpl.benchmark.store import Result
from transpl.datasets import Dataset
from transpl.methods import Method, PseudoLabels, SourceModel, TargetInfo, TransPLMethod
from transpl.methods.estimators import entries_of
from transpl.methods.method_settings import MethodSettings, SourceSettings
from transpl.methods.registry import Entry
from transpl.nn import Execution
from transpl.windows import Windows

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "POT")


def run_pair(
    dataset: Dataset,
    pair: tuple[int, int],
    methods: Iterable[Any] | Mapping[str, Any],
    seed: int = 0,
    execution: Execution | None = None,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> Iterator[Result]:
    """Run several methods on one pair of domains, from the same source models; results come one by one.

    Parameters
    ----------
    dataset : Dataset
    pair : (source, target)
        Domains of the data set.
    methods : list, or dict from names of your own
        Registered names (see `transpl methods`), `sklearn:package.module.Class`, or scikit-learn classifiers.
    seed : int
    execution : Execution, optional
        Device, threads and progress bar.
    preset, changes
        See `settings_of`.

    Yields
    ------
    Result
        One per method, as soon as it is done. A method that fails yields a result with its `error`, and the others
        go on; invalid arguments are refused before anything runs.

    Examples
    --------
    >>> from transpl import datasets
    >>> from transpl.benchmark import run_pair
    >>> (result,) = run_pair(datasets.load("synthetic"), (0, 1), ["features-linear"])
    >>> result.method, result.error
    ('features-linear', None)
    """
    chosen = chosen_methods(entries_of(methods), dataset.name, seed, preset, changes)
    return run_chosen(dataset, pair, chosen, Execution() if execution is None else execution, {})


class ChosenMethod(NamedTuple):
    """A method and the settings to run it with."""

    entry: Entry
    settings: MethodSettings


SourceModels = dict[tuple[int, SourceSettings], SourceModel]  # by domain and settings


def chosen_methods(
    entries: Mapping[str, Entry], dataset: str, seed: int, preset: str, changes: Mapping[str, Any] | None
) -> list[ChosenMethod]:
    """Methods with their settings; anything invalid is refused."""
    settings = settings_of_entries(entries, dataset, seed, preset, changes)
    return [ChosenMethod(entry, settings[name]) for name, entry in entries.items()]


def run_chosen(
    dataset: Dataset,
    pair: tuple[int, int],
    methods: Sequence[ChosenMethod],
    execution: Execution,
    models: SourceModels,
) -> Iterator[Result]:
    """Run methods on a pair of domains. Source models are taken from `models`, and new ones added to it."""
    visible, evaluator = split_pair(dataset, *pair)

    def source_model(method: Method) -> SourceModel:
        wanted = method.settings.source()
        if method.uses_target_labels:
            return SourceModel(*evaluator.labelled_rows(method, method.seed), wanted, execution)
        key = int(pair[0]), wanted
        if key not in models:
            models[key] = SourceModel(visible.source, visible.validation, wanted, execution)
        return models[key]

    def result(entry: Entry, settings: MethodSettings) -> Result:
        place = (int(pair[0]), int(pair[1]))
        blank = Result(dataset.name, place, entry.name, settings.random_state, asdict(settings))
        try:
            method = entry.method(settings, execution)
            return run_method(blank, method, source_model(method), visible, evaluator).result
        except Exception as error:  # whatever a method raises, the others go on
            return replace(blank, error=" ".join(f"{type(error).__name__}: {error}".split()))

    return (result(*each) for each in methods)


class FinishedRun(NamedTuple):
    """A result, and the arrays that it was scored from."""

    result: Result
    arrays: dict[str, NDArray[Any]]


def run_method(
    blank: Result, method: Method, model: SourceModel, pair: Pair, evaluator: Evaluator, goal: str = "adapt"
) -> FinishedRun:
    """Adapt a method and score it; with goal "label", only let it label the target with the source model.

    blank : what the result says of the run before it starts
    """
    model = method.source_for(model)
    if method.starts_from_source:
        model.train()  # before the clock starts: methods share the model, whose own time is recorded
    start, cpu = work_seconds(), time.process_time()
    method.start_from(model)
    started = work_seconds()
    answers = (_adapt if goal == "adapt" else _label)(method, pair, evaluator)
    cpu = time.process_time() - cpu
    probabilities, arrays = answers.probabilities, answers.arrays()
    result = replace(
        blank,
        test={} if probabilities is None else evaluator.score(probabilities),
        pseudo_labels={when: evaluator.score_labels(found.labels) for when, found in answers.labels.items()},
        risks={} if probabilities is None else all_risks(method, pair, evaluator, probabilities),
        details=_details(method, pair.target, evaluator),
        seconds={
            "source": model.seconds if method.starts_from_source else 0.0,
            "start": started - start,
            **answers.seconds,
        },
        epochs={phase: len(records) for phase, records in method.history.items()},
        versions={
            "python": platform.python_version(),
            "transpl": __version__,
            **{name: version(name) for name in _PACKAGES},
            **method.library_versions,
        },
        fingerprint=_fingerprint(arrays, method.history),
        cpu_seconds=cpu,
    )
    return FinishedRun(result, arrays)


class _Answers(NamedTuple):
    probabilities: NDArray[np.float64] | None
    labels: dict[str, PseudoLabels]
    seconds: dict[str, float]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is stored of the answers."""
        arrays: dict[str, NDArray[Any]] = {}
        if self.probabilities is not None:
            arrays["test_probabilities"] = self.probabilities
        for when, labels in self.labels.items():
            arrays |= {f"{when}_{part}": values for part, values in labels._asdict().items()}
        return arrays


def _adapt(method: Method, pair: Pair, evaluator: Evaluator) -> _Answers:
    prior = evaluator.prior_for(method)
    start = work_seconds()
    grouped = "groups" in method.requires
    method.adapt(pair.target, TargetInfo(prior=prior, groups=pair.target_groups if grouped else None))
    adapted = work_seconds()
    probabilities = method.predict_proba(pair.test, groups=pair.test_groups if grouped else None)
    predicted = work_seconds()
    labels = dict(method.label_record) or {"initial": method.pseudo_label(pair.target)}
    return _Answers(probabilities, labels, {"adapt": adapted - start, "predict": predicted - adapted})


def _label(method: Method, pair: Pair, evaluator: Evaluator) -> _Answers:
    start = work_seconds()
    labels = method.one_shot_labels(pair.target, evaluator.prior_for(method))
    return _Answers(None, {"initial": labels}, {"label": work_seconds() - start})


def _details(method: Method, target: Windows, evaluator: Evaluator) -> dict[str, Any]:
    """What the method reports besides scores, as plain values."""
    details = dict(method.details)
    if method.learnt_rows is not None:
        details["learnt_from"] = evaluator.score_learnt(method.learnt_rows)
    if isinstance(method, TransPLMethod):
        state = method.state
        counts = method.count(target) if state.target_counts is None else state.target_counts
        details |= {
            "reconstruction_error": method.reconstruction_error(method.source.source.windows),
            "codebooks": {
                name: {"perplexity": usage.perplexity, "dead": len(usage.dead), "codes": len(usage.counts)}
                for name, usage in state.codebook_usage.items()
            },
            "channel_distances": method.channel_distances(counts).tolist(),
            "channel_weights": method.channel_weights(counts).tolist(),
        }
    return details


def _fingerprint(arrays: Mapping[str, NDArray[Any]], history: Mapping[str, Any]) -> str:
    named = (piece for name, values in sorted(arrays.items()) for piece in (name, values.tobytes()))
    return hash_bytes([json.dumps(history), *named])
