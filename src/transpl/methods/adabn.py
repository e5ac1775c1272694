"""AdaBN: the source network with the batch-norm statistics of the target (Li et al. 2018)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from transpl._utils.errors import invalid
from transpl.methods.method_settings import SourceSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.methods.registry import register
from transpl.nn import fresh_batch_norm, window_rows
from transpl.windows import TargetInfo, Windows

_AT_ONCE = 1024  # windows of one forward pass


@dataclass(frozen=True)
class AdaBNSettings(SourceSettings):
    """Settings of `AdaBN`."""

    backbone: str = setting("cnn", 'always "cnn": the patch-transformer has no batch normalisation')
    width: int = 128
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.backbone == "patch-transformer":
            raise invalid(
                "backbone",
                expected="'cnn'",
                got=repr(self.backbone),
                advice="The patch-transformer has no batch normalisation to adapt.",
            )
        super().__post_init__()


@register(
    "adabn",
    family="alignment",
    needs="source, target",
    reference="Li et al. 2018, Adaptive batch normalization for practical domain adaptation",
)
class AdaBN(NetworkMethod):
    r"""The source network with the batch-norm statistics of the target; no weight changes.

        y = gamma (x - mu_t) / sqrt(v_t + eps) + beta

    mu_t and v_t are mean and variance of every filter over the target's windows, in one pass. More than 1024 windows
    pass in interleaved parts, whose statistics are averaged. A single window has no statistics: the source's stay.
    """

    Settings = AdaBNSettings
    settings: AdaBNSettings

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        network = copy.deepcopy(self.source.network)
        n_parts = -(-len(target) // _AT_ONCE)
        if len(target) > 1:
            with self.on_device(network), fresh_batch_norm(network):
                device = next(network.parameters()).device
                for first in range(n_parts):
                    rows = window_rows(target[first::n_parts].in_memory())
                    network.classify(**{name: part.to(device) for name, part in rows.items()})
        self.classifier = network
