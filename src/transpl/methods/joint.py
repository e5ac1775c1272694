"""Methods of one phase: the source's cross entropy and an alignment of both domains are minimised together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transpl._utils.errors import check_choice, check_int, check_not_negative, invalid
from transpl.methods.method_settings import AdaptSettings, Preset, setting
from transpl.methods.network_method import NetworkMethod
from transpl.nn import (
    Backbone,
    Classifier,
    Data,
    Execution,
    LoopSettings,
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

_View = TypeVar("_View")  # the part of a domain's batch that is aligned
_CROSS_ENTROPY, _WEIGHT = "cross_entropy", "_weight"


@dataclass(frozen=True)
class JointSettings(AdaptSettings):
    """Settings of `JointMethod`."""

    warmup_steps: int = 0
    weighting: str = setting("learnable", 'of the terms, "learnable" or "fixed" (then by the fields `<term>_weight`)')
    cross_entropy_weight: float = setting(1.0, "of the source's cross entropy")
    codes: bool = setting(False, "also train the codes (L_code + L_rec of the source), as the shared source model does")
    ramp_epochs: int = setting(
        0,
        "epochs over which the alignment terms grow to their full weight, until there are features to align",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weighting", self.weighting, ("learnable", "fixed"))
        check_choice("codes", self.codes, (True, False))
        check_int("ramp_epochs", self.ramp_epochs, least=0)
        for name in (_CROSS_ENTROPY, *self.terms):
            check_not_negative(name + _WEIGHT, self.weight(name))

    @property
    def terms(self) -> tuple[str, ...]:
        """The alignment terms: those that have a field `<term>_weight`."""
        names = (name.removesuffix(_WEIGHT) for name in vars(self) if name.endswith(_WEIGHT))
        return tuple(name for name in names if name != _CROSS_ENTROPY)

    def weight(self, term: str) -> float:
        """The value of the field `<term>_weight`."""
        value: float = getattr(self, term + _WEIGHT)
        return value


def preset_table(columns: Sequence[str], rows: Mapping[str, Sequence[Any]], **common: Any) -> Preset:
    """A preset from a table: one row of values per data set, and `common` values for all."""
    return {dataset: {**dict(zip(columns, row, strict=True)), **common} for dataset, row in rows.items()}


class AlignmentObjective(Objective, Generic[_View]):
    r"""L = w_c CE(x_s, y_s) + r \sum_i w_i A_i(x_s, x_t) (+ L_code + L_rec), r = min(1, step / ramp_steps).

    Subclasses name their terms A_i in `terms`, compute them in `alignment`, and define the views of source and target
    that are aligned. Validation watches the source loss without weights: learnt weights drift, and early stopping
    would drift with them.

    model : the classifier that is trained; `network` is the shared network in it
    weighting : the weights of the terms and of "cross_entropy"
    """

    settings: JointSettings
    ramp_steps = 0  # no ramp: r = 1

    def __init__(self, model: Classifier, weighting: Weighting, settings: JointSettings) -> None:
        super().__init__()
        self.model, self.weighting, self.settings = model, weighting, settings
        self.step: Tensor  # training batches seen so far
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        if not settings.codes:
            freeze(*self.network.code_modules())

    @property
    @abstractmethod
    def network(self) -> Backbone: ...

    @property
    def answering(self) -> Classifier:
        """The classifier that predicts after training."""
        return self.model

    @abstractmethod
    def source_view(self, rows: Rows) -> tuple[_View, dict[str, Tensor]]:
        """The view of labelled rows, and their "cross_entropy" and, if codes are trained, the codes' losses."""

    @abstractmethod
    def target_view(self, rows: Rows) -> _View:
        """The view of unlabelled rows."""

    @abstractmethod
    def alignment(self, source: _View, target: _View) -> dict[str, Tensor]:
        """The terms A_i of a source and a target batch, scalars of at least 0."""

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        source, target = split_domains(batch)
        view, terms = self.source_view(source)
        aligned = self.alignment(view, self.target_view(target))
        r = min(1.0, int(self.step) / self.ramp_steps) if self.ramp_steps else 1.0
        if self.training:
            self.step += 1
        code_losses = [loss for name, loss in terms.items() if name != _CROSS_ENTROPY]
        ramped = aligned if r == 1 else {name: r * term for name, term in aligned.items()}
        loss = self.weighting({_CROSS_ENTROPY: terms[_CROSS_ENTROPY], **ramped})
        return {"loss": reduce(torch.add, code_losses, loss), **terms, **aligned}

    def risk(self, batch: Rows) -> Tensor:
        return reduce(torch.add, self.source_view(batch)[1].values())

    def identity(self) -> str:
        return repr((type(self).__name__, self.network.settings, self.weighting, self.settings, self.ramp_steps))

    def undecayed(self) -> list[nn.Parameter]:
        return list(self.weighting.parameters())


