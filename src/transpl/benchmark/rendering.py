"""Tables as Markdown, CSV and LaTeX: plain values in (`table_data`), text out."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from numbers import Integral, Real

from transpl._utils.errors import check_choice
from transpl.benchmark.table_data import Cell, Column, Row, TableData, as_sentence

__all__ = ["FORMATS", "Cell", "Column", "Row", "TableData", "render", "to_csv", "to_latex", "to_markdown"]

FORMATS = ("markdown", "csv", "latex")

_LETTERS = "abcdefghijklmnoprstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"  # there is no raised q
_VALUES = (*(field.name for field in fields(Cell)), "difference")  # of a cell, in CSV
_CSV_DECIMALS = 4


def render(table: TableData, form: str = "markdown") -> str:
    """Write a table in one of `FORMATS`."""
    check_choice("form", form, FORMATS)
    return {"markdown": to_markdown, "csv": to_csv, "latex": to_latex}[form](table)


def to_markdown(table: TableData) -> str:
    """A heading, the caption, the table with aligned bars, then notes."""
    lines = [[_MARKDOWN.text(table.corner), *(_MARKDOWN.text(column.name) for column in table.columns)]]
    lines += _body(table, _MARKDOWN)
    widths = [max(3, *(len(line[j]) for line in lines)) for j in range(len(lines[0]))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    aligned = [_bars(line, widths) for line in (lines[0], rule, *lines[1:])]
    parts = [f"### {_MARKDOWN.text(table.title)}", _MARKDOWN.text(table.full_caption()), "\n".join(aligned)]
    parts.append("\n".join(f"- {note}" for note in _notes(table, _MARKDOWN)))
    return "\n\n".join(part for part in parts if part) + "\n"


def to_latex(table: TableData) -> str:
    """A `table` with booktabs rules; the document needs `\\usepackage{booktabs}`."""
    caption = f"{as_sentence(table.title)} {table.full_caption()}".strip()
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


def to_csv(table: TableData) -> str:
    """One line per cell, without rounding to what is shown."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for line in _lines(table):
        writer.writerow(_on_one_line(value) if isinstance(value, str) else value for value in line)
    return stream.getvalue()


@dataclass(frozen=True)
class _Dialect:
    """How a language writes what a table is made of."""

    text: Callable[[str], str]  # escapes
    best: str
    second: str
    plus_minus: str
    minus: str
    none: str
    lacking: str
    mark: Callable[[str], str]


