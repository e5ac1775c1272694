r"""Judging and joining witnesses without labels: how reliable each is follows from how it agrees with the others.

The model of Dawid and Skene (1979) with Dirichlet priors: a window has class k with probability \pi_k, and witness s
utters symbol l with probability C_s[k, l], independently of the others given the class. A symbol is the class a
witness names together with how sure it is (in thirds of its own margins), so that a hesitant answer counts as what it
is. EM finds class probabilities q, shares \pi and confusions C together:

q_{i,k} \propto \pi_k \prod_s C_s[k, l_{s,i}]^{w_s},
C_s[k, l] \propto \alpha[k, l] + \rho \sum_i q_{i,k} [l_{s,i} = l],
\pi \propto \sum_i q_i + n \pi_source.

w_s = 1 / \sum_t agreement(s, t)^2 (mean 1): two witnesses that always say the same are heard as one.
\rho <= 1 counts at most 25 windows per class, because windows of one recording are alike and a large target would
otherwise override the prior that a witness is right more often than wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from transpl.windows import UNKNOWN

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = 3  # of how sure a witness is
_ROUNDS = 60
_SETTLED = 1e-6
_ANY_SYMBOL = 0.3  # \alpha: pseudo-windows for every class a witness may name
_RIGHT_SYMBOL = 4.0  # and on top of it for the right one
_WINDOWS_PER_CLASS = 25  # that a confusion is learnt from at most
_SOURCE_SHARES = 1.0  # how much the source's class shares weigh, in targets
_LEAST_SHARE = 1e-6  # of a class that a given prior excludes
_KNOWN_WINDOW = 10.0  # windows that one labelled by a person counts for
_STAYS = 0.9  # probability that the next window has the same class, before it is estimated


class Structure(NamedTuple):
    """How the windows of one call belong together.

    groups : (n,) windows with the same number have one label; None if each has its own
    sequences : (n,) windows with the same number follow one another in time; None without order
    """

    groups: Ints | None = None
    sequences: Ints | None = None

    @property
    def recordings(self) -> Ints | None:
        """(n,) which recording a window is of, if there are several."""
        found = self.groups if self.groups is not None else self.sequences
        return None if found is None or (found == found[0]).all() else found

    def of(self, rows: Ints) -> Structure:
        """That of some of the windows."""
        groups, sequences = self
        return Structure(None if groups is None else groups[rows], None if sequences is None else sequences[rows])


@dataclass(frozen=True, eq=False)
class Verdict:
    """What EM found.

    thresholds : (S, LEVELS - 1) log margins that part hesitant from sure answers
    weights : (S,) w
    confusions : (S, K, K * LEVELS) C; symbol l + K * level, level 0 is the surest
    shares : (K,) \\pi
    accuracies : (S,) how often each seat names the right class, estimated
    stays : probability that the next window in time has the same class
    sharpness : all evidence is multiplied by it, so that confidence is as high as the estimated accuracy
    """

    thresholds: Floats
    weights: Floats
    confusions: Floats
    shares: Floats
    accuracies: Floats
    stays: float = _STAYS
    sharpness: float = 1.0

    def evidence(self, answers: Floats) -> Floats:
        """sharpness w_s log C_s[k, l_s] of answers (S, n, K), (S, n, K)."""
        symbols = symbols_of(answers, self.thresholds)
        log_c = self.sharpness * self.weights[:, None, None] * np.log(self.confusions)
        return np.stack([table.T[said] for table, said in zip(log_c, symbols, strict=True)])

    @property
    def bias(self) -> Floats:
        """sharpness log \\pi, (K,)."""
        return self.sharpness * np.log(self.shares)

    def log_probabilities(self, evidence: Floats, structure: Structure) -> Floats:
        """log q (n, K) of windows whose evidence (S, n, K) is known, with what their neighbours say."""
        return _class_log_probabilities(evidence.sum(axis=0), self.bias, structure, self.stays)

    def arrays(self) -> dict[str, NDArray]:
        """All of it, by name."""
        numbers = np.array([self.stays, self.sharpness])
        names = ("thresholds", "weights", "confusions", "shares", "accuracies")
        return {name: getattr(self, name) for name in names} | {"numbers": numbers}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> Verdict:
        """What `arrays` was made of."""
        rest = {name: value for name, value in arrays.items() if name != "numbers"}
        stays, sharpness = arrays["numbers"].tolist()
        return cls(**rest, stays=stays, sharpness=sharpness)

    def with_shares(self, prior: Floats) -> Verdict:
        """The same under class shares that are known."""
        return replace(self, shares=np.maximum(prior, _LEAST_SHARE))

    def calibrated(self, answers: Floats, sharpness: float) -> Verdict:
        """The same, less sure of everything, and of what its seats are worth by their answers (S, n, K)."""
        dulled = replace(self, sharpness=sharpness)
        q = np.exp(_class_log_probabilities(dulled.evidence(answers).sum(axis=0), dulled.bias, Structure(), self.stays))
        return replace(dulled, accuracies=_accuracies(answers, q))


def join(
    answers: Floats,
    source_shares: Floats,
    *,
    heard: NDArray[np.bool_] | None = None,
    prior: Floats | None = None,
    known: Ints | None = None,
    structure: Structure | None = None,
) -> tuple[Verdict, Floats]:
    """Judge seats by their answers (S, n, K) on the target; the verdict, and q (n, K).

    source_shares : (K,), to which the target's shares are drawn
    heard : (S,) seats that have a say; by default all. The others are judged and weigh nothing
    prior : (K,) the target's shares, if they are known
    known : (n,) labels that a person gave, -1 for the others
    """
    structure = Structure() if structure is None else structure
    S, n, K = answers.shape
    thresholds = _thresholds(answers)
    symbols = symbols_of(answers, thresholds)
    heard = np.ones(S, bool) if heard is None else heard
    weights = np.zeros(S)
    weights[heard] = redundancy_weights(answers[heard].argmax(axis=2))
    given = np.full(n, UNKNOWN) if known is None else known
    counted = np.where(given == UNKNOWN, 1.0, _KNOWN_WINDOW)
    counted *= min(1.0, _WINDOWS_PER_CLASS * K / n)
    q = _certain(answers[heard].mean(axis=0), given)
    verdict = Verdict(thresholds, weights, np.empty((S, K, K * LEVELS)), np.full(K, 1 / K), np.zeros(S))
    for _ in range(_ROUNDS):
        verdict = replace(
            verdict,
            confusions=_confusions(q * counted[:, None], symbols),
            shares=_shares(q, source_shares) if prior is None else np.maximum(prior, _LEAST_SHARE),
        )
        log_q = verdict.log_probabilities(verdict.evidence(answers), structure)
        if structure.sequences is not None:
            verdict = replace(verdict, stays=_stays(np.exp(log_q), structure.sequences))
        before, q = q, _certain(np.exp(log_q), given)
        if np.abs(q - before).max() < _SETTLED:
            break
    return replace(verdict, accuracies=_accuracies(answers, q)), q


def symbols_of(answers: Floats, thresholds: Floats) -> Ints:
    """l + K * level of answers (S, n, K), (S, n): the class named, and how sure, 0 the surest."""
    K = answers.shape[2]
    margins = _margins(answers)
    sure = np.stack([np.searchsorted(t, m) for t, m in zip(thresholds, margins, strict=True)])
    return answers.argmax(axis=2) + K * (LEVELS - 1 - sure)


def redundancy_weights(named: Ints) -> Floats:
    """1 / \\sum_t agreement(s, t)^2 of named classes (S, n), divided by the mean over s."""
    agreement = np.stack([(named == one).mean(axis=1) for one in named])
    weights = 1 / (agreement**2).sum(axis=1)
    return weights / weights.mean()


def _margins(answers: Floats) -> Floats:
    """log p of the first class over the second, (S, n)."""
    second, first = np.moveaxis(np.partition(answers, -2, axis=2)[:, :, -2:], 2, 0)
    return np.log(first) - np.log(second)


def _thresholds(answers: Floats) -> Floats:
    return np.quantile(_margins(answers), np.arange(1, LEVELS) / LEVELS, axis=1).T


def _confusions(q: Floats, symbols: Ints) -> Floats:
    """C, (S, K, K * LEVELS)."""
    K = q.shape[1]
    prior = np.tile(_ANY_SYMBOL + _RIGHT_SYMBOL * np.eye(K), (1, LEVELS)) / LEVELS
    counts = np.stack([q.T @ np.eye(K * LEVELS)[said] for said in symbols]) + prior
    return counts / counts.sum(axis=2, keepdims=True)


def _shares(q: Floats, source_shares: Floats) -> Floats:
    n = len(q)
    shares = np.maximum(q.sum(axis=0) + _SOURCE_SHARES * n * source_shares, _LEAST_SHARE)
    return shares / shares.sum()


def _accuracies(answers: Floats, q: Floats) -> Floats:
    """How probably each seat names the right class, (S,), if q (n, K) is to be believed."""
    named = answers.argmax(axis=2)
    return q[np.arange(len(q)), named].mean(axis=1)


def _certain(q: Floats, given: Ints) -> Floats:
    return np.where((given == UNKNOWN)[:, None], q, np.eye(q.shape[1])[given])


def _class_log_probabilities(evidence: Floats, bias: Floats, structure: Structure, stays: float) -> Floats:
    if structure.groups is not None:
        evidence = _group_means(evidence, structure.groups)
    if structure.sequences is None:
        return log_softmax(evidence + bias, axis=1)
    log_q = np.empty_like(evidence)
    for sequence in np.unique(structure.sequences):
        rows = np.flatnonzero(structure.sequences == sequence)
        log_q[rows] = _chain(evidence[rows], log_softmax(bias), stays)
    return log_q


def _group_means(evidence: Floats, groups: Ints) -> Floats:
    """Every window gets the mean evidence of its group: windows of one recording are no independent witnesses."""
    _, at = np.unique(groups, return_inverse=True)
    sums = np.zeros((at.max() + 1, evidence.shape[1]))
    np.add.at(sums, at, evidence)
    return (sums / np.bincount(at)[:, None])[at]


def _chain(evidence: Floats, log_shares: Floats, stays: float) -> Floats:
    r"""log q of a chain p(k' | k) = stays [k = k'] + (1 - stays) \pi_{k'}, forwards and backwards."""
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
    """How often neighbours have the same class, by their own probabilities; with a little of the prior guess."""
    order = np.argsort(sequences, kind="stable")  # windows of one sequence side by side
    q, sequences = q[order], sequences[order]
    neighbours = sequences[1:] == sequences[:-1]
    same = (q[1:] * q[:-1]).sum(axis=1)[neighbours]
    return float(np.clip((same.sum() + 10 * _STAYS) / (len(same) + 10), 0.5, 0.99))
