"""The council: cheap witnesses that are judged on the target without its labels. Needs no torch.

The council labels. Beside it, a codebook over the windows as recorded shows what shifted: which code follows which in
the source and in the target, per channel, as in the paper.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from transpl import markov
from transpl._utils.clock import work_seconds
from transpl._utils.errors import InputError, check_int, invalid
from transpl._utils.hashing import hash_bytes
from transpl._utils.layout import check_arrays, check_facts, check_numbers, prefixed, without_prefix
from transpl._utils.locks import process_state
from transpl._utils.progress import task
from transpl.council import (
    MAX_WINDOWS,
    AccuracyEstimate,
    CodedSource,
    Council,
    CouncilAnswer,
    CouncilExplanation,
    CouncilSettings,
    PatchCodes,
    SeatAccuracy,
    TargetSample,
    explanation_fields,
)
from transpl.council.shifts import find_triads
from transpl.council.witnesses.codes import PATCH_LENGTH
from transpl.markov import (
    CodebookUsage,
    SourceCodes,
    TransitionCounts,
    Undone,
    check_prior,
    class_log_probabilities,
    nearest_windows,
)
from transpl.methods.contract import Floats
from transpl.methods.council_settings import CodebookSettings, CouncilMethodSettings
from transpl.methods.explainable import ExplainableMethod
from transpl.methods.registry import register
from transpl.windows import CHUNK, Labelled, PseudoLabels, TargetInfo, Windows, evenly_spaced, name_channels

if TYPE_CHECKING:
    from transpl.methods.source_model import SourceModel
    from transpl.nn import Execution

_LAYOUT = {
    "codes.centres": "f codes steps",
    "codes.mean": "f D",
    "codes.deviation": "p D",
    "source.codes": "i windows D patches",
    "source.labels": "i windows",
    "source.rows": "i windows",
    "counts.class": "i K D codes codes",
    "counts.target": "i D codes codes",
    "sample.values": "f samples D time",
    "sample.lengths": "i samples",
}
_REFERENCE = "our own; Dawid and Skene 1979 without labels, transition matrices after Kim and Lee 2025"


@dataclass(frozen=True)
class _Target:
    """What is known about the target.

    sample : of its windows, to which others may be added; None in a model that was loaded without
    growing : whether it comes by `add_target`; then the sample is saved with the model
    """

    counts: TransitionCounts  # (D, n_c, n_c)
    prior: Floats | None = None
    sample: TargetSample | None = None
    growing: bool = False
    shares: Floats | None = None  # (K,)
    seconds: float = 0.0


@register("transpl-plus", family="own", needs="source, target", reference=_REFERENCE)
class CouncilMethod(ExplainableMethod):
    """Several cheap witnesses in several views, shifts undone, reliability judged by agreement on the target.

    Learns from the source's train part alone; no network, and nothing is held out. Predictions for target test windows
    are those of the council that the target train windows left behind. Its details have the estimated accuracy with an
    interval, the shifts that were undone, and the estimated accuracy of every seat.
    """

    Settings = CouncilMethodSettings
    settings: CouncilMethodSettings
    uses = frozenset({"prior", "few_labels", "groups", "smooth"})
    starts_from_source = False
    variant: ClassVar[str] = "plus"
    needs_validation: ClassVar[bool] = False
    only_patches: ClassVar[bool] = False
    adapt_mode = "markov"

    def __init__(
        self,
        settings: CouncilMethodSettings | None = None,
        execution: Execution | None = None,
        codebook: CodebookSettings | None = None,
    ) -> None:
        super().__init__(settings, execution)
        self.codebook_settings = CodebookSettings() if codebook is None else codebook
        self.n_threads = None if execution is None else execution.n_threads
        self._council = Council(self.settings.council())
        self._rows: Labelled | None = None  # of the source
        self._coded: CodedSource | None = None
        self._target: _Target | None = None
        self._judged = True  # False: windows were added since the witnesses were last judged
        self._shortest_window = self.settings.shortest_window
        self._source_seconds = 0.0

    # made of parameters

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        council = CouncilSettings(**{each.name: params[each.name] for each in fields(CouncilSettings)})
        names = [each.name for each in fields(CodebookSettings) if params[each.name] is not None]
        codebook = CodebookSettings(**{name: params[name] for name in names})
        made = cls(CouncilMethodSettings(**vars(council)), codebook=codebook)
        made.set_execution(params)
        return made

    def with_params(self, params: Mapping[str, Any]) -> Self:
        wanted = self.from_params(params)
        now, then = wanted.source_settings(), self.source_settings()
        differing = [name for name in now if now[name] != then[name]]
        if differing:
            expected, advice = f"{', '.join(differing)} as in fit", "Call fit again, or set it back."
            raise invalid("set_params", expected=expected, got="another", advice=advice)
        if self._coded is not None:
            wanted._check_channels(self.n_channels)
        other = copy.copy(self)
        other.settings, other.codebook_settings = wanted.settings, wanted.codebook_settings
        other.n_threads = wanted.n_threads
        other._council = copy.copy(self._council)
        other._council.settings = wanted._council.settings
        return other

    def _check_channels(self, n_channels: int) -> None:
        """Raise unless channel names and triads fit windows with this many channels."""
        settings = self.settings
        if settings.channel_names is not None:
            name_channels(settings.channel_names, n_channels)
        find_triads(settings.triads, settings.channel_names, n_channels)

    def set_execution(self, params: Mapping[str, Any]) -> None:
        if params["n_threads"] is not None:
            check_int("n_threads", params["n_threads"], least=1)
        self.n_threads = params["n_threads"]

    def check_machine(self) -> None:
        """It runs on any machine."""

    def source_settings(self) -> dict[str, Any]:
        return {
            "patch_length": self.codebook_settings.patch_length,
            "n_coarse": self.codebook_settings.n_coarse,
            "witnesses": list(self.settings.witnesses),
            "views": list(self.settings.views),
            "random_state": self.seed,
        }

    # the source

    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        """Learn from labelled source windows; none need to be held out."""
        start = work_seconds()
        settings, shortest = self.codebook_settings, int(source.windows.lengths.min())
        self._check_channels(source.windows.n_channels)
        self._learn(source)
        with self._threads():
            coded = CodedSource.of(
                source, n_codes=settings.n_coarse, patch_length=settings.patch_length, seed=self.seed
            )
        self._shortest_window = 2 * max(coded.book.patch_length, min(PATCH_LENGTH, shortest // 2))
        self._coded, self._source_seconds = coded, work_seconds() - start

    def start_from(self, model: SourceModel) -> None:
        """Learn from the rows of a source model; its network is not needed.

        No codebook is learnt: a benchmark does not report what shifted.
        """
        self._learn(self.source_for(model).source)
        self._shortest_window, self._coded = self.settings.shortest_window, None

    def _learn(self, source: Labelled) -> None:
        with self._threads():
            self._council = Council(self.settings.council()).learn(source)
        self._rows, self._target, self._judged = source, None, True
        self.label_record, self.details = {}, {}

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        self._coded = self._coded_source.of_rows(rows)

    def remember_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        self._rows = source

    def adapts_with_source(self, mode: str) -> bool:
        """Source rows are needed to find shifts."""
        return True

    @property
    def holds_source_rows(self) -> bool:
        return self._rows is not None

    def source_rows(self) -> tuple[Labelled, None]:
        if self._rows is None:
            problem = "a loaded model does not hold its source rows"
            raise InputError(f"source_rows: {problem}. Pass X_source and y_source.")
        return self._rows, None

    @property
    def n_classes(self) -> int:
        return self._council.n_classes

    @property
    def n_channels(self) -> int:
        if self._rows is not None:
            return self._rows.windows.n_channels
        return self._coded_source.class_counts.n_channels

    @property
    def shortest_window(self) -> int:
        return self._shortest_window

    @property
    def expected_shares(self) -> Floats:
        prior = None if self._target is None else self._target.prior
        return self._council.source_shares if prior is None else prior

    # adapting and answering

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        """Undo shifts, let the witnesses label the target, and judge them."""
        start = work_seconds()
        with self._threads():
            council, answer = self._adapted_council(target, replace(info, groups=_numbered(info.groups)))
            counts = None if self._coded is None else self._coded.count(target)
        shares, seconds = answer.probabilities.mean(axis=0), work_seconds() - start
        # Only a finished adaptation replaces the last one.
        self._council, self._judged = council, True
        if counts is not None:
            self._target = _Target(counts, info.prior, TargetSample.of(target), shares=shares, seconds=seconds)
        self.label_record = {"initial": PseudoLabels.from_probabilities(answer.probabilities)}
        self.details = self._details()

    def _details(self) -> dict[str, Any]:
        estimate, shifts = self._council.estimate, self._council.shifts
        return {
            "estimated_accuracy": {} if estimate is None else {k: float(v) for k, v in estimate._asdict().items()},
            "undone": [] if shifts is None else [s.sentence(self.settings.channel_names) for s in shifts.shifts],
            "seats": [
                {"witness": seat.witness, "view": seat.view, "accuracy": float(seat.accuracy)}
                for seat in self._council.seat_accuracies()
            ],
        }

    def add_target(self, target: Windows) -> None:
        """Count more target windows; the witnesses are judged on a sample of them all when they are next asked."""
        counts, known = self._coded_source.count(target), self._target
        if known is None:
            self._target = _Target(counts, sample=TargetSample.of(target), growing=True)
        else:
            if known.sample is None:
                warnings.warn(
                    "partial_adapt: a saved model does not hold the windows that adapt was given, so that witnesses "
                    "are judged on the new ones alone. Call adapt with all of them.",
                    stacklevel=3,
                )
            sample = TargetSample.of(target) if known.sample is None else known.sample.with_more(target)
            self._target = _Target(known.counts + counts, known.prior, sample, growing=True)
        self._judged = False

    def new_target(self) -> _WindowStream:
        return _WindowStream(self)

    def unadapted(self) -> Self:
        alone = copy.copy(self)
        alone._council, alone._target, alone._judged = self._council.unadapted(), None, True
        return alone

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        self.check_target(windows)
        self.check_info(TargetInfo(groups=groups, smooth=smooth), len(windows), complete=False)
        council = self.council
        with self._threads():
            if groups is not None or smooth:  # windows that belong together are labelled together
                return council.predict(windows, TargetInfo(groups=_numbered(groups), smooth=smooth)).probabilities
            parts = []
            with task("labelling windows", len(windows)) as update:
                for rows, part in windows.chunks(CHUNK):
                    parts.append(council.predict(part).probabilities)
                    update(rows.stop)
            return np.concatenate(parts)

    def pseudo_label(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        parts = [answer.probabilities for answer in self._answers(target, prior)]
        return PseudoLabels.from_probabilities(np.concatenate(parts))

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        """Label windows by a council that is judged on these windows alone."""
        self.check_target(target)
        info = self.check_info(TargetInfo(prior=prior), len(target), complete="groups" not in self.requires)
        _, answer = self._adapted_council(target, TargetInfo(prior=info.prior))
        return PseudoLabels.from_probabilities(answer.probabilities)

    @property
    def council(self) -> Council:
        """The council, judged on all target windows so far."""
        if not self._council.n_classes:
            raise self._not_fitted()
        if not self._judged:
            assert self._target is not None
            assert self._target.sample is not None
            start, sample = work_seconds(), self._target.sample.windows
            with self._threads():
                council, answer = self._adapted_council(sample, TargetInfo(prior=self._target.prior))
            shares, seconds = answer.probabilities.mean(axis=0), work_seconds() - start
            self._council, self._judged = council, True
            self._target = replace(self._target, shares=shares, seconds=seconds)
        return self._council

    @property
    def _adapted(self) -> bool:
        return bool(self._council.seat_accuracies()) or not self._judged

    def _answers(self, windows: Windows, prior: Floats | None) -> Iterator[CouncilAnswer]:
        """The council's answers, a chunk of windows at a time; before any adaptation they are themselves the target."""
        council = self.council
        with self._threads():
            if not self._adapted:
                yield self._adapted_council(windows, TargetInfo(prior=prior))[1]
                return
            for _, part in windows.chunks(CHUNK):
                yield council.predict(part, TargetInfo(prior=prior))

    def _adapted_council(self, target: Windows, info: TargetInfo) -> tuple[Council, CouncilAnswer]:
        """A copy of the source's council, adapted to a target, and its answer there."""
        council = self._council.unadapted()
        return council, council.adapt(self._source_to_compare(), target, info)

    def _source_to_compare(self) -> Labelled | None:
        """The source's rows, to find shifts; a loaded model does without them and warns."""
        if self._rows is None and self.settings.undo != "none":
            warnings.warn(
                "adapt: a loaded model does not hold its source rows, so that shifts are not searched for. "
                "Pass X_source and y_source, or set undo='none'.",
                stacklevel=6,
            )
        return self._rows

    @contextmanager
    def _threads(self) -> Iterator[None]:
        with process_state, nullcontext() if self.n_threads is None else threadpool_limits(self.n_threads):
            yield

    # explaining

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: Floats | None = None,
        nearest: int = 3,
    ) -> CouncilExplanation:
        council, target = self.council, self._target
        with self._threads():
            if target is None:  # as in `pseudo_label`
                council, answer = self._adapted_council(windows, TargetInfo(prior=prior))
            else:
                answer = council.predict(windows, TargetInfo(prior=prior))
        source, settings, D = self._coded_source, self.codebook_settings, windows.n_channels
        same = prior is None and target is not None  # as `predict_proba` would answer
        undone = council.undo_shifts(windows)
        codes = source.encode(undone)
        target_counts = source.count(windows) if target is None else target.counts
        distances = self.channel_distances(target_counts)
        return CouncilExplanation(
            classes=classes,
            channel_names=tuple(channel_names),
            codes=codes,
            distances=distances,
            weights=self.weights_from(distances, target_counts),
            answers=answer.probabilities if same else self.predict_proba(windows),
            mode=self.mode,
            patch_length=source.book.patch_length,
            windows=np.arange(len(windows)),
            signals=undone.with_nan(),
            nearest=nearest_windows(codes, source.codes, np.full(D, 1 / D), classes, nearest),
            code_log_probabilities=class_log_probabilities(source.class_counts, settings.smoothing, settings.epsilon),
            **explanation_fields(council, windows, answer, channel_names),
        )

    @property
    def mode(self) -> str:
        return "markov" if self._adapted else "source"

    @property
    def seconds(self) -> dict[str, float]:
        self.council  # noqa: B018  judges the witnesses, which takes time
        adapted = {} if self._target is None else {"adapt": self._target.seconds}
        return {"source": self._source_seconds, **adapted}

    @property
    def estimate(self) -> AccuracyEstimate | None:
        return self.council.estimate

    def standings(self) -> list[SeatAccuracy]:
        return sorted(self.council.seat_accuracies(), key=lambda standing: -standing.accuracy)

    @property
    def lacks_classes(self) -> bool:
        return self.council.lacks_classes

    def undone_shifts(self, channel_names: Sequence[str]) -> tuple[Undone, ...]:
        return self.council.undone(channel_names)

    @property
    def shift_settings(self) -> CodebookSettings:
        return self.codebook_settings

    def codes(self, windows: Windows) -> NDArray[np.integer]:
        return self._coded_source.encode(windows)

    @property
    def source_codes(self) -> NDArray[np.integer]:
        return self._coded_source.codes.codes

    @property
    def source_shares(self) -> Floats:
        return self._coded_source.class_shares

    @property
    def target_shares(self) -> Floats | None:
        self.council  # noqa: B018  judges the witnesses on windows that were added
        return None if self._target is None else self._target.shares

    @property
    def code_distances(self) -> Floats:
        return self._coded_source.cost()

    @property
    def _coded_source(self) -> CodedSource:
        if self._coded is None:
            raise self._not_fitted()
        return self._coded

    @property
    def codebook(self) -> Floats:
        return self._coded_source.book.centres

    @property
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        source = self._coded_source
        return {"coarse": markov.codebook_usage(source.codes.codes, source.book.n_codes)}

    @property
    def decoded_codes(self) -> dict[str, Floats]:
        """The centres, in standard deviations of the source's channels."""
        return {"coarse": self.codebook}

    @property
    def class_counts(self) -> TransitionCounts:
        return self._coded_source.class_counts

    @property
    def source_counts(self) -> TransitionCounts:
        return self.class_counts.pooled()

    @property
    def target_counts(self) -> TransitionCounts | None:
        return None if self._target is None else self._target.counts

    # storing

    def facts(self) -> dict[str, Any]:
        council, target = self.council, self._target
        facts: dict[str, Any] = {
            "council": council.facts(),
            "source": {"shortest_window": self._shortest_window, "seconds": self._source_seconds},
        }
        if target is not None:
            prior, shares = (None if part is None else part.tolist() for part in (target.prior, target.shares))
            facts["target"] = {"prior": prior, "shares": shares, "seconds": target.seconds}
        return facts

    def arrays(self) -> dict[str, NDArray]:
        target = self._target
        arrays = self._deciding_arrays()
        arrays |= prefixed("source", vars(self._coded_source.codes))
        if target is not None and target.growing and target.sample is not None:
            arrays |= prefixed("sample", target.sample.arrays())
        return arrays

    def _deciding_arrays(self) -> dict[str, NDArray]:
        """The arrays that decide predictions."""
        council, source, target = self.council, self._coded_source, self._target
        arrays = prefixed("council", council.arrays()) | prefixed("codes", vars(source.book))
        arrays["counts.class"] = source.class_counts.counts
        return arrays if target is None else {**arrays, "counts.target": target.counts.counts}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        self._check_saved(facts, arrays)
        book, codes = PatchCodes(**without_prefix("codes", arrays)), SourceCodes(**without_prefix("source", arrays))
        self._coded = CodedSource(book, codes, TransitionCounts(arrays["counts.class"]))
        self._council = Council(self.settings.council()).restore(facts["council"], without_prefix("council", arrays))
        self._shortest_window = facts["source"]["shortest_window"]
        self._source_seconds = facts["source"]["seconds"]
        self._target, self._rows, self._judged = None, None, True
        if "target" in facts:
            about, sample = facts["target"], without_prefix("sample", arrays)
            prior, shares = (None if about[name] is None else np.array(about[name]) for name in ("prior", "shares"))
            kept = TargetSample.restored(sample) if sample else None
            counts = TransitionCounts(arrays["counts.target"])
            self._target = _Target(counts, prior, kept, bool(sample), shares, about["seconds"])
        self._try_out()

    def _check_saved(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        settings, target, council = self.codebook_settings, facts.get("target"), facts["council"]
        check_facts("source", facts["source"], {"shortest_window": int, "seconds": float})
        growing = any(name.startswith("sample.") for name in arrays)
        layout = {name: text for name, text in _LAYOUT.items() if growing or not name.startswith("sample.")}
        if target is None:
            del layout["counts.target"]
        sizes = {"steps": settings.patch_length}
        check_arrays(arrays, layout | {"council.*": ""}, sizes)
        K, n_codes, patch = sizes["K"], sizes["codes"], settings.patch_length
        check_numbers("codes", np.array([n_codes]), 1, settings.n_coarse)
        check_numbers("source.codes", arrays["source.codes"], -1, n_codes - 1)
        check_numbers("source.labels", arrays["source.labels"], 0, K - 1)
        shortest = facts["source"]["shortest_window"]
        check_numbers("shortest_window", np.array([shortest]), 2 * patch, 2 * max(patch, PATCH_LENGTH))
        if growing:
            check_numbers("sample.lengths", arrays["sample.lengths"], 1, arrays["sample.values"].shape[2])
        if target is not None:
            check_facts("target", target, {"prior": ([float], None), "shares": ([float], None), "seconds": float})
            for name in ("prior", "shares"):
                if target[name] is not None:
                    check_prior(target[name], K)
        self._council.check(council, without_prefix("council", arrays), sizes)
        self._check_channels(sizes["D"])

    def _try_out(self) -> None:
        """Label a window of a loaded model: its parts may each be sound and not fit together."""
        windows = Windows(
            np.zeros((1, self.n_channels, self._shortest_window), np.float32), np.array([self._shortest_window])
        )
        if not np.isfinite(self.predict_proba(windows)).all():
            raise invalid("arrays", expected="those of one model", got="others", advice="Save the model again.")

    def fingerprint(self) -> str:
        pieces: list[str | bytes | memoryview] = []
        for name, array in sorted(self._deciding_arrays().items()):
            pieces += [f"{name} {array.dtype.str} {array.shape}", np.ascontiguousarray(array).data]
        prior = None if self._target is None or self._target.prior is None else self._target.prior.tolist()
        settings = {"council": asdict(self._council.settings), **asdict(self.codebook_settings), "n_threads": None}
        about = [self._council.facts(), self.mode, prior, settings]
        return hash_bytes([*pieces, json.dumps(about)])


@register(
    "transpl-plus-ws",
    family="own",
    needs="source, target, class proportions of the target",
    reference=f"{_REFERENCE}, with weak supervision",
)
class CouncilMethodWS(CouncilMethod):
    """The council with the target's class proportions as its class shares."""

    requires = frozenset({"prior"})


@register(
    "transpl-plus-groups",
    family="own",
    needs="source, target, which windows are of one patient",
    reference=_REFERENCE,
)
class CouncilMethodGroups(CouncilMethod):
    """The council where all windows of a recording or patient have one label: they vote together.

    For data sets that say which windows belong together (PTB: the beats of a patient). In training and in prediction
    windows of one group get the same answer.
    """

    requires = frozenset({"groups"})


class _WindowStream:
    """A new target as its windows, which the witnesses need; see `TargetStream`."""

    def __init__(self, method: CouncilMethod) -> None:
        self._method = method.unadapted()

    def row(self, n_channels: int, n_steps: int) -> None:
        return None

    def encode(self, windows: Windows) -> NDArray:
        return windows.in_memory().values

    def adapt(self, parts: Iterable[Windows], n: int) -> TransitionCounts:
        """Count all windows, and adapt to an evenly spaced sample of them."""
        method, chosen, first, kept, counts = self._method, evenly_spaced(n, MAX_WINDOWS), 0, [], None
        for part in parts:
            rows = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            kept.append(part[rows])
            found = method._coded_source.count(part)
            counts, first = found if counts is None else counts + found, first + len(part)
        assert counts is not None
        values, lengths = (np.concatenate([getattr(w, name) for w in kept]) for name in ("values", "lengths"))
        method.adapt(Windows(values, lengths))
        return counts

    def probabilities(self, part: Windows) -> Floats:
        return self._method.predict_proba(part)


def _numbered(groups: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """Groups of windows as numbers from 0 on."""
    return None if groups is None else np.unique(groups, return_inverse=True)[1].astype(np.int64)
