"""The command line. Thin: it parses, calls and prints.

Progress and notes go to stderr, results to stdout or files; the exit code is 0 only if everything worked.
Commands import what they need when they run, so that `transpl --help` answers at once.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from transpl.cli.adapt import adapt, demo
from transpl.cli.bench import bench, table
from transpl.cli.check import check
from transpl.cli.command import Command, be_quiet
from transpl.cli.data import app as datasets_app
from transpl.cli.exit import run_and_exit
from transpl.cli.inspect import figure, methods, monitor, report, review
from transpl.cli.label import label, predict
from transpl.cli.production import export, serve
from transpl.cli.reading_options import with_reading

_FIRST = {  # what a newcomer needs, in the order of need; five of them are shown
    "demo": "See it work on real data, in a minute",
    "check": "See whether your files can be read, and how",
    "adapt": "Adapt from labelled recordings to unlabelled ones",
    "predict": "Label new recordings with the adapted model",
    "report": "Write the page about a folder of results again",
    "bench": "Compare methods on a benchmark",
}
_SHOWN_FIRST = 5

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Adapt a time-series classifier to a new user, device or patient without new labels, and see what shifted.",
)
app.add_typer(datasets_app, name="datasets")
for _command, _example in (
    (bench, "bench --dataset ucihar --methods no-adapt,transpl-plus --seeds 3 --jobs 2"),
    (table, "table transpl-bench --statistics"),
    (demo, "demo --out transpl-demo"),
    (check, "check lab.csv home.csv --label-col activity --time-col t"),
    (adapt, "adapt --source lab.csv --target home.csv --label-col activity --time-col t --out results"),
    (predict, "predict --model results --input new.csv > labels.csv"),
    (label, "label results windows.npy --adapt --out labels"),
    (report, "report results"),
    (figure, "figure corruption transpl-bench --dataset ucihar"),
    (methods, "methods deepcoral"),
    (monitor, "monitor --model results --input today.csv --json"),
    (review, "review --model results --n 20 --out few.csv"),
    (export, "export results --to onnx --out model.onnx"),
    (serve, "serve results --port 8000"),
):
    app.command(cls=Command, epilog=f"Example: `transpl {_example}`")(with_reading(_command))


@app.callback(invoke_without_command=True)
def _options(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="No progress and no notes, only results and errors; also after the command.",
            callback=be_quiet,
            is_eager=True,
        ),
    ] = False,
) -> None:
    if version:
        from transpl import __version__

        typer.echo(f"transpl {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        _show_first_commands(ctx)


def _show_first_commands(ctx: typer.Context) -> None:
    """What to type first, and where the rest is."""
    commands: Any = ctx.command
    known = [name for name in _FIRST if name in commands.commands]
    typer.echo("Adapt a time-series classifier to a new user, device or patient without new labels.\n")
    for name in known[:_SHOWN_FIRST]:
        typer.echo(f"  transpl {name:<8}  {_FIRST[name]}")
    typer.echo("\nAll commands: transpl --help. One command, with an example: transpl adapt --help")


def main() -> None:
    """Run the command line; an error is one line on stderr."""
    run_and_exit(lambda: app(prog_name="transpl", standalone_mode=False))


if __name__ == "__main__":
    main()
