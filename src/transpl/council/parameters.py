"""Settings of the council and of the variant "plus", each declared once with its help text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Number
from typing import Any, Self

import numpy as np

from transpl._utils.errors import check_choice, check_int, check_positive, invalid
from transpl.council import witnesses
from transpl.council.shifts import KINDS, find_triads
from transpl.council.views import VIEWS
from transpl.markov import check_epsilon
from transpl.windows import name_channels

WITNESSES = ("codes", "kernels", "linear", "trees")


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class CouncilSettings:
    """Settings of a `Council`; sequences become tuples, and None becomes the default."""

    witnesses: tuple[str, ...] = _setting(WITNESSES, "names of witnesses; each answers in every view")
    views: tuple[str, ...] = _setting(VIEWS, "names of views: " + ", ".join(VIEWS))
    undo: str | tuple[str, ...] = _setting(
        "auto", f"shifts that may be undone: auto (all kinds), none, or kinds among {', '.join(KINDS)}"
    )
    triads: tuple[tuple[int | str, ...], ...] | None = _setting(
        None, "channels x, y, z of each sensor that may be turned, by number or name; by default found in channel names"
    )
    channel_names: tuple[str, ...] | None = _setting(None, "names of channels, in which triads are found")
    random_state: int = _setting(0, "seed of everything random")

    def __post_init__(self) -> None:
        check_int("random_state", self.random_state, least=0)
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "undo" and isinstance(value, str):
                check_choice("undo", value, ("auto", "none", *KINDS))
                value = (value,) if value in KINDS else value
            elif each.name != "random_state":
                value = each.default if value is None else _as_tuple(each.name, value)
            object.__setattr__(self, each.name, value)
        for kind in self.undo if not isinstance(self.undo, str) else ():
            check_choice("undo", kind, KINDS)
        for name in ("witnesses", "views"):
            chosen = getattr(self, name)
            if not chosen or len(set(chosen)) < len(chosen):
                expected = "one or more different names"
                raise invalid(name, expected=expected, got=repr(chosen), advice="Omit it for the default.")
        for view in self.views:
            check_choice("views", view, VIEWS)
        for witness in self.witnesses:
            witnesses.find(witness)


@dataclass(frozen=True)
class CouncilParameters:
    """The parameters of `TransPL` for the variant "plus": the council's, and those of the codes that show the shift."""

    council: CouncilSettings
    patch_length: int = _setting(8, "time steps per code")
    n_coarse: int = _setting(8, "number of codes")
    sigma: float = _setting(0.2, "how quickly the weight of a channel falls with its distance")
    channel_alignment: bool = _setting(True, "whether channels that moved get a smaller weight")
    smoothing: str = _setting("pseudocount", "how zeros of transition matrices are treated")
    epsilon: float | None = _setting(None, "of the smoothing; by default that of the rule")
    n_threads: int | None = _setting(None, "processor threads; by default all")

    def __post_init__(self) -> None:
        check_int("patch_length", self.patch_length, least=1)
        check_int("n_coarse", self.n_coarse, least=2)
        check_positive("sigma", self.sigma)
        check_choice("channel_alignment", self.channel_alignment, (True, False))
        check_choice("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)
        if self.n_threads is not None:
            check_int("n_threads", self.n_threads, least=1)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Select the settings from the parameters of `TransPL`; None stands for the default."""
        council = CouncilSettings(**{each.name: params[each.name] for each in fields(CouncilSettings)})
        own = {each.name: params[each.name] for each in fields(cls)[1:]}
        return cls(council, **{name: value for name, value in own.items() if value is not None})

    @property
    def of_source(self) -> dict[str, Any]:
        """The settings that decide what is learnt from the source, as JSON holds them."""
        settings = self.council
        return {
            "patch_length": self.patch_length,
            "n_coarse": self.n_coarse,
            "witnesses": list(settings.witnesses),
            "views": list(settings.views),
            "random_state": settings.random_state,
        }

    def check_channels(self, n_channels: int) -> None:
        """Raise unless channel names and triads fit windows with this many channels."""
        settings = self.council
        if settings.channel_names is not None:
            name_channels(settings.channel_names, n_channels)
        find_triads(settings.triads, settings.channel_names, n_channels)


def _as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Convert a nested sequence of names or channels to tuples."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        advice = "Write it as a tuple, even a single name."
        raise invalid(name, expected="a sequence of names", got=repr(value), advice=advice)
    return tuple(each if isinstance(each, str | Number) else _as_tuple(name, each) for each in value)
