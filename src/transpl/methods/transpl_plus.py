"""TransPL beyond the paper: the same codes and counts, joined and followed differently (docs/beyond.md)."""

from __future__ import annotations

from transpl.methods.registry import register
from transpl.methods.transpl import TransPLMethod
from transpl.methods.transpl_settings import MODE_OF, TransPLPlusSettings

_REFERENCE = "our own, after Kim and Lee 2025"


@register("transpl-markov", family="own", needs="source, target", reference=_REFERENCE)
class TransPLMarkov(TransPLMethod):
    """TransPL's labels as the classifier: no gradient step, seconds for a new target."""

    default_mode = "markov"


@register("transpl-plus", family="own", needs="source, target", reference=_REFERENCE)
class TransPLPlus(TransPLMethod):
    """Codes and classifier vote together, calibrated on the source, and class matrices follow the target.

    Of the paper's values per data set it takes those of the network and its training; `sigma` and `prior_temperature`
    are the same everywhere.
    """

    Settings = TransPLPlusSettings
    default_mode = MODE_OF["plus"]


@register("transpl-plus-net", family="own", needs="source, target", reference=_REFERENCE)
class TransPLPlusNet(TransPLPlus):
    """The source's network with a head that keeps channels apart and learns the vote of transpl-plus."""

    default_mode = "finetune"


@register(
    "transpl-plus-ws", family="own", needs="source, target, class proportions of the target", reference=_REFERENCE
)
class TransPLPlusWS(TransPLPlus):
    """transpl-plus with the target's class proportions as Bayes' prior."""

    prior = "needed"
