r"""Figure "alignment": how far each channel moved, by prototypes of [CLS] vectors and by the earth mover's distance.

prototype distance of channel d:   || mean_S CLS_d - mean_T CLS_d ||_2

The earth mover's distance is measured under both rules for codes that only one domain has. "additive" is the paper's
text: every transition gets a little probability, so these codes count. "floor" is its authors' code: the row of such a
code costs nothing, so a channel whose codes are all new seems not to have moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from transpl.markov import TransitionCounts, channel_distances, transport_cost
from transpl.methods import TransPLMethod
from transpl.nn import channel_summaries
from transpl.report.figures.figure_parts import WIDE, Drawing, Section, Subject, framed, grid, place
from transpl.report.plots import BLUE, GREY, ORANGE
from transpl.windows import evenly_spaced

RULES = {"additive": "as in the paper's text (additive)", "floor": "as in its authors' code (floor)"}
POINTS = 300  # drawn per domain; the distances are of all windows
_COLUMNS = 3


def distances_by_rule(
    method: TransPLMethod, source: TransitionCounts, target: TransitionCounts
) -> dict[str, NDArray[np.float64]]:
    """Distances (D,) by rule, the method's own rule (with its epsilon) among them; counts are per channel."""
    cost, settings = transport_cost(method.codebook), method.settings
    epsilons = {**dict.fromkeys(RULES), settings.smoothing: settings.epsilon}
    return {rule: channel_distances(source, target, cost, rule, epsilon) for rule, epsilon in epsilons.items()}


def alignment_study(subject: Subject) -> dict[str, Any]:
    """Per channel: points of both domains in the plane of their two main directions, and both distances."""
    method, windows = subject.method, subject.windows
    network = method.state.source_network
    with method.on_device(network):
        source, target = channel_summaries(network, windows.source), channel_summaries(network, windows.target)
    prototypes = prototype_distances(source, target)
    target_counts = subject.counts_of_target()
    by_rule = distances_by_rule(method, method.state.class_counts.pooled(), target_counts)
    distances = by_rule[method.settings.smoothing]
    weights = method.weights_from(distances, target_counts)
    channels = [
        {
            "name": name,
            "distance": float(distances[d]),
            "weight": float(weights[d]),
            "distances": {rule: float(found[d]) for rule, found in by_rule.items()},
            "prototype_distance": float(prototypes[d]),
            **_in_a_plane(source[:, d], target[:, d]),
        }
        for d, name in enumerate(subject.channel_names)
    ]
    return {
        "name": subject.name,
        "source_windows": len(source),
        "target_windows": len(target),
        "rule": method.settings.smoothing,
        "rank_correlations": {rule: rank_correlation(found, prototypes) for rule, found in by_rule.items()},
        "channels": channels,
    }


