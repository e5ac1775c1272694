"""How codes, and if wanted the classifier, become class probabilities of a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.errors import InputError
from transpl.markov.calibration import fit_sharpness
from transpl.markov.evidence import divisors, mean_over_transitions
from transpl.markov.joining import common_opinion, joined_channels, joined_vote, log_opinion
from transpl.markov.posterior import confidence
from transpl.methods.base import PseudoLabels
from transpl.methods.transpl_settings import TransPLSettings

Codes = NDArray[np.integer]  # (n, D, N)


class Coded(NamedTuple):
    """What the source network makes of W views of n windows: as recorded and, where that is wanted, aligned."""

    codes: Codes  # (n, V, N), V = W D channels
    opinions: NDArray[np.float64] | None = None  # (n, W, K), its class probabilities, where the vote heeds them

    @property
    def opinion(self) -> NDArray[np.float64] | None:
        """What it thinks of each window, (n, K)."""
        return None if self.opinions is None else common_opinion(self.opinions)

    def rows(self, rows: slice | NDArray[np.integer]) -> Coded:
        """Some of the windows."""
        return Coded(self.codes[rows], None if self.opinions is None else self.opinions[rows])

    def of_view(self, w: int, channels: slice) -> Coded:
        """The same windows in one view, which has these channels."""
        return Coded(self.codes[:, channels], None if self.opinions is None else self.opinions[:, w : w + 1])


Chunks = Iterable[tuple[slice, Coded]]  # rows, and what the vote needs of them


def all_of(parts: Iterable[Coded], axis: int = 0) -> Coded:
    """Windows of several parts, one behind the other; or, along axis 1, views of the same windows."""
    codes, opinions = zip(*parts, strict=True)
    return Coded(np.concatenate(codes, axis), None if opinions[0] is None else np.concatenate(opinions, axis))


class HeldOut(NamedTuple):
    """Labelled source windows that the network was not trained on; sharpness is set by them."""

    codes: Codes  # (n, D, N)
    opinions: NDArray[np.float64]  # (n, K)
    labels: NDArray[np.int64]  # (n,)


@dataclass(frozen=True, eq=False)
class Vote:
    """A labeller of windows; see `joined_channels` and `log_joined_with_classifier` for the equations.

    log_probabilities : (K, D, n_c, n_c) of transitions by class
    shares : (D,) of the channels, sum 1
    prior : (K,) or None
    sharpness : a, of the likelihoods
    classifier_sharpness : b; None leaves the classifier out
    temper : c, what confidences are lowered by in the end; see `tempered`
    """

    settings: TransPLSettings
    log_probabilities: NDArray[np.float64]
    shares: NDArray[np.float64]
    prior: NDArray[np.float64] | None = None
    sharpness: float = 1.0
    classifier_sharpness: float | None = None
    temper: float = 1.0

    def __call__(self, coded: Coded) -> PseudoLabels:
        y = self.probabilities(coded)
        return PseudoLabels(y.argmax(axis=1), confidence(y, self.settings.confidence), y)

    def of_channels(self, channels: slice) -> Vote:
        """The vote of some of the channels; if none of them has a share, they count alike."""
        shares = self.shares[channels]
        shares = shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares))
        return replace(self, log_probabilities=self.log_probabilities[:, channels], shares=shares)

    def probabilities(self, coded: Coded) -> NDArray[np.float64]:
        """y, (n, K)."""
        settings = self.settings
        return joined_vote(
            mean_over_transitions(coded.codes, self.log_probabilities, settings.length),
            self.shares,
            self.prior,
            settings.prior_temperature,
            settings.vote,
            self.sharpness,
            coded.opinion,
            self.classifier_sharpness,
            self.temper,
        )


def calibrated(
    settings: TransPLSettings, log_probabilities: NDArray[np.float64], held_out: HeldOut | None
) -> tuple[float, float | None]:
    """a and b of a vote: 1 unless they are to be set on held-out source windows, where all channels count alike."""
    heeded = settings.classifier_evidence
    if not settings.calibrate:
        return 1.0, 1.0 if heeded else None
    if held_out is None:
        raise InputError("calibrate: this model was saved without its held-out source windows. Fit and save it again.")
    a = _codes_sharpness(settings, log_probabilities, held_out)
    return a, _classifier_sharpness(held_out) if heeded else None


def _codes_sharpness(settings: TransPLSettings, log_p: NDArray[np.float64], held_out: HeldOut) -> float:
    """a, at most as if all transitions of all channels were independent: then log likelihoods would just add up."""
    likelihoods = mean_over_transitions(held_out.codes, log_p, settings.length)
    alike = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    independent = len(alike) * divisors(held_out.codes, "transitions").mean()
    return fit_sharpness(
        lambda a: joined_channels(likelihoods, alike, vote=settings.vote, sharpness=a), held_out.labels, independent
    )


def _classifier_sharpness(held_out: HeldOut) -> float:
    """b, at most 1: the network is not surer than it says."""
    return fit_sharpness(lambda b: np.exp(log_opinion(held_out.opinions, b)), held_out.labels, sharpest=1.0)
