"""What `TransPL` asks of the method behind a variant. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transpl.drift import Drift
from transpl.explanation import Explanation, ShiftReport
from transpl.labels import Labelled, PseudoLabels
from transpl.markov import CodebookUsage, TransitionCounts
from transpl.windows import Windows

MODES = ("finetune", "markov")


class TargetStream(Protocol):
    """A new target domain that need not fit in memory: every part is encoded once, then all is counted, then labelled.

    The caller keeps what `encode` returns, on a disk if need be.
    """

    def row(self, n_channels: int, n_steps: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of what is kept of a window of so many channels and time steps."""

    def encode(self, windows: Windows) -> NDArray:
        """What is kept of windows, (n, *shape)."""

    def adapt(self, parts: Iterable[NDArray]) -> TransitionCounts:
        """Adapt to all that was encoded, without a gradient step; the target's counts by channel."""

    def probabilities(self, part: NDArray) -> NDArray[np.float64]:
        """Class probabilities (n, K) of encoded windows, after `adapt`."""


class DomainAdapter(Protocol):
    """The life of a method behind the estimator: made of parameters, fitted to a source, adapted to targets, saved.

    Labels are class indices 0..K-1, windows are checked. K classes, D channels, n_c codes.
    """

    variant: ClassVar[str]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Make an unfitted one; params : those of `TransPL`, `random_state` a whole number. Wrong ones raise."""

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Go on under other parameters; refused where what was fitted does not fit them."""

    def check_machine(self) -> None:
        """Raise unless this machine can run it, say if it has no such device."""

    def source_settings(self) -> dict[str, Any]:
        """Plain values that decide what `fit_source` learns."""

    def fit_source(self, source: Labelled, validation: Labelled) -> None:
        """Learn from labelled source windows; `validation` are held-out source windows."""

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        """Give the source's windows the row numbers that the caller knows them by."""

    def remember_source(self, source: Labelled, validation: Labelled) -> None:
        """Give a loaded model the source rows that it was saved without."""

    @property
    def holds_source_rows(self) -> bool: ...

    def source_rows(self) -> tuple[Labelled, Labelled]:
        """The source's rows and its held-out rows; a loaded model that was not given them complains."""

    def adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None = None,
        mode: str | None = None,
        few_labels: NDArray[np.int64] | None = None,
    ) -> None:
        """Adapt to unlabelled windows, from the source model again at every call.

        prior : (K,) known class proportions; mode : one of MODES, None is the variant's own
        few_labels : (n,) class indices that a person gave, -1 for the others
        """

    def add_target(self, target: Windows) -> None:
        """Count more target windows, without a gradient step."""

    def new_target(self) -> TargetStream:
        """Begin a new target domain, from the source model; what was adapted before stays as it is."""

    def unadapted(self) -> Self:
        """The source model alone, as one of its own."""

    def predict_proba(self, windows: Windows) -> NDArray[np.float64]:
        """Class probabilities (n, K) of the classifier that the last step left."""

    def pseudo_label(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels:
        """Label windows as a target is labelled; before any adaptation they are themselves the target sample."""

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: NDArray[np.float64] | None = None,
        nearest: int = 3,
    ) -> Explanation:
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
