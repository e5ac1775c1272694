"""One self-contained HTML page about one adaptation; opens offline, in any browser."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import write_text
from transpl.report.adaptation.answers import answers
from transpl.report.adaptation.council import first_screen, how_the_council_works, witnesses_section
from transpl.report.adaptation.explorer import explorer_section
from transpl.report.adaptation.how_it_works import how_it_works
from transpl.report.adaptation.incoming import incoming_section
from transpl.report.adaptation.labels import labels_section
from transpl.report.adaptation.learnt import learnt_section
from transpl.report.adaptation.saved import Saved, read_saved
from transpl.report.adaptation.shifted import shifted_section
from transpl.report.document import document, style_of

_HERE = Path(__file__).parent
_SCRIPTS = ("common.js", "charts.js", "shift.js", "signals.js", "explorer.js")


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write `report.html` from what a job left in `folder`."""
    home = Path(folder)
    try:
        page = render(read_saved(home))
    except UnreadableFile:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        problem = f"its results are incomplete or of another version ({type(error).__name__}: {error})"
        raise unreadable_file(home, problem=problem, advice="Run transpl adapt or demo again.") from None
    write_text(home / "report.html", page)
    return home / "report.html"


def render(saved: Saved) -> str:
    """Return the page as text."""
    title = f"From {saved.summary['source']['name']} to {saved.summary['target']['name']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(first_screen(saved) if saved.of_council else answers(saved)),
        *incoming_section(saved),
        *(witnesses_section(saved) if saved.of_council else []),
        *shifted_section(saved),
        *labels_section(saved),
        *explorer_section(saved),
        *learnt_section(saved),
        *(how_the_council_works() if saved.of_council else how_it_works()),
        f"<footer><p>{escape(_made_by(saved))}</p></footer>",
        *(f"<script>{(_HERE / name).read_text(encoding='utf-8')}</script>" for name in _SCRIPTS),
    ]
    return document(title, style_of(_HERE / "page.css"), parts)


def _made_by(saved: Saved) -> str:
    return f"transpl {saved.summary['transpl_version']}, {saved.summary['written']}"
