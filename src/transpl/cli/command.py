"""How every command looks: what its help shows first, what `--help-all` adds, and `--quiet`.

An option in a panel of its own (`rich_help_panel`) is rarely needed: it works and completes like any other, but only
`--help-all` shows it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from transpl._utils.progress import silence

# Panels of `--help-all`.
FILES, METHOD, RUNNING, OUTPUT = "How files are read", "How it adapts", "How it runs", "What it shows"
CHOICE, FIGURE = "What is taken", "Single figures"
COUNCIL, NETWORK = "The default method", "The paper's method (--variant paper)"


class Command(TyperCommand):
    """A command with `--quiet`, and with `--help-all` if it has options that `--help` leaves out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        quiet, help_all = _common_options()
        self.shows_all = False
        self.params = [*self.params, quiet]
        if any(_is_rare(each) for each in self.params[:-1]):
            self.params.append(help_all)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without rarely used options unless all are asked for."""
        rare: list[Any] = [] if self.shows_all else [each for each in self.params if _is_rare(each)]
        for each in rare:
            each.hidden = True  # only here: shell completion leaves hidden options out
        try:
            super().format_help(ctx, formatter)
        finally:
            for each in rare:
                each.hidden = False


def _is_rare(param: Any) -> bool:
    return getattr(param, "rich_help_panel", None) is not None


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        command: Any = ctx.command
        command.shows_all = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def be_quiet(wanted: bool) -> None:
    """Show nothing but results and errors."""
    if wanted:
        silence()


@cache
def _common_options() -> tuple[Any, Any]:
    """`--quiet` and `--help-all`, as typer makes them of a function's parameters."""

    def options(
        quiet: Annotated[
            bool,
            typer.Option(
                "--quiet",
                help="No progress and no notes, only results and errors.",
                rich_help_panel=OUTPUT,
                callback=be_quiet,
                expose_value=False,
                is_eager=True,
            ),
        ] = False,
        help_all: Annotated[
            bool,
            typer.Option("--help-all", help="Show all options.", callback=_show_all, expose_value=False, is_eager=True),
        ] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(options)
    found = {each.name: each for each in typer.main.get_command(app).params}
    return found["quiet"], found["help_all"]
