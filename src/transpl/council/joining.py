r"""Joining seats without labels: how reliable each is follows from how it agrees with the others.

The model of Dawid and Skene (1979) with Dirichlet priors: a window has class k with probability \pi_k, and seat s names
symbol l with probability C_s[k, l], independently of the others given the class. A symbol is the class that a seat
names together with how certain it is (in thirds of its own margins), so that a hesitant answer counts for less. EM
finds class probabilities q, shares \pi and confusions C together:

q_{i,k} \propto \pi_k \prod_s C_s[k, l_{s,i}]^{w_s},
C_s[k, l] \propto \alpha[k, l] + \rho \sum_i q_{i,k} [l_{s,i} = l],
\pi \propto \sum_i q_i + n \pi_source.

w_s = 1 / \sum_t agreement(s, t)^2 (mean 1): two seats that always agree count as one. \rho <= 1 counts at most 25
windows per class, because windows of one recording are similar, and a large target would otherwise override the prior
that a seat is right more often than wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit, logsumexp, softmax

from transpl._utils.layout import Layout
from transpl.windows import UNKNOWN, TargetInfo

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = 3  # of certainty
# Log margins closer than this are alike. Answers at the limit of certainty differ in their last bits alone, and these
# depend on which windows are computed together.
_ALIKE = 1e-4
_ROUNDS = 60
_CONVERGED = 1e-6
_ANY_SYMBOL = 0.3  # \alpha: pseudo-windows for every class that a seat may name
_RIGHT_SYMBOL = 4.0  # additional pseudo-windows for the right class
_WINDOWS_PER_CLASS = 25  # that a confusion is learnt from at most
_SOURCE_WEIGHT = 1.0  # of the source's class shares, in targets
_MIN_SHARE = 1e-6  # of a class that a given prior excludes
_LABEL_WEIGHT = 10.0  # windows that one labelled by a person counts for
_STAYS = 0.9  # probability that the next window has the same class, before it is estimated

# Ridge regression on 113 development pairs of four data sets, each set with the same weight (docs/beyond.md).
_INTERCEPT = 2.402
_OWN_CONFIDENCE, _AGREEMENT, _BEST_VIEW = -1.975, 1.430, 0.761
_BELOW, _ABOVE = 1.2, 2.0  # the interval, in log odds
_EXTREME = 0.02  # closer to 0 or 1, a share cannot be told from either


class AccuracyEstimate(NamedTuple):
    """The share of the target's windows with the right label, estimated without labels, and an interval."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class VoteModel:
    """The fitted model of how seats name classes on a target.

    Attributes
    ----------
    thresholds : (S, LEVELS - 1) array
        Log margins above which an answer counts as more certain: thirds of the target's, and a little more.
    weights : (S,) array
        w.
    confusions : (S, K, K * LEVELS) array
        C; symbol l + K * level, level 0 is the most certain.
    shares : (K,) array
        \\pi.
    accuracies : (S,) array
        How often each seat names the right class, estimated.
    stays : float
        The probability that the next window in time has the same class.
    sharpness : float
        A factor on all evidence that makes the mean confidence equal the estimated accuracy.
    """

    thresholds: Floats
    weights: Floats
    confusions: Floats
    shares: Floats
    accuracies: Floats
    stays: float = _STAYS
    sharpness: float = 1.0
    layout: ClassVar[Layout] = {
        "thresholds": "f seats cuts",
        "weights": "f seats",
        "confusions": "p seats K symbols",
        "shares": "p K",
        "accuracies": "f seats",
        "numbers": "f 2",
    }

    def evidence(self, answers: Floats) -> Floats:
        """sharpness w_s log C_s[k, l_s] of answers (S, n, K), (S, n, K)."""
        symbols = symbols_of(answers, self.thresholds)
        log_c = self.sharpness * self.weights[:, None, None] * np.log(self.confusions)
        return np.stack([table.T[named] for table, named in zip(log_c, symbols, strict=True)])

    @property
    def bias(self) -> Floats:
        """sharpness log \\pi, (K,)."""
        return self.sharpness * np.log(self.shares)

    def log_probabilities(self, evidence: Floats, info: TargetInfo) -> Floats:
        """log q (n, K) of windows with evidence (S, n, K), including that of their groups and neighbours."""
        total = evidence.sum(axis=0)
        if not info.smooth:
            total = total if info.groups is None else _group_means(total, info.groups)
            return log_softmax(total + self.bias, axis=1)
        log_q, sequences = np.empty_like(total), _sequences(info, len(total))
        for sequence in np.unique(sequences):
            rows = np.flatnonzero(sequences == sequence)
            log_q[rows] = _chain(total[rows], log_softmax(self.bias), self.stays)
        return log_q

    def arrays(self) -> dict[str, NDArray]:
        """Return everything as named arrays, to save."""
        names = ("thresholds", "weights", "confusions", "shares", "accuracies")
        return {name: getattr(self, name) for name in names} | {"numbers": np.array([self.stays, self.sharpness])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> VoteModel:
        """Restore the model from the result of `arrays`."""
        rest = {name: value for name, value in arrays.items() if name != "numbers"}
        stays, sharpness = arrays["numbers"].tolist()
        return cls(**rest, stays=stays, sharpness=sharpness)

    def with_shares(self, prior: Floats) -> VoteModel:
        """Return the model with known class shares."""
        return replace(self, shares=np.maximum(prior, _MIN_SHARE))

    def calibrated(self, answers: Floats, sharpness: float) -> VoteModel:
        """Return the model with this sharpness, and with accuracies to match, from answers (S, n, K)."""
        model = replace(self, sharpness=sharpness)
        q = np.exp(model.log_probabilities(model.evidence(answers), TargetInfo()))
        return replace(model, accuracies=_accuracies(answers, q))


def join(
    answers: Floats,
    source_shares: Floats,
    info: TargetInfo | None = None,
    *,
    voting: NDArray[np.bool_] | None = None,
) -> tuple[VoteModel, Floats]:
    """Fit the model to the answers (S, n, K) of all seats on the target.

    Parameters
    ----------
    answers : (S, n, K) array
    source_shares : (K,) array
        Towards which the target's shares are drawn.
    info : TargetInfo, optional
        Known class shares, labels, groups and order of the windows.
    voting : (S,) bool array, optional
        The seats that vote, by default all; the others are judged but have weight 0.

    Returns
    -------
    model : VoteModel
    q : (n, K) array
        Class probabilities.
    """
    info = TargetInfo() if info is None else info
    S, n, K = answers.shape
    thresholds = np.quantile(_margins(answers), np.arange(1, LEVELS) / LEVELS, axis=1).T
    symbols = symbols_of(answers, thresholds)
    voting = np.ones(S, bool) if voting is None else voting
    weights = np.zeros(S)
    weights[voting] = redundancy_weights(answers[voting].argmax(axis=2))
    known = np.full(n, UNKNOWN) if info.few_labels is None else info.few_labels
    counted = np.where(known == UNKNOWN, 1.0, _LABEL_WEIGHT) * min(1.0, _WINDOWS_PER_CLASS * K / n)
    q = _override(answers[voting].mean(axis=0), known)
    model = VoteModel(thresholds, weights, np.empty((S, K, K * LEVELS)), np.full(K, 1 / K), np.zeros(S))
    for _ in range(_ROUNDS):
        shares = _shares(q, source_shares) if info.prior is None else np.maximum(info.prior, _MIN_SHARE)
        model = replace(model, confusions=_confusions(q * counted[:, None], symbols), shares=shares)
        log_q = model.log_probabilities(model.evidence(answers), info)
        if info.smooth:
            model = replace(model, stays=_stays(np.exp(log_q), _sequences(info, n)))
        before, q = q, _override(np.exp(log_q), known)
        if np.abs(q - before).max() < _CONVERGED:
            break
    return replace(model, thresholds=thresholds + _ALIKE, accuracies=_accuracies(answers, q)), q


def symbols_of(answers: Floats, thresholds: Floats) -> Ints:
    """l + K * level of answers (S, n, K), (S, n): the class named and how certain, 0 is the most certain."""
    K = answers.shape[2]
    certainty = [np.searchsorted(t, m) for t, m in zip(thresholds, _margins(answers), strict=True)]
    return answers.argmax(axis=2) + K * (LEVELS - 1 - np.stack(certainty))


def redundancy_weights(named: Ints) -> Floats:
    """1 / \\sum_t agreement(s, t)^2 of named classes (S, n), divided by the mean over s."""
    agreement = np.stack([(named == one).mean(axis=1) for one in named])
    weights = 1 / (agreement**2).sum(axis=1)
    return weights / weights.mean()


def estimate_accuracy(answers: Floats, views: Sequence[str], q: Floats) -> AccuracyEstimate:
    r"""logit a = 2.402 - 1.975 logit c + 1.430 logit g + 0.761 logit v, for the labels argmax_k q (n, K).

    c is the mean confidence of the seats in their own answers (S, n, K), g how often two seats name the same class, and
    v how often the seats of a view name the council's class, in the view where they do so most. Seats that agree are
    more likely right, unless they are merely certain of themselves.
    """
    named, label = answers.argmax(axis=2), q.argmax(axis=1)
    S = len(named)
    same = np.array([(one == other).mean() for i, one in enumerate(named) for other in named[i + 1 :]])
    agrees = (named == label).mean(axis=1)
    best_view = max(agrees[[view == chosen for view in views]].mean() for chosen in set(views))
    signs = (answers.max(axis=2).mean(), same.mean() if S > 1 else best_view, best_view)
    weights = (_OWN_CONFIDENCE, _AGREEMENT, _BEST_VIEW)
    odds = _INTERCEPT + sum(w * logit(np.clip(x, _EXTREME, 1 - _EXTREME)) for w, x in zip(weights, signs, strict=True))
    low, high = float(expit(odds - _BELOW)), float(expit(odds + _ABOVE))
    return AccuracyEstimate(float(expit(odds)), low if low > _EXTREME else 0.0, high if high < 1 - _EXTREME else 1.0)


def sharpness_for(log_scores: Floats, wanted: float) -> float:
    """Return the factor on log scores (n, K), at most 1, that makes the mean confidence `wanted`."""

    def mean_confidence(sharpness: float) -> float:
        return float(softmax(sharpness * log_scores, axis=1).max(axis=1).mean())

    low, high = 1e-3, 1.0
    if mean_confidence(high) <= wanted:
        return high
    for _ in range(50):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if mean_confidence(middle) < wanted else (low, middle)
    return low


def _margins(answers: Floats) -> Floats:
    """log p of the first class over the second, (S, n)."""
    second, first = np.moveaxis(np.partition(answers, -2, axis=2)[:, :, -2:], 2, 0)
    return np.log(first) - np.log(second)


def _confusions(q: Floats, symbols: Ints) -> Floats:
    """C, (S, K, K * LEVELS)."""
    K = q.shape[1]
    prior = np.tile(_ANY_SYMBOL + _RIGHT_SYMBOL * np.eye(K), (1, LEVELS)) / LEVELS
    counts = np.stack([q.T @ np.eye(K * LEVELS)[named] for named in symbols]) + prior
    return counts / counts.sum(axis=2, keepdims=True)


def _shares(q: Floats, source_shares: Floats) -> Floats:
    shares = np.maximum(q.sum(axis=0) + _SOURCE_WEIGHT * len(q) * source_shares, _MIN_SHARE)
    return shares / shares.sum()


def _accuracies(answers: Floats, q: Floats) -> Floats:
    """The mean probability q (n, K) of the class that each seat names, (S,)."""
    return q[np.arange(len(q)), answers.argmax(axis=2)].mean(axis=1)


def _override(q: Floats, known: Ints) -> Floats:
    return np.where((known == UNKNOWN)[:, None], q, np.eye(q.shape[1])[known])


def _sequences(info: TargetInfo, n: int) -> Ints:
    """The recording of each window, (n,), each a sequence in time."""
    return np.zeros(n, np.int64) if info.groups is None else info.groups


def _group_means(evidence: Floats, groups: Ints) -> Floats:
    """Give each window the mean evidence of its group: windows of one recording are not independent."""
    _, at = np.unique(groups, return_inverse=True)
    sums = np.zeros((at.max() + 1, evidence.shape[1]))
    np.add.at(sums, at, evidence)
    return (sums / np.bincount(at)[:, None])[at]


def _chain(evidence: Floats, log_shares: Floats, stays: float) -> Floats:
    r"""log q of a chain p(k' | k) = stays [k = k'] + (1 - stays) \pi_{k'}, by the forward-backward algorithm."""
    K = evidence.shape[1]
    with np.errstate(divide="ignore"):
        step = np.logaddexp(np.where(np.eye(K) > 0, np.log(stays), -np.inf), np.log1p(-stays) + log_shares)
    forward, backward = np.empty_like(evidence), np.zeros_like(evidence)
    forward[0] = log_shares + evidence[0]
    for t in range(1, len(evidence)):
        forward[t] = evidence[t] + logsumexp(forward[t - 1][:, None] + step, axis=0)
    for t in range(len(evidence) - 2, -1, -1):
        backward[t] = logsumexp(step + evidence[t + 1] + backward[t + 1], axis=1)
    return log_softmax(forward + backward, axis=1)


def _stays(q: Floats, sequences: Ints) -> float:
    """How often neighbours have the same class, by their probabilities, with ten neighbours of the prior guess."""
    order = np.argsort(sequences, kind="stable")  # windows of one sequence side by side
    q, sequences = q[order], sequences[order]
    neighbours = sequences[1:] == sequences[:-1]
    same = (q[1:] * q[:-1]).sum(axis=1)[neighbours]
    return float(np.clip((same.sum() + 10 * _STAYS) / (len(same) + 10), 0.5, 0.99))
