"""One figure from its name to its files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from transpl import __version__
from transpl._utils.errors import check_choice, invalid
from transpl._utils.files import write_json, write_text
from transpl.report.figures.catalogue import FIGURES
from transpl.report.figures.choice import Choice
from transpl.report.figures.subjects import subjects_in
from transpl.report.paper_figures import render_figure


class Made(NamedTuple):
    """Where the page is, and what is to be seen in it."""

    page: Path
    findings: list[str]


def make_figure(
    name: str,
    folder: str | os.PathLike[str],
    choice: Choice | None = None,
    say: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Made:
    """Write `figures/NAME.html`, and its data as `figures/NAME.json`, into a folder of results.

    choice : which runs of a benchmark
    options : of the figure's study; None is the study's own default
    """
    check_choice("name", name, tuple(FIGURES))
    figure, home = FIGURES[name], Path(folder)
    given = {option: value for option, value in options.items() if value is not None}
    for option in given.keys() - set(figure.options):
        takes = f"of {', '.join(figure.options)} or none" if figure.options else "none of the figure's options"
        raise invalid(option, expected=takes, got=option, advice=f"Figure {name} has no use for it.")
    subjects = subjects_in(home, choice or Choice(), several=figure.several, one_dataset=figure.one_dataset, say=say)
    data = figure.study(subjects, **given)
    page, findings = render_figure(name, data, f"transpl {__version__}")
    write_json(home / "figures" / f"{name}.json", data)
    write_text(home / "figures" / f"{name}.html", page)
    return Made(home / "figures" / f"{name}.html", findings)
