"""Data sets: what comes with the package or with pip, and whatever lies prepared in the data folder.

`load("watch")` and `load("synthetic")` work anywhere; `load("ucihar")` reads `ucihar.npz` from
`$TRANSPL_DATA` (default: the platform's cache folder), and so does any other name.
"""

from __future__ import annotations

from collections.abc import Callable

from transpl.datasets.base import Dataset, Domain
from transpl.datasets.prepared import data_home, load_prepared
from transpl.datasets.synthetic import make_shifted
from transpl.datasets.watch import load_watch, watch_available
from transpl.errors import wrong

__all__ = ["Dataset", "Domain", "load", "make_shifted", "names"]

_BUILT_IN: dict[str, Callable[[], Dataset]] = {"synthetic": make_shifted, "watch": load_watch}


def load(name: str) -> Dataset:
    """Return the data set `name`; see `names` for what there is."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    if name in _prepared_names():
        return load_prepared(data_home() / f"{name}.npz")
    raise wrong(
        "name",
        expected=f"one of {', '.join(repr(known) for known in names())}",
        got=repr(name),
        advice=f"Prepared data sets are looked for in {data_home()} as <name>.npz; set TRANSPL_DATA to look elsewhere.",
    )


def names() -> tuple[str, ...]:
    """Return what `load` can load now: the built-in data sets that are installed, then the prepared files."""
    built_in = [name for name in sorted(_BUILT_IN) if name != "watch" or watch_available()]
    return (*built_in, *(name for name in _prepared_names() if name not in _BUILT_IN))


def _prepared_names() -> tuple[str, ...]:
    home = data_home()
    # A name that starts with a dot is a file still being written.
    return tuple(sorted(path.stem for path in home.glob("*.npz") if not path.name.startswith(".")))
