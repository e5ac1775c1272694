"""What every adaptation method takes and gives. Target labels are not reachable from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transpl._utils.errors import InputError, invalid
from transpl.markov import check_prior
from transpl.methods.settings import MethodSettings, SourceSettings
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    Classifier,
    Execution,
    History,
    class_probabilities,
    cpu_threads,
    in_batches,
    resolve_device,
    with_gradients,
)
from transpl.windows import Labelled, LearntRows, PseudoLabels, Windows


class Method(ABC):
    """The life of a method: learn the source, adapt to a target, predict.

    Subclasses write `_adapt`, and leave the classifier they end with in `self.classifier`; those that label by other
    means than this classifier also write `pseudo_label`. What there is to tell of an adaptation they leave in
    `self.details`, as plain values for JSON by name; and in `self.learnt_rows` which target rows they chose to learn
    from, for whoever holds the labels to judge them. The class attributes say what a method is like:

    Settings : its frozen dataclass of settings
    starts_from_source : it starts from the trained source network (else only from the source's rows)
    prior : what `adapt` does with known class proportions of the target: "unused" (refused), "optional" or "needed"
    equal_length : it needs windows of one length
    uses_target_labels : it is an upper bound, and is given labelled target windows for its source
    needs_groups : it has to know which windows are of one recording or patient (see `GroupedMethod`)
    """

    Settings: ClassVar[type[MethodSettings]] = SourceSettings
    starts_from_source: ClassVar[bool] = True
    prior: ClassVar[str] = "unused"
    equal_length: ClassVar[bool] = False
    uses_target_labels: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = False

    def __init__(self, settings: MethodSettings | None = None, execution: Execution | None = None) -> None:
        self.settings: MethodSettings = self.Settings() if settings is None else settings
        self.execution = Execution() if execution is None else execution
        self.classifier: Classifier | None = None
        self.adapt_history: dict[str, History] = {}
        self.label_record: dict[str, PseudoLabels] = {}
        self.details: dict[str, Any] = {}
        self.learnt_rows: LearntRows | None = None
        self._source: SourceModel | None = None

    def fit_source(self, source: Labelled, validation: Labelled) -> None:
        """Learn from labelled source windows; `validation` are held-out source windows."""
        self.start_from(SourceModel(source, validation, self.settings.source(), self.execution))
        if self.starts_from_source:
            self.source.train()

    def start_from(self, model: SourceModel) -> None:
        """Take a source model that may serve other methods too; it is left as it is."""
        model = self.source_for(model)
        if isinstance(self.settings, SourceSettings) and model.settings != self.settings.source():
            raise invalid("model", expected="this method's source settings", got="others", advice="Make them equal.")
        if self.equal_length:
            _need_equal_length(model.source.windows, "source")
            _need_equal_length(model.validation.windows, "validation", model.source.windows.values.shape[2])
        self._source = model
        self.classifier, self.adapt_history, self.label_record = None, {}, {}
        self.details, self.learnt_rows = {}, None

    def source_for(self, model: SourceModel) -> SourceModel:
        """The source model to start from: the one that is given, unless the method trains its own with another loss."""
        return model

    @with_gradients()
    def adapt(self, target: Windows, prior: NDArray[np.float64] | None = None) -> None:
        """Adapt to unlabelled target windows, from the source again at every call.

        prior : known class proportions of the target (K,), for methods that use them
        """
        self.check_target(target)
        prior = self.checked_prior(prior)
        self.details, self.learnt_rows = {}, None
        self._adapt(target, prior)

    @abstractmethod
    def _adapt(self, target: Windows, prior: NDArray[np.float64] | None) -> None: ...

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows as the method labels its target."""
        return PseudoLabels.from_probabilities(self.predict_proba(target))

    def predict_proba(self, windows: Windows) -> NDArray[np.float64]:
        """Class probabilities (n, K) of the adapted classifier, or of the source's before any adaptation."""
        self.check_target(windows)
        classifier = self.source.network if self.classifier is None else self.classifier
        with self.on_device(classifier):
            return class_probabilities(classifier, windows)

    def one_shot_labels(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels:
        """Label windows with the source model alone, before any adaptation."""
        self.check_target(target)
        self.checked_prior(prior)
        return self.pseudo_label(target)

    def features(self, windows: Windows) -> NDArray[np.float64] | None:
        """What the last classifier tells classes by, (n, width); None for a method that has no such features."""
        self.check_target(windows)
        classifier = self.source.network if self.classifier is None else self.classifier
        with self.on_device(classifier):
            return in_batches(classifier, windows, classifier.features)

    @property
    def source(self) -> SourceModel:
        if self._source is None:
            raise InputError(f"{type(self).__name__} is not fitted. Call fit_source first.")
        return self._source

    @property
    def n_classes(self) -> int:
        return self.source.n_classes

    @property
    def history(self) -> dict[str, History]:
        """One plain record per epoch, by phase."""
        source = {"source": self.source.history} if self.starts_from_source else {}
        return {**source, **self.adapt_history}

    @property
    def seed(self) -> int:
        return self.settings.random_state

    def check_target(self, target: Windows) -> None:
        """Raise unless the windows fit those of the source."""
        if not isinstance(target, Windows):
            raise invalid("target", expected="Windows", got=type(target).__name__, advice="Wrap it: as_windows(X).")
        D, shortest = self.source.source.windows.n_channels, self.settings.shortest_window
        if target.n_channels != D:
            raise invalid(
                "target", expected=f"{D} channels", got=target.n_channels, advice="Use the source's channels."
            )
        if target.lengths.min() < shortest:
            expected = f"windows of at least {shortest} steps"
            raise invalid("target", expected=expected, got=target.lengths.min(), advice="Cut longer windows.")
        if self.equal_length:
            _need_equal_length(target, "target", self.source.source.windows.values.shape[2])

    def checked_prior(self, prior: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Class proportions (K,) that sum to 1, or None; refused where the method has no use for them."""
        if prior is None:
            if self.prior == "needed":
                raise invalid("prior", expected="class proportions", got=None, advice="Pass the target's proportions.")
            return None
        if self.prior == "unused":
            advice = "Leave it out, or choose a method that ends in -ws."
            raise invalid("prior", expected="None for this method", got="proportions", advice=advice)
        return check_prior(prior, self.n_classes)

    @contextmanager
    def on_device(self, module: nn.Module) -> Iterator[None]:
        """Run a module on the chosen device and bring it back to the CPU, where it lives."""
        with cpu_threads(self.execution.n_threads):
            module.to(resolve_device(self.execution.device))
            try:
                yield
            finally:
                module.cpu()


class GroupedMethod(Method):
    """A method to which windows of one recording or patient are not independent, and which is told which those are."""

    @abstractmethod
    def adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None = None,
        *,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        """Adapt to unlabelled target windows; groups : (n,) the recording or patient that each is from."""

    @abstractmethod
    def predict_proba(self, windows: Windows, *, groups: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Class probabilities (n, K); groups : as in `adapt`, None where every window stands for itself."""


def _need_equal_length(windows: Windows, name: str, length: int | None = None) -> None:
    longest = windows.values.shape[2]
    if windows.ragged or longest != (length or longest):
        expected = "windows of one length, the same in source and target"
        raise invalid(name, expected=expected, got="unequal ones", advice="Cut them alike, or use another method.")