class View(NamedTuple):
    """The shared network's features and logits of a batch."""

    z: Tensor  # (B, d)
    logits: Tensor  # (B, K)


class JointObjective(AlignmentObjective[View]):
    """Trains the shared network and aligns its features and logits. Subclasses write `alignment`."""

    model: Backbone

    @property
    def network(self) -> Backbone:
        return self.model

    def source_view(self, rows: Rows) -> tuple[View, dict[str, Tensor]]:
        losses = class_and_code_losses(self.network, rows, SourceLoss(self.settings.codes))
        return View(losses.features, losses.logits), losses.terms

    def target_view(self, rows: Rows) -> View:
        z = self.network.features(rows["x"], rows.get("lengths"))
        return View(z, self.network.head(z))


class JointMethod(NetworkMethod):
    """One training from scratch on source and target batches side by side.

    Subclasses name their `objective_class`, or write `objective` if it takes more than network, weights and settings.

    unlearnt : terms whose weight is never learnt, such as an adversary's: learning would only mute it
    phase : the name of this training in `history`
    """

    Settings = JointSettings
    settings: JointSettings
    starts_from_source = False
    objective_class: ClassVar[type[AlignmentObjective[Any]]]
    unlearnt: ClassVar[tuple[str, ...]] = ()
    phase: ClassVar[str] = "joint"

    def __init__(self, settings: JointSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        if self.settings.weighting == "learnable":
            defaults = type(self.settings)()
            for name in (_CROSS_ENTROPY, *self.settings.terms):
                weight = self.settings.weight(name)
                if name not in self.unlearnt and weight != defaults.weight(name):
                    expected, advice = "the default where weights are learnt", "Set weighting='fixed' too."
                    raise invalid(name + _WEIGHT, expected=expected, got=weight, advice=advice)

    def objective(
        self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int
    ) -> AlignmentObjective[Any]:
        """The objective for a new network with random weights.

        total_steps : how many steps the training takes if it is not stopped early
        """
        return self.objective_class(network, self.weighting(), self.settings)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        data = Paired(labelled_rows(self.source.source), window_rows(target.in_memory()))
        loop = self.settings.adapt_loop()
        steps_per_epoch = n_batches(data, loop.batch_size)
        objective = self.objective(self.source.untrained_network(), info.prior, loop.max_epochs * steps_per_epoch)
        objective.ramp_steps = self.settings.ramp_epochs * steps_per_epoch
        self.train(objective, data, loop, phase=self.phase)
        self.classifier = finalize(objective.answering)

    def train(self, objective: Objective, data: Data, loop: LoopSettings, phase: str) -> None:
        """Minimise `objective`, and load the best weights into it."""
        validation = labelled_rows(self.source.validation)
        trained = train(objective, data, validation, loop, self.execution, seed=self.seed, phase=phase)
        objective.load_state_dict(trained.weights)
        self.adapt_history[phase] = trained.history

    def weighting(self, terms: Sequence[str] | None = None) -> Weighting:
        """The weights of "cross_entropy" and of `terms` (None: all of the method) according to the settings."""
        names = (_CROSS_ENTROPY, *(self.settings.terms if terms is None else terms))
        fixed = {name: float(self.settings.weight(name)) for name in names}
        if self.settings.weighting == "fixed":
            return Weighting(fixed)
        learnt = [name for name in fixed if name not in self.unlearnt]
        return Weighting({name: fixed[name] for name in self.unlearnt}, learnt)
