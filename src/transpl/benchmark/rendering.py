"""A table of scores beside published ones, written as Markdown, CSV or LaTeX.

Values are in the unit that is shown (percent: 69.0, not 0.69).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import Any

import pandas as pd

from transpl._utils.errors import check_choice, check_int, invalid

FORMATS = ("markdown", "csv", "latex", "json")
BETTER = ("higher", "lower", "none")
MOST_NAMED = 20  # missing runs that a caption names
_CSV_DECIMALS = 4
_LETTERS = "abcdefghijklmnoprstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"  # there is no raised q


@dataclass(frozen=True)
class Cell:
    """Our score over runs, and the published one.

    mean, std : over the `n` finished runs; None without any
    flag : why the published figure is not to be trusted
    missing : runs that are planned but not finished
    """

    mean: float | None = None
    std: float | None = None
    n: int = 0
    published: float | None = None
    flag: str | None = None
    missing: int = 0

    def __post_init__(self) -> None:
        for name in ("mean", "std", "published"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                advice = "Count such a run as missing."
                raise invalid(name, expected="a finite number or None", got=value, advice=advice)
        for name in ("n", "missing"):
            check_int(name, getattr(self, name), least=0)

    @property
    def complete(self) -> bool:
        """Whether every planned run is finished."""
        return self.mean is not None and self.missing == 0

    @property
    def difference(self) -> float | None:
        """Ours minus the published figure."""
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class Column:
    """A score; neighbouring columns of one `group` share a heading."""

    label: str
    group: str = ""
    decimals: int = 1
    better: str = "higher"

    def __post_init__(self) -> None:
        check_choice("better", self.better, BETTER)
        check_int("decimals", self.decimals, least=0)

    @property
    def name(self) -> str:
        """Group and label."""
        return f"{self.group} {self.label}".strip()


@dataclass(frozen=True)
class TableRow:
    """A line of the table; a cell that makes no sense is None."""

    label: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class TableData:
    """Everything in a table.

    missing_runs : names of missing runs, for the caption
    notes : lines below the table
    label : LaTeX's name of the table, for references
    corner : heading of the first column
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    missing_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    label: str = ""
    corner: str = "Method"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                expected, got = f"{len(self.columns)} cells", f"{len(row.cells)} in row {row.label!r}"
                raise invalid("rows", expected=expected, got=got, advice="Put None where there is none.")

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell that makes sense, row by row."""
        return (cell for row in self.rows for cell in row.cells if cell is not None)

    def full_caption(self) -> str:
        """The caption, and which runs are missing."""
        if not self.missing_runs:
            return self.caption
        more = len(self.missing_runs) - MOST_NAMED
        names = ", ".join(self.missing_runs[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"{_as_sentence(self.caption)} Missing runs: {names}.".strip()


def render(table: TableData, form: str = "markdown") -> str:
    """Write a table in one of `FORMATS`."""
    check_choice("form", form, FORMATS)
    return {"markdown": to_markdown, "csv": to_csv, "latex": to_latex, "json": to_json}[form](table)


def to_json(table: TableData) -> str:
    """Title, caption, rows with a value per cell, missing runs and notes; a cell that makes no sense is null."""

    def values(cell: Cell | None) -> dict[str, Any] | None:
        return None if cell is None else {**asdict(cell), "difference": cell.difference}

    names = [column.name for column in table.columns]
    found = {
        "title": table.title,
        "caption": table.caption,
        "rows": [{"name": row.label, **dict(zip(names, map(values, row.cells), strict=True))} for row in table.rows],
        "missing_runs": list(table.missing_runs),
        "notes": list(table.notes),
    }
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(table: TableData) -> str:
    """One line per cell, with more decimals than are shown elsewhere."""
    values = [*(field.name for field in fields(Cell)), "difference"]
    lines = [
        [row.label, column.group, column.label, *(getattr(cell, name) for name in values)]
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell is not None
    ]
    frame = pd.DataFrame(lines, columns=[table.corner, "group", "column", *values])
    frame = frame.map(lambda value: _on_one_line(value) if isinstance(value, str) else value)
    return frame.round(_CSV_DECIMALS).to_csv(index=False, lineterminator="\n")


def to_markdown(table: TableData) -> str:
    """A heading, the caption, the table with aligned bars, then notes."""
    text = _MARKDOWN.text
    lines = [[text(table.corner), *(text(column.name) for column in table.columns)], *_body(table, _MARKDOWN)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    aligned = [
        f"| {' | '.join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])} |"
        for first, *others in (lines[0], rule, *lines[1:])
    ]
    notes = "\n".join(f"- {note}" for note in _notes(table, _MARKDOWN))
    parts = [f"### {text(table.title)}", text(table.full_caption()), "\n".join(aligned), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_latex(table: TableData) -> str:
    """A `table` with booktabs rules; the document needs `\\usepackage{booktabs}`."""
    caption = f"{_as_sentence(table.title)} {table.full_caption()}".strip()
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_LATEX.text(caption)}}}",
        *([rf"\label{{{table.label}}}"] if table.label else []),
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        *_latex_head(table),
        r"\midrule",
        *(rf"{' & '.join(line)} \\" for line in _body(table, _LATEX)),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par{{\footnotesize {note}}}" for note in _notes(table, _LATEX)),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_head(table: TableData) -> Iterator[str]:
    if any(column.group for column in table.columns):
        spans, rules, start = [""], [], 2
        for group, members in groupby(table.columns, key=lambda column: column.group):
            width = len(list(members))
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{_LATEX.text(group)}}}")
            rules += [rf"\cmidrule(lr){{{start}-{start + width - 1}}}"] if group else []
            start += width
        yield rf"{' & '.join(spans)} \\"
        yield "".join(rules)
    yield rf"{' & '.join(_LATEX.text(text) for text in (table.corner, *(c.label for c in table.columns)))} \\"


# How a language writes what a table is made of


@dataclass(frozen=True)
class _Dialect:
    escapes: Mapping[str, str]
    places: tuple[str, str]  # best and second best
    plus_minus: str
    minus: str
    none: str
    missing: str
    raised: Callable[[str], str]

    def text(self, text: str) -> str:
        return "".join(self.escapes.get(character, character) for character in _on_one_line(text))

    def number(self, value: float, decimals: int, *, plus: bool = False) -> str:
        shown = f"{abs(value):.{decimals}f}"
        sign = "" if float(shown) == 0 else self.minus if value < 0 else "+" if plus else ""
        return sign + shown


_MARKDOWN = _Dialect(
    escapes={character: f"\\{character}" for character in "\\|*_`<"},
    places=("**{}**", "<u>{}</u>"),
    plus_minus=" ± ",
    minus="-",
    none="\N{EN DASH}",
    missing="†{}",
    raised=lambda letters: "".join(_RAISED[_LETTERS.index(letter)] for letter in letters),
)
_LATEX = _Dialect(
    escapes={
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "[": "{[}",  # at the start of a line it would be an option of the line break before it
        "]": "{]}",
        "±": r"$\pm$",
        "→": r"$\rightarrow$",
        "†": r"$\dagger$",
        "\N{MINUS SIGN}": "$-$",
        "\N{EN DASH}": "--",
    },
    places=(r"\textbf{{{}}}", r"\underline{{{}}}"),
    plus_minus=r" $\pm$ ",
    minus="$-$",
    none="--",
    missing=r"$^{{\dagger {}}}$",
    raised=lambda letters: f"$^{{{letters}}}$",
)


def _body(table: TableData, dialect: _Dialect) -> list[list[str]]:
    letters, places = _footnotes(table), [_places(table, j) for j in range(len(table.columns))]
    lines = []
    for i, row in enumerate(table.rows):
        line = [dialect.text(row.label)]
        for cell, column, place in zip(row.cells, table.columns, places, strict=True):
            line.append("" if cell is None else _cell_text(cell, column.decimals, place.get(i), letters, dialect))
        lines.append(line)
    return lines


def _cell_text(cell: Cell, decimals: int, place: int | None, letters: Mapping[str, str], dialect: _Dialect) -> str:
    """ours ± std [published; difference], with marks."""
    ours = dialect.none
    if cell.mean is not None:
        ours = dialect.number(cell.mean, decimals)
        if cell.std is not None and cell.n > 1:
            ours += dialect.plus_minus + dialect.number(cell.std, decimals)
    if place is not None:
        ours = dialect.places[place].format(ours)
    if cell.missing:
        ours += dialect.missing.format(cell.missing)
    if cell.published is None:
        return ours
    published = dialect.number(cell.published, decimals)
    published += dialect.raised(letters[cell.flag]) if cell.flag else ""
    if cell.difference is not None:
        published += "; " + dialect.number(cell.difference, decimals, plus=True)
    return f"{ours} [{published}]"


def _places(table: TableData, j: int) -> dict[int, int]:
    """Row -> 0 or 1 for the best and second best of column j, as shown; among two complete cells or more."""
    column = table.columns[j]
    cells = [(i, row.cells[j]) for i, row in enumerate(table.rows)]
    shown = {i: round(c.mean, column.decimals) for i, c in cells if c is not None and c.complete and c.mean is not None}
    if column.better == "none" or len(shown) < 2:
        return {}
    best = sorted(set(shown.values()), reverse=column.better == "higher")[:2]
    return {i: best.index(value) for i, value in shown.items() if value in best}


def _footnotes(table: TableData) -> dict[str, str]:
    """Reason -> letter, in the order of appearance: a, b, ..., z, aa, bb, ..."""
    reasons = dict.fromkeys(cell.flag for cell in table.cells if cell.flag and cell.published is not None)
    return {reason: _LETTERS[k % 25] * (k // 25 + 1) for k, reason in enumerate(reasons)}


def _notes(table: TableData, dialect: _Dialect) -> list[str]:
    """What the signs of this table mean, its own notes, then the reasons of its flags."""
    cells = list(table.cells)
    legend = {
        "Ours: mean ± standard deviation over seeds.": any(cell.std is not None and cell.n > 1 for cell in cells),
        "In brackets: the published figure; ours minus it.": any(cell.published is not None for cell in cells),
        "Ours: best in bold, second best underlined, among cells without missing runs.": any(
            _places(table, j) for j in range(len(table.columns))
        ),
        "†n: n runs are missing.": any(cell.missing for cell in cells),
    }
    notes = [dialect.text(note) for note in (*(note for note, applies in legend.items() if applies), *table.notes)]
    return notes + [f"{dialect.raised(mark)} {dialect.text(reason)}" for reason, mark in _footnotes(table).items()]


def _as_sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
