"""Rules that choose among several classifiers of one run, such as a grid of learning rates (AdaTime's set).

Every rule is a risk to be minimised. A rule gets the evidence it names and nothing else; evidence that needs target
labels is a number from the evaluator, which keeps the labels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from transpl._utils.errors import check_choice, invalid
from transpl._utils.locks import process_state
from transpl._utils.metrics import cross_entropies

if TYPE_CHECKING:
    from transpl.benchmark.protocol import Evaluator, Pair
    from transpl.methods import Method

DEFAULT_RULE = "source_risk"
LEARNING_RATES = (0.1, 0.05, 0.01)
_EPOCHS = 30
_BATCH_SIZE = 64
_LEAST_PROBABILITY = 1e-6
_NO_SPREAD = 1e-9  # relative spread of weights below which their variance is rounding error

Floats = NDArray[np.float64]


# Risks


def source_risk(losses: ArrayLike) -> float:
    r"""R = (1/n) \sum_i l_i; losses (n,) of held-out source rows."""
    return float(_rows("losses", losses).mean())


def iwcv(weights: ArrayLike, losses: ArrayLike) -> float:
    r"""R = (1/n) \sum_i w_i l_i (importance-weighted cross-validation, Sugiyama et al. 2007).

    weights (n,) from `density_ratio`, losses (n,) of the same held-out source rows
    """
    w, loss = _weights_and_losses(weights, losses)
    return float((w * loss).mean())


def dev(weights: ArrayLike, losses: ArrayLike) -> float:
    r"""R = mean(w l) + \eta mean(w) - \eta, \eta = -Cov(w l, w) / Var(w) (deep embedded validation, You et al. 2019).

    The weights' true mean is 1, so \eta, a control variate, only removes variance from `iwcv`.
    Weights that are all equal (or one row) have no variance to remove: then R = mean(w l).
    """
    w, loss = _weights_and_losses(weights, losses)
    wl = w * loss
    if np.ptp(w) <= _NO_SPREAD * np.abs(w).max():
        return float(wl.mean())
    covariance = np.cov(wl, w, ddof=1)
    eta = -covariance[0, 1] / covariance[1, 1]
    return float(wl.mean() + eta * w.mean() - eta)


def density_ratio(z_source_train: ArrayLike, z_target_train: ArrayLike, z_validation: ArrayLike, seed: int) -> Floats:
    r"""w(z) = (N_s / N_t) P(target | z) / P(source | z), P from a classifier of source against target features.

    z_source_train (N_s, d), z_target_train (N_t, d), z_validation (n, d) -> (n,), finite and positive

    The classifier has d - d/2 - 2 units and sees 80 % of the rows for 30 epochs; of the learning rates 0.1, 0.05 and
    0.01 the one with the lowest cross entropy on the other 20 % is kept. The same seed gives the same weights.
    """
    z_s = _features("z_source_train", z_source_train, least=2)
    z_t = _features("z_target_train", z_target_train, least=2, d=z_s.shape[1])
    z = _features("z_validation", z_validation, least=1, d=z_s.shape[1])
    scaler = StandardScaler().fit(np.concatenate([z_s, z_t]))
    domains = _domain_classifier(scaler.transform(z_s), scaler.transform(z_t), seed)
    p = _target_probability(domains, scaler.transform(z))
    return len(z_s) / len(z_t) * p / (1 - p)


def _domain_classifier(z_s: Floats, z_t: Floats, seed: int) -> MLPClassifier:
    """Fit one classifier per learning rate and return the best on held-out rows; the target is class 1."""
    rng = np.random.default_rng(seed)
    parts = [np.split(rng.permutation(rows), [max(1, len(rows) // 5)]) for rows in (z_s, z_t)]
    held_out, fitted = (np.concatenate(side) for side in zip(*parts, strict=True))
    y_held_out, y_fitted = (np.repeat([0, 1], [len(s), len(t)]) for s, t in zip(*parts, strict=True))
    classifiers = [_fit(fitted, y_fitted, rate, seed) for rate in LEARNING_RATES]
    risks = [log_loss(y_held_out, _target_probability(each, held_out)) for each in classifiers]
    return classifiers[int(np.argmin(risks))]


def _fit(z: Floats, y: NDArray[np.int64], learning_rate: float, seed: int) -> MLPClassifier:
    classifier = MLPClassifier(
        hidden_layer_sizes=(max(1, z.shape[1] // 2),),
        learning_rate_init=learning_rate,
        batch_size=min(_BATCH_SIZE, len(z)),
        max_iter=_EPOCHS,
        n_iter_no_change=_EPOCHS,
        random_state=seed,
    )
    with process_state, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is meant to stop after a number of epochs
        return classifier.fit(z, y)


def _target_probability(classifier: MLPClassifier, z: Floats) -> Floats:
    """P(target | z), clipped so that ratios and logs are finite; z (n, d) -> (n,)."""
    return np.clip(classifier.predict_proba(z)[:, 1], _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)


def _weights_and_losses(weights: ArrayLike, losses: ArrayLike) -> tuple[Floats, Floats]:
    w, loss = _rows("weights", weights), _rows("losses", losses)
    if w.shape != loss.shape:
        expected = f"{len(w)}, one per weight"
        raise invalid("losses", expected=expected, got=len(loss), advice="Use the same rows for both.")
    return w, loss


def _rows(argument: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise invalid(argument, expected="shape (rows,), 1 or more", got=array.shape, advice="Give a number per row.")
    return array


def _features(argument: str, values: ArrayLike, *, least: int, d: int | None = None) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) < least or array.shape[1] != (d or array.shape[1]):
        expected, advice = f"shape (rows, {d or 'features'}), {least} or more rows", "Take features from one layer."
        raise invalid(argument, expected=expected, got=array.shape, advice=advice)
    if not np.isfinite(array).all():
        advice = "The network may have diverged."
        raise invalid(argument, expected="finite numbers", got="NaN or infinity", advice=advice)
    return array


# Rules


@dataclass(frozen=True)
class Rule:
    """A way to judge an adapted classifier.

    what : description for captions
    sees : names of the evidence that `risk` is called with, see `SelectionEvidence`
    """

    name: str
    what: str
    sees: tuple[str, ...]
    risk: Callable[..., float]

    def judge(self, evidence: Any) -> float | None:
        """The risk, lower is better; None where some of the evidence is not available."""
        seen = [getattr(evidence, name) for name in self.sees]
        return None if any(each is None for each in seen) else self.risk(*seen)


_SOURCE = "cross entropy on held-out source rows"
RULES = {
    name: Rule(name, what, sees, risk)
    for name, what, sees, risk in (
        ("source_risk", f"{_SOURCE}, as in the paper", ("source_losses",), source_risk),
        ("iwcv", f"{_SOURCE}, weighted by how much a row looks like the target", ("weights", "source_losses"), iwcv),
        (
            "dev",
            "deep embedded validation: importance-weighted source risk with less variance",
            ("weights", "source_losses"),
            dev,
        ),
        (
            "few_shot",
            "cross entropy on five labelled windows per class of the target's train part",
            ("few_shot_risk",),
            float,
        ),
        (
            "target_oracle",
            "ORACLE: cross entropy on the target's test labels, which nobody has in practice",
            ("test_risk",),
            float,
        ),
    )
}


class SelectionEvidence:
    """What is known about an adapted method; each piece is computed when a rule asks for it.

    answers : its class probabilities (n, K) of the target's test part
    """

    def __init__(self, method: Method, pair: Pair, evaluator: Evaluator, answers: Floats) -> None:
        self._method, self._pair, self._evaluator, self._answers = method, pair, evaluator, answers

    @cached_property
    def source_losses(self) -> Floats:
        """Cross entropies (n,) of held-out source rows."""
        held_out = self._pair.validation
        return cross_entropies(self._method.predict_proba(held_out.windows), held_out.y)

    @cached_property
    def weights(self) -> Floats | None:
        """`density_ratio` (n,) of held-out source rows; None with too few windows or a method without features."""
        method, pair = self._method, self._pair
        if min(len(pair.source.windows), len(pair.target)) < 2:
            return None
        source, target = method.features(pair.source.windows), method.features(pair.target)
        held_out = method.features(pair.validation.windows)
        if source is None or target is None or held_out is None:
            return None
        return density_ratio(source, target, held_out, method.seed)

    @cached_property
    def few_shot_risk(self) -> float:
        """Cross entropy of a few labelled windows per class of the target's train part."""
        return self._evaluator.few_shot_risk(self._method, self._method.seed)

    @cached_property
    def test_risk(self) -> float:
        """Cross entropy of the target's test part."""
        return self._evaluator.test_risk(self._answers)


def all_risks(method: Method, pair: Pair, evaluator: Evaluator, answers: Floats) -> dict[str, float]:
    """The risk of an adapted method by every rule that can judge it; answers : as in `SelectionEvidence`."""
    evidence = SelectionEvidence(method, pair, evaluator, answers)
    judged = {name: rule.judge(evidence) for name, rule in RULES.items()}
    return {name: risk for name, risk in judged.items() if risk is not None and math.isfinite(risk)}


def select_best(risks: Mapping[str, Mapping[str, float]], rule: str) -> str:
    """The candidate with the lowest risk by a rule, the first of equals; `risks` maps candidate -> rule -> risk."""
    check_choice("rule", rule, tuple(RULES))
    unjudged = sorted(name for name, found in risks.items() if rule not in found)
    if unjudged:
        advice = "Runs that only label the target have none: read their table without a grid, or choose another rule."
        raise invalid("rule", expected=f"runs with a {rule}", got=f"none in {', '.join(unjudged)}", advice=advice)
    return min(risks, key=lambda name: risks[name][rule])
