"""Figure "likelihoods": why one target window gets its label, in one channel. Its codes, their likelihood under every
class, and the transition matrices of the classes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import invalid
from transpl.markov import channel_posteriors
from transpl.methods import PseudoLabels
from transpl.methods.transpl.transpl_state import Codes
from transpl.report.figures.figure_parts import WIDE, Drawing, Section, Subject, framed, grid, place
from transpl.report.plots import BLUE, CODE_COLOURS, GREY, ORANGE

CONFIDENT_SHARE = 0.25  # of the windows of a label
LEAST_WEIGHT = 0.5  # of a channel that counts, relative to the largest weight
_COLUMNS = 3


def likelihood_study(subject: Subject, window: int | None = None, channel: str | int | None = None) -> dict[str, Any]:
    """The signal and codes of a window in one channel, its likelihood under each class, and the classes' matrices.

    window : the number of a target window; by default one that `most_telling` finds
    channel : name or number; by default the one that tells most about that window
    """
    method, windows = subject.method, subject.windows
    settings, counts = method.settings, method.state.class_counts
    codes, labels = method.codes(windows.target), method.pseudo_label(windows.target)
    likelihoods = markov.log_likelihoods(codes, counts, settings.smoothing, settings.epsilon, settings.length)
    weights = method.channel_weights(subject.counts_of_target())
    rows = None if window is None else [_row_of(window, windows.target_rows)]
    channels = None if channel is None else [subject.channel(channel)]
    n, d = most_telling(codes, likelihoods, weights, labels, rows, channels)
    shares = channel_posteriors(likelihoods[n, d][None, None])[0, 0]
    classes = [
        {"name": name, "log_likelihood": float(value) if np.isfinite(value) else None, "share": float(share)}
        for name, value, share in zip(subject.class_names, likelihoods[n, d], shares, strict=True)
    ]
    return {
        "name": subject.name,
        "window": int(windows.target_rows[n]),
        "chosen_by_rule": window is None,
        "channel": subject.channel_names[d],
        "weight": float(weights[d]),
        "signal": windows.target.values[n, d, : windows.target.lengths[n]].astype(np.float64).tolist(),
        "patch_length": settings.patch_length,
        "codes": codes[n, d][codes[n, d] >= 0].tolist(),
        "label": subject.class_names[labels.labels[n]],
        "probability": float(labels.probabilities[n].max()),
        "classes": classes,  # log_likelihood is the mean of a transition; None if the source lacks the class
        "matrices": counts.probabilities("none")[:, d].tolist(),  # (K, n_c, n_c)
    }


def most_telling(
    codes: Codes,
    log_likelihoods: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: PseudoLabels,
    rows: list[int] | None = None,
    channels: list[int] | None = None,
) -> tuple[int, int]:
    """The window and channel with the most different transitions, chosen without any true label.

    Candidates are windows among the most confident quarter of their label, in channels that on their own give the same
    label and have at least half of the largest weight. Ties go to the window of higher confidence, then to the first.

    codes : (n, D, N); log_likelihoods : (n, D, K); weights : (D,)
    rows, channels : choose among these only; the rule then orders them but leaves none out
    """
    confident = np.zeros(len(labels.labels), np.bool_)
    for label in np.unique(labels.labels):
        same = labels.labels == label
        confident |= same & (labels.confidence >= np.quantile(labels.confidence[same], 1 - CONFIDENT_SHARE))
    agrees = log_likelihoods.argmax(axis=-1) == labels.labels[:, None]
    fit = agrees & (weights >= LEAST_WEIGHT * weights.max()) & confident[:, None]

    def different_transitions(n: int, d: int) -> int:
        return len(set(pairwise(codes[n, d][codes[n, d] >= 0].tolist())))

    candidates = [
        (not fit[n, d], -different_transitions(n, d), -labels.confidence[n], n, d)
        for n in (range(len(codes)) if rows is None else rows)
        for d in (range(codes.shape[1]) if channels is None else channels)
    ]
    *_, n, d = min(candidates)
    return n, d


def _row_of(window: int, target_rows: NDArray[np.int64]) -> int:
    found = np.flatnonzero(target_rows == window)
    if len(found):
        return int(found[0])
    few = ", ".join(str(row) for row in target_rows[:5])
    expected = f"one of the {len(target_rows)} available target windows ({few}, ... {target_rows[-1]})"
    raise invalid("window", expected=expected, got=window, advice="Choose one of these numbers.")


def draw_likelihoods(data: dict[str, Any]) -> Drawing:
    """The signal, the evidence, the matrices."""
    signal_words = (
        f"Every stretch of {data['patch_length']} steps becomes a code: the number above it, and the line's colour."
    )
    evidence_words = (
        "The log likelihood is the mean over the transitions of this window: 0 is certain; the lower it is, the less "
        "typical these codes are of the class. The shares follow by Bayes' rule, with all classes equally frequent."
    )
    matrix_words = (
        "Rows: a code; columns: the code that follows; colour: how often it does in the source's windows of the class. "
        "Circles: the transitions of this window, larger if they are repeated. Blue under the circles speaks for a "
        "class, white against it."
    )
    sections = [
        Section("The signal, and its code in every stretch", signal_words, _signal(data)),
        Section("How well each class explains these codes", evidence_words, _evidence(data), WIDE),
        Section("What each class does in this channel", matrix_words, _matrices(data), WIDE),
    ]
    return Drawing(f"Why window {data['window']} is called {data['label']}", _findings(data), sections)


def _findings(data: dict[str, Any]) -> list[str]:
    ranked = sorted(data["classes"], key=lambda each: -each["share"])
    how = "chosen by a rule that uses no labels" if data["chosen_by_rule"] else "as requested"
    shares = [f"{each['name']} ({100 * each['share']:.1f} %)" for each in ranked]
    least = f"; least for {shares[-1]}" if len(shares) > 2 else ""
    return [
        f"{data['name']}, target window {data['window']} ({how}), channel {data['channel']}: its codes speak most for "
        f"{', then for '.join(shares[:2])}{least}.",
        f"All channels together call it {data['label']} (probability {data['probability']:.2f}); this one has weight "
        f"{data['weight']:.2f} in the vote.",
    ]


def _signal(data: dict[str, Any]) -> go.Figure:
    signal, m = data["signal"], data["patch_length"]
    low, high = min(signal), max(signal)
    figure = go.Figure()
    for number, code in enumerate(data["codes"]):
        # One step further than the patch, so that the line has no gaps.
        steps = range(number * m, min((number + 1) * m + 1, len(signal)))
        figure.add_scatter(
            x=list(steps),
            y=[signal[t] for t in steps],
            mode="lines",
            line={"color": CODE_COLOURS[code % len(CODE_COLOURS)], "width": 3},
            showlegend=False,
            hovertemplate=f"step %{{x}}: %{{y:.3f}}, code {code}<extra></extra>",
        )
        above = high + 0.12 * (high - low or 1.0)
        figure.add_annotation(x=(number + 0.5) * m, y=above, text=str(code), showarrow=False, font_size=13)
    figure.update_xaxes(title_text="time step", tickvals=[n * m for n in range(len(data["codes"]) + 1)], tickangle=0)
    figure.update_yaxes(title_text=f"{data['channel']} (data's units)")
    return framed(figure, 290).update_layout(margin={"t": 10})


def _evidence(data: dict[str, Any]) -> go.Figure:
    classes = data["classes"]
    best = max(range(len(classes)), key=lambda k: classes[k]["share"])
    texts = [
        "not in the source"
        if each["log_likelihood"] is None
        else f"{100 * each['share']:.1f} %, log likelihood {each['log_likelihood']:.2f}"
        for each in classes
    ]
    bar = go.Bar(
        orientation="h",
        x=[100 * each["share"] for each in classes],
        y=[each["name"] for each in classes],
        text=texts,
        textposition="outside",
        cliponaxis=False,
        marker_color=[BLUE if k == best else GREY for k in range(len(classes))],
        hoverinfo="y+text",
    )
    figure = framed(go.Figure(bar), 60 + 44 * len(classes))
    figure.update_layout(margin={"r": 170, "t": 10})
    figure.update_xaxes(title_text="share of this channel's evidence (%)", rangemode="tozero")
    return figure.update_yaxes(autorange="reversed")


def _matrices(data: dict[str, Any]) -> go.Figure:
    path = Counter(pairwise(data["codes"]))
    names = [each["name"] for each in data["classes"]]
    figure = grid(names, _COLUMNS, row_height=290, shared_xaxes=True, shared_yaxes=True)
    for number, matrix in enumerate(data["matrices"]):
        heat = go.Heatmap(
            z=matrix,
            coloraxis="coloraxis",
            xgap=1,
            ygap=1,
            hovertemplate="from code %{y} to code %{x}: %{z:.1%}<extra></extra>",
        )
        sizes = [9 + 2 * min(times, 5) for times in path.values()]
        circles = go.Scatter(
            x=[after for _, after in path],
            y=[before for before, _ in path],
            mode="markers",
            marker={"symbol": "circle-open", "color": ORANGE, "line": {"width": 3}, "size": sizes},
            text=[f"{times} times" if times > 1 else "once" for times in path.values()],
            hovertemplate="this window goes from code %{y} to code %{x}: %{text}<extra></extra>",
            name="transitions of this window",
            legendgroup="window",
            showlegend=number == 0,
        )
        figure.add_traces([heat, circles], **{f"{key}s": [at] * 2 for key, at in place(number, _COLUMNS).items()})
    bar = {"title": "probability", "tickformat": ".0%", "thickness": 12}
    figure.update_layout(coloraxis={"colorscale": "Blues", "cmin": 0, "cmax": 1, "colorbar": bar})
    figure.update_xaxes(dtick=1, showgrid=False, zeroline=False)
    figure.update_yaxes(dtick=1, showgrid=False, zeroline=False, autorange="reversed")
    last_row = -(-len(names) // _COLUMNS)
    for column in range(1, min(_COLUMNS, len(names)) + 1):
        figure.update_xaxes(title_text="next code", row=last_row, col=column)
    for row in range(1, last_row + 1):
        figure.update_yaxes(title_text="code", row=row, col=1)
    return figure
