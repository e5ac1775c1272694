"""Rules to choose among several classifiers of one run, such as a grid of learning rates. All risks are minimised.

A rule is handed the evidence it names and nothing else. Evidence that needs target labels is a number from the
evaluator, who keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, invalid
from transpl._utils.metrics import cross_entropies
from transpl.benchmark.pair import Evaluator, Pair
from transpl.methods import Method
from transpl.nn.risks import density_ratio, dev, iwcv, source_risk

DEFAULT = "source_risk"


@dataclass(frozen=True)
class Rule:
    """A way to judge an adapted classifier.

    what : in words, for captions
    sees : the evidence that `risk` is called with, by its names in `Evidence`
    """

    name: str
    what: str
    sees: tuple[str, ...]
    risk: Callable[..., float]

    def judge(self, evidence: Any) -> float | None:
        """The risk, lower is better; None where some of the evidence cannot be had."""
        seen = [getattr(evidence, name) for name in self.sees]
        return None if any(each is None for each in seen) else self.risk(*seen)


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "source_risk",
            "cross entropy on held-out source rows, as in the paper",
            ("source_losses",),
            source_risk,
        ),
        Rule(
            "iwcv",
            "cross entropy on held-out source rows, weighted by how much a row looks like the target",
            ("target_likeness", "source_losses"),
            iwcv,
        ),
        Rule(
            "dev",
            "deep embedded validation: importance-weighted source risk with less variance",
            ("target_likeness", "source_losses"),
            dev,
        ),
        Rule(
            "few_shot",
            "cross entropy on five labelled windows per class of the target's train part",
            ("few_shot_risk",),
            float,
        ),
        Rule(
            "target_oracle",
            "ORACLE: cross entropy on the target's test labels, which nobody has in practice",
            ("test_risk",),
            float,
        ),
    )
}


class Evidence:
    """What can be known about an adapted method, each piece made when a rule asks for it.

    answers : its class probabilities (n, K) of the target's test part
    """

    def __init__(self, method: Method, pair: Pair, evaluator: Evaluator, answers: NDArray[np.float64]) -> None:
        self._method, self._pair, self._evaluator, self._answers = method, pair, evaluator, answers

    @cached_property
    def source_losses(self) -> NDArray[np.float64]:
        """Cross entropies (n,) of held-out source rows."""
        held_out = self._pair.validation
        return cross_entropies(self._method.predict_proba(held_out.windows), held_out.y)

    @cached_property
    def target_likeness(self) -> NDArray[np.float64] | None:
        """Weights (n,) of held-out source rows, by features of all three without any label; None if there are none."""
        method, pair = self._method, self._pair
        if min(len(pair.source.windows), len(pair.target)) < 2:
            return None  # too few to learn what tells them apart
        source, target = method.features(pair.source.windows), method.features(pair.target)
        held_out = method.features(pair.validation.windows)
        if source is None or target is None or held_out is None:
            return None
        return density_ratio(source, target, held_out, method.seed)

    @cached_property
    def few_shot_risk(self) -> float:
        """Of a few labelled windows per class of the target's train part."""
        return self._evaluator.few_shot_risk(self._method, self._method.seed)

    @cached_property
    def test_risk(self) -> float:
        """Of the target's test part."""
        return self._evaluator.test_risk(self._answers)


def all_risks(method: Method, pair: Pair, evaluator: Evaluator, answers: NDArray[np.float64]) -> dict[str, float]:
    """The risk of an adapted method by every rule that can judge it; answers : as in `Evidence`."""
    evidence = Evidence(method, pair, evaluator, answers)
    judged = {name: rule.judge(evidence) for name, rule in RULES.items()}
    return {name: risk for name, risk in judged.items() if risk is not None and math.isfinite(risk)}


def best(risks: Mapping[str, Mapping[str, float]], rule: str) -> str:
    """The name among candidates, each with its risks, that a rule prefers; the first of equals."""
    check_choice("rule", rule, tuple(RULES))
    lacking = sorted(name for name, found in risks.items() if rule not in found)
    if lacking:
        advice = "Runs that only label the target have none: read their table without a grid, or choose another rule."
        raise invalid("rule", expected=f"runs with a {rule}", got=f"none in {', '.join(lacking)}", advice=advice)
    return min(risks, key=lambda name: risks[name][rule])
