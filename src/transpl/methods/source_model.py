"""A network trained on the source, shared by all methods that start from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from torch import Tensor

from transpl._utils.clock import work_seconds
from transpl._utils.errors import invalid
from transpl.methods.method_settings import SourceSettings
from transpl.nn import (
    Backbone,
    BackboneSettings,
    Execution,
    History,
    SourceLoss,
    finalize,
    labelled_rows,
    new_network,
    train_network,
    with_weights,
)
from transpl.windows import Labelled


class TrainedSource(NamedTuple):
    """What the source phase returns."""

    network: Backbone
    history: History
    seconds: float


@dataclass
class SourceModel:
    """Source rows and a network that is trained on them once, on first use.

    Parameters
    ----------
    source, validation
        labelled source windows, and held-out ones that decide when training stops
    settings
        of the network and its training
    execution
        where it is trained
    loss
        what is minimised
    trainer
        the function that returns the trained network: `train_source`, or one that reads it from a store
    """

    source: Labelled
    validation: Labelled
    settings: SourceSettings
    execution: Execution
    loss: SourceLoss = field(default_factory=SourceLoss)
    trainer: Callable[[SourceModel], TrainedSource] = field(default_factory=lambda: train_source)

    def __post_init__(self) -> None:
        source, held_out = self.source, self.validation
        if (source.windows.n_channels, source.n_classes) != (held_out.windows.n_channels, held_out.n_classes):
            raise invalid(
                "validation",
                expected=f"{source.windows.n_channels} channels and {source.n_classes} classes, as in source",
                got=f"{held_out.windows.n_channels} and {held_out.n_classes}",
                advice="Take both from one domain.",
            )

    @property
    def n_classes(self) -> int:
        return self.source.n_classes

    @property
    def shape(self) -> BackboneSettings:
        """The shape of the network."""
        return self.settings.backbone_shape(self.n_classes, self.source.windows.n_channels)

    def train(self) -> None:
        """Train now rather than on first use."""
        _ = self._trained

    @property
    def network(self) -> Backbone:
        """The trained network, on the CPU in eval mode; never change it, copy it."""
        return self._trained.network

    @property
    def history(self) -> History:
        return self._trained.history

    @property
    def seconds(self) -> float:
        """How long training took."""
        return self._trained.seconds

    def with_loss(self, loss: SourceLoss) -> SourceModel:
        """The same source, trained with another loss."""
        if loss == self.loss:
            return self
        return replace(self, loss=loss)

    def untrained_network(self) -> Backbone:
        """The network as training starts it."""
        settings, rows = self.settings, labelled_rows(self.source)
        return new_network(self.shape, rows, settings.batch_size, self.execution, settings.random_state)

    def network_with(self, weights: dict[str, Tensor]) -> Backbone:
        """This model's network with weights from elsewhere; refused (RuntimeError) if they do not fit."""
        return finalize(with_weights(self.shape.build, weights))

    @cached_property
    def _trained(self) -> TrainedSource:
        return self.trainer(self)


def train_source(model: SourceModel) -> TrainedSource:
    """Train a source model's network."""
    start = work_seconds()
    network, history = train_network(
        model.shape,
        labelled_rows(model.source),
        labelled_rows(model.validation),
        model.settings.source_loop(),
        model.execution,
        seed=model.settings.random_state,
        loss=model.loss,
    )
    return TrainedSource(network, history, work_seconds() - start)
