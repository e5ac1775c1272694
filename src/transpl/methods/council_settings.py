"""The settings of the council as a method. Reading them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.council.settings import CouncilSettings
from transpl.methods.method_settings import MethodSettings, Preset


def _axes(*sensors: str) -> tuple[str, ...]:
    return tuple(f"{sensor}_{axis}" for sensor in sensors for axis in "xyz")


@dataclass(frozen=True)
class CouncilMethodSettings(CouncilSettings, MethodSettings):
    """Everything that decides the council's labels."""

    # A method sees arrays alone, so the axes of the known data sets are settings: they are part of a run's name.
    known_data: ClassVar[Preset] = {
        "ucihar": {"channel_names": _axes("body_acc", "body_gyro", "total_acc")},
        "wisdm": {"channel_names": _axes("acc")},
        "hhar": {"channel_names": _axes("acc")},
        "watch": {"channel_names": _axes("acc", "gyro")},
    }

    def __post_init__(self) -> None:
        for name in ("witnesses", "views"):  # one name alone is accepted, as the command line passes it
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else value)
        undo = self.undo
        super().__post_init__()
        if isinstance(undo, str):  # runs are named by the setting as it was given
            object.__setattr__(self, "undo", undo)

    def council(self) -> CouncilSettings:
        """The council's own settings."""
        return CouncilSettings(**{each.name: getattr(self, each.name) for each in fields(CouncilSettings)})


@dataclass(frozen=True)
class CodebookSettings:
    """The codebook that shows what shifted. It decides no label; `TransPLSettings` has the help texts."""

    patch_length: int = 8
    n_coarse: int = 8
    sigma: float = 0.2
    channel_alignment: bool = True
    smoothing: str = "pseudocount"
    epsilon: float | None = None

    def __post_init__(self) -> None:
        from transpl.markov import check_epsilon

        check_int("patch_length", self.patch_length, least=1)
        check_int("n_coarse", self.n_coarse, least=2)
        check_positive("sigma", self.sigma)
        check_choice("channel_alignment", self.channel_alignment, (True, False))
        check_choice("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)
