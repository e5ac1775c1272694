"""Tables as text: golden examples, then what must hold of any table."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl.benchmark.rendering import (
    FORMATS,
    MOST_NAMED,
    Cell,
    Column,
    TableData,
    TableRow,
    render,
    to_csv,
    to_latex,
    to_markdown,
)

NONE = "\N{EN DASH}"
COPIED = "100 % copied"

SMALL = TableData(
    title="Adaptation & more",
    caption="Averages over 10 pairs",
    columns=(Column("Acc", "UCIHAR"), Column("MF1", "UCIHAR"), Column("MSE", decimals=3, better="lower")),
    rows=(
        TableRow(
            "DeepCORAL", (Cell(61.26, 1.04, 3, 62.0), Cell(57.0, 0.5, 3, 57.6, COPIED), Cell(0.2144, None, 1, 0.214))
        ),
        TableRow("A_B|C", (Cell(68.31, 0.4, 2, 67.8, missing=1), Cell(published=64.3, missing=3), None)),
        TableRow("TransPL", (Cell(69.04, 1.2, 3, 69.0), Cell(57.01, 0.9, 3), Cell(0.0951, 0.01, 3, 0.09))),
    ),
    missing_runs=("A_B|C (all 3)",),
    notes=("Seeds 0 to 2.",),
    label="tab:small",
)  # fmt: skip

MARKDOWN = r"""### Adaptation & more

Averages over 10 pairs. Missing runs: A\_B\|C (all 3).

| Method    |                     UCIHAR Acc |                   UCIHAR MF1 |                               MSE |
| --------- | -----------------------------: | ---------------------------: | --------------------------------: |
| DeepCORAL | <u>61.3 ± 1.0</u> [62.0; -0.7] | **57.0 ± 0.5** [57.6ᵃ; -0.6] |       <u>0.214</u> [0.214; 0.000] |
| A\_B\|C   |      68.3 ± 0.4†1 [67.8; +0.5] |                   –†3 [64.3] |                                   |
| TransPL   |     **69.0 ± 1.2** [69.0; 0.0] |               **57.0 ± 0.9** | **0.095 ± 0.010** [0.090; +0.005] |

- Ours: mean ± standard deviation over seeds.
- In brackets: the published figure; ours minus it.
- Ours: best in bold, second best underlined, among cells without missing runs.
- †n: n runs are missing.
- Seeds 0 to 2.
- ᵃ 100 % copied
"""  # noqa: RUF001

LATEX = r"""\begin{table}
\centering
\caption{Adaptation \& more. Averages over 10 pairs. Missing runs: A\_B|C (all 3).}
\label{tab:small}
\begin{tabular}{lrrr}
\toprule
 & \multicolumn{2}{c}{UCIHAR} & \multicolumn{1}{c}{} \\
