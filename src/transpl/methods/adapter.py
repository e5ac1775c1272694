"""What `TransPL` asks of the method behind a variant. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transpl.markov import CodebookUsage, Drift, Explanation, ShiftReport, TransitionCounts
from transpl.windows import Labelled, PseudoLabels, Windows

if TYPE_CHECKING:
    from transpl.council import CouncilExplanation, Estimate, Standing

MODES = ("finetune", "markov")


class TargetStream(Protocol):
    """A new target domain that need not fit in memory: it is gone through twice, to adapt and to be labelled."""

    def row(self, n_channels: int, n_steps: int) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
        """Shape and type of what `encode` makes of a window of so many channels and time steps.

        The caller keeps it, on a disk if need be. None: windows are gone through as they are, and not encoded.
        """

    def encode(self, windows: Windows) -> NDArray:
        """What is kept of windows, (n, *shape)."""

    def adapt(self, parts: Iterable[Any], n: int) -> TransitionCounts:
        """Adapt to all parts, n windows in total, without a gradient step; the target's counts by channel.

        A part is what `encode` returned, or `Windows`.
        """

    def probabilities(self, part: Any) -> NDArray[np.float64]:
        """Class probabilities (n, K) of a part, after `adapt`."""


class DomainAdapter(Protocol):
    """The life of a method behind the estimator: made of parameters, fitted to a source, adapted to targets, saved.

    Labels are class indices 0..K-1, windows are checked. K classes, D channels, n_c codes.
    """

    variant: ClassVar[str]
    holds_out: ClassVar[bool]  # whether `fit_source` needs held-out source windows
    only_patches: ClassVar[bool]  # whether the end of a window that fills no patch is left out

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Make an unfitted one; params : those of `TransPL`, `random_state` a whole number. Wrong ones raise."""

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Go on under other parameters; refused where what was fitted does not fit them."""

    def check_machine(self) -> None:
        """Raise unless this machine can run it, say if it has no such device."""

    def source_settings(self) -> dict[str, Any]:
        """Plain values that decide what `fit_source` learns."""

    @property
    def shortest_window(self) -> int:
        """How many time steps a window must have."""

    def fit_source(self, source: Labelled, validation: Labelled | None) -> None:
        """Learn from labelled source windows; `validation` are held-out source windows, given if `holds_out`."""

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        """Give the source's windows the row numbers that the caller knows them by."""

    def remember_source(self, source: Labelled, validation: Labelled | None) -> None:
        """Give a loaded model the source rows that it was saved without."""

    def adapts_with_source(self, mode: str) -> bool:
        """Whether `adapt` uses source rows in this mode."""

    @property
    def holds_source_rows(self) -> bool: ...

    def source_rows(self) -> tuple[Labelled, Labelled | None]:
        """The source's rows and its held-out rows; a loaded model that was not given them complains."""

    def adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None = None,
        mode: str | None = None,
        few_labels: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
        smooth: bool = False,
    ) -> None:
        """Adapt to unlabelled windows, from the source model again at every call.

        prior : (K,) known class proportions; mode : one of MODES, None is the variant's own
        few_labels : (n,) class indices that a person gave, -1 for the others
        groups : (n,) numbers of recordings whose windows share one label
        smooth : windows follow one another in time (within a group), and neighbours seldom differ; groups share none
        """

    def add_target(self, target: Windows) -> None:
        """Count more target windows, without a gradient step."""

    def new_target(self) -> TargetStream:
        """Begin a new target domain, from the source model; what was adapted before stays as it is."""

    def unadapted(self) -> Self:
        """The source model alone, as one of its own."""

    def predict_proba(
        self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False
    ) -> NDArray[np.float64]:
        """Class probabilities (n, K) of the classifier that the last step left; groups, smooth : as in `adapt`."""

    def pseudo_label(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels:
        """Label windows as a target is labelled; before any adaptation they are themselves the target sample."""

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: NDArray[np.float64] | None = None,
        nearest: int = 3,
    ) -> Explanation | CouncilExplanation:
        """Take `pseudo_label(windows, prior)` apart. nearest : how many source windows to find for each."""

    def shift_report(self, classes: NDArray, channel_names: Sequence[str]) -> ShiftReport:
        """What shifted between the source and the target; asked for only if there are `target_counts`."""

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
        """Which channels moved further from the source's, or from a reference's, than chance moves them."""

    def facts(self) -> dict[str, Any]:
        """What has been learnt, as far as JSON holds it."""

    def arrays(self) -> dict[str, NDArray]:
        """What has been learnt, as named arrays."""

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        """Learn it all again from what `facts` and `arrays` gave; others raise KeyError, TypeError, ValueError or
        RuntimeError.
        """

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides an answer."""

    @property
    def mode(self) -> str:
        """Which classifier answers: "source", or the mode of the last adaptation."""

    @property
    def history(self) -> dict[str, list[dict[str, float]]]:
        """Per phase, one plain record per epoch."""

    @property
    def seconds(self) -> dict[str, float]:
        """How long each phase took."""

    @property
    def estimate(self) -> Estimate | None:
        """How many windows of the target are labelled rightly, judged without labels; None if it is not known."""

    def standings(self) -> list[Standing]:
        """The witnesses and how far each is believed on the target, the most reliable first."""

    def undone(self, channel_names: Sequence[str]) -> tuple[str, ...]:
        """What the target's sensors suffered and was undone, a sentence each."""

    @property
    def codebook(self) -> NDArray[np.float64]:
        """Code vectors (n_c, d)."""

    @property
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        """Per codebook, how often each code occurs in the source."""

    @property
    def decoded_codes(self) -> dict[str, NDArray[np.float64]]:
        """The piece of signal that each code stands for, per codebook (codes, steps)."""

    @property
    def class_counts(self) -> TransitionCounts:
        """Counts by class that labels are made of, (K, D, n_c, n_c)."""

    @property
    def source_counts(self) -> TransitionCounts:
        """(D, n_c, n_c)."""

    @property
    def target_counts(self) -> TransitionCounts | None:
        """(D, n_c, n_c); None before any adaptation."""

    def channel_distances(self, target_counts: TransitionCounts) -> NDArray[np.float64]:
        """How far each channel moved, (D,)."""

    def trust(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far channels that moved so far are trusted, (D,)."""
