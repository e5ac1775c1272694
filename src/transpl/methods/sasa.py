"""SASA: which patches attend to which is brought together, not the features themselves (Cai et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice
from transpl.methods.joint import AlignmentObjective, JointMethod, JointSettings
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.methods.sasa_network import ReadClassifier, Reader, Reading, SparseAssociations, UnitSummary
from transpl.nn import Network, Rows, Weighting, seeded_module

VARIANTS = ("full", "adatime")
FLOOR = 1e-6  # of a channel's structure gap, as published


@dataclass(frozen=True)
class SASASettings(JointSettings):
    """The published weights are fixed. A learnt one grows as its loss falls, to hundreds of times the cross entropy's
    at the floor of these losses.
    """

    weighting: str = "fixed"
    variant: str = setting(
        "full",
        '"full" aligns sparse associations; "adatime" is what AdaTime\'s code computes under this name: '
        "features of unit length, and the distance of their means",
    )
    intra_weight: float = setting(5.0, 'of the associations within and between channels ("full")')
    inter_weight: float = setting(5.0, 'of the associations within and between channels ("full")')
    mean_weight: float = setting(1.0, 'of the distance of the means ("adatime")')

    presets: ClassVar = {
        "adatime": {
            name: {"variant": "adatime", "adapt_lr": lr, "cross_entropy_weight": w_c, "mean_weight": w_d}
            for name, lr, w_c, w_d in (
                ("ucihar", 5e-3, 4.186, 7.394),
                ("hhar", 1e-3, 4.131, 5.760),
                ("wisdm", 5e-3, 9.899, 1.263),
            )
        }
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, VARIANTS)


class ReadingObjective(AlignmentObjective[Reading]):
    """L = w_c CE(x_s, y_s) + an alignment of what a reader finds in both domains."""

    model: ReadClassifier

    def __init__(self, network: Network, reader: Reader, weighting: Weighting, *, codes: bool) -> None:
        super().__init__(ReadClassifier(network, reader), weighting, codes=codes)

    @property
    def network(self) -> Network:
        return self.model.network

    def source_view(self, rows: Rows) -> tuple[Reading, dict[str, Tensor]]:
        code_losses = {}
        if self.codes:
            output = self.network(rows["x"])
            encoded = output.encoded
            code_losses = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
        else:
            encoded = self.network.encode(rows["x"])
        reading = self.model.reader(encoded)
        cross_entropy = F.cross_entropy(self.network.head(reading.z), rows["y"])
        return reading, {"cross_entropy": cross_entropy, **code_losses}

    def target_view(self, rows: Rows) -> Reading:
        return self.model.reader(self.network.encode(rows["x"]))


class StructureObjective(ReadingObjective):
    r"""L = CE(x_s, y_s) + c \sum_i ||E_s a_i - E_t a_i||^2 + c \sum_i ||E_s b_i - E_t b_i||^2 over channels i.

    a and b are the associations within and between channels, E_s and E_t the means over the rows of a batch.
    """

    terms = ("intra", "inter")

    def alignment(self, source: Reading, target: Reading) -> dict[str, Tensor]:
        return {name: structure_gap(source.structures[name], target.structures[name]) for name in self.terms}


class UnitMeanObjective(ReadingObjective):
    r"""L = w_c CE(x_s, y_s) + w_d ||E_s z - E_t z||, z of unit length."""

    terms = ("mean",)

    def alignment(self, source: Reading, target: Reading) -> dict[str, Tensor]:
        return {"mean": torch.linalg.vector_norm(source.z.mean(dim=0) - target.z.mean(dim=0))}


def structure_gap(p_s: Tensor, p_t: Tensor) -> Tensor:
    r"""\sum_i max(||E_s p_i - E_t p_i||^2, 10^{-6}); p_s (n_s, D, S), p_t (n_t, D, S) -> ()."""
    return (p_s.mean(dim=0) - p_t.mean(dim=0)).square().sum(dim=-1).clamp(min=FLOOR).sum()


@register(
    "sasa",
    family="alignment",
    needs="source, target",
    reference="Cai et al. 2021, Time series domain adaptation via sparse associative structure alignment",
)
class SASA(JointMethod):
    """Aligns sparse associations of patches, within and between channels."""

    Settings = SASASettings
    settings: SASASettings
    terms = (*StructureObjective.terms, *UnitMeanObjective.terms)  # of both variants
    equal_length = True  # the n-th patch of one domain is held against the n-th of the other

    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> ReadingObjective:
        codes = self.settings.codes
        if self.settings.variant == "adatime":
            return UnitMeanObjective(network, UnitSummary(), self.weighting(UnitMeanObjective.terms), codes=codes)
        reader = seeded_module(self.seed + 1, SparseAssociations, self.settings.width)
        return StructureObjective(network, reader, self.weighting(StructureObjective.terms), codes=codes)
