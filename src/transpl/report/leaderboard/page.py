"""One self-contained HTML page about a benchmark folder; opens offline, in any browser."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from transpl._utils.files import write_text
from transpl.report.document import document, style_of
from transpl.report.leaderboard.heading import heading, title_of
from transpl.report.leaderboard.heat_map import heat_map_section
from transpl.report.leaderboard.rank_diagram import rank_section
from transpl.report.leaderboard.run_list import run_section
from transpl.report.leaderboard.standings import standings_section

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Leaderboard

_STYLE, _SCRIPT = Path(__file__).with_name("page.css"), Path(__file__).with_name("page.js")


def write_leaderboard(board: Leaderboard, folder: str | os.PathLike[str]) -> Path:
    """Write `report.html` into a folder."""
    path = Path(folder) / "report.html"
    write_text(path, render_leaderboard(board, datetime.now(UTC).isoformat(timespec="seconds")))
    return path


def render_leaderboard(board: Leaderboard, written: str = "") -> str:
    """Return the page as text."""
    parts = [
        *heading(board),
        *standings_section(board),
        *heat_map_section(board),
        *rank_section(board),
        *run_section(board),
        f"<footer><p>{escape(_made_with(board, written))}</p></footer>",
        f"<script>{_SCRIPT.read_text(encoding='utf-8')}</script>",
    ]
    return document(title_of(board), style_of(_STYLE), parts)


def _made_with(board: Leaderboard, written: str) -> str:
    versions = ", ".join(f"{name} {' and '.join(found)}" for name, found in board.versions.items())
    return ". ".join(part for part in (f"Made with {versions}" if versions else "", written) if part)
