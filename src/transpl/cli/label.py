"""The commands that label with a model: `transpl predict` and `label`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid
from transpl.cli.options import (
    AsJson,
    Device,
    ModelFolder,
    OnlyDomain,
    Threads,
    log,
    open_model,
    print_json,
    refuse_to_replace,
)
from transpl.cli.reading_options import READ, Reading, model_and_reader

if TYPE_CHECKING:
    import pandas as pd


def predict(
    model: ModelFolder,
    input: Annotated[Path, typer.Option(help="Recordings, or a folder with those of one person.")],
    out: Annotated[Path | None, typer.Option(help="File for the table. Default: stdout.")] = None,
    segments: Annotated[
        Path | None, typer.Option(help="Also write from when to when which label holds to this csv.")
    ] = None,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Neighbouring windows of a recording seldom have different labels.")
    ] = False,
    domain: OnlyDomain = None,
    reading: Reading = READ,
    threads: Threads = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Label new recordings: one csv row per window with label, confidence and a probability per class."""
    from transpl import jobs
    from transpl.jobs.folder import write_table

    for file in (out, segments):
        refuse_to_replace([input], file)
    if out is not None and segments is not None and out.resolve() == segments.resolve():
        expected, advice = "another file than that of --out", "Choose another name."
        raise invalid("--segments", expected=expected, got=segments, advice=advice)
    fitted, read = model_and_reader(model, threads, device, reading.given())
    recordings = read(input, domain=domain)
    order: dict[str, Any] = {"groups": recordings.sequence, "smooth": True} if smooth else {}
    table = jobs.predictions_table(fitted, recordings.X, jobs.origin_of(recordings), **order)
    if segments is not None:
        write_table(segments, _require_segments(jobs.segments_of(table), input))
        log(f"wrote {segments}")
    if out is not None:
        write_table(out, table)
        log(f"wrote {out}")
    if as_json:
        print_json(json.loads(table.to_json(orient="records", double_precision=15)))
    elif out is None:
        table.to_csv(sys.stdout, index=False)


def _require_segments(found: pd.DataFrame | None, path: Path) -> pd.DataFrame:
    if found is None:
        got, advice = f"{path.name}, windows that are already cut", "Give a table of recordings, or leave it out."
        raise invalid("--segments", expected="recordings", got=got, advice=advice)
    return found


def label(
    model: Annotated[Path, typer.Argument(help="Folder written by adapt or demo, or by TransPL.save.")],
    windows: Annotated[Path, typer.Argument(help="Windows (n, channels, time) as numpy.save wrote them; any n.")],
    out: Annotated[Path, typer.Option(help="Folder for labels.npy, probabilities.npy and classes.json.")],
    adapt: Annotated[bool, typer.Option("--adapt", help="Adapt to the windows as a new target domain first.")] = False,
    chunk: Annotated[int, typer.Option(min=1, help="Windows in memory at once.")] = 4096,
    threads: Threads = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Label a .npy file of windows that need not fit in memory; go on where an interrupted run stopped."""
    from transpl import jobs

    fitted, _ = open_model(model, threads, device)
    found = jobs.label_windows(fitted, windows, out, adapt=adapt, chunk=chunk, progress=True)
    counts = dict(zip(found.classes, found.windows_per_class(), strict=True))
    if as_json:
        windows_per_class = {str(name): int(count) for name, count in counts.items()}
        print_json({"folder": str(found.folder), "windows": len(found.labels), "windows_per_class": windows_per_class})
        return
    for name, count in counts.items():
        typer.echo(f"{name:<30} {count:12,} windows   {count / len(found.labels):6.1%}")
    typer.echo(f"wrote {found.folder / 'labels.npy'}, probabilities.npy and classes.json")
