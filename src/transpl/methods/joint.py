"""Methods of one phase: source cross entropy and an alignment of both domains are minimised together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transpl.errors import not_negative, one_of
from transpl.methods.base import Method
from transpl.methods.settings import AdaptSettings
from transpl.network import Classifier, Network
from transpl.training.devices import own_randomness
from transpl.training.loop import LoopSettings, Objective, train
from transpl.training.loss_weights import Weighting
from transpl.training.rows import Paired, Rows, both_parts, n_batches, window_rows
from transpl.training.source import SourceLoss, class_and_code_losses, freeze, ready
from transpl.windows import Windows

_Module = TypeVar("_Module", bound=nn.Module)


@dataclass(frozen=True)
class JointSettings(AdaptSettings):
    """weighting : of the terms, "learnable" or "fixed" (then by the fields `<term>_weight`)
    codes : also train the codes (L_code + L_rec of the source), as the shared source model does
    """

    warmup_steps: int = 0
    weighting: str = "learnable"
    cross_entropy_weight: float = 1.0
    codes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("weighting", self.weighting, ("learnable", "fixed"))
        one_of("codes", self.codes, (True, False))
        for name in vars(self):
            if name.endswith("_weight"):
                not_negative(name, getattr(self, name))


class View(NamedTuple):
    """What an alignment sees of a batch of one domain."""

    z: Tensor  # (B, d)
    logits: Tensor  # (B, K)


class JointObjective(Objective):
    r"""L = w_c CE(x_s, y_s) + \sum_i w_i A_i(x_s, x_t) (+ L_code + L_rec of the source).

    Subclasses name their terms A_i in `terms` and compute them in `alignment`. Validation watches the source loss
    without weights: learnt weights drift, and would let the early stopping drift with them.

    weighting : how the terms and "cross_entropy" are weighed
    """

    def __init__(self, network: Network, weighting: Weighting, *, codes: bool) -> None:
        super().__init__()
        self.model: Classifier = network
        self.weighting = weighting
        self.codes = codes
        if not codes:
            freeze(*network.code_modules())

    @abstractmethod
    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        """The terms A_i of a source and a target batch, each a scalar, 0 or more."""

    @property
    def network(self) -> Network:
        assert isinstance(self.model, Network)
        return self.model

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        source, target = both_parts(batch)
        seen = class_and_code_losses(self.network, source, SourceLoss(self.codes))
        z = self.network.features(target["x"], target.get("lengths"))
        aligned = self.alignment(View(seen.features, seen.logits), View(z, self.network.head(z)))
        weighed = {"cross_entropy": seen.terms["cross_entropy"], **aligned}
        code_losses = [loss for name, loss in seen.terms.items() if name != "cross_entropy"]
        loss = self.weighting(weighed)
        for term in code_losses:
            loss = loss + term
        return {"loss": loss, **seen.terms, **aligned}

    def risk(self, batch: Rows) -> Tensor:
        return class_and_code_losses(self.network, batch, SourceLoss(self.codes)).total()

    def identity(self) -> str:
        return repr((type(self).__name__, self.network.settings, self.weighting, self.codes))

    def undecayed(self) -> list[nn.Parameter]:
        return list(self.weighting.parameters())


class JointMethod(Method):
    """One training from scratch on source and target batches side by side. Subclasses write `objective`.

    `unlearnt` names terms whose weight is never learnt, such as an adversary's: learning would only mute it.
    """

    Settings = JointSettings
    settings: JointSettings
    starts_from_source = False
    terms: ClassVar[tuple[str, ...]] = ()
    unlearnt: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> JointObjective:
        """What is minimised, for a freshly drawn network.

        total_steps : how many steps the training takes if it is not stopped early
        """

    def _adapt(self, target: Windows, prior: NDArray[np.float64] | None) -> None:
        data = Paired(self.source.source.rows(), window_rows(target.in_memory()))
        loop = self.settings.adapt_loop()
        total_steps = loop.max_epochs * n_batches(data, loop.batch_size)
        objective = self.objective(self.source.untrained_network(), prior, total_steps)
        self.train(objective, data, loop, phase="joint")
        self.classifier = ready(objective.model)

    def train(self, objective: Objective, data: Paired, loop: LoopSettings, phase: str) -> None:
        """Minimise, and leave the best weights in `objective`."""
        validation = self.source.validation.rows()
        trained = train(objective, data, validation, loop, self.execution, seed=self.seed, phase=phase)
        objective.load_state_dict(trained.weights)
        self.adapt_history[phase] = trained.history

    def weighting(self) -> Weighting:
        """The weights of the terms and of "cross_entropy", as the settings have them."""
        fixed = {name: float(getattr(self.settings, f"{name}_weight")) for name in ("cross_entropy", *self.terms)}
        if self.settings.weighting == "fixed":
            return Weighting(fixed)
        learnt = [name for name in fixed if name not in self.unlearnt]
        return Weighting({name: fixed[name] for name in self.unlearnt}, learnt)


def drawn(seed: int, build: type[_Module], *arguments: object) -> _Module:
    """Build a module of random weights that depend on `seed` alone, and not on what was drawn before."""
    with own_randomness():
        torch.manual_seed(seed)
        return build(*arguments)
