r"""Why the council gave windows their labels: every number that its answer is the sum of.

log q_k = \sum_s e_{s,k} + b_k + r_k + const

e_{s,k} is the evidence of seat s for class k, b_k the logarithm of the class share, r_k the effect of known labels
and neighbouring windows. Nothing is approximated: the parts of log q_a - log q_b add up to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from transpl._utils.errors import InputError, check_int, invalid
from transpl._utils.wording import listed
from transpl.council.council import Council, CouncilAnswer
from transpl.council.witnesses.linear import Linear, statistic_names
from transpl.markov import BaseExplanation, Explanation, TransitionEvidence, each_transition
from transpl.markov.contributions import difference, evidence_table, largest, top_transitions
from transpl.markov.explanation import read_explanation
from transpl.windows import Windows

Floats = NDArray[np.float64]

_NAMED = 2  # channels in a sentence
_VIEWS = {"recorded": "signals as recorded", "standardised": "standardised signals", "shape": "window shapes"}


def load_explanation(path: str | os.PathLike[str]) -> BaseExplanation:
    """Read an explanation of either variant; other or damaged files are refused, and nothing in them is executed."""
    kinds: tuple[type[BaseExplanation], ...] = (Explanation, CouncilExplanation)
    return read_explanation(path, *kinds)


@dataclass(frozen=True)
class CouncilContributions:
    """Natural log odds of `label` against `against` in one window, split exactly.

    Attributes
    ----------
    label, against : class labels
    witnesses : (S,) array
        The part of each seat.
    bias : float
        The part of the class shares.
    rest : float
        The part of known labels, other windows of the recording and neighbours in time.
    log_odds : float
        log q_label - log q_against, the sum of all parts.
    """

    label: Any
    against: Any
    witnesses: Floats
    bias: float
    rest: float
    log_odds: float


class LinearParts(NamedTuple):
    """The log odds of the linear witness in one window: the part of each feature (F,), and that of no feature."""

    features: Floats
    bias: float


@dataclass(frozen=True)
class WitnessEvidence:
    """The answer of one witness.

    Attributes
    ----------
    says : class label
        The class it would assign alone.
    probability : float
        Its own probability of that class.
    accuracy : float
        Its estimated accuracy on this target.
    contribution : float
        Its part of the log odds.
    """

    witness: str
    view: str
    says: Any
    probability: float
    accuracy: float
    contribution: float


@dataclass(frozen=True)
class FeatureEvidence:
    """A feature of the window, in standard deviations from the domain's mean, and its part of the linear log odds."""

    channel: str
    quantity: str
    value: float
    contribution: float


@dataclass(frozen=True)
class CouncilEvidence:
    """Why `label` rather than `against`, the most decisive evidence first on either side.

    The contributions of witnesses are parts of `log_odds`, those of transitions are parts of the log odds of the codes,
    and those of features are parts of the log odds of the linear witness.
    """

    window: int
    label: Any
    against: Any
    probability: float
    log_odds: float
    witnesses_for: tuple[WitnessEvidence, ...]
    witnesses_against: tuple[WitnessEvidence, ...]
    transitions_for: tuple[TransitionEvidence, ...]
    transitions_against: tuple[TransitionEvidence, ...]
    features_for: tuple[FeatureEvidence, ...]
    features_against: tuple[FeatureEvidence, ...]

    def table(self) -> pd.DataFrame:
        """The witnesses, one per row; column `side` is "for" or "against"."""
        return evidence_table(WitnessEvidence, self.witnesses_for, self.witnesses_against)


