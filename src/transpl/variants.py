"""The method behind each variant of `TransPL`, imported when it is asked for: not everybody has torch."""

from __future__ import annotations

from transpl.adapter import DomainAdapter
from transpl.errors import InputError, one_of, require_deep

VARIANTS = ("plus", "paper")
_OWN_MODE = {"plus": "markov", "paper": "finetune"}


def own_mode(variant: str) -> str:
    """How `adapt` adapts unless told otherwise."""
    one_of("variant", variant, VARIANTS)
    return _OWN_MODE[variant]


def adapter_class(variant: str) -> type[DomainAdapter]:
    """The class to make, or to load, the method of a variant with."""
    one_of("variant", variant, VARIANTS)
    if variant == "plus":
        # PLACEHOLDER: the council takes this place.
        raise InputError("variant: 'plus' is not available in this version. Use variant='paper'.")
    require_deep("variant='paper'")
    from transpl.methods.transpl_adapter import PaperAdapter

    return PaperAdapter
