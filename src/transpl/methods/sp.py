"""SP: clusters of the target, each with the class of one source prototype (Wang and Breckon 2020)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice
from transpl.methods.labelling import Prototypes, cluster_probabilities, prototype_probabilities, stronger_of
from transpl.methods.method_settings import setting
from transpl.methods.ncp import NCP, NCPSettings
from transpl.methods.registry import register

COMBINE = ("sp", "ncp+sp")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SPSettings(NCPSettings):
    """Settings of SP."""

    matched: bool = setting(
        True,
        "match clusters and classes one to one, as published; else a cluster keeps the class it started from",
    )
    combine: str = setting("sp", '"sp" alone, or "ncp+sp", the stronger of both opinions')

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("matched", self.matched, (True, False))
        check_choice("combine", self.combine, COMBINE)


@register(
    "sp",
    family="pseudo-labels",
    needs="source, target",
    reference="Wang and Breckon 2020, Unsupervised domain adaptation via structured prediction based selective "
    "pseudo-labeling",
)
class SP(NCP):
    """Label of the target's nearest cluster, clusters matched to the source's prototypes.

    There are as many clusters as classes in the source. A class that the target lacks, if its cluster still claims
    rows, makes these wrong; if it claims none, that is logged.
    """

    Settings = SPSettings
    settings: SPSettings

    def probabilities(self, z: NDArray[np.float64], prototypes: Prototypes) -> NDArray[np.float64]:
        p = cluster_probabilities(z, prototypes, self.settings.matched)
        if self.settings.combine == "ncp+sp":
            p = stronger_of(prototype_probabilities(z, prototypes), p)
        _log_missing(p, prototypes)
        return p


def _log_missing(p: NDArray[np.float64], prototypes: Prototypes) -> None:
    given = np.bincount(p.argmax(axis=1), minlength=p.shape[1]) > 0
    missing = np.flatnonzero(prototypes.present & ~given)
    if missing.size:
        _log.info("SP: no target row gets class %s; the target may lack it.", ", ".join(map(str, missing)))
