"""What the estimator needs of the method behind a variant, beyond the contract that the benchmark uses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transpl.markov import (
    CodebookUsage,
    Drift,
    Explanation,
    ShiftReport,
    TransitionCounts,
    Undone,
    channel_distances,
    channel_weights,
    measure_drift,
    unread_channels,
)
from transpl.methods.contract import Floats, Method
from transpl.windows import Labelled, PseudoLabels, Windows

if TYPE_CHECKING:
    from transpl.council import AccuracyEstimate, CouncilExplanation, SeatAccuracy
    from transpl.methods.council_settings import CodebookSettings
    from transpl.methods.transpl.paper_settings import TransPLSettings

MODES = ("finetune", "markov")


class TargetStream(Protocol):
    """A new target that need not fit in memory. It is read twice: to adapt, and to be labelled."""

    def row(self, n_channels: int, n_steps: int) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
        """Shape and type of an encoded window, so that the caller can store them; None if windows are not encoded."""

    def encode(self, windows: Windows) -> NDArray:
        """Encode windows, (n, *shape)."""

    def adapt(self, parts: Iterable[Any], n: int) -> TransitionCounts:
        """Adapt to n windows without a gradient step and return the target's counts by channel.

        parts : what `encode` returned, or `Windows`, one part after the other
        """

    def probabilities(self, part: Any) -> Floats:
        """Class probabilities (n, K) of a part, after `adapt`."""


class ExplainableMethod(Method):
    """What the estimator needs of the method behind a variant: made of parameters, explained, streamed and saved.

    K classes, D channels, n_c codes.

    Attributes
    ----------
    variant
        the estimator's name for it
    needs_validation
        whether `fit_source` needs held-out source windows
    only_patches
        whether the end of a window that fills no patch is ignored
    adapt_mode
        how `adapt` adapts, one of `MODES`
    """

    variant: ClassVar[str]
    needs_validation: ClassVar[bool]
    only_patches: ClassVar[bool]
    adapt_mode: str

    @classmethod
    @abstractmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Make an unfitted method of the parameters of `TransPL`, with a whole number as `random_state`."""

    @abstractmethod
    def with_params(self, params: Mapping[str, Any]) -> Self:
        """A copy that adapts with other parameters; refused if they would have fitted another source model."""

    @abstractmethod
    def set_execution(self, params: Mapping[str, Any]) -> None:
        """Take over the parameters that decide where and how fast it runs, and no number."""

    @abstractmethod
    def check_machine(self) -> None:
        """Raise if this machine cannot run it, for example because it has no such device."""

    @abstractmethod
    def source_settings(self) -> dict[str, Any]:
        """The plain values that decide what `fit_source` learns."""

    @property
    @abstractmethod
    def expected_shares(self) -> Floats:
        """The class shares (K,) that a target is expected to have: the prior of `adapt`, else those of the source."""

    @abstractmethod
    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        """Give the source's windows the row numbers that the caller knows them by."""

    @abstractmethod
    def remember_source(self, source: Labelled, validation: Labelled | None) -> None:
        """Give a loaded model the source rows, which are not saved with it."""

    @abstractmethod
    def adapts_with_source(self, mode: str) -> bool:
        """Whether `adapt` uses source rows in this mode."""

    @property
    @abstractmethod
    def holds_source_rows(self) -> bool: ...

    @abstractmethod
    def source_rows(self) -> tuple[Labelled, Labelled | None]:
        """The source's rows and its held-out rows; raises for a loaded model without them."""

    @abstractmethod
    def add_target(self, target: Windows) -> None:
        """Count more target windows, without a gradient step."""

    @abstractmethod
    def new_target(self) -> TargetStream:
        """Begin a new target from the source model; this method stays as it is."""

    @abstractmethod
    def unadapted(self) -> Self:
        """A copy of the source model alone."""

    @abstractmethod
    def pseudo_label(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        """Label windows the way a target is labelled; before any adaptation they are themselves the target sample."""

    @abstractmethod
    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: Floats | None = None,
        nearest: int = 3,
    ) -> Explanation | CouncilExplanation:
        """Take `pseudo_label(windows, prior)` apart, with so many nearest source windows for each."""

    def shift_report(self, classes: NDArray, channel_names: Sequence[str]) -> ShiftReport:
        """What shifted between the source and the target; only if there are `target_counts`."""
        settings, target_counts = self.shift_settings, self.target_counts
        assert target_counts is not None
        return ShiftReport.from_counts(
            self.source_counts,
            target_counts,
            self.code_distances,
            sigma=settings.sigma if settings.channel_alignment else None,
            channel_names=tuple(channel_names),
            classes=classes.tolist(),
            source_shares=self.source_shares,
            target_shares=self.target_shares,
            smoothing=settings.smoothing,
            epsilon=settings.epsilon,
            undone=self.undone_shifts(channel_names),
        )

    def drift(self, windows: Windows, reference: Windows | None, channel_names: Sequence[str], **options: Any) -> Drift:
        """Which channels moved further from the source, or from a reference, than chance would move them.

        options : level, n_shuffles and block of `measure_drift`
        """
        settings = self.shift_settings
        return measure_drift(
            self.codes(windows),
            self.source_codes if reference is None else self.codes(reference),
            self.code_distances,
            tuple(channel_names),
            compared_with="source" if reference is None else "reference",
            smoothing=settings.smoothing,
            epsilon=settings.epsilon,
            seed=self.seed,
            **options,
        )

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What has been learnt, as far as JSON can hold it."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray]:
        """What has been learnt, as named arrays."""

    @abstractmethod
    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        """Restore what has been learnt; `facts` and `arrays` may be untrusted, and invalid ones raise an exception."""

    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides predictions."""

    @property
    @abstractmethod
    def mode(self) -> str:
        """Which classifier answers: "source", or the mode of the last adaptation."""

    @property
    @abstractmethod
    def seconds(self) -> dict[str, float]:
        """How long each phase took."""

    @property
    def estimate(self) -> AccuracyEstimate | None:
        """The share of target windows that are labelled correctly, estimated without labels; None if unknown."""
        return None

    def standings(self) -> list[SeatAccuracy]:
        """The witnesses and their estimated accuracy on the target, the most reliable first."""
        return []

    @property
    def lacks_classes(self) -> bool:
        """Whether `adapt` noticed that the target lacks classes of the source."""
        return False

    def undone_shifts(self, channel_names: Sequence[str]) -> tuple[Undone, ...]:
        """The shifts of the target's sensors that were undone."""
        return ()

    def undone(self, channel_names: Sequence[str]) -> tuple[str, ...]:
        """The shifts of the target's sensors that were undone, one sentence each."""
        return tuple(each.sentence for each in self.undone_shifts(channel_names))

    @property
    @abstractmethod
    def shift_settings(self) -> CodebookSettings | TransPLSettings:
        """How counts are compared."""

    @abstractmethod
    def codes(self, windows: Windows) -> NDArray[np.integer]:
        """Codes (n, D, N) of windows."""

    @property
    @abstractmethod
    def source_codes(self) -> NDArray[np.integer]:
        """Codes (n, D, N) of the source's windows."""

    @property
    @abstractmethod
    def source_shares(self) -> Floats:
        """Class shares (K,) of the source."""

    @property
    @abstractmethod
    def target_shares(self) -> Floats | None:
        """Class shares (K,) of the windows that `adapt` labelled; None if it labelled none."""

    @property
    @abstractmethod
    def code_distances(self) -> Floats:
        """The `transport_cost` (n_c, n_c) between codes."""

    @property
    @abstractmethod
    def codebook(self) -> Floats:
        """Code vectors (n_c, d)."""

    @property
    @abstractmethod
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        """Per codebook, how often each code occurs in the source."""

    @property
    @abstractmethod
    def decoded_codes(self) -> dict[str, Floats]:
        """The piece of signal that each code stands for, per codebook (codes, steps)."""

    @property
    @abstractmethod
    def class_counts(self) -> TransitionCounts:
        """The counts by class that labels are made of, (K, D, n_c, n_c)."""

    @property
    @abstractmethod
    def source_counts(self) -> TransitionCounts:
        """(D, n_c, n_c)."""

    @property
    @abstractmethod
    def target_counts(self) -> TransitionCounts | None:
        """(D, n_c, n_c); None before any adaptation."""

    def channel_distances(self, target_counts: TransitionCounts) -> Floats:
        """How far each channel moved, (D,)."""
        smoothing = self.shift_settings.smoothing, self.shift_settings.epsilon
        return channel_distances(self.source_counts, target_counts, self.code_distances, *smoothing)

    def weights_from(self, distances: Floats, target_counts: TransitionCounts | None = None) -> Floats:
        """The weight of channels that moved so far, (D,); all ones without channel alignment.

        target_counts : those of the distances; by default those of `adapt`
        """
        if not self.shift_settings.channel_alignment:
            return np.ones(len(distances))
        target_counts = self.target_counts if target_counts is None else target_counts
        assert target_counts is not None
        unread = unread_channels(self.source_counts, target_counts)
        return channel_weights(distances, self.shift_settings.sigma, unread)
