"""The council as the estimator asks for it: see `transpl.methods.adapter.DomainAdapter`.

The council labels. Beside it a codebook over the windows as recorded says what shifted: which code follows which in the
source and in the target, per channel, as in the paper.
"""

from __future__ import annotations

import copy
import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from transpl import markov
from transpl._utils.errors import InputError, invalid
from transpl.council import (
    CodedSource,
    Council,
    CouncilExplanation,
    CouncilParameters,
    Estimate,
    Hearing,
    PatchCodes,
    Standing,
    as_undone,
    parts_of,
    signals_of,
    undone_by,
)
from transpl.council.target_sample import MOST, TargetSample
from transpl.council.witnesses.codes import PATCH_LENGTH
from transpl.markov import (
    CodebookUsage,
    Drift,
    ShiftReport,
    SourceCodes,
    TransitionCounts,
    class_log_probabilities,
    measure_drift,
    nearest_windows,
)
from transpl.windows import CHUNK, Labelled, PseudoLabels, Windows, evenly_spaced

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Target:
    """What is known of the target.

    sample : of its windows, to which others may come; None where a model was loaded without
    growing : whether it comes by `add_target`; then the sample is saved with the model
    """

    counts: TransitionCounts  # (D, n_c, n_c)
    prior: Floats | None = None
    sample: TargetSample | None = None
    growing: bool = False
    shares: Floats | None = None  # (K,)
    seconds: float = 0.0


