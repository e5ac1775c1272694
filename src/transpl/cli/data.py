"""The commands about data: `transpl datasets list | prepare | info | import | make`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from transpl._utils.locks import writing
from transpl.cli.command import CHOICE, FILES, Command
from transpl.cli.options import AsJson, log, print_json, read_settings, split_assignments, split_names
from transpl.cli.reading_options import Gap, Rate, TimeUnit

app = typer.Typer(no_args_is_help=True, help="Prepare data sets and look at them.")


class Format(StrEnum):
    """Whose files."""

    adatime = "adatime"
    transpl = "transpl"


class Published(StrEnum):
    """Whose class and channel names and pairs."""

    ucihar = "ucihar"
    wisdm = "wisdm"
    hhar = "hhar"
    ptb = "ptb"


Force = Annotated[bool, typer.Option("--force", help="Do it again; replace what is there.")]
Name = Annotated[str, typer.Option(help="Name of the prepared data set.")]


@app.command("list", cls=Command, epilog="Example: `transpl datasets list`")
def list_(as_json: AsJson = False) -> None:
    """Show what can be loaded now, what can be prepared, and where it is kept."""
    from transpl.datasets.catalogue import datasets_as_json, datasets_table
    from transpl.datasets.prepared import data_home

    if as_json:
        print_json({"datasets": datasets_as_json(), "kept_in": str(data_home())})
        return
    _print(datasets_table())
    typer.echo(f"kept in {data_home()} (TRANSPL_DATA changes that)")


@app.command(cls=Command, epilog="Example: `transpl datasets prepare ucihar`")
def prepare(
    name: Annotated[str, typer.Argument(help="ucihar, wisdm, hhar or ptb.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="The archive or the unpacked folder, if you have it already.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use what was downloaded before; no network.")] = False,
    normalise: Annotated[str, typer.Option(help="none (the paper), domain or per_split.")] = "none",
    option: Annotated[
        list[str] | None, typer.Option(help="name=value for this data set.", callback=split_assignments)
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make a public data set from its raw files; downloads them unless told where they are."""
    from transpl.datasets.prepare import prepare as prepare_dataset

    npz = prepare_dataset(
        name,
        source=source,
        offline=offline,
        options=read_settings(option, "--option"),
        normalise=normalise,
        force=force,
        log=log,
    )
    _say_made(npz, as_json)


@app.command(cls=Command, epilog="Example: `transpl datasets info ucihar --html ucihar.html`")
def info(
    name: Annotated[str, typer.Argument(help="A prepared data set, watch or synthetic.")],
    html: Annotated[Path | None, typer.Option(help="Also write a page with example windows.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the card of a data set: origin, rule, counts, class proportions per domain."""
    from transpl.datasets.catalogue import card_of, card_text

    card = card_of(name)
    if as_json:
        print_json(card)
    else:
        _print(card_text(card))
    if html is not None:
        from transpl.datasets import load
        from transpl.datasets.card_page import write_card_page

        write_card_page(card, load(name), html)
        if not as_json:
            typer.echo(f"open {html}")


@app.command(
    "import", cls=Command, epilog="Example: `transpl datasets import data/HAR --format adatime --name har-adatime`"
)
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder with `train_<id>.pt` or `USER<id>_trainX.pkl` files.")],
    format: Annotated[Format, typer.Option(help="Whose files they are.")],
    name: Name,
    like: Annotated[
        Published | None, typer.Option(help="Take the names of this set, and its pairs as far as they are there.")
    ] = None,
    n_channels: Annotated[
        int | None, typer.Option(min=1, help="Which axis is channels. Default: that of --like, or the shorter one.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Take over files that AdaTime or TransPL's own code has prepared, without running what is pickled in them."""
    from transpl.datasets.cards import Provenance
    from transpl.datasets.importers import import_files
    from transpl.datasets.prepare import folder_origin, refuse_to_replace, store
    from transpl.datasets.prepared import prepared_path
    from transpl.datasets.recipe import Built

    npz = prepared_path(name)
    choices: dict[str, Any] = {"like": None if like is None else like.value, "n_channels": n_channels}
    with writing(npz.parent, npz.name):
        refuse_to_replace(npz, force)
        dataset = import_files(folder, name, format.value, **choices)
        provenance = Provenance(
            made_by="import",
            title=f"{format.value} files in {folder.resolve().name}",
            rule=f"Windows, labels and splits as the {format.value} files have them; values as they are.",
            origin=[folder_origin(folder)],
            options={"format": format.value, **{key: value for key, value in choices.items() if value is not None}},
        )
        store(npz, Built(dataset, {}, ()), provenance, log)
    _say_made(npz, as_json)


@app.command(
    cls=Command, epilog="Example: `transpl datasets make recordings --name mine --label-col activity --time-col t`"
)
def make(
    folder: Annotated[Path, typer.Argument(help="Folder with tables, or one table.")],
    name: Name,
    label_col: Annotated[str, typer.Option(help="Column with the class.")],
    domain_col: Annotated[str | None, typer.Option(help="Column that names the domain (user, device).")] = None,
    domain_from: Annotated[
        str | None,
        typer.Option(help="Without such a column: file or folder. Default: file.", rich_help_panel=FILES),
    ] = None,
    time_col: Annotated[
        str | None, typer.Option(help="Column with the time; gaps cut windows. Rows must be sorted by it.")
    ] = None,
    group_col: Annotated[str | None, typer.Option(help="Column that names the recording.")] = None,
    channels: Annotated[
        str | None, typer.Option(help="Channel columns, comma-separated. Default: all columns of numbers left.")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Window length in samples.")] = 128,
    step: Annotated[
        int | None,
        typer.Option(min=1, help="Samples between windows. Default: half a window.", rich_help_panel=FILES),
    ] = None,
    rate: Rate = None,
    gap: Gap = None,
    time_unit: TimeUnit = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="by_group: whole recordings test; by_time: their last part. Default: by_group if it can be.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of the test part.", rich_help_panel=CHOICE)] = 0.3,
    seed: Annotated[int, typer.Option(help="Of the choice of test recordings.", rich_help_panel=CHOICE)] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make a data set of your own recordings: one row per time step, one column per channel."""
    from transpl.datasets.recordings.make import prepare_recordings

    npz = prepare_recordings(
        folder,
        name,
        label_col=label_col,
        domain_col=domain_col,
        domain_from=domain_from,
        time_col=time_col,
        group_col=group_col,
        channels=split_names(channels),
        window=window,
        step=step,
        rate=rate,
        gap=gap,
        time_unit=time_unit,
        split=split,
        test_share=test_share,
        seed=seed,
        force=force,
        log=log,
    )
    _say_made(npz, as_json)


def _say_made(npz: Path, as_json: bool) -> None:
    from transpl.datasets.cards import read_card

    if as_json:
        print_json({"file": str(npz), "card": read_card(npz)})
    else:
        typer.echo(npz)


def _print(view: Any) -> None:
    from rich.console import Console

    Console(soft_wrap=False).print(view)
