"""Code classifiers: a CNN, LSTM or GRU labels the target by its sequences of codes, where TransPL counts transitions.

The TransPL paper does not publish their architectures; these are ours. B windows, D channels, N patches, K classes. A
code of -1 stands for no patch, at the end of shorter windows; the networks ignore it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import PseudoLabelMethod, PseudoLabelSettings
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    Backbone,
    BatchNorm,
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

ENCODINGS = ("one-hot", "embedding")
_EMBEDDED = 16
_HIDDEN = 128


@dataclass(frozen=True)
class CodeClassifierSettings(PseudoLabelSettings):
    """Settings of `CodeClassifierMethod`."""

    backbone: ClassVar[str] = "patch-transformer"  # type: ignore[misc] # a CNN has no codes
    keep: ClassVar[str] = "best"  # type: ignore[misc]

    encoding: str = setting("one-hot", 'of a code, "one-hot" or "embedding"')
    classifier_lr: float = setting(1e-3, "learning rate of the code classifier, which is trained on the source alone")
    classifier_epochs: int = setting(100, "its largest number of epochs, if `max_epochs` is not smaller")
    classifier_patience: int = setting(5, "looks at its validation loss without gain after which it stops")
    relabel: str = setting("never", 'always "never": the code classifier only knows the codes of the source model')

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


@dataclass(frozen=True)
class CodeShape:
    """Input and output sizes of a network on codes.

    encoding : of a code, "one-hot" or a learnt "embedding", one for all channels as they share their codes
    """

    n_channels: int
    n_codes: int
    n_classes: int
    encoding: str = "one-hot"

    @property
    def n_features(self) -> int:
        """The number of features of a patch, over all channels."""
        return self.n_channels * (self.n_codes if self.encoding == "one-hot" else _EMBEDDED)


class EncodedCodes(NamedTuple):
    """Codes as vectors."""

    x: Tensor  # (B, N, features), zeros where there is no patch
    real: Tensor  # (B, N), true where there is one


class CodeNetwork(nn.Module):
    """Encoded codes -> `summary` of a window -> linear head, which starts at zero so that all classes start equal."""

    def __init__(self, shape: CodeShape, width: int) -> None:
        super().__init__()
        self.shape = shape
        self.embed = (
            nn.Embedding(shape.n_codes + 1, _EMBEDDED, padding_idx=0) if shape.encoding == "embedding" else None
        )
        self.head = nn.Linear(width, shape.n_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, codes: Tensor) -> Tensor:
        """codes (B, D, N) -> class logits (B, K)."""
        return self.head(self.summary(self.encode(codes)))

    def encode(self, codes: Tensor) -> EncodedCodes:
        """codes (B, D, N) -> one vector per patch."""
        from_one = codes.long() + 1
        x = self._one_hot(from_one) if self.embed is None else self.embed(from_one)  # (B, D, N, features)
        return EncodedCodes(x.transpose(1, 2).flatten(2), codes[:, 0] >= 0)

    def _one_hot(self, from_one: Tensor) -> Tensor:
        return F.one_hot(from_one, self.shape.n_codes + 1)[..., 1:].float()

    @abstractmethod
    def summary(self, encoded: EncodedCodes) -> Tensor:
        """One vector per window, (B, width)."""


class CodeCNN(CodeNetwork):
    """Two convolutions over three patches each, the mean over patches, dropout."""

    def __init__(self, shape: CodeShape) -> None:
        super().__init__(shape, _HIDDEN)
        self.first = _Convolution(shape.n_features, _HIDDEN // 2)
        self.second = _Convolution(_HIDDEN // 2, _HIDDEN)
        self.dropout = nn.Dropout(0.3)

    def summary(self, encoded: EncodedCodes) -> Tensor:
        x, real = encoded
        h = self.second(self.first(x, real), real)
        return self.dropout(h.sum(dim=1) / real.sum(dim=1, keepdim=True))


class _Convolution(nn.Module):
    """Convolution, batch norm over the real patches, ReLU; (B, N, a) -> (B, N, b), zeros where there is no patch."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.convolve = nn.Conv1d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = BatchNorm(n_out)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        h = self.convolve(x.transpose(1, 2)).transpose(1, 2)
        return h.new_zeros(h.shape).masked_scatter(real[..., None], F.relu(self.norm(h[real])))


class _Recurrent(CodeNetwork):
    """The state of one recurrent layer after the last patch."""

    Layer: ClassVar[type[nn.LSTM | nn.GRU]]

    def __init__(self, shape: CodeShape) -> None:
        super().__init__(shape, _HIDDEN)
        self.layer = self.Layer(shape.n_features, _HIDDEN, batch_first=True)

    def summary(self, encoded: EncodedCodes) -> Tensor:
        x, real = encoded
        states, _ = self.layer(x)  # (B, N, width)
        last = real.sum(dim=1) - 1  # real patches come first
        return states[torch.arange(len(x), device=x.device), last]


class CodeLSTM(_Recurrent):
    """One LSTM layer."""

    Layer = nn.LSTM


class CodeGRU(_Recurrent):
    """One GRU layer."""

    Layer = nn.GRU


class CodeObjective(Objective):
    """Cross entropy of rows x = codes (n, D, N), y."""

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
    """Labels by a network on codes, trained once on the source for all targets. Subclasses name the `network`."""

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

    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        assert isinstance(network, Network)
        codes = coarse_codes(network, target)
        with self.on_device(self.code_network):
            return PseudoLabels.from_probabilities(code_probabilities(self.code_network, codes))

    def _code_rows(self, part: Labelled) -> Rows:
        network = self.source.network
        assert isinstance(network, Network)
        with self.on_device(network):
            codes = coarse_codes(network, part.windows)
        return {"x": torch.from_numpy(codes), "y": label_tensor(part.y)}


def train_code_network(
    network: CodeNetwork, rows: Rows, validation: Rows, loop: LoopSettings, execution: Execution, *, seed: int
) -> tuple[CodeNetwork, History]:
    """Train on rows (x = codes, y); the network itself is trained and returned, on the CPU in eval mode."""
    objective = CodeObjective(network)
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="codes")
    objective.load_state_dict(trained.weights)
    return finalize(network), trained.history


@torch.no_grad()
def code_probabilities(network: CodeNetwork, codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """softmax of the logits of codes (n, D, N), (n, K)."""
    device = next(network.parameters()).device
    rows = torch.from_numpy(codes)
    logits = [network(rows[index].to(device)).cpu().double() for index in ordered_batches(len(rows), BATCH)]
    return torch.cat(logits).softmax(dim=-1).numpy()


@register("code-cnn", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeCNNMethod(CodeClassifierMethod):
    """Labels by a 1D-CNN on the codes.

    y_i = argmax_k f_k(c_i), f trained by CE(f(c_s), y_s) on the codes c of the source
    """

    network = CodeCNN


@register("code-lstm", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeLSTMMethod(CodeClassifierMethod):
    """Labels by an LSTM on the codes; otherwise as code-cnn."""

    network = CodeLSTM


@register("code-gru", family="code classifier", needs="source, target", reference=_REFERENCE)
class CodeGRUMethod(CodeClassifierMethod):
    """Labels by a GRU on the codes; otherwise as code-cnn."""

    network = CodeGRU