@dataclass(eq=False)
class CouncilAdapter:
    """The variant "plus": a council of cheap witnesses that are judged on the target without its labels."""

    variant: ClassVar[str] = "plus"
    holds_out: ClassVar[bool] = False
    only_patches: ClassVar[bool] = False

    parameters: CouncilParameters
    shortest_window: int = 2
    _council: Council = field(default_factory=Council)
    _source: CodedSource | None = None
    _source_seconds: float = 0.0
    _target: _Target | None = None
    _rows: Labelled | None = None
    _heard: bool = True  # False: windows came since the council was last adapted

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        parameters = CouncilParameters.of(params)
        return cls(parameters, _council=Council(parameters.council))

    def set_params(self, params: Mapping[str, Any]) -> None:
        parameters = CouncilParameters.of(params)
        if parameters == self.parameters:
            return
        now, then = parameters.of_source, self.parameters.of_source
        differing = [name for name in now if now[name] != then[name]]
        if differing:
            expected, advice = f"{', '.join(differing)} as in fit", "Call fit again, or set it back."
            raise invalid("set_params", expected=expected, got="another", advice=advice)
        if self._source is not None:
            parameters.check_channels(self._source.class_counts.n_channels)
        self.parameters = parameters
        self._council.settings = parameters.council

    def check_machine(self) -> None:
        """Any machine will do."""

    def source_settings(self) -> dict[str, Any]:
        return self.parameters.of_source

    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        """Learn from labelled source windows; none need to be held out."""
        start = time.perf_counter()
        parameters, shortest = self.parameters, int(source.windows.lengths.min())
        parameters.check_channels(source.windows.n_channels)
        seed, n_codes = parameters.council.random_state, parameters.n_coarse
        with self._threads():
            council = Council(parameters.council).learn(source)
            coded = CodedSource.of(source, n_codes=n_codes, patch_length=parameters.patch_length, seed=seed)
        self.shortest_window = 2 * max(coded.book.patch_length, min(PATCH_LENGTH, shortest // 2))
        self._council, self._target, self._rows, self._heard = council, None, source, True
        self._source, self._source_seconds = coded, time.perf_counter() - start

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        self._source = self._coded.of_rows(rows)

    def remember_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        self._rows = source

    def adapts_with_source(self, mode: str) -> bool:
        """They are needed to find shifts."""
        return True

    @property
    def holds_source_rows(self) -> bool:
        return self._rows is not None

    def source_rows(self) -> tuple[Labelled, None]:
        if self._rows is None:
            problem = "a loaded model does not hold its source rows"
            raise InputError(f"source_rows: {problem}. Pass X_source and y_source.")
        return self._rows, None

    def adapt(
        self,
        target: Windows,
        prior: Floats | None = None,
        mode: str | None = None,
        few_labels: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
        smooth: bool = False,
    ) -> None:
        """Undo shifts, hear the witnesses on the target and judge them; `mode` can only be "markov"."""
        if mode not in (None, "markov"):
            expected, advice = "'markov' with variant='plus'", "Leave it out, or use variant='paper'."
            raise invalid("mode", expected=expected, got=repr(mode), advice=advice)
        start = time.perf_counter()
        with self._threads():
            council = self._council.unadapted()
            hearing = council.adapt(
                self._source_to_compare(), target, prior=prior, known=few_labels, groups=groups, smooth=smooth
            )
            counts = self._coded.count(target)
        shares, seconds = hearing.probabilities.mean(axis=0), time.perf_counter() - start
        # Only a finished adaptation takes the place of the last one.
        self._council, self._heard = council, True
        self._target = _Target(counts, prior, TargetSample.of(target), shares=shares, seconds=seconds)

    def add_target(self, target: Windows) -> None:
        """Count more target windows; the council is adapted to a sample of them all when it is next asked."""
        counts, known = self._coded.count(target), self._target
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
        self._heard = False

    def new_target(self) -> _WindowStream:
        return _WindowStream(self)

    def unadapted(self) -> Self:
        alone = copy.copy(self)
        alone._council, alone._target, alone._heard = self._council.unadapted(), None, True
        return alone

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        council = self._judged()
        with self._threads():
            if groups is not None or smooth:  # what belongs together must be heard together
                return council.hear(windows, groups, smooth).probabilities
            return np.concatenate([council.hear(part).probabilities for _, part in windows.chunks(CHUNK)])

    def pseudo_label(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        parts = [hearing.probabilities for hearing in self._hearings(target, prior)]
        return PseudoLabels.from_probabilities(np.concatenate(parts))

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: Floats | None = None,
        nearest: int = 3,
    ) -> CouncilExplanation:
        council = self._judged()
        with self._threads():
            if self._target is None:  # as in `pseudo_label`
                council = council.unadapted()
                hearing = council.adapt(self._source_to_compare(), windows, prior=prior)
            else:
                hearing = council.hear(windows, prior=prior)
        source, parameters, D = self._coded, self.parameters, windows.n_channels
        own = prior is None and self._target is not None  # `predict_proba` would hear the same
        seen = as_undone(council, windows)
        codes = source.encode(seen)
        distances = self.channel_distances(source.count(windows) if self._target is None else self._target.counts)
        return CouncilExplanation(
            classes=classes,
            channel_names=tuple(channel_names),
            codes=codes,
            distances=distances,
            weights=self.trust(distances),
            answers=hearing.probabilities if own else self.predict_proba(windows),
            mode=self.mode,
            patch_length=source.book.patch_length,
            windows=np.arange(len(windows)),
            signals=signals_of(seen),
            nearest=nearest_windows(codes, source.codes, np.full(D, 1 / D), classes, nearest),
            code_log_probabilities=class_log_probabilities(
                source.class_counts, parameters.smoothing, parameters.epsilon
            ),
            **parts_of(council, windows, hearing, channel_names),
        )

    def shift_report(self, classes: NDArray, channel_names: Sequence[str]) -> ShiftReport:
        council, source, target, parameters = self._judged(), self._coded, self._target, self.parameters
        assert target is not None
        return ShiftReport.from_counts(
            self.source_counts,
            target.counts,
            self._coded.cost(),
            sigma=parameters.sigma if parameters.channel_alignment else None,
            channel_names=tuple(channel_names),
            classes=classes.tolist(),
            source_shares=source.class_shares,
            target_shares=target.shares,
            smoothing=parameters.smoothing,
            epsilon=parameters.epsilon,
            undone=undone_by(council, channel_names),
        )

    def drift(
        self,
        windows: Windows,
        reference: Windows | None,
        channel_names: Sequence[str],
        *,
        level: float,
        n_shuffles: int,
        block: int,
    ) -> Drift:
        parameters = self.parameters
        return measure_drift(
            self._coded.encode(windows),
            self._coded.codes.codes if reference is None else self._coded.encode(reference),
            self._coded.cost(),
            tuple(channel_names),
            compared_with="source" if reference is None else "reference",
            level=level,
            n_shuffles=n_shuffles,
            block=block,
            smoothing=parameters.smoothing,
            epsilon=parameters.epsilon,
            seed=parameters.council.random_state,
        )

    def facts(self) -> dict[str, Any]:
        council, target = self._judged(), self._target
        facts: dict[str, Any] = {
            "council": council.facts(),
            "source": {"shortest_window": self.shortest_window, "seconds": self._source_seconds},
        }
        if target is not None:
            prior, shares = (None if part is None else part.tolist() for part in (target.prior, target.shares))
            facts["target"] = {"prior": prior, "shares": shares, "seconds": target.seconds}
        return facts

    def arrays(self) -> dict[str, NDArray]:
        target = self._target
        remembered = {f"source.{name}": array for name, array in vars(self._coded.codes).items()}
        if target is not None and target.growing and target.sample is not None:
            remembered |= {f"sample.{name}": array for name, array in target.sample.arrays().items()}
        return self._deciding_arrays() | remembered

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        book = PatchCodes(**_under("codes.", arrays))
        codes = SourceCodes(**_under("source.", arrays))
        council = Council(self.parameters.council).restore(facts["council"], _under("council.", arrays))
        counts = TransitionCounts(arrays["counts.class"])
        self._source, about = CodedSource(book, codes, counts), facts["source"]
        self.shortest_window, self._source_seconds = about["shortest_window"], about["seconds"]
        self._council, self._target, self._rows, self._heard = council, None, None, True
        if "target" in facts:
            about, sample = facts["target"], _under("sample.", arrays)
            prior, shares = (None if about[name] is None else np.array(about[name]) for name in ("prior", "shares"))
            kept = TargetSample.restored(sample) if sample else None
            counts = TransitionCounts(arrays["counts.target"])
            self._target = _Target(counts, prior, kept, bool(sample), shares, about["seconds"])

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self._deciding_arrays().items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        prior = None if self._target is None or self._target.prior is None else self._target.prior.tolist()
        about = [self._council.facts(), self.mode, prior, asdict(self.parameters) | {"n_threads": None}]
        digest.update(json.dumps(about).encode())
        return digest.hexdigest()

    @property
    def mode(self) -> str:
        return "source" if self._target is None else "markov"

    @property
    def history(self) -> dict[str, list[dict[str, float]]]:
        """No phase has epochs."""
        return {}

    @property
    def seconds(self) -> dict[str, float]:
        self._judged()
        found = {"source": self._source_seconds}
        return found if self._target is None else {**found, "adapt": self._target.seconds}

    @property
    def estimate(self) -> Estimate | None:
        return self._judged().estimate

    def standings(self) -> list[Standing]:
        return sorted(self._judged().standings(), key=lambda standing: -standing.accuracy)

    def undone(self, channel_names: Sequence[str]) -> tuple[str, ...]:
        search = self._judged().shifts
        return () if search is None else tuple(shift.sentence(channel_names) for shift in search.shifts)

    @property
    def codebook(self) -> Floats:
        return self._coded.book.centres

    @property
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        source = self._coded
        return {"coarse": markov.codebook_usage(source.codes.codes, source.book.n_codes)}

    @property
    def decoded_codes(self) -> dict[str, Floats]:
        """The centres, in standard deviations of the source's channels."""
        return {"coarse": self.codebook}

    @property
    def class_counts(self) -> TransitionCounts:
        return self._coded.class_counts

    @property
    def source_counts(self) -> TransitionCounts:
        return self._coded.class_counts.pooled()

    @property
    def target_counts(self) -> TransitionCounts | None:
        return None if self._target is None else self._target.counts

    def channel_distances(self, target_counts: TransitionCounts) -> Floats:
        parameters = self.parameters
        smoothing = (parameters.smoothing, parameters.epsilon)
        return markov.channel_distances(self.source_counts, target_counts, self._coded.cost(), *smoothing)

    def trust(self, distances: Floats) -> Floats:
        if not self.parameters.channel_alignment:
            return np.ones(len(distances))
        return markov.channel_weights(distances, self.parameters.sigma)

    @property
    def _coded(self) -> CodedSource:
        if self._source is None:
            raise InputError("TransPL is not fitted. Call fit first.")
        return self._source

    def _judged(self) -> Council:
        """The council, adapted to all that came."""
        if not self._heard:
            assert self._target is not None
            assert self._target.sample is not None
            start, sample = time.perf_counter(), self._target.sample.windows
            with self._threads():
                council = self._council.unadapted()
                hearing = council.adapt(self._source_to_compare(), sample, prior=self._target.prior)
            shares, seconds = hearing.probabilities.mean(axis=0), time.perf_counter() - start
            self._council, self._heard = council, True
            self._target = replace(self._target, shares=shares, seconds=seconds)
        return self._council

    def _hearings(self, windows: Windows, prior: Floats | None) -> Iterator[Hearing]:
        """What is said of windows, a chunk at a time; before any adaptation they are themselves the target."""
        council = self._judged()
        with self._threads():
            if self._target is None:
                yield council.unadapted().adapt(self._source_to_compare(), windows, prior=prior)
                return
            for _, part in windows.chunks(CHUNK):
                yield council.hear(part, prior=prior)

    def _source_to_compare(self) -> Labelled | None:
        """The source's rows, to find shifts; a loaded model does without, and says so."""
        if self._rows is None and self.parameters.council.undo != "none":
            warnings.warn(
                "adapt: a loaded model does not hold its source rows, so that shifts are not searched for. "
                "Pass X_source and y_source, or set undo='none'.",
                stacklevel=4,
            )
        return self._rows

    def _deciding_arrays(self) -> dict[str, NDArray]:
        """Those that decide an answer."""
        council, source, target = self._judged(), self._coded, self._target
        arrays = {f"council.{name}": array for name, array in council.arrays().items()}
        arrays |= {f"codes.{name}": array for name, array in vars(source.book).items()}
        arrays["counts.class"] = source.class_counts.counts
        return arrays if target is None else {**arrays, "counts.target": target.counts.counts}

    def _threads(self) -> AbstractContextManager[Any]:
        n = self.parameters.n_threads
        return nullcontext() if n is None else threadpool_limits(n)


class _WindowStream:
    """A new target as it is: the witnesses need the windows themselves."""

    def __init__(self, adapter: CouncilAdapter) -> None:
        self._adapter = adapter.unadapted()

    def row(self, n_channels: int, n_steps: int) -> None:
        return None

    def encode(self, windows: Windows) -> NDArray:
        return windows.in_memory().values

    def adapt(self, parts: Iterable[Windows], n: int) -> TransitionCounts:
        """Count all windows, and adapt to a sample of them in equal steps."""
        adapter, chosen, first, kept, counts = self._adapter, evenly_spaced(n, MOST), 0, [], None
        for part in parts:
            rows = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            kept.append(part[rows])
            found = adapter._coded.count(part)
            counts, first = found if counts is None else counts + found, first + len(part)
        assert counts is not None
        values, lengths = (np.concatenate([getattr(w, name) for w in kept]) for name in ("values", "lengths"))
        adapter.adapt(Windows(values, lengths))
        return counts

    def probabilities(self, part: Windows) -> Floats:
        return self._adapter.predict_proba(part)


def _under(prefix: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
