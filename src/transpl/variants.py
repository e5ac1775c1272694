"""The method behind each variant of `TransPL`, imported when it is asked for: not everybody has torch."""

from __future__ import annotations

from transpl.adapter import MODES, DomainAdapter
from transpl.errors import one_of, require_deep, wrong

VARIANTS = ("plus", "paper")
_MODES_OF = {"plus": ("markov",), "paper": MODES}  # its own one first


def own_mode(variant: str) -> str:
    """How `adapt` adapts unless told otherwise."""
    one_of("variant", variant, VARIANTS)
    return _MODES_OF[variant][0]


def check_mode(variant: str, mode: str | None) -> None:
    """Raise unless the variant can adapt in this mode; None is its own."""
    one_of("variant", variant, VARIANTS)
    if mode is None:
        return
    one_of("mode", mode, MODES)
    if mode not in _MODES_OF[variant]:
        expected, advice = f"{own_mode(variant)!r} with variant={variant!r}", "Leave it out, or use variant='paper'."
        raise wrong("mode", expected=expected, got=repr(mode), advice=advice)


def adapter_class(variant: str) -> type[DomainAdapter]:
    """The class to make, or to load, the method of a variant with."""
    one_of("variant", variant, VARIANTS)
    if variant == "plus":
        from transpl.council.adapter import CouncilAdapter

        return CouncilAdapter
    require_deep("variant='paper'")
    from transpl.methods.transpl_adapter import PaperAdapter

    return PaperAdapter
