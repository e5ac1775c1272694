r"""The council: several witnesses in several views, joined on an unlabelled target.

A *seat* is a witness in a view. On the target, log q_k = \sum_s e_{s,k} + log \pi_k + const: every seat adds evidence
e_{s,k} for class k, weighted by its reliability on this target, and \pi_k are the class shares.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from transpl._utils.errors import invalid
from transpl._utils.layout import below, check_arrays, check_facts, check_numbers, prefixed, without_prefix
from transpl._utils.progress import task, tracked
from transpl.council.joining import AccuracyEstimate, VoteModel, estimate_accuracy, join, sharpness_for
from transpl.council.relearning import GaussianClasses, PrincipalAxes, folds, relearn
from transpl.council.seats import Seat, SourceSeats
from transpl.council.settings import CouncilSettings
from transpl.council.shifts import ShiftSearch, find_shift
from transpl.council.target_sample import MAX_WINDOWS, rows_in_even_steps
from transpl.council.views import SignalScaler
from transpl.council.witnesses.codes import TransitionWitness
from transpl.markov import Undone
from transpl.windows import CHUNK, UNKNOWN, Labelled, TargetInfo, Windows, override_probabilities

Floats = NDArray[np.float64]
_RELEARNING_ROUNDS = 3
_CLEARLY_LIKELIER = 0.1  # of the log likelihood; no development target with all its classes gained more than 0.09
_RELEARNED_FROM = (("standardised", "linear"), ("standardised", "kernels"), ("shape", "linear"))
_TINY = 1e-12
_WITHOUT_DEAD = "heard"  # what saved models call the seats that learnt without the channels that are dead in the target
_SHIFT = {
    "kind": str,
    **{name: [int] for name in ("order", "signs", "dead")},
    **{name: [float] for name in ("factors", "fill")},
    "rate": float,
    "triads": [[int]],
}
_CANDIDATE = {"shift": _SHIFT, "score": float, "margin": float, "threshold": (float, None)}
_FACTS = {
    "n_classes": int,
    "adapted": bool,
    "heard": str,
    "relearned": [int],
    "shifts": ({"shifts": [_SHIFT], "score": (float, None), "candidates": [_CANDIDATE]}, None),
    "estimate": ([float], None),
}


class SeatAccuracy(NamedTuple):
    """The accuracy of a seat on the target, estimated without labels."""

    witness: str
    view: str
    accuracy: float


class CouncilAnswer(NamedTuple):
    """The council's answer for n windows, and what it is made of.

    Attributes
    ----------
    probabilities : (n, K) array
        q.
    evidence : (n, S, K) array
        What each seat adds to log q.
    bias : (K,) array
        Log class shares, added for every window.
    rest : (n, K) array
        What neighbours in time, other windows of the group and known labels add.
    seat_answers : (n, S, K) array
        The class probabilities of each seat alone.
    """

    probabilities: Floats
    evidence: Floats
    bias: Floats
    rest: Floats
    seat_answers: Floats


class Council:
    """Learns from a labelled source, adapts to an unlabelled target, and labels windows.

    Parameters
    ----------
    settings : CouncilSettings, optional

    Attributes
    ----------
    shifts : ShiftSearch or None
        What `adapt` found and undoes.
    estimate : AccuracyEstimate or None
        The estimated accuracy on the target.
    lacks_classes : bool
        Whether `adapt` noticed that the target lacks classes of the source.
    source_shares : (K,) array
        Class shares of the source.

    Examples
    --------
    >>> import numpy as np
    >>> from transpl.windows import Labelled, as_windows
    >>> t, y = np.arange(32), np.arange(40) % 2
    >>> noise = np.random.default_rng(0).normal(0, 0.1, (2, 40, 1, 32))
    >>> waves = np.sin(t * np.where(y, 0.4, 0.8)[:, None])[:, None]
    >>> council = Council(CouncilSettings(witnesses=("linear",))).learn(Labelled(as_windows(waves + noise[0]), y, 2))
    >>> answer = council.adapt(None, as_windows(3 * waves + noise[1]))
    >>> float((answer.probabilities.argmax(axis=1) == y).mean())
    1.0
    """

    def __init__(self, settings: CouncilSettings | None = None) -> None:
        self.settings = CouncilSettings() if settings is None else settings
        self.n_classes = 0
        self.lacks_classes = False
        self.shifts: ShiftSearch | None = None
        self.estimate: AccuracyEstimate | None = None
        self.source_shares: Floats = np.zeros(0)
        self._source = SourceSeats({}, [])  # what learnt from the source as it is
        self._used = self._source  # what answers: the same, unless a channel is dead in the target
        self._target_scalers: dict[str, SignalScaler] = {}
        self._relearned: dict[int, GaussianClasses] = {}  # by the seat whose rows they use
        self._votes: VoteModel | None = None

    def learn(self, source: Labelled) -> Self:
        """Let every seat learn from labelled source windows."""
        self.n_classes = source.n_classes
        self.source_shares = np.bincount(source.y, minlength=source.n_classes) / len(source.y)
        self._source = SourceSeats.learn(source, self.settings)
        self._forget_target()
        return self

    def adapt(self, source: Labelled | None, target: Windows, info: TargetInfo | None = None) -> CouncilAnswer:
        """Undo shifts, let all seats answer on the target, and judge them; always starting from the source.

        Parameters
        ----------
        source : Labelled or None
            Needed to search for shifts; None skips the search.
        target : Windows
        info : TargetInfo, optional
            What is known about the target.
        """
        info = self._checked(info, len(target))
        fresh = self.unadapted()  # a call that fails must not change anything
        answer = fresh._adapt(source, target, info)
        self.__dict__.update(fresh.__dict__)
        return _with_known_labels(answer, info)

    def predict(self, windows: Windows, info: TargetInfo | None = None) -> CouncilAnswer:
        """Label windows of the target; before `adapt`, by the mean of the recorded views.

        info : a prior replaces the class shares of `adapt`
        """
        info = self._checked(info, len(windows))
        return _with_known_labels(self._answer(self._seat_answers(windows), info, info.prior), info)

    def undo_shifts(self, windows: Windows) -> Windows:
        """Return windows of the target as they would be without the shifts that `adapt` found."""
        if self.shifts is None or not self.shifts.shifts:
            return windows
        return Windows(self.shifts.undo(windows.in_memory().values), windows.lengths)

    def undone(self, channel_names: Sequence[str]) -> tuple[Undone, ...]:
        """Return the shifts that `adapt` found and undoes, in this order."""
        if self.shifts is None:
            return ()
        found = []
        for shift in self.shifts.shifts:
            score = next((each for each in self.shifts.candidates if each.shift == shift), None)
            margin, threshold = (None, None) if score is None else (score.margin, score.threshold)
            found.append(Undone(shift.sentence(channel_names), shift.kind, margin, threshold, shift.to_json()))
        return tuple(found)

    def rows(self, seat: int, windows: Windows) -> NDArray:
        """Return windows of the target as rows (n, ...) of one seat."""
        chosen, scalers = self.seats[seat], self._target_scalers or self._used.scalers
        return chosen.rows(scalers[chosen.view].transform(self.undo_shifts(windows)), adapting=False)

    @property
    def seats(self) -> list[Seat]:
        """The seats that learnt from the source."""
        return self._used.seats

    @property
    def seat_names(self) -> list[tuple[str, str]]:
        """(witness, view) of every seat; those that relearned from the council's labels come last."""
        found = [(seat.name, seat.view) for seat in self.seats]
        return found + [(f"relearned {found[at][0]}", found[at][1]) for at in self._relearned]

    def seat_accuracies(self) -> list[SeatAccuracy]:
        """Return the estimated accuracy of every seat on this target; empty before `adapt`."""
        if self._votes is None:
            return []
        accuracies = self._votes.accuracies.tolist()
        return [SeatAccuracy(*names, accuracy) for names, accuracy in zip(self.seat_names, accuracies, strict=True)]

    def unadapted(self) -> Council:
        """Return the council as it was after `learn`."""
        alone = copy.copy(self)
        seats = [replace(seat, target_columns=None, adapted=None) for seat in self._source.seats]
        alone._source = SourceSeats(self._source.scalers, seats)
        alone._forget_target()
        return alone

    def arrays(self) -> dict[str, NDArray]:
        """Return everything that was learnt as named arrays, to save."""
        found = {"source_shares": self.source_shares} | prefixed("source", self._source.arrays())
        if self._used is not self._source:
            found |= prefixed(_WITHOUT_DEAD, self._used.arrays())
        for view, scaler in self._target_scalers.items():
            found |= prefixed(f"target_lens.{view}", scaler.arrays())
        for at, relearned in self._relearned.items():
            found |= prefixed(f"relearned.{at}", relearned.arrays())
        if self._votes is not None:
            found |= prefixed("verdict", self._votes.arrays())
        return found

    def facts(self) -> dict[str, Any]:
        """Return everything that was learnt and is not an array, as JSON holds it."""
        return {
            "n_classes": self.n_classes,
            "adapted": self._votes is not None,
            "heard": "source" if self._used is self._source else _WITHOUT_DEAD,
            "relearned": list(self._relearned),
            "shifts": None if self.shifts is None else self.shifts.to_json(),
            "estimate": None if self.estimate is None else list(self.estimate),
        }

    def check(self, facts: Any, arrays: Mapping[str, NDArray], sizes: dict[str, int]) -> None:
        """Raise unless `restore` can make something of these; sizes as in `check_arrays`."""
        check_facts("council", facts, _FACTS)
        n_seats, adapted = len(self.settings.views) * len(self.settings.witnesses), facts["adapted"]
        relearnt = facts["heard"] == _WITHOUT_DEAD
        check_numbers("council.relearned", np.array(facts["relearned"], np.int64), 0, n_seats - 1)
        if len(set(facts["relearned"])) < len(facts["relearned"]) or facts["heard"] not in ("source", _WITHOUT_DEAD):
            raise invalid("council", expected="seats", got="others", advice="Save the model again.")
        layout = {"source_shares": "f K"}
        layout |= below("source", SourceSeats.layout(self.settings, adapted and not relearnt))
        if relearnt:
            layout |= below(_WITHOUT_DEAD, SourceSeats.layout(self.settings, adapted))
        for at in facts["relearned"]:
            layout |= below(f"relearned.{at}", GaussianClasses.layout)
        if adapted:
            for view in self.settings.views:
                layout |= below(f"target_lens.{view}", SignalScaler.layout)
            layout |= below("verdict", VoteModel.layout)
            sizes = sizes | {"verdict.seats": n_seats + len(facts["relearned"])}
        check_arrays(arrays, layout, sizes | {"K": facts["n_classes"]})

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Self:
        """Restore the results of `facts` and `arrays`."""
        self.n_classes, self.source_shares = int(facts["n_classes"]), arrays["source_shares"]
        self.shifts = None if facts["shifts"] is None else ShiftSearch.from_json(facts["shifts"])
        self.estimate = None if facts["estimate"] is None else AccuracyEstimate(*facts["estimate"])

        def seats(prefix: str) -> SourceSeats:
            return SourceSeats.restored(without_prefix(prefix, arrays), self.settings, self.n_classes)

        self._source = seats("source")
        self._used = self._source if facts["heard"] == "source" else seats(_WITHOUT_DEAD)
        self._target_scalers = {
            view: SignalScaler(view, **without_prefix(f"target_lens.{view}", arrays))
            for view in (self.settings.views if facts["adapted"] else ())
        }
        self._relearned = {
            int(at): GaussianClasses.from_arrays(without_prefix(f"relearned.{at}", arrays)) for at in facts["relearned"]
        }
        self._votes = VoteModel.from_arrays(without_prefix("verdict", arrays)) if facts["adapted"] else None
        return self

    def _forget_target(self) -> None:
        self.shifts, self.estimate, self._votes, self._target_scalers, self._relearned = None, None, None, {}, {}
        self._used, self.lacks_classes = self._source, False

    def _checked(self, info: TargetInfo | None, n: int) -> TargetInfo:
        """Check `info`, and extend known labels to all windows of their groups (by majority)."""
        info = TargetInfo() if info is None else info
        info.check(n, self.n_classes)
        if info.few_labels is None or info.groups is None or info.smooth:
            return info
        known = info.few_labels.copy()
        for group in np.unique(info.groups[info.few_labels != UNKNOWN]):
            rows = info.groups == group
            known[rows] = np.bincount(info.few_labels[rows & (info.few_labels != UNKNOWN)]).argmax()
        return replace(info, few_labels=known)

    def _adapt(self, source: Labelled | None, target: Windows, info: TargetInfo) -> CouncilAnswer:
        if source is not None:
            self._find_shifts(source, target)
        n = len(target)
        rows = rows_in_even_steps(n, MAX_WINDOWS)
        if info.few_labels is not None:
            rows = np.union1d(rows, np.flatnonzero(info.few_labels != UNKNOWN))
        sample = self.undo_shifts(target[rows] if len(rows) < n else target)
        scalers = self._used.scalers.items()
        self._target_scalers = {
            view: scaler if view == "recorded" else SignalScaler.fit(view, sample) for view, scaler in scalers
        }
        answers = self._judge(sample, info.at(rows))
        if len(rows) == n:
            return self._answer(answers, info)
        assert self._votes is not None
        # Neighbours in the sample are several windows apart.
        self._votes = replace(self._votes, stays=self._votes.stays ** (len(rows) / n))
        return self._answer(self._seat_answers(target), info)

    def _find_shifts(self, source: Labelled, target: Windows) -> None:
        settings = self.settings
        with task("looking for shifts of the sensors", None):
            self.shifts = find_shift(
                source.windows,
                source.y,
                target,
                channel_names=settings.channel_names,
                triads=settings.triads,
                allow=settings.undo,
            )
        if any(shift.dead for shift in self.shifts.shifts):  # seats must learn without what is dead in the target
            blank = Windows(self.shifts.undo_source(source.windows.in_memory().values), source.windows.lengths)
            self._used = SourceSeats.learn(Labelled(blank, source.y, source.n_classes), self.settings)

    def _judge(self, target: Windows, info: TargetInfo) -> Floats:
        """Estimate how reliable each seat is, relearn from the council's labels, and return all answers (S, n, K)."""
        rows = self._rows(target, adapting=True)
        from_source = answers = self._answers(rows)
        voting = self._voting_seats(rows)
        self.lacks_classes = not voting.all()
        votes, q = join(from_source, self.source_shares, info, voting=voting)
        axes = {
            at: PrincipalAxes.fit(rows[at]) for at, s in enumerate(self.seats) if (s.view, s.name) in _RELEARNED_FROM
        }
        several = info.groups is not None and (info.groups != info.groups[0]).any()
        fold = folds(len(target), info.groups if several else None, self.settings.random_state)
        rounds = _RELEARNING_ROUNDS if axes and voting.all() else 0
        for _ in tracked(range(rounds), "learning from the target, rounds", rounds):
            learnt = {at: relearn(axes[at], rows[at], q, fold) for at in axes}
            self._relearned = {at: relearned for at, (relearned, _) in learnt.items()}
            answers = np.concatenate([from_source, np.stack([answer for _, answer in learnt.values()])])
            votes, q = join(answers, self.source_shares, info)
        self.estimate = estimate_accuracy(from_source, [seat.view for seat in self.seats], q)
        scores = votes.log_probabilities(votes.evidence(answers), info)
        self._votes = votes.calibrated(answers, sharpness_for(scores, self.estimate.accuracy))
        return self._answers(rows)

    def _voting_seats(self, rows: list[NDArray]) -> NDArray[np.bool_]:
        """Select all seats, or only the recorded view if its codes find the target likelier than standardised ones.

        In that case the target's own means and deviations mislead, because it lacks classes that the source has.
        """
        fits = {
            seat.view: float(seat.witness.log_likelihoods(each).max(axis=1).mean())
            for seat, each in zip(self.seats, rows, strict=True)
            if seat.name == "codes" and isinstance(seat.witness, TransitionWitness)
        }
        if {"recorded", "standardised"} <= fits.keys():
            gain = fits["recorded"] - fits["standardised"]
            if gain > _CLEARLY_LIKELIER * abs(fits["standardised"]):
                return self._recorded()
        return np.ones(len(self.seats), bool)

    def _recorded(self) -> NDArray[np.bool_]:
        return np.array([seat.view == "recorded" for seat in self.seats])

    def _seat_answers(self, windows: Windows) -> Floats:
        """Return the answers of all seats, (S, n, K), computed a chunk of windows at a time."""
        parts = []
        with task("labelling windows", len(windows)) as update:
            for rows, part in windows.chunks(CHUNK):
                parts.append(self._answers(self._rows(self.undo_shifts(part))))
                update(rows.stop)
        return np.concatenate(parts, axis=1)

    def _rows(self, windows: Windows, adapting: bool = False) -> list[NDArray]:
        """Return the rows of every seat; `adapting` scales them by these windows."""
        scalers = self._target_scalers or self._used.scalers
        viewed = {view: scaler.transform(windows) for view, scaler in scalers.items()}
        return [seat.rows(viewed[seat.view], adapting) for seat in self.seats]

    def _answers(self, rows: list[NDArray]) -> Floats:
        """Return answers (S, n, K) to the rows of every seat."""
        answers = [seat.answer(each) for seat, each in zip(self.seats, rows, strict=True)]
        return np.stack(answers + [relearned.answer(rows[at]) for at, relearned in self._relearned.items()])

    def _answer(self, answers: Floats, info: TargetInfo, prior: Floats | None = None) -> CouncilAnswer:
        """Join answers (S, n, K)."""
        if self._votes is None:
            recorded = self._recorded()
            voting = recorded if recorded.any() else ~recorded
            evidence = np.where(voting[:, None, None], np.log(answers) / voting.sum(), 0.0)
            bias = np.zeros(self.n_classes)
            log_q = log_softmax(evidence.sum(axis=0), axis=1)
        else:
            votes = self._votes if prior is None else self._votes.with_shares(prior)
            evidence, bias = votes.evidence(answers), votes.bias
            log_q = votes.log_probabilities(evidence, info)
        rest = log_q - log_softmax(evidence.sum(axis=0) + bias, axis=1)
        return CouncilAnswer(np.exp(log_q), evidence.transpose(1, 0, 2), bias, rest, answers.transpose(1, 0, 2))


def _with_known_labels(answer: CouncilAnswer, info: TargetInfo) -> CouncilAnswer:
    """Override the answer for windows that a person labelled."""
    if info.few_labels is None:
        return answer
    q = override_probabilities(answer.probabilities, info.few_labels)
    log_q = np.log(np.maximum(q, _TINY))
    log_q -= logsumexp(log_q, axis=1, keepdims=True)
    joined = log_softmax(answer.evidence.sum(axis=1) + answer.bias, axis=1)
    rest = np.where((info.few_labels != UNKNOWN)[:, None], log_q - joined, answer.rest)
    return answer._replace(probabilities=q, rest=rest)
