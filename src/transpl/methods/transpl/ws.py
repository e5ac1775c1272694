"""TransPL with weak supervision."""

from __future__ import annotations

from transpl.methods.registry import register
from transpl.methods.transpl.method import TransPLMethod


@register(
    "transpl-ws",
    family="pseudo-labels",
    needs="source, target, class proportions of the target",
    reference="Kim and Lee 2025, with weak supervision",
)
class TransPLWS(TransPLMethod):
    """TransPL with the target's class proportions as Bayes' prior."""

    prior = "needed"
