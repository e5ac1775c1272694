"""TransPL without fine-tuning."""

from __future__ import annotations

from transpl.methods.registry import register
from transpl.methods.transpl.method import TransPLMethod


@register("transpl-markov", family="own", needs="source, target", reference="our own, after Kim and Lee 2025")
class TransPLMarkov(TransPLMethod):
    """TransPL's labels as the classifier: no gradient step, seconds for a new target."""

    default_mode = "markov"
