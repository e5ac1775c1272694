"""TransPL as a scikit-learn classifier: the front door for people who write Python."""

from __future__ import annotations

import os
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from transpl.errors import InputError, whole_number, wrong
from transpl.markov import TransitionCounts
from transpl.markov.posterior import check_prior
from transpl.methods import Labelled, PseudoLabels, TransPLMethod, TransPLSettings
from transpl.network import CodebookUsage
from transpl.persistence import load_model, save_model
from transpl.training import Execution
from transpl.windows import Windows, as_windows

HOLDOUT_SHARE = 0.3


class TransPL(ClassifierMixin, BaseEstimator):
    r"""Classify windows of a new domain without its labels (Kim and Lee, ICML 2025).

    `fit` learns discrete codes and a classifier from labelled source windows and counts, per class and
    channel, which code follows which. `adapt` counts the same on unlabelled target windows, weighs
    each channel by how little it moved, labels the target by Bayes' rule and fine-tunes on the labels.

    Windows X are (n, channels, time), (n, time) for one channel, or a list of (channels, T_i).

    Parameters
    ----------
    patch_length : time steps per code
    width : size of a latent vector
    n_coarse, n_fine : codes in the coarse and fine codebook; `n_fine=0` is a single codebook
    sigma : bandwidth of the channel weight exp(-distance^2 / sigma^2)
    prior_temperature : divides the log prior; larger trusts a given prior less
    top_ratio : share of the target rows of a batch, the most confident ones, that fine-tuning trusts
    source_lr, adapt_lr : learning rates of the two phases
    batch_size, max_epochs : of both phases
    random_state : seed of everything; the same seed on the same machine gives the same numbers
    device : "auto", "cpu", "cuda", "cuda:1" or "mps"
    channel_alignment : weigh channels by their shift; False lets all count alike
    smoothing, epsilon : what a transition that was never seen counts: "floor" (`epsilon` = 1e-4, the authors'
        code) or "additive" (`epsilon` = 1e-6, the paper's print)
    length : the log likelihood is divided by the number of "transitions" (authors' code) or "codes" (print)
    confidence : "max" probability (print) or "kl" from uniform (authors' code)
    n_layers, n_heads, dropout, commitment : the network
    residual : what the fine book sees, "normalised" (the paper's print) or "raw" (the authors' code)
    weight_decay, check_every, source_patience, adapt_patience, warmup_steps : the training loop; validation is
        looked at every `check_every` epochs and training stops after `patience` looks without gain
    devices : train data-parallel on so many devices
    n_threads : CPU threads; None leaves torch's setting alone. Give each of several workers 1
    checkpoint_dir : a folder from which an interrupted `fit` or `adapt` goes on
    verbose : show a progress bar

    Attributes
    ----------
    classes_ : (K,) class labels
    codebook_ : (n_coarse, width) coarse code vectors
    class_counts_, source_counts_, target_counts_ : `TransitionCounts` by class and channel, and by channel
    channel_distances_, channel_weights_ : (channels,) how far each channel moved, how far it is trusted
    codebook_usage_ : per codebook, how often each code occurs in the source, its perplexity and dead codes
    history_ : per phase, one plain record per epoch
    mode_ : which classifier answers: "source", "markov" or "finetune"
    """

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
        smoothing: str = "floor",
        epsilon: float | None = None,
        length: str = "transitions",
        confidence: str = "max",
        n_layers: int = 2,
        n_heads: int = 8,
        dropout: float = 0.3,
        commitment: float = 0.25,
        residual: str = "normalised",
        weight_decay: float = 0.01,
        check_every: int = 2,
        source_patience: int = 2,
        adapt_patience: int = 5,
        warmup_steps: int = 50,
        devices: int = 1,
        n_threads: int | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        verbose: bool = False,
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
        self.weight_decay = weight_decay
        self.check_every = check_every
        self.source_patience = source_patience
        self.adapt_patience = adapt_patience
        self.warmup_steps = warmup_steps
        self.devices = devices
        self.n_threads = n_threads
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, X_val: Any = None, y_val: ArrayLike | None = None, *, sample_domain: Any = None
    ) -> Self:
        """Learn the source (and, with `sample_domain`, adapt to the target in the same call).

        X_val, y_val : source rows that decide when to stop; without them a stratified 30 % of the source is held out
        sample_domain : (n,) integers, >= 0 for source rows, < 0 for target rows, whose y is ignored
        """
        self.seed_ = self._seed()
        settings, execution = self._settings(), self._execution()
        windows = self._windows(X, "X", reset=True)
        is_target = _target_rows(sample_domain, len(windows))
        labels = self._check_labels(y, len(windows), is_target)
        self.classes_, indices = np.unique(labels, return_inverse=True)
        source = Labelled(windows[~is_target], indices.astype(np.int64))
        if (X_val is None) != (y_val is None):
            raise wrong("X_val, y_val", expected="both or neither", got="one of them", advice="Pass the other one too.")
        if X_val is None:
            source, validation = _hold_out(source, self.seed_)
        else:
            validation = self._labelled(X_val, y_val, "X_val", "y_val")
        self.method_ = TransPLMethod(settings, execution)
        self._say_what_is_dropped(windows)
        self.method_.fit_source(source, validation, len(self.classes_))
        if is_target.any():
            self.method_.adapt(windows[is_target])
        return self

    def adapt(
        self,
        X_target: Any,
        prior: ArrayLike | dict[Any, float] | None = None,
        mode: str = "finetune",
        *,
        X_source: Any = None,
        y_source: ArrayLike | None = None,
    ) -> Self:
        """Adapt to unlabelled target windows, from the source model again at every call.

        prior : label proportions of the target if they are known, in the order of `classes_` or as {label: share}
        mode : "finetune" trains on the pseudo-labels; "markov" takes no gradient step, the posterior is the classifier
        X_source, y_source : source rows to train with beside the target, needed only by a loaded model
        """
        check_is_fitted(self)
        windows = self._windows(X_target, "X_target")
        if X_source is not None:
            self.method_.remember_source(*self._given_source(X_source, y_source))
        self.method_.execution = self._execution()
        self.method_.adapt(windows, self._prior(prior), mode)
        return self

    def partial_adapt(self, X_batch: Any) -> Self:
        """Add the transitions of more target windows to the counts; no gradient step, any order, any batches."""
        check_is_fitted(self)
        self.method_.add_target(self._windows(X_batch, "X_batch"))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities (n, K), columns in the order of `classes_`."""
        check_is_fitted(self)
        return self.method_.predict_proba(self._windows(X, "X"))

    def predict(self, X: Any) -> NDArray:
        """The most probable class of each window, (n,)."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def pseudo_label(self, X: Any, prior: ArrayLike | dict[Any, float] | None = None) -> PseudoLabels:
        """Label windows by their code transitions alone.

        Channels are weighed by the target counts of `adapt` or `partial_adapt`; before either, X is the target sample.
        """
        check_is_fitted(self)
        found = self.method_.pseudo_label(self._windows(X, "X"), self._prior(prior))
        return found._replace(labels=self.classes_[found.labels])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder (safetensors and JSON, never pickle). Source rows are not stored."""
        check_is_fitted(self)
        values = self.classes_.tolist()
        if not all(isinstance(value, str | int | float | bool) for value in values):
            raise wrong(
                "y", expected="text or numbers as labels, to be saved", got=type(values[0]), advice="Convert them."
            )
        params = {**self.get_params(deep=False), "random_state": self.seed_}
        params["checkpoint_dir"] = None if self.checkpoint_dir is None else str(self.checkpoint_dir)
        about = {
            "params": params,
            "classes": {"dtype": self.classes_.dtype.str, "values": values},
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "channels": self.n_channels_,
        }
        save_model(folder, about, self.method_.state)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a tampered, truncated or foreign one is refused."""
        about, state = load_model(folder)
        model = cls(**about["params"])
        model.classes_ = np.array(about["classes"]["values"], dtype=np.dtype(about["classes"]["dtype"]))
        model.n_features_in_, model.n_channels_ = about["n_features_in"], about["channels"]
        if about["feature_names_in"]:
            model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
        model.seed_ = about["params"]["random_state"]
        model.method_ = TransPLMethod(model._settings(), model._execution())
        model.method_.state = state
        return model

    @property
    def codebook_(self) -> NDArray[np.float64]:
        return self.method_.codebook

    @property
    def class_counts_(self) -> TransitionCounts:
        return self.method_.state.class_counts

    @property
    def source_counts_(self) -> TransitionCounts:
        return self.class_counts_.pooled()

    @property
    def target_counts_(self) -> TransitionCounts:
        counts = self.method_.state.target_counts
        if counts is None:
            raise AttributeError("target_counts_ exists after adapt or partial_adapt.")
        return counts

    @property
    def channel_distances_(self) -> NDArray[np.float64]:
        return self.method_.channel_distances(self.target_counts_)

    @property
    def channel_weights_(self) -> NDArray[np.float64]:
        return self.method_.channel_weights(self.target_counts_)

    @property
    def codebook_usage_(self) -> dict[str, CodebookUsage]:
        return self.method_.state.codebook_usage

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        return self.method_.state.history

    @property
    def seconds_(self) -> dict[str, float]:
        return self.method_.state.seconds

    @property
    def mode_(self) -> str:
        return self.method_.state.mode

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _settings(self) -> TransPLSettings:
        params = {field.name: getattr(self, field.name) for field in fields(TransPLSettings)}
        return TransPLSettings(**{**params, "random_state": self.seed_})

    def _execution(self) -> Execution:
        folder = None if self.checkpoint_dir is None else Path(self.checkpoint_dir)
        return Execution(self.device, self.devices, self.n_threads, folder, self.verbose)

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        whole_number("random_state", self.random_state, least=0)
        return int(self.random_state)

    def _windows(self, X: Any, name: str, *, reset: bool = False) -> Windows:
        """Check windows; what was seen in `fit` is what later calls must bring."""
        if X is None:
            raise wrong(name, expected="windows (n, channels, time)", got="None", advice="Pass an array.")
        windows = as_windows(X, name=name)
        if reset:
            self.n_channels_ = windows.n_channels
        if reset or _is_table(X):
            # A table has scikit-learn's rules: the same columns, under the same names, as in fit.
            validate_data(self, X, skip_check_array=True, reset=reset)
        return as_windows(windows, name=name, n_channels=self.n_channels_, min_length=2 * self.patch_length)

    def _check_labels(self, y: ArrayLike | None, n: int, is_target: NDArray[np.bool_]) -> NDArray:
        if y is None:
            raise InputError("y: requires y to be passed, but the target y is None. Pass one label per window.")
        labels = column_or_1d(y, warn=True)
        if len(labels) != n:
            raise wrong("y", expected=f"{n} labels, one per window", got=len(labels), advice="Pass matching X and y.")
        source = labels[~is_target]
        if (source != source).any() or (source.dtype == object and any(value is None for value in source)):
            raise wrong("y", expected="a label for every source row", got="NaN or None", advice="Drop unlabelled rows.")
        try:
            check_classification_targets(source)
        except ValueError as error:
            raise wrong(
                "y", expected="class labels", got=error, advice="Cut a continuous target into classes."
            ) from None
        found = np.unique(source)
        if len(found) < 2:
            raise wrong("y", expected="2 or more classes", got=f"1 class ({found[0]!r})", advice="Add another class.")
        return source

    def _labelled(self, X: Any, y: ArrayLike | None, X_name: str, y_name: str) -> Labelled:
        windows = self._windows(X, X_name)
        labels = np.asarray(y)
        if labels.shape != (len(windows),):
            raise wrong(
                y_name, expected=f"{len(windows)} labels", got=f"shape {labels.shape}", advice="One per window."
            )
        unknown = sorted(set(labels.tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise wrong(y_name, expected="classes of y", got=f"also {unknown[:5]}", advice="Drop those rows.")
        return Labelled(windows, np.searchsorted(self.classes_, labels).astype(np.int64))

    def _given_source(self, X: Any, y: ArrayLike | None) -> tuple[Labelled, Labelled]:
        if y is None:
            raise wrong("y_source", expected="labels for X_source", got="None", advice="Pass both.")
        return _hold_out(self._labelled(X, y, "X_source", "y_source"), self.seed_)

    def _prior(self, prior: ArrayLike | dict[Any, float] | None) -> NDArray[np.float64] | None:
        if prior is None:
            return None
        if not isinstance(prior, dict):
            return check_prior(prior, len(self.classes_))
        unknown = [label for label in prior if label not in self.classes_]
        if unknown:
            raise wrong(
                "prior", expected=f"labels among {self.classes_.tolist()}", got=unknown, advice="Check spelling."
            )
        return np.array([prior.get(label, 0.0) for label in self.classes_.tolist()], dtype=np.float64)

    def _say_what_is_dropped(self, windows: Windows) -> None:
        rest = windows.values.shape[2] % self.patch_length
        if rest and not windows.ragged:
            warnings.warn(
                f"X: the last {rest} of {windows.values.shape[2]} time steps fill no patch of "
                f"{self.patch_length} and are left out.",
                stacklevel=3,
            )


def _is_table(X: Any) -> bool:
    """True for (n, time) input: rows of numbers."""
    if isinstance(X, list | tuple):  # perhaps of unequal length: not an array as a whole
        return np.asarray(X[0]).ndim == 1
    return np.asarray(X).ndim == 2


def _target_rows(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """True for rows of the target (negative domain)."""
    if sample_domain is None:
        return np.zeros(n, dtype=bool)
    domains = np.asarray(sample_domain)
    if domains.shape != (n,) or domains.dtype.kind not in "iu":
        raise wrong(
            "sample_domain",
            expected=f"{n} whole numbers, >= 0 source and < 0 target",
            got=f"{domains.dtype} of shape {domains.shape}",
            advice="One per window.",
        )
    if (domains < 0).all():
        raise wrong("sample_domain", expected="some source rows (>= 0)", got="none", advice="Mark source rows with 1.")
    return domains < 0


def _hold_out(source: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """Split off a stratified share for validation; a class of one row stays in training."""
    random = np.random.RandomState(seed)
    held = np.zeros(len(source.y), dtype=bool)
    for k in np.unique(source.y):
        rows = random.permutation(np.flatnonzero(source.y == k))
        held[rows[: round(HOLDOUT_SHARE * len(rows))]] = True
    if not held.any():
        return source, source
    return Labelled(source.windows[~held], source.y[~held]), Labelled(source.windows[held], source.y[held])
