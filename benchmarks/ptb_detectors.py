"""Both detectors of beats on one PTB record as a picture, and how well leads agree on all records beside it.

python -m benchmarks.ptb_detectors ../shared/data/ptbdb_raw/patient061/s0210lre --out detectors.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from transpl.datasets.recipes.ptb_beats import (
    BEAT_HZ,
    LEADS,
    Beats,
    agreement,
    consensus_beats,
    find_beats,
    published_beats,
    r_peaks,
    read_header,
    read_headers,
    read_signals,
    standardised,
)

TITLES = {
    "published": "published: a line joins the i-th peaks of all leads",
    "consensus": "consensus: a line joins the peaks that most leads have at the same time",
}
SAME_BEAT = BEAT_HZ // 20  # 0.05 s
COLOURS = ("#d62728", "#1f77b4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="patientNNN/sXXXX, with or without .hea")
    parser.add_argument("--out", type=Path, default=Path("ptb_detectors.html"))
    parser.add_argument("--start", type=float, default=60, help="second at which the picture starts")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    header = read_header(options.record.with_suffix(".hea"))
    measure(header.path.parents[1])
    signals = standardised(read_signals(header))
    figure = picture(signals, options.start, options.start + options.seconds)
    figure.update_layout(title=f"Patient {header.patient}, record {header.record}")
    figure.write_html(options.out, include_plotlyjs=True)
    print(f"wrote {options.out}")


def measure(folder: Path) -> None:
    print("patient record    beats of published  consensus   all leads within 0.2 s   repeated or off a beat")
    rows = []
    for header in read_headers(folder):
        peaks = r_peaks(standardised(read_signals(header)))
        published, consensus = published_beats(peaks), consensus_beats(peaks)
        n, m = len(published.centres), len(consensus.centres)
        rows.append((n, m, n * agreement(published), m * agreement(consensus), n - shared(published, consensus)))
        print(f"{header.patient:>7} {header.record:<10}{line(rows[-1])}")
    print(f"{'all':<18}{line(np.sum(rows, axis=0))}")


def shared(published: Beats, consensus: Beats) -> int:
    """How many consensus beats the published rule finds too."""
    away = np.abs(consensus.centres[:, None] - published.centres).min(axis=1)
    return int((away <= SAME_BEAT).sum())


def line(row) -> str:
    n, m, agreeing, agreeing_consensus, wrong = row
    return f"{n:18.0f}{m:11.0f}{agreeing / n:13.1%}{agreeing_consensus / m:11.1%}{wrong:18.0f}"


def picture(signals: np.ndarray, start: float, end: float) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, subplot_titles=[*TITLES.values()])
    peaks = r_peaks(signals)
    shown = slice(int(start * BEAT_HZ), int(end * BEAT_HZ))
    heights = one_below_the_other(signals, shown)
    for row, detector in enumerate(TITLES, start=1):
        draw_leads(figure, row, heights, shown)
        draw_beats(figure, row, heights, find_beats(peaks, detector))
    figure.update_xaxes(range=[start, end])
    figure.update_xaxes(title="seconds", row=2)
    ticks = {"tickvals": [-lead for lead in range(len(LEADS))], "ticktext": LEADS, "range": [-len(LEADS), 1]}
    figure.update_yaxes(showgrid=False, zeroline=False, **ticks)
    return figure.update_layout(showlegend=False, template="plotly_white", height=900, margin={"t": 80, "b": 40})


def one_below_the_other(signals: np.ndarray, shown: slice) -> np.ndarray:
    """Scale leads to the same height in the part that is shown, and move each below the one before."""
    part = signals[shown]
    return (signals - np.median(part, axis=0)) / np.ptp(part, axis=0) - np.arange(signals.shape[1])


def draw_leads(figure: go.Figure, row: int, heights: np.ndarray, shown: slice) -> None:
    seconds = np.arange(len(heights))[shown] / BEAT_HZ
    for lead in heights[shown].T:
        figure.add_trace(
            go.Scatter(x=seconds, y=lead, mode="lines", line={"color": "#aaa", "width": 1}), row=row, col=1
        )


def draw_beats(figure: go.Figure, row: int, heights: np.ndarray, beats: Beats) -> None:
    for i, peaks in enumerate(beats.peaks):
        leads = np.flatnonzero(np.isfinite(peaks))
        at = peaks[leads].astype(int)
        style = {"color": COLOURS[i % 2]}
        trace = go.Scatter(x=at / BEAT_HZ, y=heights[at, leads], mode="lines+markers", marker=style, line=style)
        figure.add_trace(trace, row=row, col=1)


if __name__ == "__main__":
    main()
