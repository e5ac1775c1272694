"""What TransPL has learnt, how it votes with it, and how it is stored as plain facts and named arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, invalid
from transpl._utils.layout import check_arrays, check_facts, check_numbers, prefixed, without_prefix
from transpl.markov import (
    CodebookUsage,
    SourceCodes,
    TransitionCounts,
    channel_posteriors,
    check_prior,
    confidence,
    mean_over_transitions,
    weighted_vote,
)
from transpl.methods.contract import Floats, History
from transpl.methods.explainable import MODES
from transpl.methods.transpl.paper_settings import TransPLSettings
from transpl.nn import Network, NetworkSettings, with_weights
from transpl.windows import PseudoLabels

Codes = NDArray[np.integer]  # (n, D, N)
Chunks = Iterable[tuple[slice, Codes]]  # rows, and their codes
_REMEMBERED = "remembered"
_NEEDED = {("counts.target", mode) for mode in MODES}
_FACTS = {
    "network": {str: (int, float, str, bool)},
    "mode": str,
    "prior": ([float], None),
    "target_shares?": ([float], None),  # missing in old models
    "codebook_usage": {str: [int]},
    "history": {"source": [{str: float}], "adapt?": [{str: float}]},
    "seconds": {"source": float, "count_source": float, "label?": float, "adapt?": float},
}


@dataclass(frozen=True, eq=False)
class Vote:
    """y_k = sum_d shares_d p(k | codes of channel d), the probability of class k; see `markov.label_probabilities`.

    Parameters
    ----------
    log_probabilities
        (K, D, n_c, n_c) of the transitions by class
    shares
        (D,) of the channels, sum 1
    prior
        (K,) or None
    """

    settings: TransPLSettings
    log_probabilities: Floats
    shares: Floats
    prior: Floats | None = None

    def __call__(self, codes: Codes) -> PseudoLabels:
        y = self.probabilities(codes)
        return PseudoLabels(y.argmax(axis=1), confidence(y, self.settings.confidence), y)

    def probabilities(self, codes: Codes) -> Floats:
        """y, (n, K)."""
        likelihoods = mean_over_transitions(codes, self.log_probabilities, self.settings.length)
        return weighted_vote(channel_posteriors(likelihoods, self.prior, self.settings.prior_temperature), self.shares)


@dataclass
class TransPLState:
    """Networks and counts. Counts belong to the codes of `source_network`, which adaptation never changes."""

    source_network: Network
    class_counts: TransitionCounts  # (K, D, n_c, n_c)
    codebook_usage: dict[str, CodebookUsage]
    source_codes: SourceCodes | None = None  # to find the nearest source windows; missing in old models
    target_counts: TransitionCounts | None = None  # (D, n_c, n_c)
    target_shares: Floats | None = None  # (K,), mean probabilities of the vote, if the target was labelled
    labelled_counts: TransitionCounts | None = None  # (K, D, n_c, n_c), of target windows that a person labelled
    prior: Floats | None = None  # (K,)
    adapted_network: Network | None = None
    mode: str = "source"  # which classifier answers: "source", "markov" or "finetune"
    history: dict[str, History] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def voting_counts(self) -> TransitionCounts:
        """Counts by class that the vote uses: the source's, and those of labelled target windows."""
        return self.class_counts if self.labelled_counts is None else self.class_counts + self.labelled_counts

    @property
    def answering_network(self) -> Network:
        return self.source_network if self.adapted_network is None else self.adapted_network

    def unadapted(self) -> TransPLState:
        """The source model alone, as it was before any adaptation."""
        return TransPLState(
            self.source_network,
            self.class_counts,
            self.codebook_usage,
            self.source_codes,
            history={"source": self.history["source"]},
            seconds={name: self.seconds[name] for name in ("source", "count_source")},
        )

    def facts(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "network": asdict(self.source_network.settings),
            "mode": self.mode,
            "prior": None if self.prior is None else self.prior.tolist(),
            "target_shares": None if self.target_shares is None else self.target_shares.tolist(),
            "codebook_usage": {book: usage.counts.tolist() for book, usage in self.codebook_usage.items()},
            "history": self.history,
            "seconds": self.seconds,
        }

    def deciding_arrays(self) -> dict[str, NDArray]:
        """The arrays that decide predictions: weights and counts."""
        arrays = prefixed("source", _weights(self.source_network))
        if self.adapted_network is not None:
            arrays |= prefixed("adapted", _weights(self.adapted_network))
        counts = {"class": self.class_counts, "target": self.target_counts, "labelled": self.labelled_counts}
        return arrays | prefixed("counts", {name: found.counts for name, found in counts.items() if found is not None})

    def explaining_arrays(self) -> dict[str, NDArray]:
        """The arrays that explain predictions without deciding them."""
        if self.source_codes is None:
            return {}
        return prefixed(_REMEMBERED, vars(self.source_codes))

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> TransPLState:
        """The state that `facts`, `deciding_arrays` and `explaining_arrays` describe."""
        settings, shares = NetworkSettings(**facts["network"]), facts.get("target_shares")
        _check_saved(settings, facts, arrays)
        counts = {name: TransitionCounts(array) for name, array in without_prefix("counts", arrays).items()}
        adapted = without_prefix("adapted", arrays)
        remembered = without_prefix(_REMEMBERED, arrays)
        return cls(
            source_network=_network(settings, without_prefix("source", arrays)),
            class_counts=counts["class"],
            codebook_usage={
                book: CodebookUsage(np.array(of_codes, np.int64)) for book, of_codes in facts["codebook_usage"].items()
            },
            source_codes=SourceCodes(**remembered) if remembered else None,
            target_counts=counts.get("target"),
            labelled_counts=counts.get("labelled"),
            target_shares=None if shares is None else np.array(shares, np.float64),
            prior=None if facts["prior"] is None else np.array(facts["prior"], np.float64),
            adapted_network=_network(settings, adapted) if facts["mode"] == "finetune" else None,
            mode=facts["mode"],
            history=facts["history"],
            seconds=facts["seconds"],
        )


