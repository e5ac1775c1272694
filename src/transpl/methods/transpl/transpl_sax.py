"""TransPL's labels with SAX symbols (Lin et al. 2007) in place of learnt codes: no network. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from transpl import markov
from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.markov import TransitionCounts, check_epsilon
from transpl.methods.contract import Floats, Method
from transpl.methods.method_settings import MethodSettings, setting
from transpl.methods.registry import register
from transpl.methods.transpl.paper_settings import TransPLSettings
from transpl.windows import CHUNK, Labelled, PseudoLabels, TargetInfo, Windows

if TYPE_CHECKING:
    from transpl.methods.source_model import SourceModel
    from transpl.nn import Execution

STANDARDISED = ("domain", "window")
_LARGEST_COST = 2.0  # of the cosine distance, so that sigma means the same
_ROUNDING = 1e-6  # a deviation below this share of the largest value is rounding error


def _as_in_transpl(name: str) -> Any:
    """The field of `TransPLSettings` with this name."""
    field = TransPLSettings.__dataclass_fields__[name]
    return setting(field.default, field.metadata["help"])


@dataclass(frozen=True)
class TransPLSAXSettings(MethodSettings):
    """Settings of `TransPLSAX`."""

    patch_length: int = setting(8, "time steps per symbol")
    n_coarse: int = setting(8, "symbols in the alphabet")
    standardise: str = setting(
        "domain",
        'what gets mean 0 and deviation 1 in each channel: all windows of a "domain" together, which keeps level and '
        'size of a window, as TransPL\'s codes do; or every "window", as SAX does',
    )
    sigma: float = _as_in_transpl("sigma")
    prior_temperature: float = _as_in_transpl("prior_temperature")
    channel_alignment: bool = _as_in_transpl("channel_alignment")
    smoothing: str = _as_in_transpl("smoothing")
    epsilon: float | None = _as_in_transpl("epsilon")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("patch_length", self.patch_length, least=1)
        check_int("n_coarse", self.n_coarse, least=2)
        check_choice("standardise", self.standardise, STANDARDISED)
        check_choice("channel_alignment", self.channel_alignment, (True, False))
        check_choice("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        for name in ("sigma", "prior_temperature"):
            check_positive(name, getattr(self, name))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)

    @property
    def shortest_window(self) -> int:
        """Two patches, which make one transition."""
        return 2 * self.patch_length


def breakpoints(n_symbols: int) -> Floats:
    r"""\beta_j = \Phi^{-1}(j / a), j = 1..a-1: a normal value falls between any two with the same probability.

    >>> breakpoints(4).round(2).tolist()
    [-0.67, 0.0, 0.67]
    """
    return ndtri(np.arange(1, n_symbols) / n_symbols)


def symbol_distances(n_symbols: int) -> Floats:
    r"""M_ij = 2 |c_i - c_j| / (c_{a-1} - c_0), c_i = \Phi^{-1}((i + 1/2) / a), (a, a).

    c_i is the median of a normal value with symbol i; unlike the middle of its interval it is finite at both ends. SAX
    takes neighbours as equal (distance 0), which would hide that one symbol became its neighbour.
    """
    c = ndtri((np.arange(n_symbols) + 0.5) / n_symbols)
    return _LARGEST_COST * np.abs(c[:, None] - c) / (c[-1] - c[0])


class Scale(NamedTuple):
    """Mean and standard deviation, broadcast against windows (n, D, T)."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, values: NDArray[np.floating], axis: int | tuple[int, ...]) -> Self:
        """The scale of values (n, D, T) over some axes, NaN left out; a constant keeps deviation 1."""
        x = values.astype(np.float64)
        deviation = np.nanstd(x, axis=axis, keepdims=True)
        constant = deviation <= _ROUNDING * np.nanmax(np.abs(x), axis=axis, keepdims=True)
        return cls(np.nanmean(x, axis=axis, keepdims=True), np.where(constant, 1.0, deviation))


def sax(
    values: NDArray[np.floating], n_symbols: int, patch_length: int, scale: Scale | None = None
) -> NDArray[np.int64]:
    r"""s_t = #{j : \beta_j <= \bar z_t}, \bar z_t the mean of the t-th patch of z = (x - mean) / deviation.

    Parameters
    ----------
    values : (n, D, T) array
        NaN behind the end of a shorter window.
    n_symbols, patch_length : int
    scale : Scale, optional
        By default that of every window and channel by itself.

    Returns
    -------
    (n, D, N) int array
        Symbols in 0..n_symbols-1, -1 where a shorter window has no patch. The tail that fills no patch is dropped.

    Examples
    --------
    >>> sax(np.array([[[-1.0, -1.0, 1.0, 1.0]]]), n_symbols=4, patch_length=2)
    array([[[0, 3]]])
    """
    mean, deviation = Scale.of(values, axis=2) if scale is None else scale
    n, D, T = values.shape
    N = T // patch_length
    z = (values[..., : N * patch_length] - mean) / deviation
    levels = z.reshape(n, D, N, patch_length).mean(axis=3)
    found = np.searchsorted(breakpoints(n_symbols), levels, side="right")
    return np.where(np.isnan(levels), -1, found)


