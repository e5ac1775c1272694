"""The settings of the council as a method. Reading them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.methods.method_settings import MethodSettings, Preset, setting

if TYPE_CHECKING:
    from transpl.council import CouncilSettings


def _axes(*sensors: str) -> tuple[str, ...]:
    return tuple(f"{sensor}_{axis}" for sensor in sensors for axis in "xyz")


@dataclass(frozen=True)
class CouncilMethodSettings(MethodSettings):
    """Everything that decides the council's labels."""

    # A method sees arrays alone, so the axes of the known data sets are settings: they are part of a run's name.
    known_data: ClassVar[Preset] = {
        "ucihar": {"channel_names": _axes("body_acc", "body_gyro", "total_acc")},
        "wisdm": {"channel_names": _axes("acc")},
        "hhar": {"channel_names": _axes("acc")},
        "watch": {"channel_names": _axes("acc", "gyro")},
    }

    witnesses: tuple[str, ...] = setting(
        ("codes", "kernels", "linear", "trees"),
        'names of witnesses, each used in each view. Two more can be added: "conv", a small CNN with the target\'s '
        'batch-norm statistics (about 10 s per view), and "vq", the paper\'s codes (up to minutes per view)',
    )
    views: tuple[str, ...] = setting(
        ("recorded", "standardised", "shape"), "names of the views of the signals in which each witness is used"
    )
    undo: str | tuple[str, ...] = setting(
        "auto",
        'which shifts may be undone: "auto" (all kinds), "none", or kinds among "dead", "unit", "turn", "mirror", '
        '"flip", "swap" and "pace"',
    )
    triads: tuple[tuple[int | str, ...], ...] | None = setting(
        None,
        'the channels x, y, z of each sensor, by number or name, as `[("ax", "ay", "az")]`; None finds them by '
        "`channel_names`",
    )
    channel_names: tuple[str, ...] | None = setting(
        None, "one name per channel; the axes of one sensor are found by their names (ax, ay, az)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in fields(self):  # as a person writes them: lists, and one name alone
            value = getattr(self, each.name)
            one_name = isinstance(value, str) and each.name in ("witnesses", "views")
            object.__setattr__(self, each.name, (value,) if one_name else _frozen(value))
        self.council()

    def council(self) -> CouncilSettings:
        """The council's own settings."""
        from transpl.council import CouncilSettings

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


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
