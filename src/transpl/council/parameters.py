"""The parameters of `TransPL` as the variant "plus" takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class CouncilSettings:
    """witnesses, views : names; a seat for each pair
    undo : which shifts may be undone: "auto" (all kinds), "none", or kinds
    triads : channels x, y, z of one sensor, by number or name; None: by the channels' names
    channel_names : by which triads are found
    random_state : seed of everything drawn
    """

    witnesses: tuple[str, ...] = WITNESSES
    views: tuple[str, ...] = VIEWS
    undo: str | tuple[str, ...] = "auto"
    triads: tuple[tuple[int | str, ...], ...] | None = None
    channel_names: tuple[str, ...] | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_int("random_state", self.random_state, least=0)
        for name in ("witnesses", "views"):
            chosen = getattr(self, name)
            if isinstance(chosen, str) or not chosen or len(set(chosen)) < len(chosen):
                expected = "one or more different names"
                raise invalid(name, expected=expected, got=repr(chosen), advice="Leave it out for the default.")
        for view in self.views:
            check_choice("views", view, VIEWS)
        for witness in self.witnesses:
            witnesses.find(witness)


@dataclass(frozen=True)
class CouncilParameters:
    """What the parameters of `TransPL` mean here: for the council, and for the codes that tell what shifted."""

    council: CouncilSettings
    patch_length: int = 8
    n_coarse: int = 8
    sigma: float = 0.2
    channel_alignment: bool = True
    smoothing: str = "pseudocount"
    epsilon: float | None = None
    n_threads: int | None = None

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
        """Of the parameters of `TransPL`."""
        names = ("patch_length", "n_coarse", "sigma", "channel_alignment", "epsilon", "n_threads")
        smoothing = cls.smoothing if params["smoothing"] is None else params["smoothing"]
        return cls(_council_settings(params), smoothing=smoothing, **{name: params[name] for name in names})

    @property
    def of_source(self) -> dict[str, Any]:
        """Those that decide what is learnt from the source, as JSON has them."""
        settings = self.council
        return {
            "patch_length": self.patch_length,
            "n_coarse": self.n_coarse,
            "witnesses": list(settings.witnesses),
            "views": list(settings.views),
            "random_state": settings.random_state,
        }

    def check_channels(self, n_channels: int) -> None:
        """Raise unless channel names and triads fit windows of so many channels."""
        settings = self.council
        if settings.channel_names is not None:
            name_channels(settings.channel_names, n_channels)
        find_triads(settings.triads, settings.channel_names, n_channels)


def _council_settings(params: Mapping[str, Any]) -> CouncilSettings:
    undo = params["undo"]
    if isinstance(undo, str):
        check_choice("undo", undo, ("auto", "none", *KINDS))
        undo = (undo,) if undo in KINDS else undo
    else:
        undo = _names("undo", undo)
        for kind in undo:
            check_choice("undo", kind, KINDS)
    given = {name: params[name] for name in ("witnesses", "views", "channel_names", "triads")}
    asked = {name: _names(name, value) for name, value in given.items() if value is not None}
    return CouncilSettings(**asked, undo=undo, random_state=params["random_state"])


def _names(name: str, value: Any) -> tuple[Any, ...]:
    """A sequence of names, or of channels, as a tuple to its depth."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        advice = "Write it as a tuple, also a single one."
        raise invalid(name, expected="a sequence of names", got=repr(value), advice=advice)
    return tuple(each if isinstance(each, str | Number) else _names(name, each) for each in value)
