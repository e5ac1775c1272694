r"""Figure "codes": what the decoder makes of each code. Two contexts show two sides of a code:

"alone"    x_c = D(l2(e_c)), x_f = D(l2(e_f)): one patch that holds this code's vector and nothing else. It depends on
           no other code, but the decoder was trained on sequences of l2(e_c) + l2(e_f): it extrapolates.
"source"   x_c = mean of D(q)_{n,d,t} over the patches of the source whose coarse code is c, and x_f likewise: what
           the decoder makes of the code where it really occurs, other codes around it included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods import TransPLMethod
from transpl.nn import in_batches
from transpl.report.figures.figure_parts import WIDE, Drawing, Section, Subject, grid, place
from transpl.report.plots import BLUE, ORANGE
from transpl.windows import Windows

CONTEXTS = ("alone", "source")
COLUMNS = 8
COLOURS = {"coarse": BLUE, "fine": ORANGE}


def codes_study(subject: Subject, context: str = "alone") -> dict[str, Any]:
    """Per book and code: its values (m,), and which share of the source's patches it stands for.

    In context "source", values are None for a code that does not occur in the windows of the subject.
    """
    check_choice("context", context, CONTEXTS)
    method, usage = subject.method, subject.method.state.codebook_usage
    decoded = method.decoded_codes if context == "alone" else decoded_in_place(method, subject.windows.source)
    books = {}
    for book, values in decoded.items():
        counts = usage[book].counts
        shares = counts / max(1, int(counts.sum()))
        books[book] = [
            {"code": code, "share": float(share), "values": None if np.isnan(x).any() else x.tolist()}
            for code, (share, x) in enumerate(zip(shares, values, strict=True))
        ]
    return {"name": subject.name, "context": context, "books": books}


def decoded_in_place(method: TransPLMethod, windows: Windows) -> dict[str, NDArray[np.float64]]:
    """The mean of D(q) over the patches of each code, {book: (n_codes, m)}; NaN for codes that do not occur."""
    network = method.state.source_network

    def values_and_codes(x: Tensor, lengths: Tensor | None) -> Tensor:
        out = network(x, lengths)
        codes = [codes for codes in (out.coarse_codes, out.fine_codes) if codes is not None]
        return torch.cat([out.reconstruction, *(each[..., None].to(out.reconstruction) for each in codes)], dim=-1)

    with method.on_device(network):
        found = in_batches(network, windows, values_and_codes)  # (n, D, N, m + books)
    m, sizes = network.settings.patch_length, {"coarse": network.settings.n_coarse, "fine": network.settings.n_fine}
    return {
        book: _means_by_code(found[..., m + number].astype(np.int64).ravel(), found[..., :m].reshape(-1, m), size)
        for number, (book, size) in enumerate(sizes.items())
        if size
    }


def _means_by_code(codes: NDArray[np.int64], values: NDArray[np.float64], n_codes: int) -> NDArray[np.float64]:
    """codes (P,), -1 for none; values (P, m) -> (n_codes, m)."""
    real = codes >= 0
    sums = np.zeros((n_codes, values.shape[1]))
    np.add.at(sums, codes[real], values[real])
    counts = np.bincount(codes[real], minlength=n_codes)[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def draw_codes(data: dict[str, Any]) -> Drawing:
    """One panel per code, coarse first."""
    sections, parts = [], []
    for book, codes in data["books"].items():
        words = (
            f"{how_decoded(data['context'])} Across: the time steps of a patch; up: the signal, each code on a scale "
            f"of its own. Above each panel: the share of the source's patches whose {book} code it is, and its lowest "
            "and highest value in the data's units. Dotted: never used."
        )
        sections.append(Section(f"The {len(codes)} {book} codes", words, code_panels(codes, book), WIDE))
        never = sum(not code["share"] for code in codes)
        parts.append(f"{len(codes)} {book} codes, {f'{never} of them never' if never else 'all of them'} used")
    finding = f"Every stretch of signal in the source becomes one of a few codes: {'; '.join(parts)}."
    return Drawing(f"What the codes look like: {data['name']}", [finding], sections)


def code_panels(codes: list[dict[str, Any]], book: str) -> go.Figure:
    """Each code's values over the steps of a patch, on a scale of its own; a code that never occurs is dotted."""
    figure = grid([_title(code) for code in codes], COLUMNS, row_height=120, horizontal_spacing=0.025)
    for number, code in enumerate(codes):
        values = code["values"] or []
        line = go.Scatter(
            x=list(range(1, len(values) + 1)),
            y=values,
            mode="lines",
            line={"color": COLOURS[book], "width": 2, "dash": "solid" if code["share"] > 0 else "dot"},
            showlegend=False,
            hovertemplate=f"{book} code {code['code']}, step %{{x}}: %{{y:.3f}}<extra></extra>",
        )
        figure.add_trace(line, **place(number, COLUMNS))
    figure.update_xaxes(showgrid=False, zeroline=False, showticklabels=False)
    figure.update_yaxes(showgrid=False, zeroline=False, showticklabels=False)
    return figure.update_layout(margin={"l": 10, "r": 10, "t": 50, "b": 10})


def how_decoded(context: str) -> str:
    """What the decoder was given."""
    if context == "alone":
        return "Each code is decoded alone: the decoder is given one patch that holds it and nothing else."
    return (
        "Each code is decoded where it occurs: the mean of what the decoder makes of all source patches that have it."
    )


def _title(code: dict[str, Any]) -> str:
    if "entropy" in code:
        return f"code {code['code']}<br>entropy {code['entropy']:.2f}"
    share, values = code["share"], code["values"]
    usage = "never" if not share else f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %"
    reach = "not available" if values is None else f"{min(values):.2f} to {max(values):.2f}"
    return f"code {code['code']}, {usage}<br>{reach}"
