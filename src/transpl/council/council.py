r"""The council: several witnesses in several views, joined on an unlabelled target.

A *seat* is a witness in a view. On the target, log q_k = \sum_s e_{s,k} + log \pi_k + const: every seat adds evidence
e_{s,k} for class k, weighed by how reliable it proved on this target, and \pi_k are the class shares.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from transpl._utils.errors import invalid
from transpl.council.joining import Structure, Verdict, join
from transpl.council.parameters import CouncilSettings
from transpl.council.quality import Estimate, estimate_accuracy, sharpness_for
from transpl.council.relearning import Axes, Relearned, folds, relearn
from transpl.council.seats import Seat, Taught, prefixed, under
from transpl.council.shifts import ShiftSearch, find_shift
from transpl.council.target_sample import MOST as _MOST_WINDOWS
from transpl.council.views import Lens
from transpl.council.witnesses.codes import TransitionWitness
from transpl.windows import CHUNK, UNKNOWN, Labelled, Windows, override_probabilities

Floats = NDArray[np.float64]
_RELEARNING_ROUNDS = 3
_CLEARLY_LIKELIER = 0.1  # of the log likelihood; no development target with all its classes gained more than 0.09
_RELEARNED_FROM = (("standardised", "linear"), ("standardised", "kernels"), ("shape", "linear"))
_NEXT_TO_NOTHING = 1e-12


class Standing(NamedTuple):
    """What the council thinks of a seat on this target, without labels."""

    witness: str
    view: str
    accuracy: float  # estimated


class Hearing(NamedTuple):
    """What was said of n windows.

    probabilities : (n, K) q
    evidence : (n, S, K), what each seat adds to log q
    bias : (K,), what is added for every window: log class shares
    rest : (n, K), what neighbours in time, other windows of the group and known labels add
    answers : (n, S, K), the class probabilities of each seat alone
    """

    probabilities: Floats
    evidence: Floats
    bias: Floats
    rest: Floats
    answers: Floats


class Council:
    """Learns from a labelled source, adapts to an unlabelled target, answers, and says how much it believed whom."""

    def __init__(self, settings: CouncilSettings | None = None) -> None:
        self.settings = CouncilSettings() if settings is None else settings
        self.n_classes = 0
        self.shifts: ShiftSearch | None = None
        self.estimate: Estimate | None = None
        self._source_shares: Floats = np.zeros(0)
        self._source = Taught({}, [])  # what learnt from the source as it is
        self._heard = self._source  # what is heard: the same, unless a channel is dead in the target
        self._target_lenses: dict[str, Lens] = {}
        self._relearned: dict[int, Relearned] = {}  # by the seat whose rows they see
        self._verdict: Verdict | None = None

    def learn(self, source: Labelled) -> Self:
        """Every seat learns from labelled source windows."""
        self.n_classes = source.n_classes
        self._source_shares = np.bincount(source.y, minlength=source.n_classes) / len(source.y)
        self._source = Taught.by(source, self.settings)
        self._forget_target()
        return self

    def adapt(
        self,
        source: Labelled | None,
        target: Windows,
        *,
        prior: Floats | None = None,
        known: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
        smooth: bool = False,
    ) -> Hearing:
        """Undo shifts, hear all seats on the target, judge them; always from the source's state again.

        source : needed to search for shifts; None skips the search
        prior : (K,) class shares that are known
        known : (n,) labels that a person gave, -1 for the others
        groups : (n,) numbers of recordings or patients; windows of one share their label
        smooth : windows follow one another in time (within a group) and seldom change class; groups then share none
        """
        structure = _structure(len(target), groups, smooth)
        if known is not None and structure.groups is not None:
            known = _spread(known, structure.groups)
        fresh = self.unadapted()  # a call that fails leaves what was
        heard = fresh._adapt(source, target, prior, known, structure)
        self.__dict__.update(fresh.__dict__)
        return heard if known is None else _obey(heard, known)

    def hear(
        self,
        windows: Windows,
        groups: NDArray[np.int64] | None = None,
        smooth: bool = False,
        prior: Floats | None = None,
    ) -> Hearing:
        """What the council says of windows of the target; before `adapt`, the mean of the recorded views.

        prior : (K,) class shares in the place of those of `adapt`
        """
        return self._hearing(self._said(windows), _structure(len(windows), groups, smooth), prior)

    def rows(self, seat: int, windows: Windows) -> NDArray:
        """Windows of the target as the witness of a seat takes them, (n, ...)."""
        chosen, lenses = self.seats[seat], self._target_lenses or self._heard.lenses
        return chosen.rows(lenses[chosen.view].see(self._undone(windows)), adapting=False)

    @property
    def seats(self) -> list[Seat]:
        """Those that learnt from the source."""
        return self._heard.seats

    @property
    def seat_names(self) -> list[tuple[str, str]]:
        """(witness, view) of every seat, those that relearned from the council's labels last."""
        found = [(seat.name, seat.view) for seat in self.seats]
        return found + [(f"relearned {found[at][0]}", found[at][1]) for at in self._relearned]

    def standings(self) -> list[Standing]:
        """Seats with their estimated accuracy on this target; none before `adapt`."""
        if self._verdict is None:
            return []
        accuracies = self._verdict.accuracies.tolist()
        return [Standing(*names, accuracy) for names, accuracy in zip(self.seat_names, accuracies, strict=True)]

    def unadapted(self) -> Council:
        """The council as it was after `learn`."""
        alone = copy.copy(self)
        seats = [replace(seat, target_columns=None, adapted=None) for seat in self._source.seats]
        alone._source = Taught(self._source.lenses, seats)
        alone._forget_target()
        return alone

    def arrays(self) -> dict[str, NDArray]:
        """All that was learnt, as named arrays to save."""
        found = {"source_shares": self._source_shares} | prefixed("source", self._source.arrays())
        if self._heard is not self._source:
            found |= prefixed("heard", self._heard.arrays())
        for view, lens in self._target_lenses.items():
            found |= prefixed(f"target_lens.{view}", lens.arrays())
        for at, relearned in self._relearned.items():
            found |= prefixed(f"relearned.{at}", relearned.arrays())
        if self._verdict is not None:
            found |= prefixed("verdict", self._verdict.arrays())
        return found

    def facts(self) -> dict[str, Any]:
        """All that was learnt and is no array, as JSON holds it."""
        return {
            "n_classes": self.n_classes,
            "adapted": self._verdict is not None,
            "heard": "source" if self._heard is self._source else "heard",
            "relearned": list(self._relearned),
            "shifts": None if self.shifts is None else self.shifts.to_json(),
            "estimate": None if self.estimate is None else list(self.estimate),
        }

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Self:
        """Take up what `arrays` and `facts` gave."""
        self.n_classes, self._source_shares = int(facts["n_classes"]), arrays["source_shares"]
        self.shifts = None if facts["shifts"] is None else ShiftSearch.from_json(facts["shifts"])
        self.estimate = None if facts["estimate"] is None else Estimate(*facts["estimate"])
        self._source = Taught.restored(under("source", arrays), self.settings, self.n_classes)
        self._heard = self._source
        if facts["heard"] != "source":
            self._heard = Taught.restored(under("heard", arrays), self.settings, self.n_classes)
        adapted = self.settings.views if facts["adapted"] else ()
        self._target_lenses = {view: Lens(view, **under(f"target_lens.{view}", arrays)) for view in adapted}
        self._relearned = {
            int(at): Relearned.from_arrays(under(f"relearned.{at}", arrays)) for at in facts["relearned"]
        }
        self._verdict = Verdict.from_arrays(under("verdict", arrays)) if facts["adapted"] else None
        return self

    def _forget_target(self) -> None:
        self.shifts, self.estimate, self._verdict, self._target_lenses, self._relearned = None, None, None, {}, {}
        self._heard = self._source

    def _source_without_dead_channels(self, source: Labelled) -> Taught:
        """What must not rely on a channel that is dead in the target has to learn without it."""
        if self.shifts is None or not any(shift.dead for shift in self.shifts.shifts):
            return self._source
        blank = Windows(self.shifts.undo_source(source.windows.in_memory().values), source.windows.lengths)
        return Taught.by(Labelled(blank, source.y, source.n_classes), self.settings)

    def _adapt(
        self,
        source: Labelled | None,
        target: Windows,
        prior: Floats | None,
        known: NDArray[np.int64] | None,
        structure: Structure,
    ) -> Hearing:
        if source is not None:
            self.shifts = self._search(source, target)
            self._heard = self._source_without_dead_channels(source)
        rows = _even_sample(len(target), known)
        sample = self._undone(target[rows] if len(rows) < len(target) else target)
        lenses = self._heard.lenses.items()
        self._target_lenses = {v: lens if v == "recorded" else Lens.of(v, sample) for v, lens in lenses}
        answers = self._judge(sample, prior, None if known is None else known[rows], structure.of(rows))
        if len(rows) == len(target):
            return self._hearing(answers, structure)
        assert self._verdict is not None
        # Neighbours in the sample are several windows apart.
        self._verdict = replace(self._verdict, stays=self._verdict.stays ** (len(rows) / len(target)))
        return self._hearing(self._said(target), structure)

    def _search(self, source: Labelled, target: Windows) -> ShiftSearch:
        settings = self.settings
        return find_shift(
            source.windows,
            source.y,
            target,
            channel_names=settings.channel_names,
            triads=settings.triads,
            allow=settings.undo,
        )

    def _judge(
        self, target: Windows, prior: Floats | None, known: NDArray[np.int64] | None, structure: Structure
    ) -> Floats:
        """Find out how reliable each seat is, and let some relearn from the council's labels; what all of them say."""
        rows = self._rows(target, adapting=True)
        from_source = self._answers(rows)
        heard = self._seats_to_hear(rows)
        given: dict[str, Any] = {"prior": prior, "known": known, "structure": structure}
        verdict, q = join(from_source, self._source_shares, heard=heard, **given)
        sources = {at: Axes.of(rows[at]) for at, s in enumerate(self.seats) if (s.view, s.name) in _RELEARNED_FROM}
        fold = folds(len(target), structure.recordings, self.settings.random_state)
        answers = from_source
        for _ in range(_RELEARNING_ROUNDS if sources and heard.all() else 0):
            learnt = {at: relearn(axes, rows[at], q, fold) for at, axes in sources.items()}
            self._relearned = {at: relearned for at, (relearned, _) in learnt.items()}
            answers = np.concatenate([from_source, np.stack([said for _, said in learnt.values()])])
            verdict, q = join(answers, self._source_shares, **given)
        self.estimate = estimate_accuracy(from_source, [seat.view for seat in self.seats], q)
        scores = verdict.log_probabilities(verdict.evidence(answers), structure)
        self._verdict = verdict.calibrated(answers, sharpness_for(scores, self.estimate.accuracy))
        return self._answers(rows)

    def _seats_to_hear(self, rows: list[NDArray]) -> NDArray[np.bool_]:
        """All, unless the source's transition matrices find the target likelier as recorded than standardised.

        Then the target's own means and deviations mislead: it lacks classes that the source has.
        """
        fits = {
            seat.view: float(seat.witness.log_likelihoods(seen).max(axis=1).mean())
            for seat, seen in zip(self.seats, rows, strict=True)
            if seat.name == "codes" and isinstance(seat.witness, TransitionWitness)
        }
        recorded = np.array([seat.view == "recorded" for seat in self.seats])
        if {"recorded", "standardised"} <= fits.keys():
            gained = fits["recorded"] - fits["standardised"]
            if gained > _CLEARLY_LIKELIER * abs(fits["standardised"]):
                return recorded
        return np.ones(len(self.seats), bool)

    def _undone(self, windows: Windows) -> Windows:
        if self.shifts is None or not self.shifts.shifts:
            return windows
        return Windows(self.shifts.undo(windows.in_memory().values), windows.lengths)

    def _said(self, windows: Windows) -> Floats:
        """What every seat answers, (S, n, K); beside it, one chunk is in memory."""
        parts = [self._answers(self._rows(self._undone(part))) for _, part in windows.chunks(CHUNK)]
        return np.concatenate(parts, axis=1)

    def _rows(self, windows: Windows, adapting: bool = False) -> list[NDArray]:
        """What every seat makes of windows; `adapting` takes these for the target's columns."""
        lenses = self._target_lenses or self._heard.lenses
        sights = {view: lens.see(windows) for view, lens in lenses.items()}
        return [seat.rows(sights[seat.view], adapting) for seat in self.seats]

    def _answers(self, rows: list[NDArray]) -> Floats:
        """(S, n, K)"""
        said = [seat.answer(seen) for seat, seen in zip(self.seats, rows, strict=True)]
        return np.stack(said + [relearned.answer(rows[at]) for at, relearned in self._relearned.items()])

    def _hearing(self, answers: Floats, structure: Structure, prior: Floats | None = None) -> Hearing:
        if self._verdict is None:
            evidence, bias = self._unjudged(answers), np.zeros(self.n_classes)
            log_q = log_softmax(evidence.sum(axis=0), axis=1)
        else:
            verdict = self._verdict if prior is None else self._verdict.with_shares(prior)
            evidence, bias = verdict.evidence(answers), verdict.bias
            log_q = verdict.log_probabilities(evidence, structure)
        rest = log_q - log_softmax(evidence.sum(axis=0) + bias, axis=1)
        return Hearing(np.exp(log_q), evidence.transpose(1, 0, 2), bias, rest, answers.transpose(1, 0, 2))

    def _unjudged(self, answers: Floats) -> Floats:
        """Before `adapt` the windows are taken for the source's: the mean of what is said in the recorded view."""
        heard = np.array([seat.view == "recorded" for seat in self.seats])
        heard = heard if heard.any() else ~heard
        return np.where(heard[:, None, None], np.log(answers) / heard.sum(), 0.0)


