"""One self-contained HTML page about one adaptation; opens offline, in any browser."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import write_text
from transpl._utils.locks import writing
from transpl.report.adaptation.explorer import explorer_section
from transpl.report.adaptation.label_section import label_section
from transpl.report.adaptation.overview import first_answers, how_it_works, incoming_section, lead
from transpl.report.adaptation.saved_job import SavedJob, read_saved_job
from transpl.report.adaptation.shift_section import codes_section, shift_section
from transpl.report.adaptation.timeline import timeline_section
from transpl.report.adaptation.witness_section import witness_section
from transpl.report.html_parts import document, script, style_sheet

_SCRIPTS = ("common.js", "timeline.js", "shift.js", "signals.js", "explorer.js")


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write `report.html` from the saved results of an adaptation.

    Parameters
    ----------
    folder : path
        Written by `transpl adapt`, `transpl demo` or `transpl.jobs`.

    Returns
    -------
    pathlib.Path
        The page.
    """
    home = Path(folder)
    with writing(home):
        return _write_report(home)


def _write_report(home: Path) -> Path:
    try:
        page = render_adaptation(read_saved_job(home))
    except UnreadableFile:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        problem = f"its results are incomplete or of another version ({type(error).__name__}: {error})"
        raise unreadable_file(home, problem=problem, advice="Run transpl adapt or demo again.") from None
    write_text(home / "report.html", page)
    return home / "report.html"


def render_adaptation(saved: SavedJob) -> str:
    """Return the page as text."""
    summary = saved.summary
    title = f"From {summary['source']['name']} to {summary['target']['name']}"
    made_by = f"transpl {summary['transpl_version']}, {summary['written']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        lead(saved),
        *first_answers(saved),
        *timeline_section(saved),
        *label_section(saved),
        *shift_section(saved),
        *(witness_section(saved) if saved.is_council else []),
        *codes_section(saved),
        *explorer_section(saved),
        *incoming_section(saved),
        *how_it_works(saved),
        f"<footer><p>{escape(made_by)}</p></footer>",
        *map(script, _SCRIPTS),
    ]
    return document(title, style_sheet("adaptation.css"), parts)
