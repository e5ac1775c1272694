"""The method behind each variant of `TransPL`, imported when it is asked for: not everybody has torch."""

from __future__ import annotations

from transpl._utils.errors import check_choice, invalid, require_deep
from transpl.methods.contract import MODES, ExplainableMethod

VARIANTS = ("plus", "paper")
_MODES_OF = {"plus": ("markov",), "paper": MODES}  # its own one first


def own_mode(variant: str) -> str:
    """How `adapt` adapts unless told otherwise."""
    check_choice("variant", variant, VARIANTS)
    return _MODES_OF[variant][0]


def check_mode(variant: str, mode: str | None) -> None:
    """Raise unless the variant can adapt in this mode; None is its own."""
    check_choice("variant", variant, VARIANTS)
    if mode is None:
        return
    check_choice("mode", mode, MODES)
    if mode not in _MODES_OF[variant]:
        expected, advice = f"{own_mode(variant)!r} with variant={variant!r}", "Leave it out, or use variant='paper'."
        raise invalid("mode", expected=expected, got=repr(mode), advice=advice)


def method_class(variant: str) -> type[ExplainableMethod]:
    """The class to make, or to load, the method of a variant with."""
    check_choice("variant", variant, VARIANTS)
    if variant == "plus":
        from transpl.methods.council import CouncilMethod

        return CouncilMethod
    require_deep("variant='paper'")
    from transpl.methods.transpl.transpl_method import TransPLMethod

    return TransPLMethod