def prototype_distances(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""|| mean_n CLS^S_{n,d} - mean_n CLS^T_{n,d} ||_2; (n, D, d) and (n', D, d) -> (D,)."""
    return np.linalg.norm(source.mean(axis=0) - target.mean(axis=0), axis=-1)


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's; None if there is nothing to order."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(spearmanr(a, b).statistic)


def _in_a_plane(source: NDArray[np.float64], target: NDArray[np.float64]) -> dict[str, Any]:
    """Both (n, d) on the two main directions of both together; the full decomposition has no random part."""
    pca = PCA(2, svd_solver="full").fit(np.concatenate([source, target]))

    def points(values: NDArray[np.float64]) -> list[list[float]]:
        return pca.transform(values[evenly_spaced(len(values), POINTS)]).round(5).tolist()

    shares = [float(np.nan_to_num(share)) for share in pca.explained_variance_ratio_]
    return {"variance_shares": shares, "source": points(source), "target": points(target)}


def draw_alignment(data: dict[str, Any]) -> Drawing:
    """A cloud of points per channel, then bars."""
    cloud_words = (
        "One point per window: the network's summary of this channel (its [CLS] vector), in the two directions in "
        "which the windows of both domains differ most. Above each panel: how much of all differences these two "
        "directions show. All panels have the same scale."
    )
    bar_words = (
        "Blue: the earth mover's distance, that is, how much probability must be moved between codes to turn the "
        "source's transitions into the target's. Codes that only one domain has count in the paper's text and cost "
        "nothing in its authors' code. Grey: the distance between the mean vectors of source and target, which ignores "
        "the order in time. The scales differ, so compare the order of the channels."
    )
    channels = data["channels"]
    sections = [
        Section("Windows of both domains, channel by channel", cloud_words, _clouds(channels), WIDE),
        Section("How far each channel moved, by two measures", bar_words, _bars(channels), WIDE),
    ]
    return Drawing(f"Which channels moved: {data['name']}", _findings(data), sections)


def _clouds(channels: list[dict[str, Any]]) -> go.Figure:
    titles = [f"{each['name']} ({100 * sum(each['variance_shares']):.0f} % shown)" for each in channels]
    figure = grid(titles, _COLUMNS, row_height=240, shared_xaxes=True, shared_yaxes=True)
    for number, channel in enumerate(channels):
        for side, colour, symbol in (("source", BLUE, "circle"), ("target", ORANGE, "x-thin-open")):
            line = {"color": colour, "width": 1.2}
            points = go.Scatter(
                x=[x for x, _ in channel[side]],
                y=[y for _, y in channel[side]],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 5, "opacity": 0.75, "line": line},
                name=side,
                legendgroup=side,
                showlegend=number == 0,
                hovertemplate=f"{side}<extra></extra>",
            )
            figure.add_trace(points, **place(number, _COLUMNS))
    for axis, update in enumerate((figure.update_xaxes, figure.update_yaxes)):
        values = [point[axis] for each in channels for side in ("source", "target") for point in each[side]]
        margin = 0.04 * (max(values) - min(values) or 1.0)
        update(range=[min(values) - margin, max(values) + margin], nticks=5)
    return figure


def _bars(channels: list[dict[str, Any]]) -> go.Figure:
    ranked = sorted(channels, key=lambda each: each["distances"]["additive"])
    measures = [(words, BLUE, [each["distances"][rule] for each in ranked]) for rule, words in RULES.items()]
    measures.append(("prototypes (mean vectors)", GREY, [each["prototype_distance"] for each in ranked]))
    titles = [words for words, _, _ in measures]
    figure = make_subplots(rows=1, cols=3, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.05)
    for column, (_, colour, values) in enumerate(measures, start=1):
        bar = go.Bar(
            orientation="h",
            x=values,
            y=[each["name"] for each in ranked],
            text=[f"{value:.3f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            marker_color=colour,
            showlegend=False,
            hoverinfo="y+text",
        )
        figure.add_trace(bar, row=1, col=column)
        figure.update_xaxes(range=[0, 1.25 * (max(values) or 1.0)], nticks=4, row=1, col=column)
    figure.update_annotations(font_size=12)
    return framed(figure, 110 + 30 * len(ranked))


def _findings(data: dict[str, Any]) -> list[str]:
    words = {**RULES, "pseudocount": "with pseudocounts"}
    ranked = sorted(data["channels"], key=lambda each: -each["distance"])
    most, least = (f"({each['distance']:.3f}, weight {each['weight']:.2f})" for each in (ranked[0], ranked[-1]))
    by_prototype = max(data["channels"], key=lambda each: each["prototype_distance"])
    sentences = [
        f"{data['name']}, distances {words[data['rule']]}: {ranked[0]['name']} moved most {most}, "
        f"{ranked[-1]['name']} least {least}; by prototypes, {by_prototype['name']} moved most."
    ]
    known = {rule: value for rule, value in data["rank_correlations"].items() if value is not None}
    if known:
        values = ", ".join(f"{value:.2f} for distances {words[rule]}" for rule, value in known.items())
        sentences.append(f"Rank correlation with the prototypes' order (1: the same, 0: unrelated): {values}.")
    return sentences
