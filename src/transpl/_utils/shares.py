"""How many of n things a share of them is.

0.7 has no exact float: int(0.7 * 90) is 62. What a product lacks or has too much by such rounding is far below one
part in 2^50, which no share that is meant has.
"""

from __future__ import annotations

import math

_ROUNDING = 2.0**-50


def at_most(share: float, n: int) -> int:
    """floor(share n), of the number that was meant: 0.7 of 90 are 63."""
    return math.floor(share * n * (1 + _ROUNDING))


def at_least(share: float, n: int) -> int:
    """ceil(share n), of the number that was meant: 0.07 of 100 are 7."""
    return math.ceil(share * n * (1 - _ROUNDING))
