"""The timeline: the label, the confidence and, where known, the true class of every window, recording by recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.wording import counted
from transpl.jobs.segments import LONGEST, recordings_of, window_times
from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import choice, script_data

Floats = NDArray[np.float64]

_MOST = 20_000  # windows in the page
_DIGITS = 3  # of a confidence


def timeline_section(saved: SavedJob) -> list[str]:
    """A place for the drawing, which the page's script fills, and its data."""
    data = timeline_data(saved)
    recordings, shown = data["recordings"], sum(len(one["rows"]) for one in data["recordings"])
    kind = data["kind"]
    words = ["A row per class. A thick bar says when the target was given this label."]
    if data["truth"]:
        words.append("Right labels are blue, wrong ones orange; the thin line says where the true label is this class.")
    words.append("Below is how sure each label is.")
    if kind == "order":
        words.append("The windows are in the order of the file; when they were recorded is not known.")
    if shown < len(saved.predictions):
        words.append(f"The first {shown:,} of {counted(len(saved.predictions), 'window')} are drawn.")
    names = [(str(at), one["name"] or "all") for at, one in enumerate(recordings)]
    chooser = choice("timeline-recording", "recording", names) if len(recordings) > 1 else ""
    title = "The labels one after the other" if kind == "order" else "The labels over time"
    return [
        f'<section id="over-time"><h2>{title}</h2>',
        f"<p>{' '.join(words)}</p>",
        f'<p class="controls" hidden>{chooser}</p>' if chooser else "",
        '<div id="timeline" tabindex="0" role="group" aria-describedby="timeline-status"></div>',
        '<p id="timeline-status" role="status" class="notes"></p>',
        "<noscript><p>The drawing needs scripts. predictions.csv has the labels.</p></noscript>",
        script_data("timeline-data", data),
        "</section>",
    ]


def timeline_data(saved: SavedJob) -> dict[str, Any]:
    """The windows of each recording in order of time.

    kind : "number", "date" (milliseconds since 1970) or "time of day" (since midnight) if it is known when windows
        begin, else "order"
    """
    table, truth = saved.predictions, saved.truth
    known = [] if truth is None else sorted(set(truth.tolist()) - {"", *saved.classes})
    names = [*saved.classes, *known]  # the target may have classes that the source has not
    place = {name: k for k, name in enumerate(names)}
    kind, starts, ends = window_times(table)
    recordings = []
    left = _MOST
    for name, rows in recordings_of(table):
        if not left:
            break
        ordered = rows[np.argsort(starts[rows], kind="stable")][:left]
        left -= len(ordered)
        recordings.append(
            {
                "name": name,
                "rows": ordered.tolist(),
                "start": starts[ordered].tolist(),
                "end": _drawn_ends(starts[ordered], None if ends is None else ends[ordered]).tolist(),
                "label": [place[label] for label in saved.labels[ordered].tolist()],
                "sure": saved.confidence[ordered].round(_DIGITS).tolist(),
                "truth": None if truth is None else [place.get(one, -1) for one in truth[ordered].tolist()],
            }
        )
    explained = sorted(saved.explained)
    return {
        "classes": names,
        "kind": kind,
        "truth": truth is not None,
        "explained": explained,
        "recordings": recordings,
    }


def _drawn_ends(starts: Floats, ends: Floats | None) -> Floats:
    """Where the drawing of a window ends: at the next one, because windows overlap, or before a gap at its own end."""
    steps = np.diff(starts)
    forward = steps[steps > 0]
    usual = float(np.median(forward)) if len(forward) else 1.0
    following = np.append(starts[1:], np.inf)
    own = starts + usual if ends is None else ends
    gap = following - starts > LONGEST * usual
    return np.where(gap, np.minimum(own, following), following)
