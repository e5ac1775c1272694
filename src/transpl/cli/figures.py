"""`transpl figure`: the paper's figures from results. Thin: parses, calls, prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transpl._utils.errors import invalid
from transpl.cli.options import setting_value, split_setting


def figure(
    name: Annotated[str, typer.Argument(help="entropy, codes, likelihoods, alignment or corruption.")],
    folder: Annotated[Path, typer.Argument(help="Folder written by bench, or by adapt or demo.")],
    dataset: Annotated[str | None, typer.Option(help="Of a benchmark: this data set.")] = None,
    pairs: Annotated[
        list[str] | None, typer.Option(help="Of a benchmark: as 2-11; may be repeated. Default: all, or the first.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of a benchmark: runs of this seed. Default: the smallest.")] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Of a benchmark: runs with this setting, as patch_length=16.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="likelihoods: number of the target window. Default: a telling one.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option(help="likelihoods, corruption: name, or number from 0. Default of corruption: 6.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="corruption: levels in standard deviations of the channel, as 0,0.5,1,2.")
    ] = None,
    noise_seeds: Annotated[int | None, typer.Option(min=1, help="corruption: draws of the noise. Default: 3.")] = None,
    order: Annotated[int | None, typer.Option(min=2, help="entropy: values per pattern. Default: 3.")] = None,
    delay: Annotated[int | None, typer.Option(min=1, help="entropy: steps between them. Default: 1.")] = None,
    context: Annotated[
        str | None,
        typer.Option(help="codes, entropy: decode a code alone (default), or where it occurs in the source."),
    ] = None,
) -> None:
    """Draw a figure of the paper from saved results: a page to open, its data as JSON, and what is to be seen.

    *entropy*: are coarse codes simpler than fine ones; *codes*: all codes drawn; *likelihoods*: why a window gets its
    label; *alignment*: which channels moved; *corruption*: does a channel lose trust when noise spoils it.
    """
    from transpl.datasets.pairs import parse_pair
    from transpl.report.figures import RunChoice, make_figure

    settings = {key: setting_value(text) for key, text in (split_setting(each, "--set") for each in change or ())}
    choice = RunChoice(dataset, tuple(parse_pair(pair) for pair in pairs or ()), seed, settings)
    options = {"window": window, "channel": channel, "noise": _levels(noise), "noise_seeds": noise_seeds}
    options |= {"order": order, "delay": delay, "context": context}
    made = make_figure(name, folder, choice, lambda line: typer.echo(line, err=True), **options)
    for sentence in made.findings:
        typer.echo(sentence)
    typer.echo(f"open {made.page}")


def _levels(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        expected = "numbers separated by commas, as 0,0.5,1,2"
        raise invalid("--noise", expected=expected, got=repr(text), advice="Mend it.") from None
