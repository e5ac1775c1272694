"""Settings of the council, each declared once with its help text.

Reading them imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from transpl._utils.errors import check_choice, check_int, invalid

WITNESSES = ("codes", "kernels", "linear", "trees")
VIEWS = ("recorded", "standardised", "shape")
KINDS = ("dead", "unit", "turn", "mirror", "flip", "swap", "pace")  # of shifts


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class CouncilSettings:
    """Settings of a `Council`; sequences become tuples, and None becomes the default."""

    witnesses: tuple[str, ...] = _setting(
        WITNESSES,
        'names of witnesses, each used in each view. Two more can be added: "conv", a small CNN with the target\'s '
        'batch-norm statistics (about 10 s per view), and "vq", the paper\'s codes (up to minutes per view)',
    )
    views: tuple[str, ...] = _setting(VIEWS, "names of the views of the signals in which each witness is used")
    undo: str | tuple[str, ...] = _setting(
        "auto",
        'which shifts may be undone: "auto" (all kinds), "none", or kinds among "dead", "unit", "turn", "mirror", '
        '"flip", "swap" and "pace"',
    )
    triads: tuple[tuple[int | str, ...], ...] | None = _setting(
        None,
        'the channels x, y, z of each sensor, by number or name, as `[("ax", "ay", "az")]`; None finds them by '
        "`channel_names`",
    )
    channel_names: tuple[str, ...] | None = _setting(
        None, "one name per channel; the axes of one sensor are found by their names (ax, ay, az)"
    )
    random_state: int = _setting(0, "seed of everything random")

    def __post_init__(self) -> None:
        from transpl.council import witnesses

        check_int("random_state", self.random_state, least=0)
        if isinstance(self.undo, str):
            check_choice("undo", self.undo, ("auto", "none", *KINDS))
            undo = self.undo if self.undo in ("auto", "none") else (self.undo,)
        else:
            undo = _as_tuple("undo", self.undo)
            for kind in undo:
                check_choice("undo", kind, KINDS)
        object.__setattr__(self, "undo", undo)
        for name, default in (("witnesses", WITNESSES), ("views", VIEWS), ("triads", None), ("channel_names", None)):
            value = getattr(self, name)
            object.__setattr__(self, name, default if value is None else _as_tuple(name, value))
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
    if isinstance(value, str) or not (isinstance(value, Sequence) or hasattr(value, "__array__")):
        advice = "Write it as a tuple, even a single name."
        raise invalid(name, expected="a sequence of names", got=repr(value), advice=advice)
    return tuple(each if isinstance(each, str | Number) else _as_tuple(name, each) for each in value)
