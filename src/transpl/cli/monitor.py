"""The command `transpl monitor`: parses, calls, prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transpl._utils.errors import invalid
from transpl.cli import options as shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from transpl.datasets.recordings.reading import Recordings
    from transpl.markov import Drift

DRIFTED = 3  # exit code


def monitor(
    model: Annotated[Path, typer.Option(help="Folder written by adapt or demo, or by TransPL.save.")],
    input: Annotated[Path, typer.Option(help="New recordings: npz, csv or parquet.")],
    reference: Annotated[
        Path | None, typer.Option(help="Recordings that you trust, to compare with instead of the model's source.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines: JSON on stdout.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    level: Annotated[float, typer.Option(help="If nothing has changed, this share of recordings stays inside.")] = 0.99,
    block: Annotated[
        int, typer.Option(min=1, help="Consecutive windows that belong together, where neighbours overlap.")
    ] = 1,
    shuffles: Annotated[int, typer.Option(min=1, help="Of windows, to find out what chance does.")] = 200,
    domain_col: shared.DomainColumn = None,
    domain: Annotated[str | None, typer.Option(help="Use only these rows of --input.")] = None,
    reference_domain: Annotated[
        str | None, typer.Option(help="Use only these rows of --reference. Default: all of them, whatever --domain is.")
    ] = None,
    time_col: shared.TimeColumn = None,
    group_col: shared.GroupColumn = None,
    channels: shared.Columns = None,
    window: shared.Window = None,
    step: shared.Step = None,
    threads: shared.Threads = None,
    device: shared.Device = "auto",
) -> None:
    """See which channels of new recordings have moved further than chance moves them.

    Exit code 0: none has. 3: at least one has. 1 or 2: an error.
    """
    from transpl._utils.files import write_json

    if reference is None and reference_domain is not None:
        expected, advice = "nothing without --reference", "Name the recordings to choose from."
        raise invalid("--reference-domain", expected=expected, got=repr(reference_domain), advice=advice)
    shared.refuse_to_replace([input, reference], out)
    fitted, read = shared.model_and_reader(
        model, threads, device, domain_col, time_col, group_col, channels, window, step
    )
    new = read(input, domain=domain)
    trusted = None if reference is None else _reference(read, reference, reference_domain, time_col, group_col)
    if trusted is not None and domain is not None and reference_domain is None:
        _note_whole(reference, trusted)
    found = fitted.drift(
        new.X,
        None if trusted is None else trusted.X,
        channel_names=new.channel_names,
        level=level,
        n_shuffles=shuffles,
        block=block,
    )
    if out is not None:
        write_json(out, found.as_json())
    typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False) if as_json else _as_text(found))
    if found.drifted:
        raise typer.Exit(DRIFTED)


def _reference(
    read: Callable[..., Recordings], path: Path, domain: str | None, time_col: str | None, group_col: str | None
) -> Recordings:
    """Columns that were named are asked of the reference too, but for that of a domain if all of it is taken."""
    if domain is not None:
        return read(path, domain=domain)
    named = {"domain_col": None, "time_col": time_col, "group_col": group_col}
    return read(path, optional=[name for name in shared.REMEMBERED if named[name] is None])


def _note_whole(reference: Path | None, trusted: Recordings) -> None:
    """Say that one person is compared with several."""
    whose = 0 if trusted.domain is None else len(set(trusted.domain.tolist()))
    if whose > 1:
        shared.say(
            f"note: {reference} is compared with as a whole, all {whose} domains of it; --domain chooses from --input "
            "alone, --reference-domain from --reference."
        )


def _as_text(found: Drift) -> str:
    table = found.table().drop(columns="channel_distance").rename(columns={"left": "band"})
    table["band"] = table["band"].map({True: "left", False: "inside"})
    return f"{table.to_string(index=False, float_format='{:.3f}'.format)}\n{found.sentence()}"