def _weights(network: Network) -> dict[str, NDArray]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def _check_saved(settings: NetworkSettings, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    known = {name.removesuffix("?") for name in _FACTS}
    check_facts("model", {name: value for name, value in facts.items() if name in known}, _FACTS)
    books, mode, K = settings.book_sizes, facts["mode"], settings.n_classes
    check_choice("mode", mode, ("source", *MODES))
    layout = {"counts.class": "i K D codes codes", "source.*": ""}
    optional = {
        "counts.target": "i D codes codes",
        "counts.labelled": "i K D codes codes",
        f"{_REMEMBERED}.codes": "i windows D patches",
        f"{_REMEMBERED}.labels": "i windows",
        f"{_REMEMBERED}.rows": "i windows",
    }
    layout |= {name: text for name, text in optional.items() if name in arrays or (name, mode) in _NEEDED}
    if mode == "finetune":
        layout["adapted.*"] = ""
    check_arrays(arrays, layout, {"K": K, "codes": settings.n_coarse})
    if f"{_REMEMBERED}.codes" in arrays:
        check_numbers("codes", arrays[f"{_REMEMBERED}.codes"], -1, settings.n_coarse - 1)
        check_numbers("labels", arrays[f"{_REMEMBERED}.labels"], 0, K - 1)
    for name in ("prior", "target_shares"):
        if facts.get(name) is not None:
            check_prior(facts[name], K)
    if {book: len(counts) for book, counts in facts["codebook_usage"].items()} != books:
        raise invalid("codebook_usage", expected=f"books of {books}", got="others", advice="Save the model again.")
    for counts in facts["codebook_usage"].values():
        check_numbers("codebook_usage", np.array(counts, np.int64), 0, np.iinfo(np.int64).max)


def _network(settings: NetworkSettings, weights: Mapping[str, NDArray]) -> Network:
    if settings.n_layers > len(weights):
        raise invalid(
            "n_layers", expected="as many as there are weights", got=settings.n_layers, advice="Save it again."
        )
    return with_weights(lambda: Network(settings), {name: torch.from_numpy(array) for name, array in weights.items()})