@dataclass(frozen=True, eq=False, kw_only=True)
class CouncilExplanation(BaseExplanation):
    r"""The council's answer for n windows, taken apart.

    Attributes
    ----------
    seats : S pairs (witness, view)
    evidence : (n, S, K) array
        e_{s,k}.
    bias : (K,) array
        b_k.
    rest : (n, K) array
        r_k.
    seat_answers : (n, S, K) array
        The class probabilities of each seat alone.
    accuracies : (S,) array
        The estimated accuracy of each seat on this target, if the council's labels are right.
    code_log_probabilities : (K, D, c, c) array
        log p(j | i, k, d) of the codes; -inf for a class without any source window.
    features : (n, F) array or None
        The standardised features of the linear witness; None if there is no such witness.
    feature_weights, feature_bias : (K, F) and (K,) arrays
        Of its logistic regression; a bias of -inf for a class it never saw.
    feature_names : F pairs (channel, quantity)
    linear_view : str or None
        The view of the linear witness.

    See Also
    --------
    transpl.markov.BaseExplanation : the attributes that explanations of all variants have.
    """

    seats: tuple[tuple[str, str], ...]
    evidence: Floats
    bias: Floats
    rest: Floats
    seat_answers: Floats
    accuracies: Floats
    code_log_probabilities: Floats
    features: NDArray[np.floating] | None = None
    feature_weights: Floats | None = None
    feature_bias: Floats | None = None
    feature_names: tuple[tuple[str, str], ...] = ()
    linear_view: str | None = None

    FORMAT: ClassVar[str] = "transpl-council-explanation-1"
    PER_WINDOW: ClassVar[tuple[str, ...]] = (
        *("codes", "answers", "windows", "signals", "nearest"),
        *("evidence", "rest", "seat_answers", "features"),
    )
    ARRAYS: ClassVar[tuple[str, ...]] = (
        *("codes", "distances", "weights", "answers", "windows", "signals", "evidence", "bias", "rest"),
        *("seat_answers", "accuracies", "code_log_probabilities", "features", "feature_weights", "feature_bias"),
    )
    PLAIN: ClassVar[tuple[str, ...]] = ("mode", "patch_length", "seats", "feature_names", "linear_view")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("seats", "feature_names"):
            object.__setattr__(self, name, _pairs(name, getattr(self, name)))
        n, S, K, D = len(self), len(self.seats), len(self.classes), len(self.channel_names)
        n_codes = self.code_log_probabilities.shape[-1]
        shapes: dict[str, tuple[int, ...]] = {
            "evidence": (n, S, K),
            "bias": (K,),
            "rest": (n, K),
            "seat_answers": (n, S, K),
            "accuracies": (S,),
            "code_log_probabilities": (K, D, n_codes, n_codes),
        }
        if self.features is not None:
            F = len(self.feature_names)
            shapes |= {"features": (n, F), "feature_weights": (K, F), "feature_bias": (K,)}
            if self.feature_weights is None or self.feature_bias is None:
                advice = "Use TransPL.explain."
                raise invalid("features", expected="feature_weights and feature_bias too", got="none", advice=advice)
        self._check(shapes, n_codes)
        for name in ("evidence", "bias", "rest"):
            if np.isnan(getattr(self, name)).any() or np.isposinf(getattr(self, name)).any():
                raise invalid(name, expected="log probabilities", got="NaN or infinity", advice="Use TransPL.explain.")

    @cached_property
    def probabilities(self) -> Floats:
        r"""q_k = softmax_k [ \sum_s e_{s,k} + b_k + r_k ], (n, K)."""
        return softmax(self.evidence.sum(axis=1) + self.bias + self.rest, axis=1)

    @property
    def votes(self) -> NDArray[np.int64]:
        """The class that each seat would assign alone, (n, S) positions in `classes`."""
        return self.seat_answers.argmax(axis=2)

    def contributions(self, window: int, label: Any = None, against: Any = None) -> CouncilContributions:
        """Split the log odds of one class against another in one window exactly over seats.

        Parameters
        ----------
        window : int
            Position in this explanation.
        label, against : optional
            Classes; by default the most probable class, and the most probable of the others.
        """
        one = self.only(window)
        a, b = one.rivals(label, against)
        witnesses = difference(one.evidence[0, :, a], one.evidence[0, :, b])
        bias, rest = (float(difference(part[a], part[b])) for part in (one.bias, one.rest[0]))
        classes = one.classes.tolist()
        return CouncilContributions(classes[a], classes[b], witnesses, bias, rest, float(witnesses.sum() + bias + rest))

    def code_parts(self, window: int, label: Any = None, against: Any = None) -> Floats:
        """log p(s_{t+1} | s_t, label, d) - log p(s_{t+1} | s_t, against, d), (D, N-1).

        The sum is the log odds of the codes under equal class shares; 0 behind the end of a shorter window. Parameters
        are those of `contributions`.
        """
        one = self.only(window)
        a, b = one.rivals(label, against)
        terms = each_transition(one.codes, one.code_log_probabilities)[0]
        return difference(terms[..., a], terms[..., b])

    def linear_parts(self, window: int, label: Any = None, against: Any = None) -> LinearParts | None:
        """(w_label - w_against) x per feature and the difference of biases; None without a linear witness.

        Together they are the log odds of its logistic regression. Parameters are those of `contributions`.
        """
        if self.features is None:
            return None
        assert self.feature_weights is not None
        assert self.feature_bias is not None
        one = self.only(window)
        a, b = one.rivals(label, against)
        x = self.features[window].astype(np.float64)
        bias = float(difference(self.feature_bias[a], self.feature_bias[b]))
        return LinearParts((self.feature_weights[a] - self.feature_weights[b]) * x, bias)

    def top_evidence(self, window: int, n: int = 5, label: Any = None, against: Any = None) -> CouncilEvidence:
        """Name the witnesses, and the n code transitions and features on either side, that spoke most for and against.

        The other parameters are those of `contributions`.
        """
        check_int("n", n, least=0)
        one = self.only(window)
        found = one.contributions(0, label, against)
        named = (found.label, found.against)
        codes, linear = one.code_parts(0, *named), one.linear_parts(0, *named)
        features = np.zeros(0) if linear is None else linear.features
        return CouncilEvidence(
            window=int(one.windows[0]),
            label=found.label,
            against=found.against,
            probability=float(one.probabilities[0, one.class_index("label", found.label)]),
            log_odds=found.log_odds,
            witnesses_for=one._named_witnesses(found.witnesses),
            witnesses_against=one._named_witnesses(found.witnesses, sign=-1),
            transitions_for=top_transitions(one, codes, codes, n),
            transitions_against=top_transitions(one, codes, codes, n, sign=-1),
            features_for=one._named_features(features, largest(features, n)),
            features_against=one._named_features(features, largest(-features, n)),
        )

    def sentence(self, window: int) -> str:
        """Say in plain words why the window at this position got its label.

        It says how many witnesses agree with the label, what the others say, and which channels speak for it.
        """
        one = self.only(window)
        k = int(one.probabilities[0].argmax())
        label, answer = f"{one.classes[k]}, {one.probabilities[0, k]:.2f}", int(one.answers[0].argmax())
        if answer != k:  # other windows decided
            label = f"{one.classes[answer]}, {one.answers[0, answer]:.2f}; by itself {label}"
        reasons = [_agreement(one, k), *_others_say(one, k), *_overruled(one, k), *_channels(one)]
        return f"{label}: {'; '.join(reasons)}."

    def _named_witnesses(self, parts: Floats, sign: int = 1) -> tuple[WitnessEvidence, ...]:
        """Name the seats whose part has this sign, in an explanation of one window, the largest part first."""
        says, answers = self.votes[0], self.seat_answers[0]
        return tuple(
            WitnessEvidence(
                witness=self.seats[s][0],
                view=self.seats[s][1],
                says=self.classes.tolist()[says[s]],
                probability=float(answers[s, says[s]]),
                accuracy=float(self.accuracies[s]),
                contribution=float(parts[s]),
            )
            for s in largest(sign * parts, len(parts))
        )

    def _named_features(self, parts: Floats, chosen: Sequence[int]) -> tuple[FeatureEvidence, ...]:
        assert self.features is not None or not chosen
        return tuple(
            FeatureEvidence(*self.feature_names[f], float(self.features[0, f]), float(parts[f]))  # type: ignore[index]
            for f in chosen
        )


