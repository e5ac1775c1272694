"""The command `transpl review`: parses, calls, prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transpl.cli_options import (
    Columns,
    Device,
    DomainColumn,
    GroupColumn,
    OnlyDomain,
    Step,
    Threads,
    TimeColumn,
    Window,
    reading_of,
    say,
)


def review(
    model: Annotated[Path, typer.Option(help="Folder written by adapt.")],
    out: Annotated[Path, typer.Option(help="File for the table, a csv to fill in.")],
    input: Annotated[
        Path | None, typer.Option(help="Recordings to choose from. Default: those that adapt labelled.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many windows.")] = 20,
    spread: Annotated[
        bool, typer.Option("--spread", help="Take turns among the labels given, so that no class fills the list.")
    ] = False,
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
    """Write the least confident windows to a csv. Fill in its column true_label; `adapt --labels` uses it."""
    from transpl import jobs
    from transpl.datasets.recordings import read_recordings
    from transpl.results import write_table
    from transpl.review import review_job, review_recordings

    if input is None:
        table = review_job(model, n, spread=spread)
    else:
        fitted, reading = jobs.load_model(model)
        fitted.set_params(n_threads=threads, device=device)
        reading |= reading_of(time_col, group_col, channels, window, step)
        recordings = read_recordings(input, domain=domain, domain_col=domain_col, **reading)
        say(recordings.description)
        table = review_recordings(fitted, recordings, n, spread=spread)
    write_table(out, table)
    typer.echo(f"wrote {out}: {len(table)} windows. Fill in true_label, then: transpl adapt ... --labels {out}")
