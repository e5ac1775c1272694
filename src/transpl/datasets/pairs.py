"""The published (source, target) pairs of the paper's data sets, and a rule for all other data sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from transpl._utils.errors import invalid

Pairs = tuple[tuple[int, int], ...]

# AdaTime's pairs, which TransPL uses too; PTB's are TransPL's own (age groups).
PUBLISHED: dict[str, Pairs] = {
    "ucihar": ((2, 11), (6, 23), (7, 13), (9, 18), (12, 16), (18, 27), (20, 5), (24, 8), (28, 27), (30, 20)),
    "wisdm": ((7, 18), (20, 30), (35, 31), (17, 23), (6, 19), (2, 11), (33, 12), (5, 26), (28, 4), (23, 32)),
    "hhar": ((0, 6), (1, 6), (2, 7), (3, 8), (4, 5), (5, 0), (6, 1), (7, 4), (8, 3), (0, 2)),
    "ptb": ((1, 3), (1, 4), (3, 4), (4, 1)),
}
MAX_DOMAINS_FOR_ALL_PAIRS = 12
_LONGEST_NUMBER = 9  # digits of a domain


def pairs_for(name: str, domains: Sequence[int]) -> Pairs:
    """Return the published pairs of the data set `name`, or `default_pairs` for any other name."""
    if name not in PUBLISHED:
        return default_pairs(domains)
    if absent := sorted({i for pair in PUBLISHED[name] for i in pair} - set(domains)):
        expected, got = f"every domain of the published pairs of {name}", f"no window of {', '.join(map(str, absent))}"
        advice = "If this is a part or another data set, give it another name."
        raise invalid("domain", expected=expected, got=got, advice=advice)
    return PUBLISHED[name]


def default_pairs(domains: Sequence[int]) -> Pairs:
    """Return all ordered pairs of up to 12 domains; of more, each domain with the next and the last with the first."""
    if len(domains) <= MAX_DOMAINS_FOR_ALL_PAIRS:
        return tuple(permutations(domains, 2))
    return tuple(zip(domains, (*domains[1:], domains[0]), strict=True))


def parse_pair(text: object, argument: str = "pairs") -> tuple[int, int]:
    """Read "2-11" as (2, 11); errors are about `argument`."""
    parts = str(text).split("-")
    if len(parts) != 2 or not all(part.isdecimal() and len(part) <= _LONGEST_NUMBER for part in parts):
        expected = "source and target as 2-11"
        raise invalid(argument, expected=expected, got=repr(text), advice="Separate them by a hyphen.")
    return int(parts[0]), int(parts[1])
