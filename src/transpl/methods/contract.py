"""The contract of a method: learn from a labelled source, adapt to an unlabelled target, predict.

The benchmark runs every `Method`. The estimator needs more of the methods behind its variants, see `explainable`.
Nothing here needs torch, and no method can reach the labels of the target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid
from transpl.markov import check_prior
from transpl.methods.method_settings import MethodSettings
from transpl.windows import Labelled, LearntRows, PseudoLabels, TargetInfo, Windows

if TYPE_CHECKING:
    from transpl.methods.source_model import SourceModel
    from transpl.nn import Execution

Floats = NDArray[np.float64]
History = list[dict[str, float]]  # one record per epoch

_ADVICE_NOT_USED = {
    "prior": "Leave it out, or choose a method that ends in -ws.",
    "few_labels": "Leave them out, or use the method transpl.",
    "groups": "This method labels every window by itself; use variant='plus', or the method transpl-plus-groups.",
    "smooth": "This method labels every window by itself; use variant='plus'.",
}
_ADVICE_REQUIRED = {
    "prior": "Pass the target's class proportions.",
    "groups": "Pass the recording or patient of every window, or use transpl-plus.",
}


class Method(ABC):
    """A method of domain adaptation.

    Subclasses write `fit_source`, `start_from`, `_adapt` and `predict_proba`; most inherit all but `_adapt` from
    `NetworkMethod`. Labels are class indices 0..K-1, windows are checked already.

    Attributes
    ----------
    Settings
        its frozen dataclass of settings
    uses
        the parts of `TargetInfo` that `adapt` can use; any other part is refused
    requires
        the parts of `TargetInfo` that `adapt` cannot do without
    starts_from_source
        whether it starts from the trained source network; otherwise it needs the source's rows only
    equal_length
        whether all windows must have the same length
    uses_target_labels
        True for an upper bound, which gets labelled target windows as its source
    library_versions
        versions of the libraries that decide its numbers, beyond those of this package
    label_record
        pseudo-labels of the target by name, such as "initial"
    details
        facts about the last adaptation, as plain values for JSON
    learnt_rows
        the target rows that training used, so that the benchmark can score their labels
    """

    Settings: ClassVar[type[MethodSettings]]
    uses: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[frozenset[str]] = frozenset()
    starts_from_source: ClassVar[bool] = True
    equal_length: ClassVar[bool] = False
    uses_target_labels: ClassVar[bool] = False
    library_versions: ClassVar[Mapping[str, str]] = {}

    def __init__(self, settings: MethodSettings | None = None, execution: Execution | None = None) -> None:
        self.settings: MethodSettings = self.Settings() if settings is None else settings
        self.execution = execution
        self.label_record: dict[str, PseudoLabels] = {}
        self.details: dict[str, Any] = {}
        self.learnt_rows: LearntRows | None = None

    @abstractmethod
    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        """Learn from labelled source windows; `validation` holds out source windows for methods that need them."""

    @abstractmethod
    def start_from(self, model: SourceModel) -> None:
        """Start from a source model that other methods may share; it is not modified."""

    def source_for(self, model: SourceModel) -> SourceModel:
        """The source model that this method starts from: the shared one, unless the method trains another."""
        return model

    def adapt(self, target: Windows, info: TargetInfo | None = None) -> None:
        """Adapt to unlabelled target windows, always starting from the source model.

        info : what is known about the target beside its windows
        """
        self.check_target(target)
        info = self.check_info(TargetInfo() if info is None else info, len(target))
        self.details, self.learnt_rows = {}, None
        self._adapt(target, info)

    @abstractmethod
    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        """Adapt; both arguments have been checked."""

    @abstractmethod
    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        """Class probabilities (n, K) by the adapted classifier, or by the source's before any adaptation.

        groups, smooth : as in `TargetInfo`, for methods that use them
        """

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows the way the method labels its target."""
        return PseudoLabels.from_probabilities(self.predict_proba(target))

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        """Label windows with the source model alone, before any adaptation."""
        self.check_target(target)
        self.check_info(TargetInfo(prior=prior), len(target))
        return self.pseudo_label(target)

    def features(self, windows: Windows) -> Floats | None:
        """The features (n, width) that the last classifier sees; None if the method has none."""
        return None

    @property
    def history(self) -> dict[str, History]:
        """One plain record per epoch, by phase."""
        return {}

    @property
    def seed(self) -> int:
        return self.settings.random_state

    @property
    @abstractmethod
    def n_classes(self) -> int: ...

    @property
    @abstractmethod
    def n_channels(self) -> int: ...

    @property
    def shortest_window(self) -> int:
        """The fewest time steps that a window must have."""
        return self.settings.shortest_window

    def check_target(self, target: Windows) -> None:
        """Raise unless the windows fit those of the source."""
        if not isinstance(target, Windows):
            raise invalid("target", expected="Windows", got=type(target).__name__, advice="Wrap it: as_windows(X).")
        if target.n_channels != self.n_channels:
            expected, advice = f"{self.n_channels} channels", "Use the source's channels."
            raise invalid("target", expected=expected, got=target.n_channels, advice=advice)
        if target.lengths.min() < self.shortest_window:
            expected = f"windows of at least {self.shortest_window} steps"
            raise invalid("target", expected=expected, got=target.lengths.min(), advice="Cut longer windows.")

    def check_info(self, info: TargetInfo, n: int, *, complete: bool = True) -> TargetInfo:
        """Refuse parts that this method does not use, check the others for n windows, and normalise the prior.

        complete : also refuse when a required part is missing
        """
        given = [part for part in ("prior", "few_labels", "groups") if getattr(info, part) is not None]
        for part in [*given, "smooth"] if info.smooth else given:
            if part not in self.uses | self.requires:
                raise invalid(part, expected="None for this method", got="a value", advice=_ADVICE_NOT_USED[part])
        for part in sorted(self.requires - set(given)) if complete else ():
            raise invalid(part, expected="a value for this method", got=None, advice=_ADVICE_REQUIRED[part])
        info.check(n, self.n_classes)
        return info if info.prior is None else replace(info, prior=check_prior(info.prior, self.n_classes))

    def _not_fitted(self) -> InputError:
        return InputError(f"{type(self).__name__} is not fitted. Call fit_source first.")
