"""Data sets: those that come with the package or with pip, and those prepared in the data folder.

`load("watch")` and `load("synthetic")` work anywhere. Any other name, such as `load("ucihar")`, is read from
`<name>.npz` in `$TRANSPL_DATA` (default: the platform's cache folder), where `transpl datasets prepare ucihar` puts it.
"""

from __future__ import annotations

from collections.abc import Callable

from transpl._utils.errors import invalid
from transpl.datasets.cards import refuse_second_scaling
from transpl.datasets.dataset import Dataset, Domain, normalised
from transpl.datasets.frames import from_sktime
from transpl.datasets.prepared import data_home, load_prepared
from transpl.datasets.recipes.synthetic import make_shifted
from transpl.datasets.recipes.watch import load_watch, watch_available

__all__ = ["BUILT_IN", "RECIPES", "Dataset", "Domain", "from_sktime", "load", "make_shifted", "names", "normalised"]

BUILT_IN: dict[str, Callable[[], Dataset]] = {"synthetic": make_shifted, "watch": load_watch}
RECIPES = ("ucihar", "wisdm", "hhar", "ptb")  # public sets, each with a module in transpl.datasets.recipes


def load(name: str, *, normalise: str = "none", source: int | None = None) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of `names()`.
    normalise : {"none", "domain", "source_stats", "per_split"}
        How to scale the channels; see `normalised`. A file that is stored scaled is not scaled again.
    source : int, optional
        The source domain; required by "source_stats".

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from transpl import datasets
    >>> data = datasets.load("synthetic", normalise="domain")
    >>> data.class_names
    ('class_0', 'class_1', 'class_2')
    """
    if name in BUILT_IN:
        return normalised(BUILT_IN[name](), normalise, source)
    if name in _prepared_names():
        path = data_home() / f"{name}.npz"
        refuse_second_scaling(path, normalise)
        return normalised(load_prepared(path), normalise, source)
    advice = f"Prepared data sets are looked for in {data_home()} as <name>.npz; set TRANSPL_DATA to look elsewhere."
    if name in RECIPES:
        advice = (
            f"Prepare it with: transpl datasets prepare {name} (looked in {data_home()}; TRANSPL_DATA changes that)"
        )
    raise invalid("name", expected=f"one of {', '.join(map(repr, names()))}", got=repr(name), advice=advice)


def names() -> tuple[str, ...]:
    """Return the names that `load` accepts now: built-in sets that are installed, then the prepared files."""
    built_in = [name for name in sorted(BUILT_IN) if name != "watch" or watch_available()]
    return (*built_in, *(name for name in _prepared_names() if name not in BUILT_IN))


def _prepared_names() -> tuple[str, ...]:
    # Files whose name starts with a dot are still being written.
    return tuple(sorted(path.stem for path in data_home().glob("*.npz") if not path.name.startswith(".")))
