"""Why windows got their labels: plain data from which every part of the vote follows, without a network."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, check_choice, check_int, check_positive, invalid, unreadable_file
from transpl._utils.files import read_npz, replacing
from transpl._utils.wording import listed
from transpl.markov.contributions import Contributions, VoteEvidence, contributions_of, evidence_of
from transpl.markov.counts import check_codes
from transpl.markov.nearest import NearestWindows
from transpl.markov.posterior import (
    CONFIDENCE,
    LENGTHS,
    NEGLIGIBLE_WEIGHT,
    channel_posteriors,
    confidence,
    divisors,
    each_transition,
    mean_over_transitions,
    weighted_vote,
)
from transpl.windows import evenly_spaced

MODES = ("source", "markov", "finetune")
MAX_EXPLAINED = 400  # windows that results explain by default
# Settings of votes that older versions had, with the only value that can still be read.
_RETIRED = {"vote": "mean", "sharpness": 1.0, "classifier_sharpness": None, "temper": 1.0}
_ADVICE = "Use TransPL.explain."

Floats = NDArray[np.float64]
AnyExplanation = TypeVar("AnyExplanation", bound="BaseExplanation")


@dataclass(frozen=True, eq=False, kw_only=True)
class BaseExplanation(ABC):
    """What explanations of all variants have in common: n windows with labels, selectable by row, saved as one file.

    Attributes
    ----------
    classes : (K,) array
        Class labels.
    channel_names : tuple of D str
    codes : (n, D, N) int array
        -1 behind the end of a shorter window.
    distances, weights : (D,) arrays
        How far each channel moved, and how much it is trusted.
    answers : (n, K) array
        The result of `predict_proba`.
    mode : {"source", "markov", "finetune"}
        The classifier that gave these answers.
    patch_length : int
        Time steps per code.
    windows : (n,) int array
        Row numbers in the data that the windows were selected from.
    signals : (n, D, T) float32 array or None
        NaN behind the end of a shorter window.
    nearest : NearestWindows or None
        The most similar source windows; None if the model does not hold the codes of its source.
    """

    classes: NDArray
    channel_names: tuple[str, ...]
    codes: NDArray[np.integer]
    distances: Floats
    weights: Floats
    answers: Floats
    mode: str
    patch_length: int
    windows: NDArray[np.int64]
    signals: NDArray[np.float32] | None = None
    nearest: NearestWindows | None = None

    FORMAT: ClassVar[str]  # identifies the kind in a file
    PER_WINDOW: ClassVar[tuple[str, ...]]  # fields with one row per window
    ARRAYS: ClassVar[tuple[str, ...]]  # fields that are arrays, apart from `classes`
    PLAIN: ClassVar[tuple[str, ...]]  # fields that JSON can hold

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel_names", tuple(self.channel_names))
        check_choice("mode", self.mode, MODES)
        check_int("patch_length", self.patch_length, least=1)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Self:
        """Select windows by a position, a slice, positions or a mask; `windows` still holds their row numbers."""
        kept = np.atleast_1d(np.arange(len(self))[rows])
        values: dict[str, Any] = {name: getattr(self, name) for name in self.PER_WINDOW}
        selected: dict[str, Any] = {name: None if value is None else value[kept] for name, value in values.items()}
        return replace(self, **selected)

    def only(self, window: int) -> Self:
        """Return the explanation of the window at this position alone."""
        if isinstance(window, bool) or not isinstance(window, int | np.integer) or not 0 <= window < len(self):
            expected = f"a position 0..{len(self) - 1}"
            raise invalid("window", expected=expected, got=repr(window), advice="`windows` has the row numbers.")
        return self if len(self) == 1 else self[int(window)]

    @property
    @abstractmethod
    def probabilities(self) -> Floats:
        """What the stored parts add up to, (n, K)."""

    @property
    def labels(self) -> NDArray:
        """The most probable class by `probabilities`, (n,)."""
        return self.classes[self.probabilities.argmax(axis=1)]

    @property
    def confidence(self) -> Floats:
        """How certain the labels are, (n,), for ranking."""
        return self.probabilities.max(axis=1)

    @property
    def answer_labels(self) -> NDArray:
        """The labels by `predict`, (n,)."""
        return self.classes[self.answers.argmax(axis=1)]

    @abstractmethod
    def sentence(self, window: int) -> str:
        """Say in plain words why the window at this position got its label."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one npz file, atomically and without pickle: arrays as they are, the rest as JSON."""
        arrays = {name: getattr(self, name) for name in self.ARRAYS if getattr(self, name) is not None}
        about: dict[str, Any] = {
            "format": self.FORMAT,
            "classes": {"dtype": self.classes.dtype.str, "values": self.classes.tolist()},
            "channel_names": list(self.channel_names),
            **{name: getattr(self, name) for name in self.PLAIN},
        }
        if self.nearest is not None:
            arrays |= {"nearest_rows": self.nearest.rows, "nearest_distances": self.nearest.distances}
            about["nearest_labels"] = self.nearest.labels.tolist()
        text = json.dumps(about, ensure_ascii=False, allow_nan=False).encode()
        with replacing(path) as part, open(part, "wb") as stream:
            np.savez_compressed(stream, about=np.frombuffer(text, np.uint8), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; other or damaged files are refused, and nothing in them is executed."""
        return read_explanation(path, cls)

    def class_index(self, argument: str, label: Any) -> int:
        """Return the position of a label in `classes`; `argument` is what error messages call it."""
        found = np.flatnonzero(self.classes == label)
        if len(found) != 1:
            expected = f"one of {self.classes.tolist()}"
            raise invalid(argument, expected=expected, got=repr(label), advice="Check the spelling.")
        return int(found[0])

    def rivals(self, label: Any = None, against: Any = None) -> tuple[int, int]:
        """Return the positions of the two classes to compare in an explanation of one window.

        By default the most probable class, and the most probable of the others.
        """
        p = self.probabilities[0]
        if len(p) < 2:
            advice = "Explain a model with two or more."
            raise invalid("against", expected="a second class", got="only one class", advice=advice)
        a = int(p.argmax()) if label is None else self.class_index("label", label)
        others = np.where(np.arange(len(p)) == a, -np.inf, p)
        b = int(others.argmax()) if against is None else self.class_index("against", against)
        if a == b:
            expected = "another class than label"
            raise invalid("against", expected=expected, got=repr(against), advice="Choose a different one.")
        return a, b

    def _check(self, shapes: Mapping[str, tuple[int, ...]], n_codes: int) -> None:
        """Raise unless all arrays belong together; `shapes` are those of the subclass's own fields."""
        n, K, D = len(self), len(self.classes), len(self.channel_names)
        expected: dict[str, tuple[int, ...]] = {
            "codes": (n, D, self.codes.shape[-1]),
            "distances": (D,),
            "weights": (D,),
            "answers": (n, K),
            "windows": (n,),
            **shapes,
        }
        if self.signals is not None:
            expected["signals"] = (n, D, self.signals.shape[-1])
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise invalid(name, expected=f"shape {shape}", got=getattr(self, name).shape, advice=_ADVICE)
        check_codes(self.codes, n_codes)
        if self.nearest is not None and len(self.nearest) != n:
            raise invalid("nearest", expected=f"{n} rows", got=len(self.nearest), advice=_ADVICE)


def read_explanation(path: str | os.PathLike[str], *kinds: type[AnyExplanation]) -> AnyExplanation:
    """Read an explanation of one of these classes from a file that `save` wrote, or raise."""
    arrays = read_npz(path)
    try:
        about = json.loads(arrays.pop("about").tobytes())
        kind = next((kind for kind in kinds if about["format"] == kind.FORMAT), None)
        if kind is None:
            raise KeyError("format")
        if any(about.get(name, value) != value for name, value in _RETIRED.items()):
            raise ValueError("of a vote that this version does not have")
        dtype, nearest = np.dtype(about["classes"]["dtype"]), None
        if "nearest_labels" in about:
            rows = arrays["nearest_rows"]
            labels = np.array(about["nearest_labels"], dtype).reshape(rows.shape)  # an empty list has lost its width
            nearest = NearestWindows(rows, labels, arrays["nearest_distances"])
        fields: dict[str, Any] = {name: arrays[name] for name in kind.ARRAYS if name in arrays}
        fields |= {name: about[name] for name in kind.PLAIN}
        classes = np.array(about["classes"]["values"], dtype)
        return kind(classes=classes, channel_names=tuple(about["channel_names"]), nearest=nearest, **fields)
    except UnreadableFile:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        problem = f"not an explanation, or damaged ({type(error).__name__}: {error})"
        raise unreadable_file(path, problem=problem, advice="Write it with Explanation.save.") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(BaseExplanation):
    r"""The weighted vote on n windows, taken apart; what is not stored is computed exactly from what is.

    y_k = \sum_d share_d softmax_k [ l_{d,k} + log p(k) / \tau ],
    l_{d,k} = (1 / L) \sum_t log p(s_{t+1} | s_t, k, d)

    Attributes
    ----------
    log_probabilities : (K, D, n_c, n_c) array
        log p(j | i, k, d); -inf for a class without any source window.
    shares : (D,) array
        Each channel's share of the vote: the weights divided by their sum, or equal if all channels shifted away.
    prior : (K,) array or None
        p(k); None is uniform.
    prior_temperature : float
        \tau.
    length : {"transitions", "codes"}
        What L counts.
    confidence_rule : {"max", "kl"}
        The largest probability, or the divergence from uniform.

    See Also
    --------
    BaseExplanation : the attributes that explanations of all variants have.
    """

    log_probabilities: Floats
    shares: Floats
    prior: Floats | None = None
    prior_temperature: float = 1.0
    length: str = "transitions"
    confidence_rule: str = "max"

    FORMAT: ClassVar[str] = "transpl-explanation-1"
    PER_WINDOW: ClassVar[tuple[str, ...]] = ("codes", "answers", "windows", "signals", "nearest")
    ARRAYS: ClassVar[tuple[str, ...]] = (
        *("codes", "log_probabilities", "distances", "weights", "shares"),
        *("answers", "windows", "prior", "signals"),
    )
    PLAIN: ClassVar[tuple[str, ...]] = ("mode", "patch_length", "prior_temperature", "length", "confidence_rule")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("length", self.length, LENGTHS)
        check_choice("confidence_rule", self.confidence_rule, CONFIDENCE)
        check_positive("prior_temperature", self.prior_temperature)
        K, D, n_codes = len(self.classes), len(self.channel_names), self.log_probabilities.shape[-1]
        shapes: dict[str, tuple[int, ...]] = {"log_probabilities": (K, D, n_codes, n_codes), "shares": (D,)}
        if self.prior is not None:
            shapes["prior"] = (K,)
        self._check(shapes, n_codes)

    @property
    def transition_log_probabilities(self) -> Floats:
        r"""log p(s_{t+1} | s_t, k, d), (n, D, N-1, K); 0 behind the end of a shorter window."""
        return each_transition(self.codes, self.log_probabilities)

    @property
    def divisors(self) -> NDArray[np.int64]:
        """L, (n, D): what the sum over transitions is divided by."""
        return divisors(self.codes, self.length)

    @cached_property
    def log_likelihoods(self) -> Floats:
        r"""log p(X^d | k) = (1 / L) \sum_t log p(s_{t+1} | s_t, k, d), (n, D, K)."""
        return mean_over_transitions(self.codes, self.log_probabilities, self.length)

    @cached_property
    def posteriors(self) -> Floats:
        r"""p(k | X^d) = softmax_k [ log p(X^d | k) + log p(k) / \tau ], (n, D, K): the answer of each channel alone."""
        return channel_posteriors(self.log_likelihoods, self.prior, self.prior_temperature)

    @property
    def votes(self) -> Floats:
        r"""share_d p(k | X^d), (n, D, K): what each channel adds to y."""
        return self.shares[:, None] * self.posteriors

    @cached_property
    def probabilities(self) -> Floats:
        """y, (n, K), as in `pseudo_label`."""
        return weighted_vote(self.posteriors, self.shares)

    @property
    def confidence(self) -> Floats:
        """How certain the vote is, (n,), by `confidence_rule`; for ranking."""
        return confidence(self.probabilities, self.confidence_rule)

    def contributions(self, window: int, label: Any = None, against: Any = None) -> Contributions:
        """Split the lead y_label - y_against in one window exactly over channels and transitions.

        Parameters
        ----------
        window : int
            Position in this explanation.
        label, against : optional
            Classes; by default the label of the vote, and the most probable of the others.
        """
        return contributions_of(self.only(window), label, against)

    def top_evidence(self, window: int, n: int = 5, label: Any = None, against: Any = None) -> VoteEvidence:
        """Name the channels, and the n transitions on either side, that spoke most for `label` and for `against`.

        The other parameters are those of `contributions`.
        """
        check_int("n", n, least=0)
        return evidence_of(self.only(window), n, label, against)

    def sentence(self, window: int) -> str:
        """Say in plain words why the window at this position got its label.

        It names the channels that carried the label's probability, those that were set aside because they count less
        than a quarter of the most trusted one, and another answer of the classifier.
        """
        one = self.only(window)
        k = int(one.probabilities[0].argmax())
        votes = one.votes[0, :, k]
        reasons = [_carried(votes / votes.sum(), one.channel_names), *_set_aside(one)]
        return f"{one.classes[k]}, {one.probabilities[0, k]:.2f}: {'; '.join(reasons)}.{_other_answer(one, k)}"


_NAMED = 3  # channels; a sentence has no room for more
_ALIKE = 0.05  # of an equal part of the vote; smaller differences are not worth mentioning
_SET_ASIDE = 0.25  # of the most trusted channel's share
_ANSWERED_BY = {
    "finetune": "The fine-tuned network answers",
    "source": "The source network, which is not adapted, answers",
    "markov": "With the class proportions given to adapt the answer is",
}


def _carried(parts: Floats, names: Sequence[str]) -> str:
    D = len(parts)
    if D == 1:
        return f"its one channel, {names[0]}, carried the whole vote"
    if np.ptp(parts) < _ALIKE / D:
        return f"{'both' if D == 2 else f'all {D}'} channels carried about the same part of the vote"
    order = np.argsort(-parts, kind="stable")
    half = 1 + int(np.searchsorted(np.cumsum(parts[order]), 0.5))
    most = order[: min(half, _NAMED)]
    channels = f"channel{'s' if len(most) > 1 else ''} {listed([names[d] for d in most])}"
    return f"{channels} carried {100 * parts[most].sum():.0f} % of the vote"


def _set_aside(one: Explanation) -> list[str]:
    if len(one.shares) > 1 and one.weights.max() <= NEGLIGIBLE_WEIGHT:
        return ["every channel has shifted away, so all count alike"]
    aside = np.flatnonzero(one.shares < _SET_ASIDE * one.shares.max())
    if not len(aside):
        return []
    aside = aside[np.argsort(one.weights[aside], kind="stable")]
    weights = [f"{weight:.2f}" if weight >= 0.005 else "below 0.01" for weight in one.weights[aside]]
    if len(aside) > _NAMED:
        spread = weights[0] if weights[0] == weights[-1] else f"{weights[0]} to {weights[-1]}"
        return [f"{len(aside)} channels were set aside, weights {spread}"]
    verb, noun = ("was", "weight") if len(aside) == 1 else ("were", "weights")
    return [f"{listed([one.channel_names[d] for d in aside])} {verb} set aside, {noun} {listed(weights)}"]


def _other_answer(one: Explanation, k: int) -> str:
    answer = int(one.answers[0].argmax())
    if answer == k:
        return ""
    return f" {_ANSWERED_BY[one.mode]} {one.classes[answer]}, {one.answers[0, answer]:.2f}."


def windows_to_explain(
    probabilities: Floats, at_most: int = MAX_EXPLAINED, order: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Select at most `at_most` of n windows by their probabilities (n, K), in ascending order.

    Half of them are the first in `order`, by default the least confident. The others are spread evenly over classes,
    and within each over the order.
    """
    n, K = probabilities.shape
    if n <= at_most:
        return np.arange(n)
    label = probabilities.argmax(axis=1)
    order = np.argsort(probabilities.max(axis=1), kind="stable") if order is None else order
    chosen, others = [order[: at_most // 2]], order[at_most // 2 :]
    groups = [others[label[others] == k] for k in range(K)]
    sizes = np.array([len(group) for group in groups])
    for group, quota in zip(groups, equal_quotas(sizes, at_most - at_most // 2), strict=True):
        chosen.append(group[evenly_spaced(len(group), int(quota))])
    return np.sort(np.concatenate(chosen))


def equal_quotas(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Divide `total` over groups as equally as their sizes allow; a remainder goes to the first groups with room.

    >>> equal_quotas(np.array([1, 9, 9]), 6)
    array([1, 3, 2])
    """
    level = 0
    while np.minimum(sizes, level + 1).sum() <= total and level < sizes.max(initial=0):
        level += 1
    quotas = np.minimum(sizes, level)
    with_room = np.flatnonzero(sizes > level)
    quotas[with_room[: total - quotas.sum()]] += 1
    return quotas
