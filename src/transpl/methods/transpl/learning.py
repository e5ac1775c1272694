"""The fine-tuning of TransPL: what the network learns from labels of the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpl.methods.pseudo_labelling import as_tensors
from transpl.methods.transpl.settings import TransPLSettings
from transpl.nn import CERTAIN, Execution, History, Network, Rows, adapt_network, labelled_rows, window_rows
from transpl.windows import UNKNOWN, Labelled, PseudoLabels, Windows


def label_rows(target: Windows, labels: PseudoLabels, few_labels: NDArray[np.int64] | None) -> Rows:
    """Rows x, y and confidence; what a person said is certain."""
    y, confidence = as_tensors(labels)
    if few_labels is not None:
        confidence[few_labels != UNKNOWN] = CERTAIN
    return {**window_rows(target.in_memory()), "y": y, "confidence": confidence}


def learn_labels(
    network: Network,
    source: Labelled,
    validation: Labelled,
    target: Rows,
    settings: TransPLSettings,
    execution: Execution,
) -> tuple[Network, History]:
    """Source rows, and the most confident of the target's, train a copy of the whole network."""
    return adapt_network(
        network,
        labelled_rows(source),
        target,
        labelled_rows(validation),
        settings.adaptation(),
        settings.adapt_loop(),
        execution,
        seed=settings.random_state,
    )
