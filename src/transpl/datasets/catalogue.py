"""What data sets there are, and a card, in the terminal."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets import BUILT_IN, RECIPES, load, names
from transpl.datasets.cards import SPLITS, card_or_contents, card_path, contents, read_card
from transpl.datasets.prepare import recipe_for
from transpl.datasets.prepared import prepared_path, save_prepared

_BUILT_IN_TITLES = {
    "synthetic": "made data with a known shift, drawn when loaded",
    "watch": "shoulder exercises on a smartwatch, ten people (pip install transpl[watch])",
}
# Okabe and Ito's colours with an ink that is readable on them, and a letter, so that bars need no colour.
_COLOURS = (
    *(("#0072B2", "white"), ("#E69F00", "black"), ("#009E73", "white"), ("#CC79A7", "black")),
    *(("#D55E00", "white"), ("#56B4E9", "black"), ("#8a8a8a", "black")),
)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BAR_WIDTH = 40
_MAX_DOMAINS, _MAX_FILES = 60, 5


def datasets_table() -> Table:
    """List every data set: its name, whether it can be loaded now, and what it is."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("state", no_wrap=True)
    table.add_column("what", overflow="fold")
    for row in datasets_as_json():
        options = "".join(f"\n  --option {key}=...: {line}" for key, line in row["options"].items())
        table.add_row(Text(row["name"]), row["state"], Text(row["what"] + options))
    return table


def datasets_as_json() -> list[dict[str, Any]]:
    """List every data set as plain values: name, state, what it is, and options of `prepare`."""
    rows, ready = [], names()
    for name in dict.fromkeys([*BUILT_IN, *RECIPES, *ready]):
        if name in BUILT_IN:
            state, words = ("ready" if name in ready else "not installed"), _BUILT_IN_TITLES[name]
        elif name in ready:
            state, words = _state_of_file(name)
        else:
            recipe = recipe_for(name)
            state, words = "to prepare", f"{recipe.title}. Licence: {recipe.licence}"
        options = dict(recipe_for(name).options) if name in RECIPES else {}
        rows.append({"name": name, "state": state, "what": words, "options": options})
    return rows


def _state_of_file(name: str) -> tuple[str, str]:
    try:
        npz = prepared_path(name)
    except InputError as error:
        return "bad name", str(error)
    try:
        card = read_card(npz) if card_path(npz).is_file() else {**contents(npz), "title": ""}
    except UnreadableFile as error:
        return "damaged", str(error)
    return "ready", summary(card)


def card_of(name: str) -> dict[str, Any]:
    """Return the card of any data set that can be loaded."""
    if name not in names():
        load(name)  # raises an error that says how to get it
    if name not in BUILT_IN:
        return card_or_contents(prepared_path(name))
    with tempfile.TemporaryDirectory() as folder:
        npz = Path(folder) / f"{name}.npz"
        save_prepared(load(name), npz)
        card = card_or_contents(npz)
    return {**card, "title": _BUILT_IN_TITLES[name], "notes": [], "npz_sha256": ""}


def card_text(card: Mapping[str, Any]) -> Group:
    """Return a card as something rich can print, with the class proportions of each domain as bars."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in card_facts(card):
        facts.add_row(name, Text(value))
    key = Text("classes  ", style="bold")
    for k, name in enumerate(card["classes"]):
        letter, colour, ink = class_mark(k)
        key.append(f" {letter} ", style=f"bold {ink} on {colour}").append(f" {name}   ")
    bars = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("domain", "train", "test", "classes"):
        bars.add_column(name, justify="right" if name in SPLITS else "left", no_wrap=True)
    for domain, parts in list(card["counts"].items())[:_MAX_DOMAINS]:
        train, test = (f"{sum(parts[part].values()):,}" for part in SPLITS)
        bars.add_row(Text(domain_title(card, domain)), train, test, _bar(class_totals(card, domain)))
    if len(card["counts"]) > _MAX_DOMAINS:
        bars.add_row(f"and {len(card['counts']) - _MAX_DOMAINS} more", "", "", "")
    return Group(facts, Text(), key, bars, *(Text(f"- {note}") for note in card["notes"]))


def card_facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of a card as (name, text), without empty ones."""
    origin = []
    for file in card["origin"][:_MAX_FILES]:
        digest = str(file.get("sha256") or "")
        words = [
            str(file.get("name", "?")),
            f"(SHA-256 {digest[:12]}...)" if digest else "",
            *(file.get("urls") or ())[:1],
        ]
        origin.append(("from", " ".join(words)))
    if more := len(card["origin"]) - len(origin):
        origin.append(("", f"and {more} more files"))
    facts = [
        ("name", f"{card['name']}: {card['title']}" if card["title"] else card["name"]),
        ("size", summary({**card, "title": ""})),
        ("channels", ", ".join(card["channels"])),
        ("rule", card["rule"]),
        ("options", ", ".join(f"{key}={value}" for key, value in card["options"].items())),
        ("normalised", card["normalise"]),
        *origin,
        ("homepage", card["homepage"]),
        ("licence", card["licence"]),
        ("citation", card["citation"]),
        ("made by", f"transpl {card['transpl_version']}, datasets {card['made_by']}" if card["made_by"] else ""),
        ("sha256", card["npz_sha256"]),
    ]
    return [(name, value) for name, value in facts if value]


def summary(card: Mapping[str, Any]) -> str:
    """Return title and size in one line."""
    size = (
        f"{card['windows']:,} windows of {len(card['channels'])} channels x {card['length']} samples, "
        f"{len(card['counts'])} domains, {len(card['classes'])} classes"
    )
    return f"{card['title']}: {size}" if card["title"] else size


def domain_title(card: Mapping[str, Any], domain: object) -> str:
    """Return the id of a domain with its name, if it has one."""
    return f"{domain} {card['domain_names'].get(str(domain), '')}".strip()


def class_totals(card: Mapping[str, Any], domain: str) -> list[int]:
    """Return the number of windows of each class in a domain, train and test together."""
    return [sum(card["counts"][domain][part][name] for part in SPLITS) for name in card["classes"]]


def class_mark(k: int) -> tuple[str, str, str]:
    """Return the letter of class `k`, its colour, and the colour of text on it."""
    return _LETTERS[k % len(_LETTERS)], *_COLOURS[k % len(_COLOURS)]


def _bar(counts: list[int]) -> Text:
    line = Text()
    for k, cells in enumerate(shared_cells(counts, _BAR_WIDTH)):
        letter, colour, ink = class_mark(k)
        line.append(letter * cells, style=f"{ink} on {colour}")
    return line


def shared_cells(counts: list[int], width: int) -> list[int]:
    """Divide `width` cells in proportion to `counts`; a class with any window gets at least one cell."""
    n = np.array(counts)
    if n.sum() == 0:
        return [0] * len(counts)
    ideal = max(0, width - (n > 0).sum()) * n / n.sum()
    cells = ideal.astype(int) + (n > 0)
    by_remainder = np.argsort(ideal.astype(int) - ideal, kind="stable")
    cells[by_remainder[: max(0, width - cells.sum())]] += 1
    return cells.tolist()
