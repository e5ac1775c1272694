"""The commands that look at results and models: `transpl report`, `figure`, `methods`, `monitor` and `review`."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid
from transpl._utils.locks import writing
from transpl.cli.command import CHOICE, FIGURE, FILES, METHOD
from transpl.cli.options import (
    AsJson,
    Device,
    ModelFolder,
    OnlyDomain,
    Plugins,
    Threads,
    log,
    print_json,
    read_settings,
    refuse_to_replace,
    split_assignments,
    split_commas,
)
from transpl.cli.reading_options import READ, REMEMBERED, Reading, model_and_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

_DRIFTED = 3  # exit code


def report(
    folder: Annotated[Path, typer.Argument(help="Folder written by adapt, demo or bench; or a CSV of --save-lines.")],
    as_json: AsJson = False,
) -> None:
    """Write report.html from saved results: of an adaptation, or a benchmark's leaderboard, finished or not."""
    from transpl.benchmark import Store, leaderboard_of_lines, read_leaderboard
    from transpl.report import write_leaderboard, write_report

    if folder.is_file():
        page = write_leaderboard(leaderboard_of_lines([folder]), folder.with_suffix(".html"))
    elif not Store(folder).is_used:
        page = write_report(folder)
    else:
        page = write_leaderboard(read_leaderboard(folder), folder)
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(page)


