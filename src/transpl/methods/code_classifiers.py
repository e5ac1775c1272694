"""Code classifiers: a CNN, LSTM or GRU labels the target by its sequences of codes, where TransPL counts transitions.

The TransPL paper names them without their architectures; these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.methods.code_networks import ENCODINGS, CodeCNN, CodeGRU, CodeLSTM, CodeNetwork, CodeShape
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import PseudoLabelMethod, PseudoLabelSettings
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    Execution,
    History,
    LoopSettings,
    Network,
    Objective,
    Rows,
    coarse_codes,
    finalize,
    label_tensor,
    ordered_batches,
    seeded_module,
    train,
)
from transpl.windows import BATCH, Labelled, PseudoLabels, Windows

_REFERENCE = "Kim and Lee 2025, TransPL (as a comparison; architecture not published)"


@dataclass(frozen=True)
class CodeClassifierSettings(PseudoLabelSettings):
    """Settings of CodeClassifier."""

    encoding: str = setting("one-hot", 'of a code, "one-hot" or "embedding"')
    classifier_lr: float = setting(1e-3, "learning rate of the code classifier, which is trained on the source alone")
    classifier_epochs: int = setting(100, "at most so many for it, and at most `max_epochs`")
    classifier_patience: int = setting(5, "looks at its validation loss without gain after which it stops")
    relabel: str = setting("never", 'always "never": the code classifier knows only the codes of the source model')

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("encoding", self.encoding, ENCODINGS)
        check_choice("relabel", self.relabel, ("never",))
        check_positive("classifier_lr", self.classifier_lr)
        check_int("classifier_epochs", self.classifier_epochs, least=1)
        check_int("classifier_patience", self.classifier_patience, least=1)

    def classifier_loop(self) -> LoopSettings:
        epochs = min(self.classifier_epochs, self.max_epochs)
        return self.loop(self.classifier_lr, self.classifier_patience, max_epochs=epochs)


class CodeObjective(Objective):
    """CE of class logits by codes; rows x = codes (n, D, N), y."""

    terms = ("cross_entropy",)

    def __init__(self, network: CodeNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        loss = self.risk(batch)
        return {"loss": loss, "cross_entropy": loss}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.network(batch["x"]), batch["y"])

    def identity(self) -> str:
        return repr((type(self.network).__name__, self.network.shape))


class CodeClassifierMethod(PseudoLabelMethod):
    """Labels by a network that was trained on the source's codes. Subclasses name the `network`.

    It is trained once for a source model, whatever the number of targets.
    """

    Settings = CodeClassifierSettings
    settings: CodeClassifierSettings
    network: ClassVar[type[CodeNetwork]]

    def start_from(self, model: SourceModel) -> None:
        """Take a trained source network, and train the code classifier on the source's codes."""
        super().start_from(model)
        source, validation = (self._code_rows(part) for part in (model.source, model.validation))
        n_channels = model.source.windows.n_channels
        shape = CodeShape(n_channels, self.settings.n_coarse, model.n_classes, self.settings.encoding)
        network = seeded_module(self.seed + 1, self.network, shape)
        loop = self.settings.classifier_loop()
        trained = train_code_network(network, source, validation, loop, self.execution, seed=self.seed)
        self.code_network, self.adapt_history["codes"] = trained

    def label(self, network: Network, target: Windows) -> PseudoLabels:
        codes = coarse_codes(network, target)
        with self.on_device(self.code_network):
            return PseudoLabels.from_probabilities(code_probabilities(self.code_network, codes))

    def _code_rows(self, part: Labelled) -> Rows:
        with self.on_device(self.source.network):
            codes = coarse_codes(self.source.network, part.windows)
        return {"x": torch.from_numpy(codes), "y": label_tensor(part.y)}


class TrainedCodes(NamedTuple):
    """A code classifier, and one plain record per epoch."""

    network: CodeNetwork
    history: History


def train_code_network(
    network: CodeNetwork, rows: Rows, validation: Rows, loop: LoopSettings, execution: Execution, *, seed: int
) -> TrainedCodes:
    """Train on rows (x = codes, y); the network itself is trained and returned, on the CPU in eval mode."""
    objective = CodeObjective(network)
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="codes")
    objective.load_state_dict(trained.weights)
    return TrainedCodes(finalize(network), trained.history)


@torch.no_grad()
def code_probabilities(network: CodeNetwork, codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """softmax of the logits of codes (n, D, N), (n, K)."""
    device = next(network.parameters()).device
    rows = torch.from_numpy(codes)
    logits = [network(rows[index].to(device)).cpu().double() for index in ordered_batches(len(rows), BATCH)]
    return torch.cat(logits).softmax(dim=-1).numpy()


@register("code-cnn", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeCNNMethod(CodeClassifierMethod):
    """Labels by a 1D-CNN on the codes."""

    network = CodeCNN


@register("code-lstm", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeLSTMMethod(CodeClassifierMethod):
    """Labels by an LSTM on the codes."""

    network = CodeLSTM


@register("code-gru", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeGRUMethod(CodeClassifierMethod):
    """Labels by a GRU on the codes."""

    network = CodeGRU
