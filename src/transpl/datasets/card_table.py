"""A card in the terminal: what is in a data set, and the class proportions of each domain as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from transpl.datasets.cards import SPLITS

# Okabe and Ito's colours, each with a letter: the bars are read without colour as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8a8a8a")
_INKS = ("white", "black", "white", "black", "white", "black", "black")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BAR = 40
_MOST_DOMAINS = 60


def card_view(card: Mapping[str, Any]) -> Group:
    """Return the card as something rich can print."""
    parts: list[RenderableType] = [_facts(card), Text(), _key(card), proportions(card)]
    return Group(*parts, *(Text(f"- {note}") for note in card["notes"]))


def _facts(card: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts(card):
        table.add_row(name, Text(value))
    return table


def facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a card says in words, empty fields left out."""
    listed = [
        ("name", f"{card['name']}: {card['title']}" if card["title"] else card["name"]),
        ("size", size(card)),
        ("channels", ", ".join(card["channels"])),
        ("rule", card["rule"]),
        ("options", ", ".join(f"{key}={value}" for key, value in card["options"].items())),
        ("normalised", card["normalise"]),
        *(("from", origin_line(file)) for file in card["origin"][:5]),
        ("", f"and {len(card['origin']) - 5} more files" if len(card["origin"]) > 5 else ""),
        ("homepage", card["homepage"]),
        ("licence", card["licence"]),
        ("citation", card["citation"]),
        ("made by", made_by(card)),
        ("sha256", card["npz_sha256"]),
    ]
    return [(name, value) for name, value in listed if value]


def size(card: Mapping[str, Any]) -> str:
    """How much there is, in one line."""
    return (
        f"{card['windows']:,} windows of {len(card['channels'])} channels x {card['length']} samples, "
        f"{len(card['counts'])} domains, {len(card['classes'])} classes"
    )


def origin_line(file: Mapping[str, Any]) -> str:
    """One raw file: its name, the beginning of its hash, its first address."""
    urls = list(file.get("urls") or ())
    digest = str(file.get("sha256") or "")
    return " ".join([str(file.get("name", "?")), f"(SHA-256 {digest[:12]}...)" if digest else "", *urls[:1]])


def made_by(card: Mapping[str, Any]) -> str:
    """Which command of which version made the file."""
    return f"transpl {card['transpl_version']}, datasets {card['made_by']}" if card["made_by"] else ""


def class_totals(parts: Mapping[str, Mapping[str, int]], classes: list[str]) -> list[int]:
    """Windows of each class of a domain, train and test together."""
    return [sum(parts[part][name] for part in SPLITS) for name in classes]


def letter(k: int) -> str:
    """The letter of class k."""
    return LETTERS[k % len(LETTERS)]


def colour(k: int) -> str:
    """The colour of class k."""
    return COLOURS[k % len(COLOURS)]


def ink(k: int) -> str:
    """The colour of letters on the colour of class k."""
    return _INKS[k % len(_INKS)]


def _key(card: Mapping[str, Any]) -> Text:
    words = Text("classes  ", style="bold")
    for k, name in enumerate(card["classes"]):
        words.append(f" {letter(k)} ", style=f"bold {ink(k)} on {colour(k)}").append(f" {name}   ")
    return words


def proportions(card: Mapping[str, Any]) -> Table:
    """One row per domain: windows in train and test, and a bar of its classes."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("domain", "train", "test"):
        table.add_column(name, justify="left" if name == "domain" else "right", no_wrap=True)
    table.add_column("classes", no_wrap=True)
    for domain, parts in list(card["counts"].items())[:_MOST_DOMAINS]:
        train, test = (f"{sum(parts[part].values()):,}" for part in SPLITS)
        title = f"{domain} {card['domain_names'].get(domain, '')}".strip()
        table.add_row(Text(title), train, test, bar(class_totals(parts, card["classes"])))
    if len(card["counts"]) > _MOST_DOMAINS:
        table.add_row(f"and {len(card['counts']) - _MOST_DOMAINS} more", "", "", "")
    return table


def bar(counts: list[int], width: int = _BAR) -> Text:
    """A bar of `width` cells shared out among the classes; a class that is there has at least one cell."""
    line = Text()
    for k, cells in enumerate(shared_cells(counts, width)):
        line.append(letter(k) * cells, style=f"{ink(k)} on {colour(k)}")
    return line


def shared_cells(counts: list[int], width: int) -> list[int]:
    """Share `width` cells out in proportion to `counts`, remainders to the largest fractions."""
    total = sum(counts)
    if total == 0:
        return [0] * len(counts)
    present = sum(count > 0 for count in counts)
    free = max(0, width - present)
    ideal = [free * count / total for count in counts]
    cells = [int(share) + (count > 0) for share, count in zip(ideal, counts, strict=True)]
    by_fraction = sorted(range(len(counts)), key=lambda k: int(ideal[k]) - ideal[k])
    for k in by_fraction[: max(0, width - sum(cells))]:
        cells[k] += 1
    return cells