def explanation_fields(
    council: Council, windows: Windows, answer: CouncilAnswer, channel_names: Sequence[str]
) -> dict[str, Any]:
    """Return the fields of a `CouncilExplanation` that say which seat contributed what to the answer for windows."""
    found: dict[str, Any] = {
        "evidence": answer.evidence,
        "bias": answer.bias,
        "rest": answer.rest,
        "seat_answers": answer.seat_answers,
        "seats": tuple(council.seat_names),
        "accuracies": np.array([each.accuracy for each in council.seat_accuracies()]),
    }
    linear = [at for at, seat in enumerate(council.seats) if isinstance(seat.witness, Linear)]
    if not linear:
        return found
    best = max(linear, key=lambda at: found["accuracies"][at])
    witness, rows = council.seats[best].witness, council.rows(best, windows)
    assert isinstance(witness, Linear)
    weights, bias = np.zeros((council.n_classes, rows.shape[1])), np.full(council.n_classes, -np.inf)
    weights[witness.classes], bias[witness.classes] = witness.weights, witness.bias
    return found | {
        "features": rows,
        "feature_weights": weights,
        "feature_bias": bias,
        "feature_names": tuple(statistic_names(channel_names)),
        "linear_view": council.seats[best].view,
    }


def witness_in_words(witness: str, view: str) -> str:
    """Describe a seat, such as "trees on standardised signals"."""
    return f"{witness} on {_VIEWS.get(view, f'{view} signals')}"


