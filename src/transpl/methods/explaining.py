"""What a fitted method can say about its labels and its target, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl.drift import Drift, measure_drift
from transpl.errors import InputError
from transpl.explanation import Explanation, ShiftReport
from transpl.explanation.nearest import nearest_windows
from transpl.markov.evidence import class_log_probabilities, mean_over_transitions
from transpl.markov.posterior import check_prior, voting_weights, weighted_vote
from transpl.methods.transpl import TransPLMethod
from transpl.methods.vote import Codes
from transpl.windows import Windows


def explain(
    method: TransPLMethod,
    windows: Windows,
    classes: NDArray,
    channel_names: Sequence[str],
    prior: NDArray[np.float64] | None = None,
    nearest: int = 3,
) -> Explanation:
    """Take `method.pseudo_label(windows, prior)` apart; the parts give its probabilities again.

    nearest : how many source windows to find for each
    """
    state, settings = method.state, method.settings
    codes = method.codes(windows)
    distances = method.channel_distances(
        method.count_codes(codes) if state.target_counts is None else state.target_counts
    )
    weights = method.trust(distances)
    w = voting_weights(weights, len(weights))
    log_p = class_log_probabilities(state.voting_counts, settings.smoothing, settings.epsilon)
    given = state.prior if prior is None else check_prior(prior, method.n_classes)
    shares, source = w / w.sum(), state.source_codes
    return Explanation(
        classes=classes,
        channel_names=tuple(channel_names),
        codes=codes,
        log_probabilities=log_p,
        distances=distances,
        weights=weights,
        shares=shares,
        answers=_answers(method, windows, codes, log_p, shares),
        mode=state.mode,
        patch_length=settings.patch_length,
        windows=np.arange(len(windows)),
        prior=None if given is None else given.copy(),
        prior_temperature=settings.prior_temperature,
        length=settings.length,
        confidence_rule=settings.confidence,
        signals=_signals(windows),
        nearest=None if source is None else nearest_windows(codes, source, shares, classes, nearest),
    )


def shift_report(method: TransPLMethod, classes: NDArray, channel_names: Sequence[str]) -> ShiftReport:
    """Compare the source's transitions with those of the target that the method was adapted to."""
    state, settings = method.state, method.settings
    assert state.target_counts is not None
    return ShiftReport.from_counts(
        state.class_counts.pooled(),
        state.target_counts,
        markov.transport_cost(method.codebook),
        sigma=settings.sigma if settings.channel_alignment else None,
        channel_names=channel_names,
        classes=classes.tolist(),
        source_shares=_source_shares(method),
        target_shares=state.target_shares,
        smoothing=settings.smoothing,
        epsilon=settings.epsilon,
    )


def drift(
    method: TransPLMethod, windows: Windows, reference: Windows | None, channel_names: Sequence[str], **options: Any
) -> Drift:
    """Compare new windows with the source's, or with a reference; options as in `measure_drift`."""
    settings = method.settings
    return measure_drift(
        method.codes(windows),
        _source_codes(method) if reference is None else method.codes(reference),
        markov.transport_cost(method.codebook),
        tuple(channel_names),
        compared_with="source" if reference is None else "reference",
        smoothing=settings.smoothing,
        epsilon=settings.epsilon,
        seed=settings.random_state,
        **options,
    )


def _source_codes(method: TransPLMethod) -> Codes:
    if method.state.source_codes is None:
        raise InputError(
            "drift: this model was saved without the codes of its source. Fit and save it again, or pass a reference."
        )
    return method.state.source_codes.codes


def _answers(
    method: TransPLMethod,
    windows: Windows,
    codes: Codes,
    log_p: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What `predict_proba` says; where the vote answers, its codes are at hand."""
    state, settings = method.state, method.settings
    if state.mode != "markov":
        return method.predict_proba(windows)
    scores = mean_over_transitions(codes, log_p, settings.length)
    return weighted_vote(markov.channel_posteriors(scores, state.prior, settings.prior_temperature), shares)


def _signals(windows: Windows) -> NDArray[np.float32]:
    """The windows, NaN behind the end of shorter ones."""
    values = windows.in_memory().values
    if not windows.ragged:
        return values
    ended = np.arange(values.shape[2]) >= windows.lengths[:, None]
    return np.where(ended[:, None], np.float32(np.nan), values)


def _source_shares(method: TransPLMethod) -> NDArray[np.float64]:
    """Class proportions of the source's windows; a model of old does not know them, and takes its transitions."""
    state = method.state
    if state.source_codes is None:
        counted = state.class_counts.counts.sum(axis=(1, 2, 3))
    else:
        counted = np.bincount(state.source_codes.labels, minlength=method.n_classes)
    return counted / counted.sum()
