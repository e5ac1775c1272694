"""What there is: built-in, prepared and preparable data sets, as a table and as cards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets import BUILT_IN, RECIPES, load, names
from transpl.datasets.card_table import size
from transpl.datasets.cards import card_or_contents, card_path, contents, read_card
from transpl.datasets.prepare import recipe_for
from transpl.datasets.prepared import prepared_path, save_prepared

_BUILT_IN_TITLES = {
    "synthetic": "made data with a known shift, drawn when loaded",
    "watch": "shoulder exercises on a smartwatch, ten people (pip install transpl[watch])",
}


def shelf_view() -> Table:
    """One row per data set: name, whether it can be loaded now, what it is."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("state", no_wrap=True)
    table.add_column("what", overflow="fold")
    ready = names()
    for name in dict.fromkeys([*BUILT_IN, *RECIPES, *ready]):
        state, words = _row(name, name in ready)
        table.add_row(Text(name), state, Text(words))
    return table


def card_of(name: str) -> dict[str, Any]:
    """Return the card of anything that can be loaded."""
    if name not in names():
        load(name)  # says what there is and how to get this one
    if name not in BUILT_IN:
        return card_or_contents(prepared_path(name))
    with tempfile.TemporaryDirectory() as folder:
        npz = Path(folder) / f"{name}.npz"
        save_prepared(load(name), npz)
        card = card_or_contents(npz)
    return {**card, "title": _BUILT_IN_TITLES[name], "notes": [], "npz_sha256": ""}


def _row(name: str, ready: bool) -> tuple[str, str]:
    if name in BUILT_IN:
        return ("ready" if ready else "not installed"), _BUILT_IN_TITLES[name]
    state, words = _file_row(name) if ready else ("to prepare", _recipe_words(name))
    return state, words + (_option_lines(name) if name in RECIPES else "")


def _file_row(name: str) -> tuple[str, str]:
    try:
        npz = prepared_path(name)
    except InputError as error:
        return "bad name", str(error)
    try:
        card = read_card(npz) if card_path(npz).is_file() else {**contents(npz), "title": ""}
    except UnreadableFile as error:
        return "damaged", str(error)
    return "ready", ": ".join(part for part in (card["title"], size(card)) if part)


def _recipe_words(name: str) -> str:
    recipe = recipe_for(name)
    return f"{recipe.title}. Licence: {recipe.licence}"


def _option_lines(name: str) -> str:
    return "".join(f"\n  --option {key}=...: {words}" for key, words in recipe_for(name).options.items())
