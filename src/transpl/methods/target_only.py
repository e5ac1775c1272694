"""Target-only: trained on labelled target windows, the ceiling that no adaptation sees."""

from __future__ import annotations

from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import register


@register("target-only", family="reference", needs="target labels (an upper bound)", reference="-")
class TargetOnly(NoAdapt):
    """No Adapt with the target's own labelled windows as its source.

    Whoever holds the labels hands them over as `fit_source(target, held_out_target)`; `adapt` sees none.
    """

    uses_target_labels = True
