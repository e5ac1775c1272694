"""Every figure is drawn from plain data alone, and says in words what is to be seen."""

from __future__ import annotations

import json
import re

import pytest
from tiny_subject import tiny_subject

from transpl.report.figures.channel_corruption import draw_corruption
from transpl.report.figures.code_entropy import draw_entropy
from transpl.report.figures.decoded_codes import draw_codes
from transpl.report.figures.figure_parts import render_figure
from transpl.report.figures.from_results import FIGURES
from transpl.report.figures.window_likelihoods import draw_likelihoods

OPTIONS = {"entropy": {"order": 2}, "corruption": {"noise": (0, 2), "noise_seeds": 1}}
CODES = {
    "name": "a → b",
    "context": "source",
    "books": {
        "coarse": [{"code": 0, "share": 1.0, "values": [0.0, 1.0, 0.5]}, {"code": 1, "share": 0.0, "values": None}],
        "fine": [{"code": c, "share": 0.0004 if c else 0.9996, "values": [0.1 * c, 0.2, 0.0]} for c in range(9)],
    },
}


def studied(name):
    figure, subject = FIGURES[name], tiny_subject()
    data = figure.study([subject, subject] if figure.several else subject, **OPTIONS.get(name, {}))
    return json.loads(json.dumps(data))  # as it comes from a file


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_one_page_that_loads_nothing(name):
    drawing = FIGURES[name].draw(studied(name))
    page = render_figure(drawing, "transpl 0")
    assert page.startswith("<!doctype html>")
    assert drawing.findings
    assert all("\n" not in sentence and sentence.endswith(".") for sentence in drawing.findings)
    assert "<script src" not in page
    assert "<link" not in page
    assert "transpl 0" in page


def test_codes_have_a_panel_each_and_say_which_are_never_used():
    drawing = draw_codes(CODES)
    coarse, fine = (section.figure for section in drawing.sections)
    assert (len(coarse.data), len(fine.data)) == (2, 9)
    assert [note.text for note in coarse.layout.annotations][:2] == [
        "code 0, 100.0 %<br>0.00 to 1.00",
        "code 1, never<br>not available",
    ]
    assert [line.line.dash for line in coarse.data] == ["solid", "dot"]
    assert fine.layout.annotations[3].text == "code 3, < 0.1 %<br>0.00 to 0.30"
    (finding,) = drawing.findings
    assert "2 coarse codes, 1 of them never used" in finding
    assert "9 fine codes, all of them used" in finding


def test_entropy_counts_the_models_whose_coarse_codes_are_simpler():
    models = [
        {"name": "1", "group": "x", "coarse": [0.0, 0.2], "fine": [0.5]},
        {"name": "2", "group": "x", "coarse": [0.9], "fine": [0.3]},
        {"name": "3", "group": "y", "coarse": [0.25]},
    ]
    drawn = {**CODES, "books": {"coarse": [{**CODES["books"]["coarse"][0], "entropy": 0.5}]}}
    drawing = draw_entropy({"order": 3, "delay": 2, "context": "alone", "models": models, "drawn": drawn})
    both, coarse_only = drawing.findings
    assert re.fullmatch(r"x: .* 0\.50 for coarse .* 0\.40 for fine .* 1 of 2 models\.", both)
    assert re.fullmatch(r"y: .* 0\.25; .* no fine codes\.", coarse_only)
    assert "2 steps apart" in drawing.sections[0].words


def test_likelihoods_mark_every_transition_of_the_window_in_every_matrix():
    data = studied("likelihoods")
    matrices = draw_likelihoods(data).sections[2].figure
    circles = [trace for trace in matrices.data if trace.type == "scatter"]
    assert len(circles) == len(data["classes"])
    seen = set(zip(data["codes"][:-1], data["codes"][1:], strict=True))
    assert all(set(zip(each.y, each.x, strict=True)) == seen for each in circles)


def test_corruption_says_ranks_and_how_many_pairs_lost_trust():
    ranks = {"distances": [], "weights": [[1.0], [0.5]], "ranks": [[1.0], [3.0]]}
    unmoved = {**ranks, "ranks": [[2.0], [2.0]]}
    pairs = [
        {"name": "1", "rules": {"additive": ranks, "floor": ranks}},
        {"name": "2", "rules": {"additive": ranks, "floor": unmoved}},
    ]
    data = {"channel": 6, "channel_name": "g", "n_channels": 9, "noise": [0.0, 2.0], "noise_seeds": 1, "pairs": pairs}
    printed, coded = draw_corruption(data).findings
    assert "g among 9 channels" in printed
    assert "1.0 at 0, 3.0 at 2 standard deviations" in printed
    assert printed.endswith("in 2 of 2 pairs.")
    assert "1.5 at 0, 2.5 at 2" in coded
    assert coded.endswith("in 1 of 2 pairs.")


def test_names_from_files_cannot_inject_markup():
    page = render_figure(draw_codes({**CODES, "name": "a <script>alert(1)</script>"}))
    assert "a &lt;script&gt;" in page
    assert "a <script>" not in page
