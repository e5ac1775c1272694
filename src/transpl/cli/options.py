"""What several commands share: options about files, running and settings, how they are used, how notes are said."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid

if TYPE_CHECKING:
    from transpl import TransPL
    from transpl.datasets.recordings.reading import Recordings

Columns = Annotated[
    str | None, typer.Option(help="Channel columns, comma-separated. Default: all numeric columns left.")
]
DomainColumn = Annotated[str | None, typer.Option(help="Column that names the domain (user, device, patient).")]
TimeColumn = Annotated[str | None, typer.Option(help="Column with the time; rows are sorted by it, gaps cut windows.")]
GroupColumn = Annotated[str | None, typer.Option(help="Column that names the recording; no window spans two.")]
Window = Annotated[int | None, typer.Option(min=2, help="Window length in samples (csv, parquet). Default: 128.")]
Step = Annotated[int | None, typer.Option(min=1, help="Samples between window starts. Default: half a window.")]
OnlyDomain = Annotated[str | None, typer.Option(help="Use only these rows.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: the libraries' choice.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another parameter of TransPL, as top_ratio=0.3. May be repeated."),
]


# parameters of TransPL whose option has another name, and those that are the job's
_OPTION_OF = {"random_state": "seed", "max_epochs": "epochs", "n_threads": "threads"}
_OPTION_OF |= dict.fromkeys(("source_lr", "adapt_lr"), "learning_rate")
_NOT_TO_SET = ("checkpoint_dir", "verbose", "channel_names")
REMEMBERED = ("domain_col", "group_col", "time_col")  # columns that new recordings may do without


def say(line: str) -> None:
    """Tell the person at the terminal; stdout is for results."""
    typer.echo(line, err=True)


def reading_of(
    domain_col: str | None,
    time_col: str | None,
    group_col: str | None,
    channels: str | None,
    window: int | None,
    step: int | None,
) -> dict[str, Any]:
    """How recordings are read: what was given; the rest is `read_recordings`' own choice."""
    names = None if channels is None else [name.strip() for name in channels.split(",") if name.strip()]
    given: dict[str, Any] = {"domain_col": domain_col, "time_col": time_col, "group_col": group_col}
    given |= {"channels": names, "window": window, "step": step}
    return {name: value for name, value in given.items() if value is not None}


def open_model(folder: Path, threads: int | None, device: str) -> tuple[TransPL, dict[str, Any]]:
    """A fitted model that runs here, and how its recordings were read."""
    from transpl import jobs

    fitted, reading = jobs.load_model(folder)
    return fitted.set_params(n_threads=threads, device=device), reading


def read_and_say(path: Path, **reading: Any) -> Recordings:
    """Read recordings, and say what was read."""
    from transpl.datasets.recordings.reading import read_recordings

    recordings = read_recordings(path, **reading)
    say(recordings.description)
    for line in recordings.warnings:
        say(f"note: {line}")
    return recordings


def refuse_to_replace(recordings: Sequence[Path | None], out: Path | None) -> None:
    """Raise if results would take the place of recordings that they are made of."""
    for path in recordings:
        if path and out and path.exists() and out.exists() and out.samefile(path):
            raise invalid("--out", expected="another file than the recordings", got=out, advice="Choose another name.")


def model_and_reader(
    folder: Path,
    threads: int | None,
    device: str,
    domain_col: str | None,
    time_col: str | None,
    group_col: str | None,
    channels: str | None,
    window: int | None,
    step: int | None,
) -> tuple[TransPL, Callable[..., Recordings]]:
    """A fitted model that runs here, and `read_and_say` that reads as its recordings were, but for what is given."""
    fitted, reading = open_model(folder, threads, device)
    given = reading_of(domain_col, time_col, group_col, channels, window, step)
    if sorted(given.get("channels", ())) == sorted(reading.get("channels", ())):
        given.pop("channels", None)  # the same ones: their order is the model's
    optional = [name for name in REMEMBERED if name not in given]
    return fitted, partial(read_and_say, optional=optional, **reading | given)


def parameters(ctx: typer.Context, change: Sequence[str] | None, **own: Any) -> dict[str, Any]:
    """Parameters of TransPL: those that have an option of their own, and what `--set` changes or adds.

    TransPL checks the values itself.
    """
    from transpl import TransPL

    known = sorted(set(TransPL().get_params()) - set(_NOT_TO_SET))
    changes = {}
    for each in change or ():
        name, value = split_setting(each, "--set")
        if name not in known:
            expected = f"a parameter of TransPL ({', '.join(known)})"
            raise invalid("--set", expected=expected, got=repr(name), advice="Check the spelling.")
        option = _OPTION_OF.get(name, name)
        if name in own and _is_typed(ctx, option):
            typed = f"--{option.replace('_', '-')}"
            raise invalid(
                "--set", expected=f"no {name} beside {typed}", got=repr(each), advice="Leave out one of them."
            )
        changes[name] = setting_value(value)
    return own | changes


def _is_typed(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name != "DEFAULT"


def split_setting(text: str, option: str) -> tuple[str, str]:
    """Read name=value; `option` is what to complain about."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise invalid(option, expected="name=value", got=repr(text), advice="Write both, and = between them.")
    return name, value


def setting_value(text: str) -> Any:
    """A number, true, false, None or a list as Python writes it; anything else is a text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
