"""Channel distances by both rules for codes that only one domain has.

"additive" is the paper's print: every transition is given a little, so such codes count. "floor" is its authors' code:
the row of such a code costs nothing, so that a channel whose codes are all new seems not to have moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpl.markov import TransitionCounts, channel_distances, transport_cost
from transpl.methods import TransPLMethod

RULES = ("additive", "floor")


def distances_by_rule(
    method: TransPLMethod, source: TransitionCounts, target: TransitionCounts
) -> dict[str, NDArray[np.float64]]:
    """Distances (D,) of two channel-wise counts, by rule, the method's own among them; its epsilon is for that one."""
    cost, settings = transport_cost(method.codebook), method.settings
    epsilons = {**dict.fromkeys(RULES), settings.smoothing: settings.epsilon}
    return {rule: channel_distances(source, target, cost, rule, epsilon) for rule, epsilon in epsilons.items()}