def _markdown_text(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\|*_`<" else character for character in _on_one_line(text))


_LATEX_CHARACTERS = {
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
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX_CHARACTERS.get(character, character) for character in _on_one_line(text))


_MARKDOWN = _Dialect(
    text=_markdown_text,
    best="**{}**",
    second="<u>{}</u>",
    plus_minus=" ± ",
    minus="-",
    none="\N{EN DASH}",
    lacking="†{}",
    mark=lambda letters: "".join(_RAISED[_LETTERS.index(letter)] for letter in letters),
)
_LATEX = _Dialect(
    text=_latex_text,
    best=r"\textbf{{{}}}",
    second=r"\underline{{{}}}",
    plus_minus=r" $\pm$ ",
    minus="$-$",
    none="--",
    lacking=r"$^{{\dagger {}}}$",
    mark=lambda letters: f"$^{{{letters}}}$",
)


def _body(table: TableData, dialect: _Dialect) -> list[list[str]]:
    letters, places = _footnotes(table), [_places(table, j) for j in range(len(table.columns))]
    return [
        [
            dialect.text(row.label),
            *(
                _cell_text(cell, table.columns[j], places[j].get(i), letters, dialect)
                for j, cell in enumerate(row.cells)
            ),
        ]
        for i, row in enumerate(table.rows)
    ]


def _cell_text(cell: Cell | None, column: Column, place: int | None, letters: dict[str, str], dialect: _Dialect) -> str:
    """ours ± std [published; difference], with marks."""
    if cell is None:
        return ""
    ours = dialect.none
    if cell.mean is not None:
        ours = _number(cell.mean, column.decimals, dialect)
        if cell.std is not None and cell.n > 1:
            ours += dialect.plus_minus + _number(cell.std, column.decimals, dialect)
    ours = {1: dialect.best, 2: dialect.second}.get(place or 0, "{}").format(ours)
    if cell.missing:
        ours += dialect.lacking.format(cell.missing)
    if cell.published is None:
        return ours
    beside = _number(cell.published, column.decimals, dialect)
    beside += dialect.mark(letters[cell.flag]) if cell.flag else ""
    if cell.difference is not None:
        beside += "; " + _number(cell.difference, column.decimals, dialect, plus=True)
    return f"{ours} [{beside}]"


def _number(value: float, decimals: int, dialect: _Dialect, *, plus: bool = False) -> str:
    shown = f"{abs(value):.{decimals}f}"
    if float(shown) == 0:
        return shown
    return (dialect.minus if value < 0 else "+" if plus else "") + shown


def _places(table: TableData, j: int) -> dict[int, int]:
    """Row -> 1 or 2 for the best and second best of column j, as shown; only complete cells, two of them at least."""
    column = table.columns[j]
    cells = [(i, row.cells[j]) for i, row in enumerate(table.rows)]
    shown = {i: round(c.mean, column.decimals) for i, c in cells if c is not None and c.complete and c.mean is not None}
    if column.better == "none" or len(shown) < 2:
        return {}
    ordered = sorted(set(shown.values()), reverse=column.better == "higher")[:2]
    return {i: ordered.index(value) + 1 for i, value in shown.items() if value in ordered}


def _footnotes(table: TableData) -> dict[str, str]:
    """Reason -> letter, in the order of appearance: a, b, ..., z, aa, bb, ..."""
    reasons = dict.fromkeys(cell.flag for cell in table.cells if cell.flag and cell.published is not None)
    return {reason: _LETTERS[k % 25] * (k // 25 + 1) for k, reason in enumerate(reasons)}


def _notes(table: TableData, dialect: _Dialect) -> list[str]:
    """What the signs of this table mean, its own notes, then the reasons of its flags."""
    notes = [dialect.text(note) for note in (*_legend(table), *table.notes)]
    reasons = _footnotes(table).items()
    return notes + [f"{dialect.mark(letters)} {dialect.text(reason)}" for reason, letters in reasons]


def _legend(table: TableData) -> Iterator[str]:
    if any(cell.std is not None and cell.n > 1 for cell in table.cells):
        yield "Ours: mean ± standard deviation over seeds."
    if any(cell.published is not None for cell in table.cells):
        yield "In brackets: the published figure; ours minus it."
    if any(_places(table, j) for j in range(len(table.columns))):
        yield "Ours: best in bold, second best underlined, among cells without missing runs."
    if any(cell.missing for cell in table.cells):
        yield "†n: n runs are missing."


def _bars(line: list[str], widths: list[int]) -> str:
    first, *others = (
        text.ljust(width) if j == 0 else text.rjust(width)
        for j, (text, width) in enumerate(zip(line, widths, strict=True))
    )
    return "| " + " | ".join([first, *others]) + " |"


def _latex_head(table: TableData) -> Iterator[str]:
    if any(column.group for column in table.columns):
        spans, rules, start = [""], [], 2
        for group, members in groupby(table.columns, key=lambda column: column.group):
            width = len(list(members))
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{_latex_text(group)}}}")
            rules += [rf"\cmidrule(lr){{{start}-{start + width - 1}}}"] if group else []
            start += width
        yield rf"{' & '.join(spans)} \\"
        yield "".join(rules)
    yield rf"{' & '.join(_latex_text(text) for text in (table.corner, *(c.label for c in table.columns)))} \\"


def _lines(table: TableData) -> Iterator[list[object]]:
    yield [table.corner, "group", "column", *_VALUES]
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell is not None:
                yield [row.label, column.group, column.label, *_plain(cell)]


def _plain(cell: Cell) -> list[object]:
    """The numbers of a cell, blank where there is none."""
    values = [getattr(cell, name) for name in _VALUES]
    return ["" if v is None else round(float(v), _CSV_DECIMALS) if _is_fraction(v) else v for v in values]


def _is_fraction(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, Integral)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
