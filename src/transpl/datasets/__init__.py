"""Data sets: what comes with the package or with pip, and whatever lies prepared in the data folder.

`load("watch")` and `load("synthetic")` work anywhere; `load("ucihar")` reads `ucihar.npz` from
`$TRANSPL_DATA` (default: the platform's cache folder), and so does any other name. `transpl datasets prepare ucihar`
puts it there.
"""

from __future__ import annotations

from collections.abc import Callable

from transpl._utils.errors import invalid
from transpl.datasets.base import Dataset, Domain
from transpl.datasets.cards import refuse_second_scaling
from transpl.datasets.normalise import normalised
from transpl.datasets.prepared import data_home, load_prepared
from transpl.datasets.recipes.synthetic import make_shifted
from transpl.datasets.recipes.watch import load_watch, watch_available

__all__ = ["BUILT_IN", "RECIPES", "Dataset", "Domain", "load", "make_shifted", "names", "normalised"]

BUILT_IN: dict[str, Callable[[], Dataset]] = {"synthetic": make_shifted, "watch": load_watch}
RECIPES = ("ucihar", "wisdm", "hhar", "ptb")  # public sets that transpl.datasets.<name> prepares from raw files


def load(name: str, *, normalise: str = "none", source: int | None = None) -> Dataset:
    """Return the data set `name`; see `names` for what there is.

    normalise : "none" (the paper), "per_domain_train", "source_stats" (of the domain `source`) or "per_split"
        (AdaTime); `transpl.datasets.normalise` says what each one leaks
    """
    return normalised(_load(name, normalise), normalise, source)


def names() -> tuple[str, ...]:
    """Return what `load` can load now: the built-in data sets that are installed, then the prepared files."""
    built_in = [name for name in sorted(BUILT_IN) if name != "watch" or watch_available()]
    return (*built_in, *(name for name in _prepared_names() if name not in BUILT_IN))


def _load(name: str, normalise: str) -> Dataset:
    if name in BUILT_IN:
        return BUILT_IN[name]()
    if name in _prepared_names():
        path = data_home() / f"{name}.npz"
        refuse_second_scaling(path, normalise)
        return load_prepared(path)
    raise invalid(
        "name",
        expected=f"one of {', '.join(repr(known) for known in names())}",
        got=repr(name),
        advice=_how_to_get(name),
    )


def _how_to_get(name: str) -> str:
    if name in RECIPES:
        return f"Prepare it with: transpl datasets prepare {name} (looked in {data_home()}; TRANSPL_DATA changes that)"
    return f"Prepared data sets are looked for in {data_home()} as <name>.npz; set TRANSPL_DATA to look elsewhere."


def _prepared_names() -> tuple[str, ...]:
    home = data_home()
    # A name that starts with a dot is a file still being written.
    return tuple(sorted(path.stem for path in home.glob("*.npz") if not path.name.startswith(".")))
