"""One method on one pair, from a source model to scores."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl import __version__
from transpl.benchmark.details import details_of
from transpl.benchmark.pair import Evaluator, Pair
from transpl.benchmark.result import Result
from transpl.benchmark.selection import all_risks
from transpl.methods import GroupedMethod, Method, PseudoLabels, SourceModel

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "POT")


class Finished(NamedTuple):
    """A result, and the arrays that it was scored from."""

    result: Result
    arrays: dict[str, NDArray[Any]]


def run_method(
    blank: Result, method: Method, model: SourceModel, pair: Pair, evaluator: Evaluator, goal: str = "adapt"
) -> Finished:
    """Adapt a method and score it; with goal "label", only let it label the target with the source model.

    blank : the result as far as it is known before the run
    """
    model = method.source_for(model)
    if method.starts_from_source:
        model.train()  # before the clock starts: methods share it, and its time is told apart
    start = time.perf_counter()
    method.start_from(model)
    started = time.perf_counter()
    answers = _adapted(method, pair, evaluator) if goal == "adapt" else _labelled(method, pair, evaluator)
    answered = answers.probabilities
    result = replace(
        blank,
        test={} if answered is None else evaluator.score(answered),
        pseudo_labels={when: evaluator.score_labels(found.labels) for when, found in answers.labels.items()},
        risks={} if answered is None else all_risks(method, pair, evaluator, answered),
        details=details_of(method, pair.target, evaluator),
        seconds={
            "source": method.source.seconds if method.starts_from_source else 0.0,
            "start": started - start,
            **answers.seconds,
        },
        epochs={phase: len(records) for phase, records in method.history.items()},
        versions=_versions(),
        fingerprint=_fingerprint(answers, method.history),
    )
    return Finished(result, answers.arrays())


class _Answers(NamedTuple):
    probabilities: NDArray[np.float64] | None
    labels: dict[str, PseudoLabels]
    seconds: dict[str, float]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By names that say what they are."""
        found: dict[str, NDArray[Any]] = {}
        if self.probabilities is not None:
            found["test_probabilities"] = self.probabilities
        for when, labels in self.labels.items():
            found |= {f"{when}_{part}": values for part, values in labels._asdict().items()}
        return found


def _adapted(method: Method, pair: Pair, evaluator: Evaluator) -> _Answers:
    prior = evaluator.prior_for(method)
    start = time.perf_counter()
    if isinstance(method, GroupedMethod) and method.needs_groups:
        method.adapt(pair.target, prior, groups=pair.target_groups)
        adapted = time.perf_counter()
        probabilities = method.predict_proba(pair.test, groups=pair.test_groups)
    else:
        method.adapt(pair.target, prior)
        adapted = time.perf_counter()
        probabilities = method.predict_proba(pair.test)
    predicted = time.perf_counter()
    labels = dict(method.label_record) or {"initial": method.pseudo_label(pair.target)}
    return _Answers(probabilities, labels, {"adapt": adapted - start, "predict": predicted - adapted})


def _labelled(method: Method, pair: Pair, evaluator: Evaluator) -> _Answers:
    start = time.perf_counter()
    labels = method.one_shot_labels(pair.target, evaluator.prior_for(method))
    return _Answers(None, {"initial": labels}, {"label": time.perf_counter() - start})


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "transpl": __version__,
        **{name: version(name) for name in _PACKAGES},
    }


def _fingerprint(answers: _Answers, history: Mapping[str, Any]) -> str:
    whole = hashlib.sha256(json.dumps(history).encode())
    for name, values in sorted(answers.arrays().items()):
        whole.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return whole.hexdigest()
