"""Networks and their training, on torch: model, training loop, objectives, losses. Needs the extra `deep`.

Shapes: B windows, D channels, N patches of length m, width d, K classes.
"""

from transpl.nn.adaptation import CERTAIN, STOPPING, AdaptationSettings, Teacher, adapt_network, joined
from transpl.nn.batch_norm import BatchNorm
from transpl.nn.classifier import Classifier
from transpl.nn.devices import Execution, own_gradients, own_randomness, resolve_device, threads
from transpl.nn.inference import (
    channel_summaries,
    class_probabilities,
    coarse_codes,
    code_type,
    codes_by_book,
    decoded_codes,
    features,
    in_batches,
    reconstruction_error,
    seen_by_head,
)
from transpl.nn.loop import History, LoopSettings, Objective, Trained, TrainingDiverged, train
from transpl.nn.loss_weights import Weighting
from transpl.nn.model import Encoded, Network, NetworkOutput, NetworkSettings
from transpl.nn.quantizer import Codebook, Quantized, ResidualQuantizer
from transpl.nn.rows import (
    Paired,
    Rows,
    both_parts,
    count,
    label_tensor,
    labelled_rows,
    n_batches,
    ordered_batches,
    shuffled_batches,
    take,
    window_rows,
)
from transpl.nn.source import SourceLoss, class_and_code_losses, freeze, new_network, ready, train_network

__all__ = [
    "CERTAIN",
    "STOPPING",
    "AdaptationSettings",
    "BatchNorm",
    "Classifier",
    "Codebook",
    "Encoded",
    "Execution",
    "History",
    "LoopSettings",
    "Network",
    "NetworkOutput",
    "NetworkSettings",
    "Objective",
    "Paired",
    "Quantized",
    "ResidualQuantizer",
    "Rows",
    "SourceLoss",
    "Teacher",
    "Trained",
    "TrainingDiverged",
    "Weighting",
    "adapt_network",
    "both_parts",
    "channel_summaries",
    "class_and_code_losses",
    "class_probabilities",
    "coarse_codes",
    "code_type",
    "codes_by_book",
    "count",
    "decoded_codes",
    "features",
    "freeze",
    "in_batches",
    "joined",
    "label_tensor",
    "labelled_rows",
    "n_batches",
    "new_network",
    "ordered_batches",
    "own_gradients",
    "own_randomness",
    "ready",
    "reconstruction_error",
    "resolve_device",
    "seen_by_head",
    "shuffled_batches",
    "take",
    "threads",
    "train",
    "train_network",
    "window_rows",
]
