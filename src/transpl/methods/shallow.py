r"""Shallow methods: a scikit-learn classifier on numbers that describe each window. Needs no torch.

p(y | x) = f( (\phi((w - m) / s) - \mu) / \sigma )

for windows w, features \phi (levels, spreads, quantiles, spectra, products of channels), a classifier f that learns on
the source, and moments m, s of the signals and \mu, \sigma of the features: those of the source for all windows, or
those of each domain's own train part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from transpl._utils.errors import check_choice, check_int, check_positive, invalid
from transpl._utils.locks import process_state
from transpl.council.views import RowScaler, SignalScaler
from transpl.council.witnesses.linear import LinearWitness, statistics
from transpl.council.witnesses.trees import N_TREES
from transpl.methods.contract import Floats, Method
from transpl.methods.method_settings import MethodSettings, setting
from transpl.methods.registry import register
from transpl.windows import CHUNK, Labelled, PseudoLabels, TargetInfo, Windows

if TYPE_CHECKING:
    from transpl.methods.source_model import SourceModel
    from transpl.nn import Execution

STANDARDISED = ("domain", "source")
INPUTS = ("features", "windows", "flat")


@dataclass(frozen=True)
class ShallowSettings(MethodSettings):
    """Settings of `ShallowMethod`."""

    standardise: str = setting(
        "domain",
        'signals and features by the train part of each "domain" itself, or of the "source" for all',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("standardise", self.standardise, STANDARDISED)


@dataclass(frozen=True)
class Standardiser:
    """Turns windows into the rows of a classifier, with the moments of one domain.

    Parameters
    ----------
    rows_are : {"features", "windows", "flat"}
        Rows are `statistics` (n, F), signals (n, D, T), or signals in one row (n, D T).
    """

    rows_are: str
    signals: SignalScaler
    columns: RowScaler | None = None

    @classmethod
    def fit(cls, rows_are: str, windows: Windows) -> Self:
        """Take the moments of these windows."""
        signals = SignalScaler.fit("standardised", windows)
        unscaled = cls(rows_are, signals)
        return cls(rows_are, signals, RowScaler.fit(unscaled.rows(windows))) if rows_are == "features" else unscaled

    def rows(self, windows: Windows) -> NDArray:
        """The rows of windows, (n, ...)."""
        rows = np.concatenate([self._rows(part) for _, part in windows.chunks(CHUNK)])
        return rows if self.columns is None else self.columns.transform(rows)

    def _rows(self, windows: Windows) -> NDArray:
        viewed = self.signals.transform(windows)
        if self.rows_are == "features":
            return viewed.features("statistics", statistics)
        return viewed.values if self.rows_are == "windows" else viewed.values.reshape(len(viewed), -1)


class ShallowMethod(Method):
    """A scikit-learn classifier; subclasses write `make_classifier`.

    With `standardise="domain"` adapting means to take the target's moments, otherwise it does nothing.
    """

    Settings = ShallowSettings
    settings: ShallowSettings
    starts_from_source = False

    def __init__(self, settings: ShallowSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        self._classifier: Any = None
        self._source: Standardiser | None = None
        self._target: Standardiser | None = None
        self._classes: NDArray[np.int64] = np.empty(0, np.int64)  # of the source's windows
        self._n_classes = 0

    @abstractmethod
    def make_classifier(self) -> Any:
        """A new classifier that is not fitted."""

    @property
    def rows_are(self) -> str:
        """What the classifier gets, one of `INPUTS`."""
        return "features"

    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        """Learn from labelled source windows; none need to be held out."""
        self._check_lengths("source", source.windows)
        standardiser = Standardiser.fit(self.rows_are, source.windows)
        classes, y = np.unique(source.y, return_inverse=True)  # some classifiers want numbers without gaps
        with self._threads():
            self._classifier = self.make_classifier().fit(standardiser.rows(source.windows), y)
        self._source, self._target, self._classes, self._n_classes = standardiser, None, classes, source.n_classes

    def start_from(self, model: SourceModel) -> None:
        """Learn from the rows of a source model; its network is not needed."""
        self.fit_source(self.source_for(model).source)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        self._target = self._standardiser_of(target)

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        self.check_target(windows)
        self.check_info(TargetInfo(groups=groups, smooth=smooth), len(windows), complete=False)
        return self._probabilities(self._target or self._of_source, windows)

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        """Label windows as a target of their own."""
        self.check_target(target)
        self.check_info(TargetInfo(prior=prior), len(target))
        return PseudoLabels.from_probabilities(self._probabilities(self._standardiser_of(target), target))

    @property
    def n_classes(self) -> int:
        return self._n_classes

    @property
    def n_channels(self) -> int:
        return len(self._of_source.signals.mean)

    def check_target(self, target: Windows) -> None:
        super().check_target(target)
        self._check_lengths("target", target)

    @property
    def _of_source(self) -> Standardiser:
        if self._source is None:
            raise self._not_fitted()
        return self._source

    def _standardiser_of(self, target: Windows) -> Standardiser:
        return self._of_source if self.settings.standardise == "source" else Standardiser.fit(self.rows_are, target)

    def _check_lengths(self, name: str, windows: Windows) -> None:
        if self.rows_are != "features" and windows.ragged:
            raise invalid(name, expected="windows of one length", got="several", advice='Use input="features".')

    def _probabilities(self, standardiser: Standardiser, windows: Windows) -> Floats:
        """p(y | x), (n, K); a class without source windows has 0."""
        rows, p = standardiser.rows(windows), np.zeros((len(windows), self.n_classes))
        with self._threads():
            if hasattr(self._classifier, "predict_proba"):
                p[:, self._classes] = self._classifier.predict_proba(rows)
            else:
                p[np.arange(len(windows)), self._classes[self._classifier.predict(rows)]] = 1
        return p

    @contextmanager
    def _threads(self) -> Iterator[None]:
        n_threads = None if self.execution is None else self.execution.n_threads
        with process_state, nullcontext() if n_threads is None else threadpool_limits(n_threads):
            yield


@dataclass(frozen=True)
class FeaturesLinearSettings(ShallowSettings):
    """Settings of `FeaturesLinear`."""

    C: float = setting(LinearWitness.C, "of the logistic regression, the inverse of its ridge penalty")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("C", self.C)


@register("features-linear", family="shallow", needs="source; target for its moments alone", reference="-")
class FeaturesLinear(ShallowMethod):
    """Logistic regression on statistics and spectra of the windows, each domain standardised by itself.

    The features are those of the council's witness `linear`.
    """

    Settings = FeaturesLinearSettings
    settings: FeaturesLinearSettings

    def make_classifier(self) -> LogisticRegression:
        return LogisticRegression(C=self.settings.C, max_iter=1000)


@dataclass(frozen=True)
class FeaturesTreesSettings(ShallowSettings):
    """Settings of `FeaturesTrees`."""

    n_trees: int = setting(N_TREES, "trees of the forest")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("n_trees", self.n_trees, least=1)


@register("features-trees", family="shallow", needs="source; target for its moments alone", reference="-")
class FeaturesTrees(ShallowMethod):
    """Extremely randomised trees on statistics and spectra of the windows, each domain standardised by itself.

    The features are those of the council's witness `trees`.
    """

    Settings = FeaturesTreesSettings
    settings: FeaturesTreesSettings

    def make_classifier(self) -> ExtraTreesClassifier:
        return ExtraTreesClassifier(self.settings.n_trees, min_samples_leaf=2, random_state=self.seed, n_jobs=1)