def _structure(n: int, groups: NDArray[np.int64] | None, smooth: bool) -> Structure:
    if groups is not None and len(groups) != n:
        raise invalid("groups", expected=f"{n} numbers", got=len(groups), advice="Give one per window.")
    if smooth:
        return Structure(sequences=np.zeros(n, np.int64) if groups is None else groups)
    return Structure(groups=groups)


def _even_sample(n: int, known: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Rows to adapt to; those with a known label are always among them."""
    rows = np.linspace(0, n - 1, min(n, _MOST_WINDOWS)).astype(np.int64)
    return rows if known is None else np.union1d(rows, np.flatnonzero(known != UNKNOWN))


def _spread(known: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of windows for all windows of their groups; where people disagree, the label given most."""
    found = known.copy()
    for group in np.unique(groups[known != UNKNOWN]):
        rows = groups == group
        given = known[rows & (known != UNKNOWN)]
        found[rows] = np.bincount(given).argmax()
    return found


def _obey(heard: Hearing, known: NDArray[np.int64]) -> Hearing:
    """Windows that a person labelled have that label, whatever was said of them."""
    q = override_probabilities(heard.probabilities, known)
    log_q = np.log(np.maximum(q, _NEXT_TO_NOTHING))
    log_q -= logsumexp(log_q, axis=1, keepdims=True)
    said = log_softmax(heard.evidence.sum(axis=1) + heard.bias, axis=1)
    rest = np.where((known != UNKNOWN)[:, None], log_q - said, heard.rest)
    return heard._replace(probabilities=q, rest=rest)
