"""TransPL as a scikit-learn classifier."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from transpl._utils.errors import check_choice, invalid, require_deep, unreadable_file
from transpl._utils.layout import check_facts
from transpl._utils.locks import one_thread_at_a_time
from transpl.estimator.callbacks import CallbackSupportMixin, reported_fit, with_callbacks
from transpl.estimator.parameters import (
    EFFECTIVE_AT_ONCE,
    OF_THE_MACHINE,
    VARIANTS,
    check_mode,
    default_mode,
    document_parameters,
)
from transpl.estimator.persistence import (
    SAVED,
    SavedModel,
    read_model,
    refusing_what_does_not_fit,
    saved_classes,
    write_model,
)
from transpl.estimator.validation import (
    check_labels,
    class_indices,
    few_label_indices,
    group_numbers,
    held_out_rows,
    hold_out,
    is_table,
    prior_shares,
    seed_of,
    target_rows,
    to_python,
    warn_layout,
    warn_truncated_tail,
)
from transpl.markov import CodebookUsage, Drift, Explanation, ShiftReport, TransitionCounts
from transpl.methods.explainable import ExplainableMethod
from transpl.windows import Labelled, PseudoLabels, TargetInfo, Windows, as_windows, name_channels, overlap

if TYPE_CHECKING:
    from transpl.council import AccuracyEstimate, CouncilExplanation, SeatAccuracy


@document_parameters
class TransPL(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify windows of a new domain without its labels.

    `fit` learns from labelled source windows, `adapt` looks at unlabelled target windows.

    `variant="plus"`: several cheap witnesses (codes, random convolutions, linear, trees) learn from the source, each in
    several views of the signals. `adapt` undoes shifts of the target's sensors where they are clear (a turned device,
    another unit, a dead channel), judges the witnesses by how they agree on the target, and combines them. Needs no
    torch.

    `variant="paper"` (Kim and Lee, ICML 2025): `fit` learns discrete codes and a classifier and counts, per class and
    channel, which code follows which. `adapt` counts the same on the target, weights each channel by how little it
    moved, labels the target by Bayes' rule and fine-tunes on the labels.

    Windows X are (n, channels, time), (n, time) for one channel, or a list of (channels, T_i).

    A fitted model keeps the parameters that it was fitted and adapted with. A change by `set_params` takes effect at
    the next `fit`. If the source model does not depend on the parameter (`sigma` or `undo`, for example), it already
    takes effect at the next `adapt`, `partial_adapt` or `unadapted`; these refuse any other change. Only `device`,
    `devices`, `n_threads`, `checkpoint_dir`, `verbose` and the names in `channel_names` take effect at once.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : (K,) array
        Class labels.
    estimated_accuracy_ : AccuracyEstimate
        (accuracy, low, high): the share of target windows that are labelled correctly, estimated without labels, and an
        interval. Only variant="plus", after `adapt`.
    shifts_ : tuple of str
        The shifts of the target's sensors that were undone, one sentence each. Only variant="plus", after `adapt`.
    witnesses_ : list of SeatAccuracy
        The witnesses with their view and estimated accuracy on the target, the most reliable first. Only
        variant="plus", after `adapt`.
    codebook_ : array
        Code vectors: (n_coarse, width) of the coarse codebook, or (n_coarse, patch_length) centres of "plus".
    class_counts_, source_counts_, target_counts_ : TransitionCounts
        Transition counts by class and channel, and by channel. With variant="paper" those by class include what
        `few_labels` added.
    channel_distances_, channel_weights_ : (channels,) array
        How far each channel moved, and its weight.
    codebook_usage_ : dict of CodebookUsage
        Per codebook, how often each code occurs in the source, its perplexity and dead codes.
    history_ : dict of list
        Per phase, one plain record per epoch; empty for "plus".
    seconds_ : dict of float
        How long each phase took.
    mode_ : str
        Which classifier predicts: "source", "markov" or "finetune".
    fitted_params_ : dict
        The parameters that the model was fitted and adapted with.

    Examples
    --------
    >>> from transpl import TransPL, datasets
    >>> data = datasets.make_shifted(n_train=40, n_test=20, length=32)
    >>> source, target = data.domain(0), data.domain(1)
    >>> model = TransPL(witnesses=["codes", "linear"]).fit(source.X_train, source.y_train)
    >>> model.adapt(target.X_train).predict(target.X_test).shape
    (20,)
    """

    method_: ExplainableMethod

    # As with skada's estimators, meta-estimators pass `sample_domain` on without being asked.
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012  # scikit-learn reads plain class attributes
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__score = {"sample_domain": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        patch_length: int = 8,
        width: int = 64,
        n_coarse: int = 8,
        n_fine: int = 64,
        sigma: float = 0.2,
        prior_temperature: float = 1.0,
        top_ratio: float = 0.5,
        source_lr: float = 5e-4,
        adapt_lr: float = 5e-4,
        batch_size: int = 32,
        max_epochs: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        channel_alignment: bool = True,
        smoothing: str | None = None,
        epsilon: float | None = None,
        length: str = "transitions",
        confidence: str = "max",
        n_layers: int = 2,
        n_heads: int = 8,
        dropout: float = 0.3,
        commitment: float = 0.25,
        residual: str = "normalised",
        cls_trainable: bool = False,
        weight_decay: float = 0.01,
        check_every: int = 2,
        source_patience: int = 2,
        adapt_patience: int = 5,
        adapt_stopping: str = "source",
        warmup_steps: int = 50,
        variant: str = "plus",
        devices: int = 1,
        n_threads: int | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        witnesses: Sequence[str] | None = None,
        views: Sequence[str] | None = None,
        undo: str | Sequence[str] = "auto",
        triads: Sequence[Sequence[int | str]] | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.patch_length = patch_length
        self.width = width
        self.n_coarse = n_coarse
        self.n_fine = n_fine
        self.sigma = sigma
        self.prior_temperature = prior_temperature
        self.top_ratio = top_ratio
        self.source_lr = source_lr
        self.adapt_lr = adapt_lr
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.device = device
        self.channel_alignment = channel_alignment
        self.smoothing = smoothing
        self.epsilon = epsilon
        self.length = length
        self.confidence = confidence
        self.n_layers = n_layers
        self.n_heads = n_heads
        self.dropout = dropout
        self.commitment = commitment
        self.residual = residual
        self.cls_trainable = cls_trainable
        self.weight_decay = weight_decay
        self.check_every = check_every
        self.source_patience = source_patience
        self.adapt_patience = adapt_patience
        self.adapt_stopping = adapt_stopping
        self.warmup_steps = warmup_steps
        self.variant = variant
        self.devices = devices
        self.n_threads = n_threads
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose
        self.witnesses = witnesses
        self.views = views
        self.undo = undo
        self.triads = triads
        self.channel_names = channel_names

    @with_callbacks
    @one_thread_at_a_time
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        *,
        sample_domain: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from the labelled source; with `sample_domain`, also adapt to the target.

        Parameters
        ----------
        X : windows
            (n, channels, time) array, (n, time) array of one channel, or list of (channels, T_i) arrays.
        y : (n,) array-like
            Class labels.
        X_val, y_val : windows and labels, optional
            Source rows that decide when training stops. By default variant="paper" holds out a stratified 30 % of the
            source; variant="plus" needs none.
        sample_domain : (n,) int array, optional
            At least 0 for source rows, negative for target rows, whose `y` is ignored.
        groups : (n,) array-like, optional
            Names of the recordings or patients of the rows. Those of target rows are used as in `adapt`, those of
            source rows not at all.

        Returns
        -------
        self
        """
        seed = seed_of(self.random_state)
        method = self.new_method(seed)
        windows = self._windows(X, "X", min_length=method.shortest_window)
        is_target = target_rows(sample_domain, len(windows))
        classes, indices = np.unique(check_labels(y, len(windows), is_target), return_inverse=True)
        source = Labelled(windows[~is_target], indices.astype(np.int64), len(classes))
        if (X_val is None) != (y_val is None):
            raise invalid(
                "X_val, y_val", expected="both or neither", got="one of them", advice="Pass the other one too."
            )
        warn_layout(windows, "X")
        rows, validation = np.flatnonzero(~is_target), None
        if X_val is not None:
            held_out = self._windows(X_val, "X_val", n_channels=windows.n_channels, min_length=method.shortest_window)
            validation = Labelled(held_out, class_indices(y_val, len(held_out), classes, "y_val"), len(classes))
        elif method.needs_validation:
            rows = rows[~held_out_rows(source.y, seed)]
            source, validation = hold_out(source, seed)
        if method.only_patches:
            warn_truncated_tail(windows, self.patch_length, "X")
        numbers = group_numbers(groups, len(windows))
        with reported_fit(self, X, y, 1 + int(is_target.any())) as phase:
            with phase("source"):
                method.fit_source(source, validation)
            method.number_source_rows(rows)
            if is_target.any():
                with phase("target"):
                    known = TargetInfo(groups=None if numbers is None else numbers[is_target])
                    method.adapt(windows[is_target], known)
        # Only a finished fit replaces the last one.
        validate_data(self, X, skip_check_array=True, reset=True)
        self.n_channels_, self.seed_, self.classes_, self.method_ = windows.n_channels, seed, classes, method
        self.fitted_params_ = self.plain_params(seed)
        return self

    @one_thread_at_a_time
    def adapt(
        self,
        X_target: Any,
        prior: ArrayLike | dict[Any, float] | None = None,
        mode: str | None = None,
        *,
        few_labels: ArrayLike | dict[int, Any] | None = None,
        groups: ArrayLike | None = None,
        smooth: bool = False,
        X_source: Any = None,
        y_source: ArrayLike | None = None,
    ) -> Self:
        """Adapt to unlabelled target windows; every call starts from the source model again.

        Parameters
        ----------
        X_target : windows
            The target, as in `fit`.
        prior : array-like or dict, optional
            Class proportions of the target, in the order of `classes_` or as {label: share}.
        mode : {"finetune", "markov"}, optional
            "finetune" trains on the pseudo-labels (only variant="paper", its default); "markov" takes no gradient step.
        few_labels : array-like or dict, optional
            Labels that a person gave to some target windows: {row: label}, or one per window with None, NaN, pandas' NA
            or "" for no label. They replace what the method would find.
        groups : (n,) array-like, optional
            Names of the recordings or patients of the windows; all windows of a group have one label. Only
            variant="plus".
        smooth : bool, default=False
            Windows are in time order and neighbours seldom differ in class; groups are then separate recordings, whose
            windows may have several labels. Only variant="plus".
        X_source, y_source : windows and labels, optional
            The source rows, which a loaded model does not hold. variant="paper" trains with them beside the target,
            variant="plus" needs them to find shifts.

        Returns
        -------
        self
        """
        method = self._method_to_adapt()
        windows = self._seen_windows(X_target, "X_target")
        check_mode(self.variant, mode)
        numbers = group_numbers(groups, len(windows))
        check_choice("smooth", smooth, (True, False))
        if method.only_patches:
            warn_truncated_tail(windows, self.patch_length, "X_target")
        if X_source is not None:
            method.remember_source(*self.source_rows(X_source, y_source))
        elif y_source is not None:
            raise invalid("X_source", expected="the windows of y_source", got=None, advice="Pass both, or neither.")
        known = few_label_indices(few_labels, len(windows), self.classes_)
        method.adapt_mode = self.default_mode if mode is None else mode
        method.adapt(windows, TargetInfo(self.class_shares(prior), known, numbers, smooth))
        # Only a finished adaptation replaces the last one.
        self.method_, self.fitted_params_ = method, self.plain_params(self.seed_)
        return self

    @one_thread_at_a_time
    def partial_adapt(self, X_batch: Any) -> Self:
        """Add target windows without a gradient step. The result does not depend on their order or batches.

        variant="plus" counts the transitions of all windows, keeps a sample of at most 4,096 windows, and judges its
        witnesses on this sample when it next predicts.

        variant="paper" adds to the counts. Directly after `fit`, the Markov posterior becomes the classifier, as with
        `adapt(mode="markov")`. After fine-tuning the network remains the classifier; only the counts, channel weights
        and pseudo-labels change.

        Parameters
        ----------
        X_batch : windows
            More of the target, as in `fit`.

        Returns
        -------
        self
        """
        method = self._method_to_adapt()
        method.add_target(self._seen_windows(X_batch, "X_batch"))
        self.method_, self.fitted_params_ = method, self.plain_params(self.seed_)
        return self

    @one_thread_at_a_time
    def unadapted(self) -> Self:
        """Return a copy of the model as `fit` left it, which takes over parameters that were set since."""
        alone = copy.copy(self)
        alone.method_, alone.fitted_params_ = self._method_to_adapt().unadapted(), self.plain_params(self.seed_)
        return alone

    @one_thread_at_a_time
    def predict_proba(
        self,
        X: Any,
        *,
        groups: ArrayLike | None = None,
        smooth: bool = False,
        sample_domain: Any = None,
        allow_source: bool = False,
    ) -> NDArray[np.float64]:
        """Return class probabilities.

        Parameters
        ----------
        X : windows
            As in `fit`.
        groups, smooth
            As in `adapt`.
        sample_domain, allow_source
            Not used. skada's scorers pass them; all windows are labelled as the target's.

        Returns
        -------
        (n, K) array
            Columns in the order of `classes_`.
        """
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        check_choice("smooth", smooth, (True, False))
        return method.predict_proba(windows, group_numbers(groups, len(windows)), smooth)

    def predict(
        self,
        X: Any,
        *,
        groups: ArrayLike | None = None,
        smooth: bool = False,
        sample_domain: Any = None,
        allow_source: bool = False,
    ) -> NDArray:
        """Return the most probable class of each window.

        Parameters
        ----------
        X : windows
            As in `fit`.
        groups, smooth
            As in `adapt`.
        sample_domain, allow_source
            Not used. skada's scorers pass them; all windows are labelled as the target's.

        Returns
        -------
        (n,) array
        """
        probabilities = self.predict_proba(X, groups=groups, smooth=smooth)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        smooth: bool = False,
        sample_domain: Any = None,
        allow_source: bool = False,
    ) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : windows
            As in `fit`.
        y : (n,) array-like
            True labels.
        sample_weight : (n,) array-like, optional
        groups, smooth, sample_domain, allow_source
            As in `predict`.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score  # loads slowly, and labelling needs none of it

        return float(accuracy_score(y, self.predict(X, groups=groups, smooth=smooth), sample_weight=sample_weight))

    @one_thread_at_a_time
    def pseudo_label(self, X: Any, prior: ArrayLike | dict[Any, float] | None = None) -> PseudoLabels:
        """Label windows the way `adapt` labels the target: by the witnesses ("plus") or by code transitions ("paper").

        Before `adapt` or `partial_adapt`, X itself is the target sample.

        Parameters
        ----------
        X : windows
            As in `fit`.
        prior : array-like or dict, optional
            Class proportions, as in `adapt`. By default the prior of `adapt`; without one, what "plus" estimates, or a
            uniform prior with "paper".

        Returns
        -------
        PseudoLabels
            (labels, confidence, probabilities).
        """
        found = self.fitted_method().pseudo_label(self._seen_windows(X, "X"), self.class_shares(prior))
        return found._replace(labels=self.classes_[found.labels])

    @one_thread_at_a_time
    def explain(
        self,
        X: Any,
        prior: ArrayLike | dict[Any, float] | None = None,
        *,
        channel_names: Sequence[str] | None = None,
        nearest: int = 3,
    ) -> Explanation | CouncilExplanation:
        """Take the labels of `pseudo_label(X, prior)` apart into parts that add up to them.

        The parts are witnesses with variant="plus", channels and code transitions with variant="paper".

        Parameters
        ----------
        X : windows
            As in `fit`.
        prior : array-like or dict, optional
            As in `pseudo_label`.
        channel_names : sequence of str, optional
            One per channel, for tables and sentences; by default the parameter of this name.
        nearest : int, default=3
            Number of source windows with similar codes to find for each window.

        Returns
        -------
        CouncilExplanation or Explanation
        """
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        names = self._channel_names(channel_names)
        return method.explain(windows, self.classes_, names, self.class_shares(prior), nearest)

    @one_thread_at_a_time
    def shift_report(self, X: Any = None, *, channel_names: Sequence[str] | None = None) -> ShiftReport:
        """Report what shifted between the source and the target of `adapt` or `partial_adapt`.

        Parameters
        ----------
        X : windows, optional
            Windows of the target from which to estimate its class proportions. By default those of the windows that
            `adapt` labelled; with variant="paper" they are unknown in mode "markov" and after `partial_adapt`.
        channel_names : sequence of str, optional
            As in `explain`.

        Returns
        -------
        ShiftReport
        """
        method = self.fitted_method()
        if method.target_counts is None:
            raise AttributeError("shift_report: there is no target yet. Call adapt or partial_adapt first.")
        report = method.shift_report(self.classes_, self._channel_names(channel_names))
        if X is None:
            return report
        return replace(report, target_shares=self.pseudo_label(X).probabilities.mean(axis=0))

    @one_thread_at_a_time
    def drift(
        self,
        X: Any,
        reference: Any = None,
        *,
        channel_names: Sequence[str] | None = None,
        level: float = 0.99,
        n_shuffles: int = 200,
        block: int | None = None,
    ) -> Drift:
        """Report which channels of new windows moved further from the source than chance would move them.

        Parameters
        ----------
        X : windows
            As in `fit`.
        reference : windows, optional
            Windows to compare with instead of the source's, such as those that the model was adapted to.
        channel_names : sequence of str, optional
            As in `explain`.
        level : float, default=0.99
            If nothing has changed, no channel is reported in this share of cases.
        n_shuffles : int
            How the chance band is computed; see `transpl.markov.drift.chance_band`.
        block : int, optional
            Consecutive windows that belong together. Default: as the overlap of the windows demands; those of the
            source are taken to overlap as those of `X` do.

        Returns
        -------
        Drift
        """
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        trusted = None if reference is None else self._seen_windows(reference, "reference")
        names = self._channel_names(channel_names)
        shared = overlap(windows)
        return method.drift(windows, trusted, names, level=level, n_shuffles=n_shuffles, block=block, overlap=shared)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder (safetensors and JSON, never pickle), without its source rows."""
        method = self.fitted_method()
        values = self.classes_.tolist()
        if not all(isinstance(value, str | int | float | bool) for value in values):
            raise invalid(
                "y", expected="text or numbers as labels, to be saved", got=type(values[0]), advice="Convert them."
            )
        params = {**self.fitted_params_, **{name: to_python(getattr(self, name)) for name in EFFECTIVE_AT_ONCE}}
        about = {
            "params": {name: value for name, value in params.items() if name not in OF_THE_MACHINE},
            "classes": {"dtype": self.classes_.dtype.str, "values": values},
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "channels": self.n_channels_,
        }
        write_model(folder, about, method)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a tampered, truncated or foreign one is refused.

        The file may be untrusted: nothing in it is executed, and parameters of the machine (`device`,
        `devices`, `n_threads`, `checkpoint_dir`, `verbose`) keep their defaults.
        """
        saved = read_model(folder)
        with refusing_what_does_not_fit(saved.path):
            return cls._restored(saved)

    @classmethod
    def _restored(cls, saved: SavedModel) -> Self:
        about = saved.about
        check_facts("model", {name: about.get(name) for name in SAVED}, SAVED)
        params = {name: value for name, value in about["params"].items() if name not in OF_THE_MACHINE}
        if unknown := sorted(params.keys() - cls().get_params().keys()):
            raise unreadable_file(saved.path, problem=f"unknown parameters ({unknown})", advice="Upgrade transpl.")
        model = cls(**params)
        check_choice("variant", model.variant, (about["variant"],))
        model.seed_ = seed_of(params["random_state"])
        model.fitted_params_ = model.plain_params(model.seed_)
        model.method_ = model.new_method(model.seed_)
        model.method_.restore(about, saved.arrays)
        model.n_channels_, model.n_features_in_ = model.method_.n_channels, about["n_features_in"]
        model.classes_ = saved_classes(**about["classes"], n=model.method_.n_classes)
        names = about["feature_names_in"]
        if about["channels"] != model.n_channels_ or len(names) not in (0, model.n_features_in_):
            raise invalid(
                "channels, feature_names_in", expected="one per channel", got="others", advice="Save it again."
            )
        if names:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    def fitted_method(self) -> ExplainableMethod:
        """The fitted method, run on the device and with the number of threads that the parameters name now."""
        check_is_fitted(self, "method_")
        self.method_.set_execution(self.plain_params(self.seed_))
        return self.method_

    def _method_to_adapt(self) -> ExplainableMethod:
        """A copy of the fitted method under the parameters as they are now."""
        method = self.fitted_method()
        if self.variant != method.variant:
            expected, advice = f"{method.variant!r}, as in fit", "Call fit again, or set it back."
            raise invalid("variant", expected=expected, got=repr(self.variant), advice=advice)
        return method.with_params(self.plain_params(self.seed_))

    def source_rows(
        self, X: Any, y: ArrayLike | None, X_val: Any = None, y_val: ArrayLike | None = None
    ) -> tuple[Labelled, Labelled | None]:
        """Check source rows, and split them into training and validation as `fit` does."""
        source = self._labelled(X, y, "source")
        if X_val is not None:
            return source, self._labelled(X_val, y_val, "val")
        return hold_out(source, self.seed_) if self.method_.needs_validation else (source, None)

    def class_shares(self, prior: ArrayLike | dict[Any, float] | None) -> NDArray[np.float64] | None:
        """Label proportions in the order of `classes_`, (K,), as `adapt` takes them."""
        return prior_shares(prior, self.classes_)

    def check_parameters(self) -> Self:
        """Raise now, rather than in `fit`, if a parameter makes no sense. Nothing is drawn from `random_state`."""
        drawn = self.random_state is None or isinstance(self.random_state, np.random.RandomState)
        self.new_method(0 if drawn else seed_of(self.random_state)).check_machine()
        return self

    @property
    def default_mode(self) -> str:
        """How `adapt` adapts unless `mode` says otherwise."""
        return default_mode(self.variant)

    @property
    def needs_validation(self) -> bool:
        """Whether `fit` needs held-out source windows."""
        return method_class(self.variant).needs_validation

    def new_method(self, seed: int) -> ExplainableMethod:
        """The variant's method, not fitted; parameters that make no sense are refused."""
        return method_class(self.variant).from_params(self.plain_params(seed))

    def plain_params(self, seed: int) -> dict[str, Any]:
        """All parameters as plain values, with `seed` as `random_state`."""
        return {name: to_python(value) for name, value in self.get_params(deep=False).items()} | {"random_state": seed}

    # fitted attributes

    @property
    def estimated_accuracy_(self) -> AccuracyEstimate:
        estimate = self._adapted_plus("estimated_accuracy_").estimate
        assert estimate is not None
        return estimate

    @property
    def shifts_(self) -> tuple[str, ...]:
        return self._adapted_plus("shifts_").undone(self._channel_names(None))

    @property
    def witnesses_(self) -> list[SeatAccuracy]:
        return self._adapted_plus("witnesses_").standings()

    @property
    def codebook_(self) -> NDArray[np.float64]:
        return self.method_.codebook

    @property
    def class_counts_(self) -> TransitionCounts:
        return self.method_.class_counts

    @property
    def source_counts_(self) -> TransitionCounts:
        return self.method_.source_counts

    @property
    def target_counts_(self) -> TransitionCounts:
        counts = self.method_.target_counts
        if counts is None:
            raise AttributeError("target_counts_ exists after adapt or partial_adapt.")
        return counts

    @property
    def channel_distances_(self) -> NDArray[np.float64]:
        return self.method_.channel_distances(self.target_counts_)

    @property
    def channel_weights_(self) -> NDArray[np.float64]:
        return self.method_.weights_from(self.channel_distances_)

    @property
    def codebook_usage_(self) -> dict[str, CodebookUsage]:
        return self.method_.codebook_usage

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        return self.method_.history

    @property
    def seconds_(self) -> dict[str, float]:
        return self.method_.seconds

    @property
    def mode_(self) -> str:
        return self.method_.mode

    def _adapted_plus(self, attribute: str) -> ExplainableMethod:
        if self.method_.variant != "plus" or self.method_.target_counts is None:
            raise AttributeError(f"{attribute} exists after adapt or partial_adapt, with variant='plus'.")
        return self.fitted_method()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _channel_names(self, names: Sequence[str] | None) -> tuple[str, ...]:
        return name_channels(self.channel_names if names is None else names, self.n_channels_)

    def _windows(self, X: Any, name: str, **demands: Any) -> Windows:
        if X is None:
            raise invalid(name, expected="windows (n, channels, time)", got="None", advice="Pass an array.")
        return as_windows(X, name=name, **demands)

    def _seen_windows(self, X: Any, name: str) -> Windows:
        """Check windows against what was seen in `fit`."""
        windows = self._windows(X, name)
        fitted_on_table = self.n_channels_ == 1 and self.n_features_in_ > 1
        if fitted_on_table and is_table(X):
            # A table has scikit-learn's rules: the same columns, under the same names, as in fit.
            validate_data(self, X, skip_check_array=True, reset=False)
        return self._windows(windows, name, n_channels=self.n_channels_, min_length=self.method_.shortest_window)

    def _labelled(self, X: Any, y: ArrayLike | None, role: str) -> Labelled:
        windows = self._seen_windows(X, f"X_{role}")
        indices = class_indices(y, len(windows), self.classes_, f"y_{role}")
        return Labelled(windows, indices, len(self.classes_))


def method_class(variant: str) -> type[ExplainableMethod]:
    """The method behind a variant, imported only when it is asked for: "paper" needs torch."""
    check_choice("variant", variant, VARIANTS)
    if variant == "plus":
        from transpl.methods.council_method import CouncilMethod

        return CouncilMethod
    require_deep("variant='paper'")
    from transpl.methods.transpl.transpl_method import TransPLMethod

    return TransPLMethod