def figure(
    name: Annotated[str, typer.Argument(help="entropy, codes, likelihoods, alignment or corruption.")],
    folder: Annotated[Path, typer.Argument(help="Folder written by bench, or by adapt or demo.")],
    dataset: Annotated[str | None, typer.Option(help="Of a benchmark: this data set.")] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(help="Of a benchmark: as 2-11,6-23. Default: all, or the first.", callback=split_commas),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of a benchmark: runs of this seed. Default: the smallest.", rich_help_panel=CHOICE),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Of a benchmark: runs with this setting, as patch_length=16.",
            callback=split_assignments,
            metavar="NAME=VALUE",
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="likelihoods: number of the target window. Default: a telling one.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option(help="likelihoods, corruption: name, or number from 0. Default of corruption: 6.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="corruption: levels in standard deviations of the channel, as 0,0.5,1,2.", rich_help_panel=FIGURE
        ),
    ] = None,
    noise_seeds: Annotated[
        int | None, typer.Option(min=1, help="corruption: draws of the noise. Default: 3.", rich_help_panel=FIGURE)
    ] = None,
    order: Annotated[
        int | None, typer.Option(min=2, help="entropy: values per pattern. Default: 3.", rich_help_panel=FIGURE)
    ] = None,
    delay: Annotated[
        int | None, typer.Option(min=1, help="entropy: steps between them. Default: 1.", rich_help_panel=FIGURE)
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="codes, entropy: decode a code alone (default), or where it occurs in the source.",
            rich_help_panel=FIGURE,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a figure of the paper from saved results: a page to open, its data as JSON, and what is to be seen.

    *entropy*: are coarse codes simpler than fine ones; *codes*: all codes drawn; *likelihoods*: why a window gets its
    label; *alignment*: which channels moved; *corruption*: does a channel lose trust when noise spoils it.
    """
    from transpl.datasets.pairs import parse_pair
    from transpl.report.figures import RunChoice, make_figure

    settings = read_settings(change, "--set")
    choice = RunChoice(dataset, tuple(parse_pair(pair) for pair in pairs or ()), seed, settings)
    try:
        levels = None if noise is None else [float(level) for level in noise.split(",")]
    except ValueError:
        expected = "numbers separated by commas, as 0,0.5,1,2"
        raise invalid("--noise", expected=expected, got=repr(noise), advice="Correct it.") from None
    options = {"window": window, "channel": channel, "noise": levels, "noise_seeds": noise_seeds}
    options |= {"order": order, "delay": delay, "context": context}
    made = make_figure(name, folder, choice, log, **options)
    if as_json:
        print_json({"findings": list(made.findings), "page": str(made.page)})
        return
    for sentence in made.findings:
        typer.echo(sentence)
    typer.echo(f"open {made.page}")


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method, its settings and presets.")] = None,
    plugins: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Show the adaptation methods that can be compared, or everything about one of them."""
    from rich.console import Console

    if name is None and not plugins and not as_json:
        from transpl.methods.listing import listed_methods  # needs neither torch nor seconds

        parts: list[RenderableType] = [_method_table([each._asdict() for each in listed_methods()])]
    else:
        from transpl.benchmark.plugins import import_plugins
        from transpl.methods.registry import entry, names

        import_plugins(plugins or ())
        found: Any = [entry(each).description() for each in names()] if name is None else entry(name).description()
        if as_json:
            print_json(found)
            return
        parts = [_method_table(found)] if name is None else _method_view(found)
    console = Console(soft_wrap=False)
    for part in parts:
        console.print(part)


def _method_table(methods: list[dict[str, str]]) -> RenderableType:
    columns = ("name", "family", "needs", "reference")
    return _table(columns, [[each[column] for column in columns] for each in methods], one_line=True)


def _method_view(method: dict[str, Any]) -> list[RenderableType]:
    """Description, settings and presets of a method."""
    from rich.text import Text

    settings = [[each["name"], repr(each["default"]), each["help"]] for each in method["settings"]]
    presets = [
        [preset, dataset, ", ".join(f"{key}={value!r}" for key, value in values.items())]
        for preset, per_dataset in method["presets"].items()
        for dataset, values in per_dataset.items()
    ]
    parts: list[RenderableType] = [
        Text(f"{method['name']}: {method['description']}\n"),
        *(Text(f"{key}: {method[key]}") for key in ("family", "needs", "reference")),
        Text(),
        _table(("setting", "default", "help"), settings),
    ]
    return [*parts, Text(), _table(("preset", "data set", "values"), presets)] if presets else parts


def _table(columns: Sequence[str], rows: list[list[str]], *, one_line: bool = False) -> RenderableType:
    """Rows of text; the first two columns are never broken. With `one_line` the others end in an ellipsis instead."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, no_wrap=position < 2, overflow="fold", style="bold" if position == 0 else None)
    shorten: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"} if one_line else {}
    for row in rows:
        table.add_row(*(Text(cell, **(shorten if i > 1 else {})) for i, cell in enumerate(row)))
    return table


def monitor(
    model: ModelFolder,
    input: Annotated[Path, typer.Option(help="New recordings, or a folder with those of one person.")],
    reference: Annotated[
        Path | None, typer.Option(help="Recordings that you trust, to compare with instead of the model's source.")
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    level: Annotated[float, typer.Option(help="If nothing has changed, this share of recordings stays inside.")] = 0.99,
    block: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Consecutive windows that belong together.",
            show_default="as neighbours overlap",
            rich_help_panel=METHOD,
        ),
    ] = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="Of windows, to find out what chance does.", rich_help_panel=METHOD)
    ] = 200,
    domain: Annotated[str | None, typer.Option(help="Use only these rows of --input.", rich_help_panel=FILES)] = None,
    reference_domain: Annotated[
        str | None,
        typer.Option(
            help="Use only these rows of --reference. Default: all of them, whatever --domain is.",
            rich_help_panel=FILES,
        ),
    ] = None,
    reading: Reading = READ,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """See which channels of new recordings have moved further than chance moves them.

    Exit code 0: none has. 3: at least one has. 1 or 2: an error.
    """
    from transpl._utils.files import write_json

    if reference is None and reference_domain is not None:
        expected, advice = "nothing without --reference", "Name the recordings to choose from."
        raise invalid("--reference-domain", expected=expected, got=repr(reference_domain), advice=advice)
    refuse_to_replace([input, reference], out)
    given = reading.given()
    fitted, read = model_and_reader(model, threads, device, given)
    new, trusted = read(input, domain=domain), None
    if reference is not None and reference_domain is not None:
        trusted = read(reference, domain=reference_domain)
    elif reference is not None:
        # A column named on the command line must be in the reference too, except that of a domain, as all are used.
        trusted = read(reference, optional=[name for name in REMEMBERED if name == "domain_col" or name not in given])
        domains = 0 if trusted.domain is None else len(set(trusted.domain.tolist()))
        if domain is not None and domains > 1:
            log(
                f"note: the reference is all {domains} domains of {reference}; --domain chooses from --input alone, "
                "--reference-domain from --reference."
            )
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
    if as_json:
        print_json(found.as_json())
    else:
        table = found.table().drop(columns="channel_distance").rename(columns={"left": "band"})
        table["band"] = table["band"].map({True: "left", False: "inside"})
        typer.echo(table.to_string(index=False, float_format="{:.3f}".format))
        typer.echo(found.sentence())
    if found.drifted:
        raise typer.Exit(_DRIFTED)


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
    domain: OnlyDomain = None,
    reading: Reading = READ,
    threads: Threads = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Write the windows to check first to a csv. Fill in its column true_label; `adapt --labels` uses it."""
    from transpl import jobs
    from transpl._utils.files import is_stream
    from transpl.jobs.folder import write_table

    file = Path(os.path.realpath(out))
    with nullcontext() if is_stream(out) else writing(file.parent, file.name):
        if input is None:
            table = jobs.review_job(model, n, spread=spread, earlier=out)
        else:
            fitted, read = model_and_reader(model, threads, device, reading.given())
            table = jobs.review_recordings(fitted, read(input, domain=domain), n, spread=spread, earlier=out)
        write_table(out, table)
    kept = int((table["true_label"] != "").sum())
    labelled = f", {kept} of them labelled before" if kept else ""
    log(f"wrote {out}: {len(table)} windows{labelled}. Fill in true_label, then: transpl adapt ... --labels {out}")
    if as_json:
        print_json({"table": str(out), "windows": len(table), "labelled_before": kept})
