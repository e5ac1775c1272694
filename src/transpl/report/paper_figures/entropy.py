"""Permutation entropy of the decoded coarse and fine codes, and the codes themselves."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plotly.graph_objects as go

from transpl.report.paper_figures.codes import COLOURS, COLUMNS, code_panels, how_decoded
from transpl.report.paper_figures.drawing import WIDE, Drawing, Section, framed


def draw_entropy(data: dict[str, Any]) -> Drawing:
    """Two distributions per data set, then codes of the first model from the simplest to the most varied."""
    drawn, name = data["drawn"]["books"], data["drawn"]["name"]
    sections = [Section("Entropy of every code", _words(data), _distributions(data["models"]))]
    sections += [
        Section(f"{book.capitalize()} codes of {name}", _which(codes), code_panels(_few(codes), book), WIDE)
        for book, codes in drawn.items()
    ]
    return Drawing("Are coarse codes simpler than fine ones?", _findings(data["models"]), sections)


def _distributions(models: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    for book, colour in COLOURS.items():
        found = [(model["group"], entropy) for model in models for entropy in model.get(book, [])]
        figure.add_box(
            name=f"{book} codes",
            x=[group for group, _ in found],
            y=[entropy for _, entropy in found],
            boxpoints="all",
            boxmean=True,
            jitter=0.8,
            pointpos=0,
            fillcolor="rgba(0,0,0,0)",
            marker={"color": colour, "size": 5, "opacity": 0.7},
        )
    figure.update_layout(boxmode="group")
    figure.update_yaxes(title_text="permutation entropy", range=[-0.03, 1.03])
    return framed(figure, 420)


def _findings(models: list[dict[str, Any]]) -> list[str]:
    """Means per data set, and in how many models the coarse codes are the simpler ones."""
    groups = dict.fromkeys(model["group"] for model in models)
    return [_finding(group, [model for model in models if model["group"] == group]) for group in groups]


def _finding(group: str, models: list[dict[str, Any]]) -> str:
    coarse = fmean(fmean(model["coarse"]) for model in models)
    if "fine" not in models[0]:
        return f"{group}: coarse codes have a mean permutation entropy of {coarse:.2f}; there is no fine book."
    fine = fmean(fmean(model["fine"]) for model in models)
    simpler = sum(fmean(model["coarse"]) < fmean(model["fine"]) for model in models)
    return (
        f"{group}: the mean permutation entropy is {coarse:.2f} for coarse codes and {fine:.2f} for fine ones; coarse "
        f"codes are the simpler ones in {simpler} of {len(models)} model{'' if len(models) == 1 else 's'}."
    )


def _words(data: dict[str, Any]) -> str:
    apart = "neighbouring values" if data["delay"] == 1 else f"values, {data['delay']} steps apart,"
    return (
        "Permutation entropy says how varied the ups and downs of a series are: 0 if they are always the same, as in a "
        f"rising line, 1 if all orders of {data['order']} {apart} occur equally often. One point per code that occurs "
        f"in the source; the line in a box is the median, the dashed one the mean. {how_decoded(data['context'])}"
    )


def _few(codes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most a row of codes: from the least to the largest entropy in equal steps."""
    ranked = sorted(codes, key=lambda code: (code["entropy"], code["code"]))
    if len(ranked) <= COLUMNS:
        return ranked
    return [ranked[round(i * (len(ranked) - 1) / (COLUMNS - 1))] for i in range(COLUMNS)]


def _which(codes: list[dict[str, Any]]) -> str:
    few = len(_few(codes))
    which = "All that occur" if few == len(codes) else f"{few} of the {len(codes)} that occur, evenly chosen"
    return (
        f"{which}, from the least entropy to the largest, each on a scale of its own. `transpl figure codes` draws all."
    )
