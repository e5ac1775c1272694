"""The command about methods: `transpl methods [NAME]`.

As in `transpl.cli.main`: parses, calls, prints; heavy imports wait inside.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method, its settings and presets.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show the adaptation methods that can be compared, or everything about one of them."""
    from transpl.methods.registry import entry, names

    if name is None:
        found = [entry(each).description() for each in names()]
        _show(found, _list_view(found), as_json)
    else:
        one = entry(name).description()
        _show(one, _method_view(one), as_json)


def _show(values: Any, view: RenderableType, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    Console(soft_wrap=False).print(view)


def _list_view(found: list[dict[str, Any]]) -> RenderableType:
    columns = ("name", "family", "needs", "reference")
    return _table(columns, [[each[column] for column in columns] for each in found], narrow=2)


def _method_view(one: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    settings = [[each["name"], repr(each["default"]), each["help"]] for each in one["settings"]]
    presets = [
        [preset, dataset, ", ".join(f"{key}={value!r}" for key, value in values.items())]
        for preset, per_dataset in one["presets"].items()
        for dataset, values in per_dataset.items()
    ]
    parts: list[RenderableType] = [
        Text(f"{one['name']}: {one['description']}\n"),
        *(Text(f"{key}: {one[key]}") for key in ("family", "needs", "reference")),
        Text(),
        _table(("setting", "default", "help"), settings, narrow=2),
    ]
    if presets:
        parts += [Text(), _table(("preset", "data set", "values"), presets, narrow=2)]
    return Group(*parts)


def _table(columns: tuple[str, ...], rows: list[list[str]], narrow: int) -> RenderableType:
    """Rows of text; the first `narrow` columns are never broken."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, no_wrap=position < narrow, overflow="fold", style="bold" if position == 0 else None)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
