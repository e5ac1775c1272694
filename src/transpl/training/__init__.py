"""How weights move: one loop, two phases (source, adaptation), exact resume, any device."""

from transpl.training.adaptation import adapt_network
from transpl.training.devices import Execution, resolve_device
from transpl.training.loop import LoopSettings, Trained, TrainingDiverged, train
from transpl.training.source import train_network

__all__ = [
    "Execution",
    "LoopSettings",
    "Trained",
    "TrainingDiverged",
    "adapt_network",
    "resolve_device",
    "train",
    "train_network",
]
