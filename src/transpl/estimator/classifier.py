"""TransPL as a scikit-learn classifier: the front door for people who write Python."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from transpl._utils.errors import check_choice, invalid, unreadable_file
from transpl.council import CouncilExplanation
from transpl.estimator.attributes import FittedAttributes
from transpl.estimator.parameters import Parameters
from transpl.estimator.persistence import load_model, save_model
from transpl.estimator.validation import (
    check_labels,
    class_indices,
    few_label_indices,
    group_numbers,
    held_out_rows,
    hold_out,
    is_table,
    plain,
    prior_shares,
    say_what_is_dropped,
    seed_of,
    target_rows,
)
from transpl.estimator.variants import check_mode
from transpl.markov import Drift, Explanation, ShiftReport
from transpl.methods.contract import ExplainableMethod
from transpl.windows import Labelled, PseudoLabels, TargetInfo, Windows, as_windows, name_channels

# Parameters that change no number of a fitted model: how it runs, and the names of channels in tables and sentences.
EFFECTIVE_AT_ONCE = ("device", "devices", "n_threads", "checkpoint_dir", "verbose", "channel_names")


class TransPL(ClassifierMixin, FittedAttributes, Parameters):
    r"""Classify windows of a new domain without its labels.

    `fit` learns from labelled source windows, `adapt` looks at unlabelled target windows.

    `variant="plus"`: several cheap witnesses (codes, random convolutions, linear, trees) learn from the source, each in
    several views of the signals. `adapt` undoes what the target's sensors suffered where that is clear (a turned
    device, another unit, a dead channel), then judges the witnesses by how they agree on the target, and joins them.
    Needs no torch.

    `variant="paper"` (Kim and Lee, ICML 2025): `fit` learns discrete codes and a classifier and counts, per class and
    channel, which code follows which. `adapt` counts the same on the target, weighs each channel by how little it
    moved, labels the target by Bayes' rule and fine-tunes on the labels.

    Windows X are (n, channels, time), (n, time) for one channel, or a list of (channels, T_i).

    A fitted model keeps the parameters that it was fitted and adapted with. What `set_params` changes takes effect at
    the next `fit`; parameters that the source model does not depend on (such as `sigma` or `undo`) already at the
    next `adapt`, `partial_adapt` or `unadapted`, which refuse changes of the others. Only `device`, `devices`,
    `n_threads`, `checkpoint_dir`, `verbose` and the names in `channel_names` take effect at once.

    Parameters
    ----------
    variant
        "plus", or "paper", which needs `pip install "transpl[deep]"`
    random_state
        seed of everything; the same seed on the same machine gives the same numbers
    n_threads
        CPU threads; None leaves the libraries' setting alone. Give each of several workers 1. Another number of
        threads rounds differently
    channel_names
        one per channel; by their names the axes of one sensor are found (ax, ay, az), and sentences tell of them
    patch_length
        time steps per code
    n_coarse
        codes in the codebook that tells what shifted; of "paper", in the coarse one, by which it labels
    sigma
        bandwidth of the channel weight exp(-distance^2 / sigma^2)
    channel_alignment
        weigh channels by their shift; False lets all count alike
    smoothing, epsilon
        what a transition that was never seen counts: "floor" (`epsilon` = 1e-4, the authors'
        code), "additive" (`epsilon` = 1e-6, the paper's print) or "pseudocount" (`epsilon` = 0.1);
        None is the variant's
    witnesses, views
        of "plus": names of witnesses ("codes", "kernels", "linear", "trees") and of views ("recorded", "standardised",
        "shape"); each witness speaks once in each view. None is all of these
    undo
        of "plus": which shifts may be undone, "auto" (all kinds), "none", or kinds among "dead", "unit", "turn",
        "mirror", "flip", "swap" and "pace"
    triads
        of "plus": channels x, y, z of one sensor, by number or name, as `[("ax", "ay", "az")]`; None finds them by
        `channel_names`
    width
        of "paper", as all that follow: size of a latent vector
    n_fine
        codes in the fine codebook; 0 is a single codebook
    prior_temperature
        divides the log prior; larger trusts a given prior less
    top_ratio
        share of the target rows of a batch, the most confident ones, that fine-tuning trusts
    source_lr, adapt_lr
        learning rates of the two phases
    batch_size, max_epochs
        of both phases
    device
        "auto" (CUDA if there is any), "cpu", "cuda" or "cuda:1"
    length
        the log likelihood is divided by the number of "transitions" (authors' code) or "codes" (print)
    confidence
        "max" probability (print) or "kl" from uniform (authors' code)
    n_layers, n_heads, dropout, commitment
        the network
    residual
        what the fine book sees, "normalised" (the paper's print) or "raw" (the authors' code)
    cls_trainable
        learn the vector in front of every channel's patches; without, it stays as drawn (the authors' code)
    weight_decay, check_every, source_patience, adapt_patience, warmup_steps
        the training loop; validation is
        looked at every `check_every` epochs and training stops after `patience` looks without gain
    adapt_stopping
        adaptation is validated on held-out "source" rows (the paper), or also on trusted pseudo-"labels": it then goes
        on while the network still learns them
    devices
        train data-parallel on so many devices
    checkpoint_dir
        a folder from which an interrupted `fit` or `adapt` goes on
    verbose
        show a progress bar

    Attributes
    ----------
    classes_
        (K,) class labels
    estimated_accuracy_
        (accuracy, low, high): which share of the target's windows is labelled rightly, judged without labels, and an
        interval; of "plus", after `adapt`
    shifts_
        what the target's sensors suffered and was undone, a sentence each; of "plus", after `adapt`
    witnesses_
        the witnesses with their view and estimated accuracy on the target, the most reliable first; of "plus", after
        `adapt`
    codebook_
        code vectors: (n_coarse, width) of the coarse book, or (n_coarse, patch_length) centres of "plus"
    class_counts_, source_counts_, target_counts_
        `TransitionCounts` by class and channel, and by channel; those by class include what `few_labels` added to
        "paper"
    channel_distances_, channel_weights_
        (channels,) how far each channel moved, how far it is trusted
    codebook_usage_
        per codebook, how often each code occurs in the source, its perplexity and dead codes
    history_
        per phase, one plain record per epoch; empty for "plus"
    mode_
        which classifier answers: "source", "markov" or "finetune"
    fitted_params_
        the parameters that the model was fitted and adapted with
    """

    def fit(
        self, X: Any, y: ArrayLike, X_val: Any = None, y_val: ArrayLike | None = None, *, sample_domain: Any = None
    ) -> Self:
        """Learn the source (and, with `sample_domain`, adapt to the target in the same call).

        X_val, y_val : source rows that decide when "paper" stops; without them a stratified 30 % of the source is held
            out. "plus" learns from X alone and needs none
        sample_domain : (n,) integers, >= 0 for source rows, < 0 for target rows, whose y is ignored
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
        rows, validation = np.flatnonzero(~is_target), None
        if X_val is not None:
            held_out = self._windows(X_val, "X_val", n_channels=windows.n_channels, min_length=method.shortest_window)
            validation = Labelled(held_out, class_indices(y_val, len(held_out), classes, "y_val"), len(classes))
        elif method.needs_validation:
            rows = rows[~held_out_rows(source.y, seed)]
            source, validation = hold_out(source, seed)
        if method.only_patches:
            say_what_is_dropped(windows, self.patch_length, "X")
        method.fit_source(source, validation)
        method.number_source_rows(rows)
        if is_target.any():
            method.adapt(windows[is_target])
        # Only a finished fit takes the place of the last one.
        validate_data(self, X, skip_check_array=True, reset=True)
        self.n_channels_, self.seed_, self.classes_, self.method_ = windows.n_channels, seed, classes, method
        self.fitted_params_ = self.plain_params(seed)
        return self

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
        """Adapt to unlabelled target windows, from the source model again at every call.

        prior : label proportions of the target if they are known, in the order of `classes_` or as {label: share}
        mode : "finetune" (of "paper") trains on the pseudo-labels, "markov" (of both) does without a gradient step
        few_labels : labels that a person gave to some target windows, {row: label} or one per window, None for no label
        groups : (n,) names of recordings or patients whose windows all have one label; "plus" labels them together
        smooth : of "plus", the windows follow one another in time, so that neighbours seldom differ; groups are then
            recordings that begin anew, and need not have one label
        X_source, y_source : the source rows, which a loaded model does not hold: "paper" trains with them beside the
            target, "plus" needs them to find shifts

        A given label takes the place of what would be found. Unknown ones may also be NaN, pandas' NA or "".
        """
        method = self._method_to_adapt()
        windows = self._seen_windows(X_target, "X_target")
        check_mode(self.variant, mode)
        numbers = group_numbers(groups, len(windows))
        check_choice("smooth", smooth, (True, False))
        if method.only_patches:
            say_what_is_dropped(windows, self.patch_length, "X_target")
        if X_source is not None:
            method.remember_source(*self.source_rows(X_source, y_source))
        elif y_source is not None:
            raise invalid("X_source", expected="the windows of y_source", got=None, advice="Pass both, or neither.")
        known = few_label_indices(few_labels, len(windows), self.classes_)
        method.adapt_mode = self.own_mode if mode is None else mode
        method.adapt(windows, TargetInfo(self.class_shares(prior), known, numbers, smooth))
        # Only a finished adaptation replaces the last one.
        self.method_, self.fitted_params_ = method, self.plain_params(self.seed_)
        return self

    def partial_adapt(self, X_batch: Any) -> Self:
        """Add more target windows; no gradient step, any order, any batches.

        "plus" counts the transitions of all windows, keeps a sample of at most 4,096 that does not depend on their
        order, and judges its witnesses on this sample when it is next asked.

        "paper" adds to the counts. Right after `fit` this makes the Markov posterior the classifier, as
        `adapt(mode="markov")` does. After fine-tuning the network goes on answering; only the counts, channel weights
        and pseudo-labels change.
        """
        method = self._method_to_adapt()
        method.add_target(self._seen_windows(X_batch, "X_batch"))
        self.method_, self.fitted_params_ = method, self.plain_params(self.seed_)
        return self

    def unadapted(self) -> Self:
        """Return a copy of the model as `fit` left it; it takes the parameters of adaptation as they are now."""
        alone = copy.copy(self)
        alone.method_, alone.fitted_params_ = self._method_to_adapt().unadapted(), self.plain_params(self.seed_)
        return alone

    def predict_proba(self, X: Any, *, groups: ArrayLike | None = None, smooth: bool = False) -> NDArray[np.float64]:
        """Class probabilities (n, K), columns in the order of `classes_`; groups, smooth : as in `adapt`."""
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        check_choice("smooth", smooth, (True, False))
        return method.predict_proba(windows, group_numbers(groups, len(windows)), smooth)

    def predict(self, X: Any, *, groups: ArrayLike | None = None, smooth: bool = False) -> NDArray:
        """The most probable class of each window, (n,); groups, smooth : as in `adapt`."""
        probabilities = self.predict_proba(X, groups=groups, smooth=smooth)
        return self.classes_[probabilities.argmax(axis=1)]

    def pseudo_label(self, X: Any, prior: ArrayLike | dict[Any, float] | None = None) -> PseudoLabels:
        """Label windows as a target is labelled: by the witnesses of "plus", by the code transitions of "paper".

        What is known of the target comes from `adapt` or `partial_adapt`; before either, X is the target sample.
        Without a prior, the one given to `adapt` holds, or else the variant's own: what "plus" estimates, a uniform one
        for "paper".
        """
        found = self.fitted_method().pseudo_label(self._seen_windows(X, "X"), self.class_shares(prior))
        return found._replace(labels=self.classes_[found.labels])

    def explain(
        self,
        X: Any,
        prior: ArrayLike | dict[Any, float] | None = None,
        *,
        channel_names: Sequence[str] | None = None,
        nearest: int = 3,
    ) -> Explanation | CouncilExplanation:
        """Take the labels of `pseudo_label(X, prior)` apart, into parts that add up to them.

        The parts are witnesses in "plus", channels and code transitions in "paper".

        channel_names : one per channel, for tables and sentences; None takes the parameter of this name
        nearest : how many source windows of similar codes to find for each window; 0 for none
        """
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        names = self._channel_names(channel_names)
        return method.explain(windows, self.classes_, names, self.class_shares(prior), nearest)

    def shift_report(self, X: Any = None, *, channel_names: Sequence[str] | None = None) -> ShiftReport:
        """What shifted between the source and the target of `adapt` or `partial_adapt`.

        X : windows of the target from which to estimate its class proportions. Without them they are those of the
            windows that `adapt` labelled, and unknown where it did not: "paper" does not in mode "markov" and in
            `partial_adapt`
        """
        method = self.fitted_method()
        if method.target_counts is None:
            raise AttributeError("shift_report: there is no target yet. Call adapt or partial_adapt first.")
        report = method.shift_report(self.classes_, self._channel_names(channel_names))
        if X is None:
            return report
        return replace(report, target_shares=self.pseudo_label(X).probabilities.mean(axis=0))

    def drift(
        self,
        X: Any,
        reference: Any = None,
        *,
        channel_names: Sequence[str] | None = None,
        level: float = 0.99,
        n_shuffles: int = 200,
        block: int = 1,
    ) -> Drift:
        """Say which channels of new windows have moved further from the source's than chance moves them.

        reference : windows to compare with instead of the source's, say those that the model was adapted to
        level : if nothing has changed, no channel at all is reported in this share of the cases
        n_shuffles, block : how the band is found, see `transpl.markov.drift.chance_band`
        """
        method, windows = self.fitted_method(), self._seen_windows(X, "X")
        trusted = None if reference is None else self._seen_windows(reference, "reference")
        names = self._channel_names(channel_names)
        return method.drift(windows, trusted, names, level=level, n_shuffles=n_shuffles, block=block)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder (safetensors and JSON, never pickle). Source rows are not stored."""
        method = self.fitted_method()
        values = self.classes_.tolist()
        if not all(isinstance(value, str | int | float | bool) for value in values):
            raise invalid(
                "y", expected="text or numbers as labels, to be saved", got=type(values[0]), advice="Convert them."
            )
        now = {name: plain(getattr(self, name)) for name in EFFECTIVE_AT_ONCE}
        about = {
            "params": {**self.fitted_params_, **now, "checkpoint_dir": None},
            "classes": {"dtype": self.classes_.dtype.str, "values": values},
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "channels": self.n_channels_,
        }
        save_model(folder, about, method)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a tampered, truncated or foreign one is refused."""
        saved = load_model(folder)
        about = saved.about
        try:
            model = cls(**about["params"])
        except TypeError as error:
            raise unreadable_file(folder, problem=f"unknown parameters ({error})", advice="Upgrade transpl.") from None
        model.classes_ = np.array(about["classes"]["values"], dtype=np.dtype(about["classes"]["dtype"]))
        model.n_features_in_, model.n_channels_ = about["n_features_in"], about["channels"]
        if about["feature_names_in"]:
            model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
        model.fitted_params_, model.seed_ = about["params"], about["params"]["random_state"]
        model.method_ = model.new_method(model.seed_)
        saved.restore(model.method_)
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
