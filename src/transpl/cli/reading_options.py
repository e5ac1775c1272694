"""The options that say how recordings are read: the same for every command that reads some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from transpl._utils.errors import InputError
from transpl._utils.progress import task
from transpl.cli.command import FILES
from transpl.cli.options import log, open_model, split_names

if TYPE_CHECKING:
    from transpl import TransPL
    from transpl.datasets.recordings.reading import Recordings

_ADD_CHANNELS = "The model needs them: add them, or adapt again with the channels that all files have (--channels)."
REMEMBERED = ("domain_col", "group_col", "time_col")  # columns of the source that new recordings may lack


Rate = Annotated[
    float | None,
    typer.Option(help="Resample all recordings to so many samples per second.", rich_help_panel=FILES),
]
Gap = Annotated[
    float | None,
    typer.Option(help="Seconds without a row that cut.", show_default="over 3 missing samples", rich_help_panel=FILES),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(help="Of a time column of numbers: s, ms, us, ns.", show_default="found", rich_help_panel=FILES),
]


@dataclass(frozen=True)
class Reading:
    """How recordings are read, as it was typed. A command with a parameter `reading` has an option for each field."""

    time_col: Annotated[
        str | None, typer.Option(help="Column with the time; rows are sorted by it, gaps cut windows.")
    ] = None
    group_col: Annotated[str | None, typer.Option(help="Column that names the recording; no window spans two.")] = None
    channels: Annotated[
        str | None, typer.Option(help="Channel columns, comma-separated. Default: all other numeric columns.")
    ] = None
    window: Annotated[
        str | None,
        typer.Option(help="Length of a window, in samples (128) or seconds (2.5s).", show_default="128"),
    ] = None
    step: Annotated[
        str | None,
        typer.Option(
            help="From one window's start to the next, in samples or seconds.",
            show_default="half a window",
            rich_help_panel=FILES,
        ),
    ] = None
    domain_col: Annotated[
        str | None, typer.Option(help="Column that names the domain (user, device, patient).", rich_help_panel=FILES)
    ] = None
    rate: Rate = None
    gap: Gap = None
    time_unit: TimeUnit = None
    sep: Annotated[
        str | None,
        typer.Option(
            help="Between columns: comma, semicolon, tab, bar, blanks.", show_default="found", rich_help_panel=FILES
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(help="Decimal sign: point, comma.", show_default="found", rich_help_panel=FILES),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was typed, as arguments of `read_recordings`."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found |= {"channels": split_names(self.channels)}
        found |= {name: _size(found[name]) for name in ("window", "step")}
        return {name: value for name, value in found.items() if value is not None}


READ = Reading()


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Reading` in place of its parameter `reading`, if it has one."""
    own = inspect.signature(command, eval_str=True)
    if "reading" not in own.parameters:
        return command
    hints = get_type_hints(Reading, include_extras=True)
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(Reading)
    ]
    parameters: list[inspect.Parameter] = []
    for each in own.parameters.values():
        shown = each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += options if each.name == "reading" else [shown]

    @wraps(command)
    def with_options(**given: Any) -> None:
        reading = Reading(**{option.name: given.pop(option.name) for option in options})
        command(**given, reading=reading)

    # `inspect` looks here, and so typer; the types of functions do not have it.
    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_options


def read_and_log(path: Path, **reading: Any) -> Recordings:
    """Read recordings, and say what was read; a folder has those of one person."""
    from transpl.datasets.recordings.several import files_of

    return read_files([path], files_of(path), **reading)


def read_files(paths: Sequence[Path], files: Sequence[Path], **reading: Any) -> Recordings:
    """Read files as one, and say what was read; `paths` are what was typed."""
    from transpl.datasets.recordings.reading import read_recordings
    from transpl.datasets.recordings.several import read_several

    names = ", ".join(path.name for path in paths)
    with task(f"reading {names}", None):
        recordings = read_several(files, read_recordings, **reading)
    log(recordings.description)
    for warning in recordings.warnings:
        log(f"note: {warning}")
    return recordings


def model_and_reader(
    folder: Path, threads: int | None, device: str, given: dict[str, Any]
) -> tuple[TransPL, Callable[..., Recordings]]:
    """Load a fitted model, and a `read_and_log` that reads as its recordings were read, except for what is `given`."""
    from transpl.datasets.recordings.tables import NAME_CHANNELS

    fitted, reading = open_model(folder, threads, device)
    if sorted(given.get("channels", ())) == sorted(reading.get("channels", ())):
        given = {name: value for name, value in given.items() if name != "channels"}  # the model knows their order
    optional = [name for name in REMEMBERED if name not in given]

    def read(path: Path, **more: Any) -> Recordings:
        try:
            return read_and_log(path, **{"optional": optional, **reading, **given, **more})
        except InputError as error:  # with other channels the model could not do anything
            raise InputError(str(error).replace(NAME_CHANNELS, _ADD_CHANNELS)) from None

    return fitted, read


def _size(text: str | None) -> int | str | None:
    """Read a number of samples; leave seconds, and what is neither, to `read_recordings`."""
    return int(text) if text is not None and text.strip().isdecimal() else text
