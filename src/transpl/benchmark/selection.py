"""Rules to choose among several classifiers of one run, such as a grid of learning rates. All risks are minimised.

Each rule sees what its name allows and nothing else; the two that need target labels ask the evaluator for a number.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from transpl.benchmark.metrics import cross_entropies
from transpl.benchmark.pair import Evaluator, Pair
from transpl.errors import wrong
from transpl.methods import Method
from transpl.training.risks import density_ratio, dev, iwcv, source_risk

RULES = {
    "source_risk": "cross entropy on held-out source rows (the paper)",
    "iwcv": "the same, weighted by how much a row looks like the target",
    "dev": "the same, with less variance (deep embedded validation)",
    "few_shot": "cross entropy on five labelled windows per class of the target's train part",
    "target_oracle": "cross entropy on the target's test part: not available in practice",
}
DEFAULT = "source_risk"


def all_risks(method: Method, pair: Pair, evaluator: Evaluator) -> dict[str, float]:
    """The risk of an adapted method by every rule."""
    losses = cross_entropies(method.predict_proba(pair.validation.windows), pair.validation.y)
    found = {"source_risk": source_risk(losses)}
    if len(pair.source.windows) > 1 and len(pair.target) > 1:
        weights = _target_likeness(method, pair)
        found |= {"iwcv": iwcv(weights, losses), "dev": dev(weights, losses)}
    return {
        **found,
        "few_shot": evaluator.few_shot_risk(method, method.seed),
        "target_oracle": evaluator.test_risk(method),
    }


def best(risks: Mapping[str, Mapping[str, float]], rule: str) -> str:
    """The name among candidates, each with its risks, that a rule prefers; the first of equals."""
    lacking = sorted(name for name, found in risks.items() if rule not in found)
    if rule not in RULES or lacking:
        got = f"{rule!r}" + (f", which {', '.join(lacking)} lack" if lacking else "")
        raise wrong("rule", expected=f"one of {', '.join(RULES)}", got=got, advice="Choose another rule.")
    return min(risks, key=lambda name: risks[name][rule])


def _target_likeness(method: Method, pair: Pair) -> NDArray[np.float64]:
    source, target = method.features(pair.source.windows), method.features(pair.target)
    return density_ratio(source, target, method.features(pair.validation.windows), method.seed)
