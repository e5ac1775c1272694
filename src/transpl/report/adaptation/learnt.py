"""What was learnt: how training went, and the shapes of signal that the codes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.report import plots
from transpl.report.adaptation.html import bar, chart, code_chip, percent
from transpl.report.adaptation.saved import Saved
from transpl.report.wording import counted, listed

_PHASES = {"source": "on the source", "adapt": "on the target"}
_DRAWN = 64  # codes, the most used ones
_WIDTH, _HEIGHT, _MARGIN = 100.0, 60.0, 6.0


def learnt_section(saved: Saved) -> list[str]:
    """Codes with their shapes and usage, then the loss curves."""
    summary = saved.summary
    if saved.of_council:
        return ['<section id="codes"><h2>The codes</h2>', *_codes_of(summary), "</section>"]
    curves = plots.loss_curves(summary["history"], {phase: f"training {words}" for phase, words in _PHASES.items()})
    return [
        '<section id="codes"><h2>What was learnt</h2>',
        *_codes_of(summary),
        "<h3>How training went</h3>",
        *chart("losses", curves, _training_in_words(saved)),
        "</section>",
    ]


def _codes_of(summary: dict[str, Any]) -> list[str]:
    return _codes(summary["codebook_usage"]["coarse"]["counts"], summary.get("decoded_codes"))


def _codes(counts: Sequence[int], shapes: Sequence[Sequence[float]] | None) -> list[str]:
    used = sum(count > 0 for count in counts)
    words = f"Every short piece of signal was sorted into one of {counted(len(counts), 'code')}; {used} are in use."
    words += (
        " Each is drawn as the shape that it stands for, all on one scale; the percentage is of the source's pieces."
    )
    order = np.argsort(-np.asarray(counts), kind="stable")[:_DRAWN]
    if len(order) < len(counts):
        words += f" Here are the {_DRAWN} most used."
    lines = [""] * len(counts) if shapes is None else _drawings(np.asarray(shapes, dtype=float))
    total = max(sum(counts), 1)
    cards = [_card(int(code), counts[code] / total, lines[code]) for code in sorted(order)]
    return [f"<p>{words}</p>", '<ul class="codes">', *cards, "</ul>"]


def _card(code: int, share: float, drawing: str) -> str:
    usage = escape(percent(share)) if share else "never used"
    return f'<li><span class="code-name">code {code_chip(code)}</span>{drawing}{bar(share)}<span>{usage}</span></li>'


def _drawings(shapes: NDArray[np.float64]) -> list[str]:
    """One small picture per code, on one scale for all, with a line at 0 if that is in it."""
    low, high = float(shapes.min()), float(shapes.max())
    span = (high - low) or 1.0
    y = _HEIGHT - _MARGIN - (shapes - low) / span * (_HEIGHT - 2 * _MARGIN)
    x = np.linspace(0, _WIDTH, shapes.shape[1]) if shapes.shape[1] > 1 else np.array([_WIDTH / 2])
    zero = _HEIGHT - _MARGIN + low / span * (_HEIGHT - 2 * _MARGIN)
    axis = f'<line x1="0" x2="{_WIDTH:.0f}" y1="{zero:.1f}" y2="{zero:.1f}"/>' if low <= 0 <= high else ""
    return [
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none" aria-hidden="true">{axis}'
        f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, row, strict=True))}"/></svg>'
        for row in y
    ]


def _training_in_words(saved: Saved) -> str:
    history, seconds = saved.summary["history"], sum(saved.summary["seconds"].values())
    parts = [f"{counted(len(records), 'round')} {_PHASES.get(phase, phase)}" for phase, records in history.items()]
    kept = "Each phase keeps the network of its best round on held-out windows."
    return f"{listed(parts)}; {seconds:.0f} seconds in all. {kept}"
