"""Methods of one phase: source cross entropy and an alignment of both domains are minimised together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transpl._utils.errors import check_choice, check_int, check_not_negative, invalid
from transpl.methods.method_settings import AdaptSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.nn import (
    Classifier,
    Execution,
    LoopSettings,
    Network,
    Objective,
    Paired,
    Rows,
    SourceLoss,
    Weighting,
    class_and_code_losses,
    finalize,
    freeze,
    labelled_rows,
    n_batches,
    split_domains,
    train,
    window_rows,
)
from transpl.windows import TargetInfo, Windows

_Module = TypeVar("_Module", bound=nn.Module)
_View = TypeVar("_View")  # what an alignment sees of a batch of one domain


@dataclass(frozen=True)
class JointSettings(AdaptSettings):
    """Settings of Joint."""

    warmup_steps: int = 0
    weighting: str = setting("learnable", 'of the terms, "learnable" or "fixed" (then by the fields `<term>_weight`)')
    cross_entropy_weight: float = setting(1.0, "of the source's cross entropy")
    codes: bool = setting(
        False,
        "also train the codes (L_code + L_rec of the source), as the shared source model does",
    )
    ramp_epochs: int = setting(
        0,
        "over so many the alignment terms grow to their full weight, so that there are features to align",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weighting", self.weighting, ("learnable", "fixed"))
        check_choice("codes", self.codes, (True, False))
        check_int("ramp_epochs", self.ramp_epochs, least=0)
        for name in vars(self):
            if name.endswith("_weight"):
                check_not_negative(name, getattr(self, name))


class AlignmentObjective(Objective, Generic[_View]):
    r"""L = w_c CE(x_s, y_s) + r \sum_i w_i A_i(x_s, x_t) (+ L_code + L_rec), r = min(1, step / ramp_steps).

    Subclasses name their terms A_i in `terms`, compute them in `alignment`, and say what it is that they align: a
    view of the source, a view of the target. Validation watches the source loss without weights: learnt weights
    drift, and would let the early stopping drift with them.

    model : the classifier that is trained; `network` is the shared network in it
    weighting : how the terms and "cross_entropy" are weighed
    """

    ramp_steps = 0  # none: r = 1

    def __init__(self, model: Classifier, weighting: Weighting, *, codes: bool) -> None:
        super().__init__()
        self.model = model
        self.weighting = weighting
        self.codes = codes
        self.step: Tensor  # training batches seen so far
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        if not codes:
            freeze(*self.network.code_modules())

    @property
    @abstractmethod
    def network(self) -> Network: ...

    @abstractmethod
    def source_view(self, rows: Rows) -> tuple[_View, dict[str, Tensor]]:
        """What is aligned of labelled rows, and their "cross_entropy" and, if codes are trained, losses of codes."""

    @abstractmethod
    def target_view(self, rows: Rows) -> _View:
        """What is aligned of unlabelled rows."""

    @abstractmethod
    def alignment(self, source: _View, target: _View) -> dict[str, Tensor]:
        """The terms A_i of a source and a target batch, each a scalar, 0 or more."""

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        source, target = split_domains(batch)
        seen, terms = self.source_view(source)
        aligned = self.alignment(seen, self.target_view(target))
        r = min(1.0, int(self.step) / self.ramp_steps) if self.ramp_steps else 1.0
        if self.training:
            self.step += 1
        code_losses = [loss for name, loss in terms.items() if name != "cross_entropy"]
        grown = aligned if r == 1 else {name: r * term for name, term in aligned.items()}
        loss = self.weighting({"cross_entropy": terms["cross_entropy"], **grown})
        return {"loss": reduce(torch.add, code_losses, loss), **terms, **aligned}

    def risk(self, batch: Rows) -> Tensor:
        return reduce(torch.add, self.source_view(batch)[1].values())

    def identity(self) -> str:
        return repr((type(self).__name__, self.network.settings, self.weighting, self.codes, self.ramp_steps))

    def undecayed(self) -> list[nn.Parameter]:
        return list(self.weighting.parameters())


class View(NamedTuple):
    """Features and logits of a batch, as the shared network has them."""

    z: Tensor  # (B, d)
    logits: Tensor  # (B, K)


class JointObjective(AlignmentObjective[View]):
    """The classifier is the shared network; its features and logits are aligned. Subclasses write `alignment`."""

    @property
    def network(self) -> Network:
        assert isinstance(self.model, Network)
        return self.model

    def source_view(self, rows: Rows) -> tuple[View, dict[str, Tensor]]:
        seen = class_and_code_losses(self.network, rows, SourceLoss(self.codes))
        return View(seen.features, seen.logits), seen.terms

    def target_view(self, rows: Rows) -> View:
        z = self.network.features(rows["x"], rows.get("lengths"))
        return View(z, self.network.head(z))


class JointMethod(NetworkMethod):
    """One training from scratch on source and target batches side by side. Subclasses write `objective`.

    `unlearnt` names terms whose weight is never learnt, such as an adversary's: learning would only mute it.
    `phase` is what this training is called.
    """

    Settings = JointSettings
    settings: JointSettings
    starts_from_source = False
    terms: ClassVar[tuple[str, ...]] = ()
    unlearnt: ClassVar[tuple[str, ...]] = ()
    phase: ClassVar[str] = "joint"

    def __init__(self, settings: JointSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        if self.settings.weighting == "learnable":
            self._refuse_weights_without_effect()

    def _refuse_weights_without_effect(self) -> None:
        defaults = type(self.settings)()
        for name in ("cross_entropy", *self.terms):
            weight = f"{name}_weight"
            if name not in self.unlearnt and getattr(self.settings, weight) != getattr(defaults, weight):
                got, advice = getattr(self.settings, weight), "Set weighting='fixed' too."
                raise invalid(weight, expected="the default where weights are learnt", got=got, advice=advice)

    @abstractmethod
    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> AlignmentObjective:
        """What is minimised, for a freshly drawn network.

        total_steps : how many steps the training takes if it is not stopped early
        """

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        data = Paired(labelled_rows(self.source.source), window_rows(target.in_memory()))
        loop = self.settings.adapt_loop()
        total_steps = loop.max_epochs * n_batches(data, loop.batch_size)
        objective = self.objective(self.source.untrained_network(), info.prior, total_steps)
        objective.ramp_steps = self.settings.ramp_epochs * n_batches(data, loop.batch_size)
        self.train(objective, data, loop, phase=self.phase)
        self.classifier = finalize(objective.model)

    def train(self, objective: Objective, data: Paired, loop: LoopSettings, phase: str) -> None:
        """Minimise, and leave the best weights in `objective`."""
        validation = labelled_rows(self.source.validation)
        trained = train(objective, data, validation, loop, self.execution, seed=self.seed, phase=phase)
        objective.load_state_dict(trained.weights)
        self.adapt_history[phase] = trained.history

    def weighting(self, terms: Sequence[str] | None = None) -> Weighting:
        """The weights of "cross_entropy" and of `terms` (all that the method has), as the settings have them."""
        names = ("cross_entropy", *(self.terms if terms is None else terms))
        fixed = {name: float(getattr(self.settings, f"{name}_weight")) for name in names}
        if self.settings.weighting == "fixed":
            return Weighting(fixed)
        learnt = [name for name in fixed if name not in self.unlearnt]
        return Weighting({name: fixed[name] for name in self.unlearnt}, learnt)
