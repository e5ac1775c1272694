"""Settings of the council."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Number
from typing import Any

import numpy as np

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.council import witnesses
from transpl.council.shifts import KINDS
from transpl.council.views import VIEWS

WITNESSES = ("codes", "kernels", "linear", "trees")


@dataclass(frozen=True)
class CouncilSettings:
    """Settings of a `Council`; sequences become tuples, and None becomes the default.

    `transpl.methods.CouncilMethodSettings` has the help texts.
    """

    witnesses: tuple[str, ...] = WITNESSES
    views: tuple[str, ...] = VIEWS
    undo: str | tuple[str, ...] = "auto"
    triads: tuple[tuple[int | str, ...], ...] | None = None
    channel_names: tuple[str, ...] | None = None
    random_state: int = 0

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


def _as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Convert a nested sequence of names or channels to tuples."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        advice = "Write it as a tuple, even a single name."
        raise invalid(name, expected="a sequence of names", got=repr(value), advice=advice)
    return tuple(each if isinstance(each, str | Number) else _as_tuple(name, each) for each in value)
