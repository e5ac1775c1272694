r"""Figure "entropy": are coarse codes simpler than fine ones? Permutation entropy of every decoded code.

H = -\sum_\pi p(\pi) log p(\pi) / log(n!)   (Bandt and Pompe 2002)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int, invalid
from transpl._utils.progress import tracked
from transpl._utils.wording import counted
from transpl.report.figures.decoded_codes import COLOURS, COLUMNS, code_panels, codes_study, how_decoded
from transpl.report.figures.figure_parts import WIDE, Drawing, Section, Subject, framed

# The paper gives neither. Patches are short (8 steps): order 3 has 6 stretches for its 3! = 6 patterns, order 4 only 5
# for 24.
ORDER, DELAY = 3, 1


def permutation_entropy(x: ArrayLike, order: int = 3, delay: int = 1, *, normalised: bool = True) -> float:
    r"""H = -\sum_\pi p(\pi) log p(\pi) / log(n!), with p(\pi) the share of stretches whose values are in order \pi.

    x : (T,); a stretch is (x_t, x_{t+l}, ..., x_{t+(n-1)l}) with n = `order` and l = `delay`
    normalised : from 0 (always the same order) to 1 (all n! orders equally often); else in bits, -\sum p log_2 p

    Equal values are ordered by time, the earlier one counts as smaller: a constant series looks like a rising one.
    A series of fewer than n! stretches cannot reach 1.
    """
    _, counts = np.unique(ordinal_patterns(x, order, delay), axis=0, return_counts=True)
    p = counts / counts.sum()
    bits = float(-(p * np.log2(p)).sum())
    most = math.log2(math.factorial(order)) if normalised else 1.0
    return max(0.0, bits / most)  # a single order gives -0.0


def ordinal_patterns(x: ArrayLike, order: int, delay: int = 1) -> NDArray[np.intp]:
    """For every stretch the positions of its values, from smallest to largest, (stretches, order)."""
    check_int("order", order, least=2)
    check_int("delay", delay, least=1)
    series = np.asarray(x, dtype=np.float64)
    needed = (order - 1) * delay + 1
    if series.ndim != 1 or len(series) < needed:
        expected = f"a series of at least {needed} values for order {order} and delay {delay}"
        raise invalid("x", expected=expected, got=f"shape {series.shape}", advice="Choose a smaller order or delay.")
    if not np.isfinite(series).all():
        raise invalid("x", expected="finite values", got="others", advice="Leave them out.")
    stretches = np.lib.stride_tricks.sliding_window_view(series, needed)[:, ::delay]
    return np.argsort(stretches, axis=1, kind="stable")


def entropy_study(
    subjects: Sequence[Subject], order: int = ORDER, delay: int = DELAY, context: str = "alone"
) -> dict[str, Any]:
    """Entropies per model and book of the codes that occur in the source; and the first model's codes, to draw them."""
    models, drawn = [], None
    for subject in tracked(subjects, "decoding, models", len(subjects)):
        decoded = codes_study(subject, context)
        # Codes that never occur were never given a shape by training.
        books = {
            book: [
                {**code, "entropy": permutation_entropy(code["values"], order, delay)}
                for code in codes
                if code["share"] > 0 and code["values"] is not None
            ]
            for book, codes in decoded["books"].items()
        }
        entropies = {book: [code["entropy"] for code in codes] for book, codes in books.items()}
        models.append({"name": subject.name, "group": subject.group, **entropies})
        drawn = drawn or {**decoded, "books": books}
    return {"order": order, "delay": delay, "context": context, "models": models, "drawn": drawn}


def draw_entropy(data: dict[str, Any]) -> Drawing:
    """Two distributions per data set, then codes of the first model from the simplest to the most varied."""
    models, name = data["models"], data["drawn"]["name"]
    apart = "neighbouring values" if data["delay"] == 1 else f"values, {data['delay']} steps apart,"
    words = (
        "Permutation entropy says how varied the ups and downs of a series are: 0 if they are always the same, as in a "
        f"rising line, 1 if all orders of {data['order']} {apart} occur equally often. One point per code that occurs "
        "in the source; the solid line in a box is the median, the dashed one the mean. "
    )
    sections = [Section("Entropy of every code", words + how_decoded(data["context"]), _distributions(models))]
    for book, codes in data["drawn"]["books"].items():
        few = _few(codes)
        some = f"{len(few)} of the {len(codes)} codes in use, evenly chosen"
        which = "All codes in use" if len(few) == len(codes) else some
        words = (
            f"{which}, from the lowest entropy to the highest, each on a scale of its own. `transpl figure codes` "
            "draws all."
        )
        sections.append(Section(f"{book.capitalize()} codes of {name}", words, code_panels(few, book), WIDE))
    groups = dict.fromkeys(model["group"] for model in models)
    findings = [_finding(group, [model for model in models if model["group"] == group]) for group in groups]
    return Drawing("Are coarse codes simpler than fine ones?", findings, sections)


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


def _finding(group: str, models: list[dict[str, Any]]) -> str:
    """Means of a data set, and in how many models the coarse codes are the simpler ones."""
    coarse = fmean(fmean(model["coarse"]) for model in models)
    if "fine" not in models[0]:
        return f"{group}: coarse codes have a mean permutation entropy of {coarse:.2f}; there are no fine codes."
    fine = fmean(fmean(model["fine"]) for model in models)
    simpler = sum(fmean(model["coarse"]) < fmean(model["fine"]) for model in models)
    return (
        f"{group}: the mean permutation entropy is {coarse:.2f} for coarse codes and {fine:.2f} for fine ones; coarse "
        f"codes are simpler in {simpler} of {counted(len(models), 'model')}."
    )


def _few(codes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most a row of codes, from the lowest to the highest entropy in equal steps."""
    ranked = sorted(codes, key=lambda code: (code["entropy"], code["code"]))
    if len(ranked) <= COLUMNS:
        return ranked
    return [ranked[round(i * (len(ranked) - 1) / (COLUMNS - 1))] for i in range(COLUMNS)]
