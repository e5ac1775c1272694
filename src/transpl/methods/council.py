"""The council on the contract of the benchmark's methods. It trains no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid
from transpl.council import Council, CouncilSettings
from transpl.methods.base import GroupedMethod
from transpl.methods.registry import register
from transpl.methods.settings import MethodSettings, Preset
from transpl.methods.source_model import SourceModel
from transpl.windows import PseudoLabels, Windows

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

_REFERENCE = "our own; Dawid and Skene 1979 without labels, transition matrices after Kim and Lee 2025"


def _axes(*sensors: str) -> tuple[str, ...]:
    return tuple(f"{sensor}_{axis}" for sensor in sensors for axis in "xyz")


@dataclass(frozen=True)
class CouncilMethodSettings(MethodSettings):
    """witnesses, views : names; every witness speaks in every view. Not in the default are "conv", a small CNN with the
    target's batch-norm statistics (some 10 s more per view), and "vq", the paper's codes (up to minutes more per view)
    undo : shifts that may be undone, "auto" (all kinds), "none", or names of kinds
    triads : channels x, y, z of each sensor that may sit turned, by number or name; None: by the channels' names
    channel_names : names by which triads are found; None: the channels are no axes
    """

    # A method sees arrays alone, so the axes of the known sets are settings: they are part of a run's name.
    known_data: ClassVar[Preset] = {
        "ucihar": {"channel_names": _axes("body_acc", "body_gyro", "total_acc")},
        "wisdm": {"channel_names": _axes("acc")},
        "hhar": {"channel_names": _axes("acc")},
        "watch": {"channel_names": _axes("acc", "gyro")},
    }

    witnesses: tuple[str, ...] = CouncilSettings.witnesses
    views: tuple[str, ...] = CouncilSettings.views
    undo: str | tuple[str, ...] = CouncilSettings.undo
    triads: tuple[tuple[int | str, ...], ...] | None = None
    channel_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in fields(self):  # as a person writes them: lists, and one name alone
            value = getattr(self, each.name)
            one_name = isinstance(value, str) and each.name in ("witnesses", "views")
            object.__setattr__(self, each.name, (value,) if one_name else _frozen(value))
        self.council()

    def council(self) -> CouncilSettings:
        """The council's own settings."""
        return CouncilSettings(**{each.name: getattr(self, each.name) for each in fields(CouncilSettings)})


@register("transpl-plus", family="own", needs="source, target", reference=_REFERENCE)
class CouncilMethod(GroupedMethod):
    """Several cheap witnesses in several views, shifts undone, reliability judged by agreement on the target.

    Learns from the source's train part alone; no network, and nothing is held out. Answers for target test windows are
    those of the council that the target train windows left behind. Its details have the estimated accuracy with an
    interval, the shifts that were undone, and the estimated accuracy of every seat.
    """

    Settings = CouncilMethodSettings
    settings: CouncilMethodSettings
    starts_from_source = False
    prior = "optional"

    _council: Council | None = None

    @property
    def council(self) -> Council:
        if self._council is None:
            raise InputError(f"{type(self).__name__} is not fitted. Call fit_source first.")
        return self._council

    def start_from(self, model: SourceModel) -> None:
        """Learn from the rows of a source model; its network is not needed."""
        super().start_from(model)
        self._council = Council(self.settings.council()).learn(model.source)

    def adapt(self, target: Windows, prior: Floats | None = None, *, groups: Groups | None = None) -> None:
        """Undo shifts, hear all seats on unlabelled target windows, and judge them; always from the source again."""
        self.check_target(target)
        prior = self.checked_prior(prior)
        if groups is None and self.needs_groups:
            advice = "Pass the recording or patient of every window, or use transpl-plus."
            raise invalid("groups", expected=f"{len(target)} groups", got=None, advice=advice)
        groups = _numbered(groups, len(target))
        hearing = self.council.adapt(self.source.source, target, prior=prior, groups=groups)
        self.label_record = {"initial": PseudoLabels.from_probabilities(hearing.probabilities)}
        self.details = details_of(self.council, self.settings.channel_names)

    def _adapt(self, target: Windows, prior: Floats | None) -> None:
        self.adapt(target, prior)

    def predict_proba(self, windows: Windows, *, groups: Groups | None = None) -> Floats:
        """Class probabilities (n, K); before any adaptation what the witnesses say of windows as recorded."""
        self.check_target(windows)
        return self.council.hear(windows, _numbered(groups, len(windows))).probabilities

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        """Label windows by a council that judges on these windows alone."""
        self.check_target(target)
        hearing = self.council.unadapted().adapt(self.source.source, target, prior=self.checked_prior(prior))
        return PseudoLabels.from_probabilities(hearing.probabilities)

    def features(self, windows: Windows) -> None:
        """None: what it tells classes by is in many places."""


@register(
    "transpl-plus-ws",
    family="own",
    needs="source, target, class proportions of the target",
    reference=f"{_REFERENCE}, with weak supervision",
)
class CouncilMethodWS(CouncilMethod):
    """The council with the target's class proportions as its class shares."""

    prior = "needed"


@register(
    "transpl-plus-groups",
    family="own",
    needs="source, target, which windows are of one patient",
    reference=_REFERENCE,
)
class CouncilMethodGroups(CouncilMethod):
    """The council where all windows of a recording or patient have one label: they vote together.

    For data sets that say which windows belong together (PTB: the beats of a patient). In training and in prediction
    windows of one group get the same answer.
    """

    needs_groups = True


def details_of(council: Council, channel_names: tuple[str, ...] | None) -> dict[str, Any]:
    """What an adapted council says of itself, as plain values for JSON."""
    estimate: Mapping[str, float] = {} if council.estimate is None else council.estimate._asdict()
    shifts = () if council.shifts is None else council.shifts.shifts
    return {
        "estimated_accuracy": {name: float(value) for name, value in estimate.items()},
        "undone": [shift.sentence(channel_names) for shift in shifts],
        "seats": [
            {"witness": seat.witness, "view": seat.view, "accuracy": float(seat.accuracy)}
            for seat in council.standings()
        ],
    }


def _numbered(groups: Groups | None, n: int) -> Groups | None:
    """Groups of n windows as numbers from 0 on."""
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (n,):
        raise invalid("groups", expected=f"shape ({n},)", got=found.shape, advice="Give one group a window.")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
