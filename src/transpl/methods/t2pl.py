"""T2PL: neighbours vote among rows near trusted centroids (RaTP; Liu et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from transpl._utils.errors import check_int
from transpl.methods.labelling import t2pl_labels
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import PseudoLabelMethod, PseudoLabelSettings
from transpl.methods.registry import register
from transpl.nn import Network, head_outputs
from transpl.windows import PseudoLabels, Windows


@dataclass(frozen=True)
class T2PLSettings(PseudoLabelSettings):
    """Settings of T2PL."""

    alpha: int = setting(20, r"n / (K \alpha) neighbours vote")
    beta: int = setting(2, r"n / (K \beta) rows per class are trusted, and as many vote")
    top_ratio: float = setting(0.5, "1 learns from all rows, as published; the default is that of the other methods")
    relabel: str = "each epoch"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("alpha", self.alpha, least=1)
        check_int("beta", self.beta, least=1)


@register(
    "t2pl",
    family="pseudo-labels",
    needs="source, target",
    reference="Liu et al. 2023, Deja vu: continual model generalization for unseen domains (RaTP)",
)
class T2PL(PseudoLabelMethod):
    """Vote of the nearest neighbours among rows near the centroids of the surest ones.

    Labels only: the augmentation and the contrastive training that they were published with are left out.
    """

    Settings = T2PLSettings
    settings: T2PLSettings

    def label(self, network: Network, target: Windows) -> PseudoLabels:
        seen = head_outputs(network, target)
        return t2pl_labels(seen.hidden, seen.probabilities, self.settings.alpha, self.settings.beta)