def _agreement(one: CouncilExplanation, k: int) -> str:
    agreeing, S = int((one.votes[0] == k).sum()), len(one.seats)
    if S == 1:
        said = f"its one witness {'says' if agreeing else 'does not say'} so"
    elif agreeing in (0, S):
        said = f"all {S} witnesses say so" if agreeing else f"none of its {S} witnesses says so"
    else:
        said = f"{agreeing} of {S} witnesses {'says' if agreeing == 1 else 'say'} so"
    if len(one.classes) < 2:
        return said
    parts = one.contributions(0).witnesses
    strongest = int(parts.argmax())
    return f"{said}, most strongly {witness_in_words(*one.seats[strongest])}" if parts[strongest] > 0 else said


def _others_say(one: CouncilExplanation, k: int) -> list[str]:
    others = one.votes[0][one.votes[0] != k]
    if not len(others):
        return []
    counts = np.bincount(others, minlength=len(one.classes))
    most = int(counts.argmax())
    return [f"{counts[most]} {'says' if counts[most] == 1 else 'say'} {one.classes[most]}"]


def _overruled(one: CouncilExplanation, k: int) -> list[str]:
    alone = int((one.evidence[0].sum(axis=0) + one.bias).argmax())
    if alone == k:
        return []
    return [f"known labels or other windows of its recording decided against {one.classes[alone]}"]


def _channels(one: CouncilExplanation) -> list[str]:
    """Name the channels whose codes speak most for the label, and the one most against it if all together do."""
    if len(one.classes) < 2 or len(one.channel_names) < 2:
        return []
    parts = one.code_parts(0).sum(axis=1)
    most = largest(parts, _NAMED)
    if not most:
        return ["no channel's patterns speak for it"]
    names = listed([one.channel_names[d] for d in most])
    speak = "speaks" if len(most) == 1 else "speak"
    if parts.sum() >= 0:
        return [f"by its patterns {names} {speak} most for it"]
    return [f"by its patterns {names} {speak} for it, {one.channel_names[int(parts.argmin())]} more against it"]


def _pairs(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Check pairs of names and turn the lists of JSON into tuples."""
    pairs = tuple(tuple(pair) for pair in value)
    if any(len(pair) != 2 or not all(isinstance(word, str) for word in pair) for pair in pairs):
        raise InputError(f"{name}: expected pairs of names, got {value!r}. Use TransPL.explain.")
    return pairs  # type: ignore[return-value]
