"""Explanations of TransPL: labels taken apart, what shifted, and drift, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import InputError
from transpl.markov import Drift, Explanation, ShiftReport, measure_drift, nearest_windows
from transpl.methods.contract import Floats
from transpl.methods.transpl.transpl_state import Codes, Vote
from transpl.windows import Windows

if TYPE_CHECKING:
    from transpl.methods.transpl.transpl_method import TransPLMethod


def explain(
    method: TransPLMethod,
    windows: Windows,
    classes: NDArray,
    channel_names: Sequence[str],
    prior: Floats | None = None,
    nearest: int = 3,
) -> Explanation:
    """Take `method.pseudo_label(windows, prior)` apart; the parts give its probabilities again.

    nearest : how many source windows to find for each
    """
    settings, state, codes = method.settings, method.state_for(prior), method.codes(windows)
    if state.target_counts is None:  # as in `pseudo_label`: the windows are themselves the target sample
        state = replace(state, target_counts=method.count_codes(codes))
    assert state.target_counts is not None
    known = state.source_codes
    distances = method.channel_distances(state.target_counts)
    weights = method.weights_from(distances, state.target_counts)
    vote = method.vote(state, weights)
    return Explanation(
        classes=classes,
        channel_names=tuple(channel_names),
        codes=codes,
        log_probabilities=vote.log_probabilities,
        distances=distances,
        weights=weights,
        shares=vote.shares,
        answers=_answers(method, windows, codes, vote),
        mode=state.mode,
        patch_length=settings.patch_length,
        windows=np.arange(len(windows)),
        prior=None if vote.prior is None else vote.prior.copy(),
        prior_temperature=settings.prior_temperature,
        length=settings.length,
        confidence_rule=settings.confidence,
        signals=windows.with_nan(),
        nearest=None if known is None else nearest_windows(codes, known, vote.shares, classes, nearest),
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
        channel_names=tuple(channel_names),
        classes=classes.tolist(),
        source_shares=source_shares(method),
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


def _answers(method: TransPLMethod, windows: Windows, codes: Codes, vote: Vote) -> Floats:
    """`predict_proba` of the windows; in mode "markov" the vote itself, with the prior given to `adapt`."""
    state = method.state
    if state.mode != "markov":
        return method.predict_proba(windows)
    return replace(vote, prior=state.prior).probabilities(codes)


def source_shares(method: TransPLMethod) -> Floats:
    """Class proportions of the source's windows; an old model without source codes takes those of its transitions."""
    state = method.state
    if state.source_codes is None:
        counted = state.class_counts.counts.sum(axis=(1, 2, 3))
    else:
        counted = np.bincount(state.source_codes.labels, minlength=method.n_classes)
    return counted / counted.sum()
