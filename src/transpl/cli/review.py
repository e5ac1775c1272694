"""The command `transpl review`: parses, calls, prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transpl.cli import options as shared


def review(
    model: Annotated[Path, typer.Option(help="Folder written by adapt.")],
    out: Annotated[Path, typer.Option(help="File for the table, a csv to fill in. Labels in it are kept.")],
    input: Annotated[
        Path | None, typer.Option(help="Recordings to choose from. Default: those that adapt labelled.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many windows.")] = 20,
    spread: Annotated[
        bool, typer.Option("--spread", help="Take turns among the labels given, so that no class fills the list.")
    ] = False,
    domain_col: shared.DomainColumn = None,
    domain: shared.OnlyDomain = None,
    time_col: shared.TimeColumn = None,
    group_col: shared.GroupColumn = None,
    channels: shared.Columns = None,
    window: shared.Window = None,
    step: shared.Step = None,
    threads: shared.Threads = None,
    device: shared.Device = "auto",
) -> None:
    """Write the least confident windows to a csv. Fill in its column true_label; `adapt --labels` uses it."""
    from transpl.jobs import review_job, review_recordings
    from transpl.jobs.folder import write_table

    if input is None:
        table = review_job(model, n, spread=spread, earlier=out)
    else:
        fitted, read = shared.model_and_reader(
            model, threads, device, domain_col, time_col, group_col, channels, window, step
        )
        recordings = read(input, domain=domain)
        table = review_recordings(fitted, recordings, n, spread=spread, earlier=out)
    write_table(out, table)
    kept = int((table["true_label"] != "").sum())
    labelled = f", {kept} with the label that you had filled in" if kept else ""
    shared.say(
        f"wrote {out}: {len(table)} windows{labelled}. Fill in true_label, then: transpl adapt ... --labels {out}"
    )
