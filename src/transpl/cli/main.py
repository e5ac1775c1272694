"""The front door for people who type commands. Thin: parses, calls, prints.

Progress and notes go to stderr, results to stdout or files; the exit code is 0 only if all of it worked.
Heavy imports wait inside the commands, so that `transpl --help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transpl.cli.adapt import adapt, demo
from transpl.cli.bench import bench, table
from transpl.cli.datasets import app as datasets_app
from transpl.cli.ending import run_and_exit
from transpl.cli.figures import figure
from transpl.cli.methods import methods
from transpl.cli.monitor import monitor
from transpl.cli.options import (
    Columns,
    Device,
    DomainColumn,
    GroupColumn,
    OnlyDomain,
    Step,
    Threads,
    TimeColumn,
    Window,
    model_and_reader,
    open_model,
    refuse_to_replace,
    say,
)
from transpl.cli.review import review

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Adapt a time-series classifier to a new user, device or patient without new labels, and see what shifted.",
)
app.add_typer(datasets_app, name="datasets")
app.command(epilog="Example: `transpl bench --dataset ucihar --methods all --seeds 3 --jobs 2`")(bench)
app.command(epilog="Example: `transpl table transpl-bench --which full --statistics`")(table)
app.command(epilog="Example: `transpl demo --out transpl-demo`")(demo)
app.command(
    epilog="Example: `transpl adapt --source lab.csv --target home.csv --label-col activity --time-col t --out results`"
)(adapt)


@app.command(epilog="Example: `transpl predict --model results --input new.csv > labels.csv`")
def predict(
    model: Annotated[Path, typer.Option(help="Folder written by adapt or demo, or by TransPL.save.")],
    input: Annotated[Path, typer.Option(help="Recordings: npz, csv or parquet.")],
    out: Annotated[Path | None, typer.Option(help="File for the table. Default: stdout.")] = None,
    domain_col: DomainColumn = None,
    domain: OnlyDomain = None,
    time_col: TimeColumn = None,
    group_col: GroupColumn = None,
    channels: Columns = None,
    window: Window = None,
    step: Step = None,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Label new recordings: one csv row per window with label, confidence and a probability per class."""
    from transpl.jobs import origin_of, predictions_table
    from transpl.jobs.folder import write_table

    refuse_to_replace([input], out)
    fitted, read = model_and_reader(model, threads, device, domain_col, time_col, group_col, channels, window, step)
    recordings = read(input, domain=domain)
    table = predictions_table(fitted, recordings.X, origin_of(recordings))
    if out is None:
        table.to_csv(sys.stdout, index=False)
    else:
        write_table(out, table)
        say(f"wrote {out}")


@app.command(epilog="Example: `transpl label results windows.npy --adapt --out labels`")
def label(
    model: Annotated[Path, typer.Argument(help="Folder written by adapt or demo, or by TransPL.save.")],
    windows: Annotated[Path, typer.Argument(help="Windows (n, channels, time) as numpy.save wrote them; any n.")],
    out: Annotated[Path, typer.Option(help="Folder for labels.npy, probabilities.npy and classes.json.")],
    adapt: Annotated[bool, typer.Option("--adapt", help="Count the windows as a new target domain first.")] = False,
    chunk: Annotated[int, typer.Option(min=1, help="Windows in memory at once.")] = 4096,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Label a .npy file of windows that need not fit in memory; go on where an interrupted run stopped."""
    from transpl.jobs import label_windows

    fitted, _ = open_model(model, threads, device)
    found = label_windows(fitted, windows, out, adapt=adapt, chunk=chunk, progress=True)
    for name, count in zip(found.classes, found.windows_per_class(), strict=True):
        typer.echo(f"{name:<30} {count:12,} windows   {count / len(found.labels):6.1%}")
    typer.echo(f"wrote {found.folder / 'labels.npy'}, probabilities.npy and classes.json")


@app.command(epilog="Example: `transpl report results`")
def report(folder: Annotated[Path, typer.Argument(help="Folder written by adapt, demo or bench.")]) -> None:
    """Write report.html from saved results: of an adaptation, or a benchmark's leaderboard, finished or not."""
    from transpl.benchmark import Store, read_leaderboard
    from transpl.report import write_leaderboard, write_report

    if not Store(folder).is_used:
        typer.echo(write_report(folder))
        return
    typer.echo(write_leaderboard(read_leaderboard(folder), folder))


app.command(epilog="Example: `transpl figure corruption transpl-bench --dataset ucihar`")(figure)
app.command(epilog="Example: `transpl methods deepcoral`")(methods)
app.command(epilog="Example: `transpl monitor --model results --input today.csv --json`")(monitor)
app.command(epilog="Example: `transpl review --model results --n 20 --out few.csv`")(review)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False) -> None:
    if version:
        from transpl import __version__

        typer.echo(f"transpl {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what went wrong is said in one line."""
    run_and_exit(lambda: app(standalone_mode=False))


if __name__ == "__main__":
    main()
