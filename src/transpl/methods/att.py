"""ATT: asymmetric tri-training (Saito et al. 2017)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields

import torch

from transpl.methods.labelling import tri_training_labels
from transpl.methods.method_settings import AdaptSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.methods.registry import register
from transpl.methods.tri_training import TriNetwork, TriTraining, TriTrainingObjective
from transpl.nn import LoopSettings, Rows, finalize, join_domains, labelled_rows, seeded_module, train, window_rows
from transpl.windows import PseudoLabels, TargetInfo, Windows


@dataclass(frozen=True)
class ATTSettings(AdaptSettings):
    """Settings of ATT."""

    pretrain_epochs: int = setting(
        TriTraining.pretrain_epochs,
        "on the source alone, before the two heads label anything",
    )
    rounds: int = setting(TriTraining.rounds, "how often the target is labelled anew")
    round_epochs: int = setting(TriTraining.round_epochs, "epochs of each round")
    threshold: float = setting(
        TriTraining.threshold,
        "a target row is learnt where both heads agree and one is surer than this",
    )
    overlap_weight: float = setting(TriTraining.overlap_weight, "keeps the two heads apart")
    target_weight: float = setting(
        TriTraining.target_weight,
        "of target rows; with 0 there is nothing to learn, the source model stays",
    )

    def __post_init__(self) -> None:
        self.tri_training()
        super().__post_init__()

    def tri_training(self) -> TriTraining:
        return TriTraining(**{field.name: getattr(self, field.name) for field in fields(TriTraining)})

    def adapt_loop(self) -> LoopSettings:
        """A training of fixed length: the source's risk says nothing about a predictor that leaves the source."""
        length = {"max_epochs": min(self.tri_training().epochs, self.max_epochs), "keep": "last"}
        return self.loop(self.adapt_lr, self.adapt_patience, warmup_steps=self.warmup_steps, **length)


@register(
    "att",
    family="pseudo-labels",
    needs="source, target",
    reference="Saito et al. 2017, Asymmetric tri-training for unsupervised domain adaptation",
)
class ATT(NetworkMethod):
    """Two heads label what they agree on, a third learns from these labels alone.

    The third, which predicts, starts as the trained head of the source model rather than anew: it fits the encoder
    it sits on. After `adapt`, `label_record` holds the labels by both heads of all target rows, "initial" after the
    epochs on the source, and "final" unless training ended with them; the history's "coverage" is the share of target
    rows that was learnt from, and `learnt_rows` are those of the last round.
    """

    Settings = ATTSettings
    settings: ATTSettings

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows by the two heads; before there are any, by the source model."""
        if not isinstance(self.classifier, TriNetwork):
            return super().pseudo_label(target)
        self.check_target(target)
        with self.on_device(self.classifier):
            return tri_training_labels(*self.classifier.opinions(target))

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.target_weight == 0:
            self.classifier = self.source.network
            self.label_record = {"initial": self.pseudo_label(target)}
            return
        objective = self._objective(target)
        self._train(objective, target)
        self.classifier = finalize(objective.model)
        first, last = objective.first_labels(), self.pseudo_label(target)
        self.label_record = {"initial": last} if first is None else {"initial": first, "final": last}
        self.learnt_rows = objective.learnt_rows()

    def _objective(self, target: Windows) -> TriTrainingObjective:
        model = seeded_module(self.seed + 1, TriNetwork, copy.deepcopy(self.source.network))
        return TriTrainingObjective(model, self.settings.tri_training(), target.in_memory(), self.seed)

    def _train(self, objective: TriTrainingObjective, target: Windows) -> None:
        model = self.source
        trained = train(
            objective,
            join_domains(labelled_rows(model.source), _unlabelled(target)),
            labelled_rows(model.validation),
            self.settings.adapt_loop(),
            self.execution,
            seed=self.seed,
            phase="adapt",
        )
        objective.load_state_dict(trained.weights)
        self.adapt_history["adapt"] = trained.history


def _unlabelled(target: Windows) -> Rows:
    """Rows whose labels and confidences are filled in later."""
    n = len(target)
    empty = {"y": torch.zeros(n, dtype=torch.int64), "confidence": torch.zeros(n)}
    return {**window_rows(target.in_memory()), **empty}