class _Source(NamedTuple):
    """What is learnt of the source."""

    counts: TransitionCounts  # (K, D, a, a)
    scale: Scale | None  # None if windows are standardised one by one


class _Target(NamedTuple):
    """What is known of the target."""

    counts: TransitionCounts  # (D, a, a)
    scale: Scale | None
    prior: Floats | None


@register(
    "transpl-sax",
    family="own",
    needs="source, target",
    reference="our own, after Lin et al. 2007, Experiencing SAX, and Kim and Lee 2025",
)
class TransPLSAX(Method):
    """TransPL's labels as the classifier, with SAX symbols in place of learnt codes: no network, seconds to learn.

        s_t = #{j : Phi^-1(j / a) <= mean of the t-th patch of a standardised channel},  j = 1..a-1
        p(k | X) = sum_d w_d softmax_k(mean_t log p(s_{t+1} | s_t, k, d)) / sum_d w_d,  w_d = exp(-dist_d^2 / sigma^2)

    dist_d is the earth mover's distance of the transitions of channel d in source and target, as in TransPL. Moving a
    transition from symbol i to j costs the distance of their medians under a normal distribution, scaled to at most 2
    as the cosine distance of codes is.
    """

    Settings = TransPLSAXSettings
    settings: TransPLSAXSettings
    uses = frozenset({"prior"})
    starts_from_source = False

    def __init__(self, settings: TransPLSAXSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        self._source: _Source | None = None
        self._target: _Target | None = None

    def fit_source(self, source: Labelled, validation: Labelled | None = None) -> None:
        scale = self._domain_scale(source.windows)
        codes = self._codes(source.windows, scale)
        counts = TransitionCounts.from_codes(codes, self.settings.n_coarse, source.y, source.n_classes)
        self._source, self._target = _Source(counts, scale), None
        self.label_record, self.details, self.learnt_rows = {}, {}, None

    def start_from(self, model: SourceModel) -> None:
        self.fit_source(model.source)

    @property
    def n_classes(self) -> int:
        return len(self._learnt.counts.counts)

    @property
    def n_channels(self) -> int:
        return self._learnt.counts.n_channels

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        self._target = self._as_target(target, info.prior)

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        self.check_target(windows)
        self.check_info(TargetInfo(groups=groups, smooth=smooth), len(windows), complete=False)
        return self._probabilities(windows, self._target)

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Labels by the vote; before any adaptation the windows are themselves the target."""
        self.check_target(target)
        known = self._as_target(target, None) if self._target is None else self._target
        return PseudoLabels.from_probabilities(self._probabilities(target, known))

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        self.check_target(target)
        info = self.check_info(TargetInfo(prior=prior), len(target))
        return PseudoLabels.from_probabilities(self._probabilities(target, self._as_target(target, info.prior)))

    def channel_distances(self, target_counts: TransitionCounts) -> Floats:
        """How far each channel moved, (D,)."""
        settings = self.settings
        source, cost = self._learnt.counts.pooled(), symbol_distances(settings.n_coarse)
        return markov.channel_distances(source, target_counts, cost, settings.smoothing, settings.epsilon)

    @property
    def _learnt(self) -> _Source:
        if self._source is None:
            raise self._not_fitted()
        return self._source

    def _as_target(self, windows: Windows, prior: Floats | None) -> _Target:
        scale = self._domain_scale(windows)
        return _Target(TransitionCounts.from_codes(self._codes(windows, scale), self.settings.n_coarse), scale, prior)

    def _probabilities(self, windows: Windows, target: _Target | None) -> Floats:
        """The vote, (n, K); without a target all channels count alike."""
        settings, source = self.settings, self._learnt
        codes = self._codes(windows, source.scale if target is None else target.scale)
        likelihoods = markov.log_likelihoods(codes, source.counts, settings.smoothing, settings.epsilon)
        weights, prior = np.ones(self.n_channels), None
        if target is not None:
            prior = target.prior
            if settings.channel_alignment:
                unread = markov.unread_channels(source.counts.pooled(), target.counts)
                weights = markov.channel_weights(self.channel_distances(target.counts), settings.sigma, unread)
        return markov.label_probabilities(likelihoods, weights, prior, settings.prior_temperature)

    def _domain_scale(self, windows: Windows) -> Scale | None:
        return None if self.settings.standardise == "window" else Scale.of(windows.with_nan(), axis=(0, 2))

    def _codes(self, windows: Windows, scale: Scale | None) -> NDArray[np.int64]:
        settings = self.settings
        parts = (part.with_nan() for _, part in windows.chunks(CHUNK))
        return np.concatenate([sax(part, settings.n_coarse, settings.patch_length, scale) for part in parts])
