"""Torch modules of the model: patches -> encoder -> residual codes -> decoder, and a class head.

Nothing here trains, seeds or reads files. B windows, D channels, N patches of length m, width d, K classes.
"""

from transpl.network.classifier import Classifier
from transpl.network.network import Network, NetworkOutput, NetworkSettings
from transpl.network.quantizer import Codebook, Quantized, ResidualQuantizer

__all__ = [
    "Classifier",
    "Codebook",
    "Network",
    "NetworkOutput",
    "NetworkSettings",
    "Quantized",
    "ResidualQuantizer",
]
