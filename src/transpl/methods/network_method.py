"""A method that predicts with a network: all of the contract but `_adapt`. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transpl._utils.errors import invalid
from transpl.methods.contract import Floats, History, Method
from transpl.methods.method_settings import MethodSettings, SourceSettings
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    Classifier,
    Execution,
    class_probabilities,
    cpu_threads,
    in_batches,
    resolve_device,
    with_gradients,
)
from transpl.windows import Labelled, TargetInfo, Windows


class NetworkMethod(Method):
    """A method that starts from a source network.

    Subclasses write `_adapt(target, info)` and leave the adapted network in `self.classifier`. Those that label in
    another way than by this network also write `pseudo_label`.

    Examples
    --------
    >>> from transpl.methods.registry import register
    >>> class Unchanged(NetworkMethod):
    ...     '''The source network, unchanged.'''
    ...
    ...     def _adapt(self, target, info):
    ...         self.classifier = self.source.network
    >>> make_known = register("unchanged", family="own", needs="source", reference="-")  # used as @make_known
    """

    Settings: ClassVar[type[MethodSettings]] = SourceSettings
    execution: Execution

    def __init__(self, settings: MethodSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, Execution() if execution is None else execution)
        self.classifier: Classifier | None = None
        self.adapt_history: dict[str, History] = {}
        self._source: SourceModel | None = None

    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        if validation is None:
            advice = "Hold out some source windows; they decide when training stops."
            raise invalid("validation", expected="held-out source windows", got=None, advice=advice)
        self.start_from(SourceModel(source, validation, self.settings.source(), self.execution))
        if self.starts_from_source:
            self.source.train()

    def start_from(self, model: SourceModel) -> None:
        model = self.source_for(model)
        if isinstance(self.settings, SourceSettings) and model.settings != self.settings.source():
            raise invalid("model", expected="this method's source settings", got="others", advice="Make them equal.")
        if self.equal_length:
            _check_equal_length(model.source.windows, "source")
            _check_equal_length(model.validation.windows, "validation", model.source.windows.values.shape[2])
        self._source = model
        self.classifier, self.adapt_history, self.label_record = None, {}, {}
        self.details, self.learnt_rows = {}, None

    @with_gradients()
    def adapt(self, target: Windows, info: TargetInfo | None = None) -> None:
        super().adapt(target, info)

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        self.check_target(windows)
        self.check_info(TargetInfo(groups=groups, smooth=smooth), len(windows), complete=False)
        classifier = self._answering_classifier
        with self.on_device(classifier):
            return class_probabilities(classifier, windows)

    def features(self, windows: Windows) -> Floats | None:
        self.check_target(windows)
        if self.classifier is None and not self.starts_from_source:
            return None  # no network was needed so far, and none is trained for this
        classifier = self._answering_classifier
        with self.on_device(classifier):
            return in_batches(classifier, windows, classifier.features)

    @property
    def _answering_classifier(self) -> Classifier:
        return self.source.network if self.classifier is None else self.classifier

    @property
    def source(self) -> SourceModel:
        """The source model that the method started from."""
        if self._source is None:
            raise self._not_fitted()
        return self._source

    @property
    def n_classes(self) -> int:
        return self.source.n_classes

    @property
    def n_channels(self) -> int:
        return self.source.source.windows.n_channels

    @property
    def history(self) -> dict[str, History]:
        source = {"source": self.source.history} if self.starts_from_source else {}
        return {**source, **self.adapt_history}

    def check_target(self, target: Windows) -> None:
        super().check_target(target)
        if self.equal_length:
            _check_equal_length(target, "target", self.source.source.windows.values.shape[2])

    @contextmanager
    def on_device(self, module: nn.Module) -> Iterator[None]:
        """Run a module on the chosen device, then bring it back to the CPU, where it is kept."""
        with cpu_threads(self.execution.n_threads):
            module.to(resolve_device(self.execution.device))
            try:
                yield
            finally:
                module.cpu()


def _check_equal_length(windows: Windows, name: str, length: int | None = None) -> None:
    longest = windows.values.shape[2]
    if windows.ragged or longest != (length or longest):
        expected = "windows of one length, the same in source and target"
        raise invalid(name, expected=expected, got="unequal ones", advice="Cut them alike, or use another method.")