\cmidrule(lr){2-3}
Method & Acc & MF1 & MSE \\
\midrule
DeepCORAL & \underline{61.3 $\pm$ 1.0} [62.0; $-$0.7] & \textbf{57.0 $\pm$ 0.5} [57.6$^{a}$; $-$0.6] & \underline{0.214} [0.214; 0.000] \\
A\_B|C & 68.3 $\pm$ 0.4$^{\dagger 1}$ [67.8; +0.5] & --$^{\dagger 3}$ [64.3] &  \\
TransPL & \textbf{69.0 $\pm$ 1.2} [69.0; 0.0] & \textbf{57.0 $\pm$ 0.9} & \textbf{0.095 $\pm$ 0.010} [0.090; +0.005] \\
\bottomrule
\end{tabular}
\par{\footnotesize Ours: mean $\pm$ standard deviation over seeds.}
\par{\footnotesize In brackets: the published figure; ours minus it.}
\par{\footnotesize Ours: best in bold, second best underlined, among cells without missing runs.}
\par{\footnotesize $\dagger$n: n runs are missing.}
\par{\footnotesize Seeds 0 to 2.}
\par{\footnotesize $^{a}$ 100 \% copied}
\end{table}
"""  # noqa: E501

CSV = """Method,group,column,mean,std,n,published,flag,missing,difference
DeepCORAL,UCIHAR,Acc,61.26,1.04,3,62.0,,0,-0.74
DeepCORAL,UCIHAR,MF1,57.0,0.5,3,57.6,100 % copied,0,-0.6
DeepCORAL,,MSE,0.2144,,1,0.214,,0,0.0004
A_B|C,UCIHAR,Acc,68.31,0.4,2,67.8,,1,0.51
A_B|C,UCIHAR,MF1,,,0,64.3,,3,
TransPL,UCIHAR,Acc,69.04,1.2,3,69.0,,0,0.04
TransPL,UCIHAR,MF1,57.01,0.9,3,,,0,
TransPL,,MSE,0.0951,0.01,3,0.09,,0,0.0051
"""


def column_of(*cells, better="higher", **more):
    """A table of one column, with rows a, b, c, ..."""
    rows = tuple(TableRow(chr(97 + i), (cell,)) for i, cell in enumerate(cells))
    return TableData("T", "", (Column("Acc", better=better),), rows, **more)


def texts_of(table):
    """The cells of the first column of a Markdown table."""
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    return [line.split("|")[2].strip() for line in lines[2:]]


@pytest.mark.parametrize(("form", "golden"), [("markdown", MARKDOWN), ("latex", LATEX), ("csv", CSV)])
def test_golden(form, golden):
    assert render(SMALL, form) == golden


class TestPlaces:
    def test_what_looks_alike_shares_a_place(self):
        assert texts_of(column_of(Cell(69.04), Cell(68.96), Cell(68.9), Cell(60.0))) == [
            "**69.0**",
            "**69.0**",
            "<u>68.9</u>",
            "60.0",
        ]

    def test_an_incomplete_cell_has_no_place(self):
        assert texts_of(column_of(Cell(90.0, missing=1), Cell(70.0), Cell(60.0))) == [
            "90.0†1",
            "**70.0**",
            "<u>60.0</u>",
        ]

    def test_one_cell_alone_has_no_place(self):
        table = column_of(Cell(70.0), Cell(missing=2))
        assert texts_of(table) == ["70.0", f"{NONE}†2"]
        assert "bold" not in to_markdown(table)

    def test_lower_or_no_order(self):
        assert texts_of(column_of(Cell(2.0), Cell(1.0), better="lower")) == ["<u>2.0</u>", "**1.0**"]
        assert texts_of(column_of(Cell(2.0), Cell(1.0), better="none")) == ["2.0", "1.0"]


class TestNumbers:
    def test_a_single_run_has_no_spread(self):
        table = column_of(Cell(70.0, 0.0, 1))
        assert texts_of(table) == ["70.0"]
        assert "deviation" not in to_markdown(table)

    def test_no_negative_zero(self):
        assert texts_of(column_of(Cell(68.96, None, 1, 69.0), better="none")) == ["69.0 [69.0; 0.0]"]

    def test_negative_numbers(self):
        table = column_of(Cell(-0.4, published=2.2))
        assert texts_of(table) == ["-0.4 [2.2; -2.6]"]
        assert "$-$0.4 [2.2; $-$2.6]" in to_latex(table)

    def test_numbers_of_numpy(self):
        table = column_of(Cell(np.float32(70.1), np.float64(0.5), np.int64(3)))
        assert "a,,Acc,70.1,0.5,3,,,0," in to_csv(table)


class TestMissingRuns:
    def test_a_complete_table_has_its_own_caption(self):
        assert column_of(Cell(1.0)).full_caption() == ""
        assert "Missing" not in to_markdown(column_of(Cell(1.0)))

    def test_named(self):
        table = column_of(Cell(1.0, missing=2), missing_runs=("a 2-11 seed 0", "a 2-11 seed 1"))
        assert table.full_caption() == "Missing runs: a 2-11 seed 0, a 2-11 seed 1."

    def test_many_are_cut_short_with_their_number(self):
        table = column_of(Cell(1.0), missing_runs=tuple(f"run {i}" for i in range(MOST_NAMED + 5)))
        assert table.full_caption().endswith(f"run {MOST_NAMED - 1} and 5 more.")


class TestFlags:
    def test_one_letter_per_reason(self):
        cells = [Cell(published=1.0, flag=reason) for reason in ("one", "two", "one")]
        text = to_markdown(column_of(*cells))
        assert texts_of(column_of(*cells)) == [f"{NONE} [1.0ᵃ]", f"{NONE} [1.0ᵇ]", f"{NONE} [1.0ᵃ]"]
        assert text.endswith("- ᵃ one\n- ᵇ two\n")

    def test_more_reasons_than_letters(self):
        cells = [Cell(published=1.0, flag=f"reason {k}") for k in range(27)]
        text = to_markdown(column_of(*cells))
        assert "- ᶻ reason 24\n- ᵃᵃ reason 25\n- ᵇᵇ reason 26\n" in text

    def test_a_flag_on_nothing_is_not_shown(self):
        assert "why" not in to_markdown(column_of(Cell(1.0, flag="why")))


class TestText:
    def test_latex_special_characters(self):
        table = column_of(Cell(1.0))
        row = TableRow("[50%] a_b & {c} #1 $2 ~^\\ <→>", table.rows[0].cells)
        text = to_latex(TableData("T", "", table.columns, (row,)))
        expected = (
            r"{[}50\%{]} a\_b \& \{c\} \#1 \$2 \textasciitilde{}\textasciicircum{}\textbackslash{} "
            r"\textless{}$\rightarrow$\textgreater{} & 1.0 \\"
        )
        assert expected in text.splitlines()

    def test_line_breaks_become_spaces(self):
        table = TableData("T", "two\nlines", (Column("a\nb"),), (TableRow("c\nd", (Cell(1.0),)),))
        assert "two lines" in to_markdown(table)
        assert "| c d" in to_markdown(table)
        assert r"c d & 1.0 \\" in to_latex(table)

    @given(st.lists(st.tuples(st.text(max_size=8), st.floats(0, 100)), min_size=1, max_size=5))
    def test_bars_stand_below_each_other(self, rows):
        table = TableData("T", "", (Column("A|b"),), tuple(TableRow(label, (Cell(mean),)) for label, mean in rows))
        lines = [line for line in to_markdown(table).split("\n") if line.startswith("|")]
        assert len(lines) == len(rows) + 2
        assert len({len(line) for line in lines}) == 1
        assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in lines)

    @given(st.text(max_size=20))
    def test_csv_gives_the_label_back(self, label):
        text = to_csv(TableData("T", "", (Column("A"),), (TableRow(label, (Cell(1.0),)),)))
        assert next(iter(csv.DictReader(io.StringIO(text, newline=""))))["Method"] == " ".join(label.split())


class TestEmpty:
    @pytest.mark.parametrize("form", FORMATS)
    def test_no_rows(self, form):
        assert render(TableData("T", "", (Column("A"),), ()), form)


class TestRefusals:
    def test_rows_of_another_length(self):
        with refusal("rows", "expected 1 cells, got 2 in row 'x'"):
            TableData("T", "", (Column("A"),), (TableRow("x", (None, None)),))

    def test_numbers_that_are_none(self):
        with refusal("mean", "finite"):
            Cell(float("nan"))
        with refusal("missing"):
            Cell(1.0, missing=-1)

    def test_names(self):
        with refusal("form", "'latex'"):
            render(SMALL, "html")
        with refusal("better", "'lower'"):
            Column("A", better="small")
