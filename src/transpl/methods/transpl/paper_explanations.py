"""Labels of TransPL taken apart, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transpl.markov import Explanation, nearest_windows
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


def _answers(method: TransPLMethod, windows: Windows, codes: Codes, vote: Vote) -> Floats:
    """`predict_proba` of the windows; in mode "markov" the vote itself, with the prior given to `adapt`."""
    state = method.state
    if state.mode != "markov":
        return method.predict_proba(windows)
    return replace(vote, prior=state.prior).probabilities(codes)
