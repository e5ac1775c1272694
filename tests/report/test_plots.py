"""Plotly figures of the pages: the right numbers, and names as they are."""

from __future__ import annotations

import numpy as np
import pytest

from transpl import ShiftReport
from transpl._utils.errors import InputError
from transpl.markov import TransitionCounts
from transpl.report import plots
from transpl.report.plots import channel_distances, transition_matrices

RNG = np.random.default_rng(0)
REPORT = ShiftReport.from_counts(
    TransitionCounts(RNG.integers(0, 9, (3, 4, 4))),
    TransitionCounts(RNG.integers(0, 9, (3, 4, 4))),
    np.ones((4, 4)) - np.eye(4),
    sigma=0.2,
    channel_names=("x", "y", "z"),
    classes=["a", "b"],
    source_shares=np.array([0.5, 0.5]),
)

LONG = "a class whose name goes on and on"
NAMES = ["sit", "<b>walk</b> & run", LONG]
SHOWN = {
    "sit": "sit",
    "<b>walk</b> & run": "&lt;b&gt;walk&lt;/b&gt; &amp; run",
    LONG: "a class whose name\N{HORIZONTAL ELLIPSIS}",
}


def test_the_channel_that_moved_most_is_on_top():
    """Plotly draws the first bar at the bottom."""
    (bar,) = channel_distances(REPORT).data
    assert list(bar.y) == REPORT.channels()["channel"].tolist()[::-1]
    assert list(bar.x) == sorted(REPORT.distances)
    assert all(f"distance {x:.3f}" in text for x, text in zip(bar.x, bar.text, strict=True))


def test_matrices_stand_side_by_side_and_say_what_they_are():
    figure = transition_matrices(REPORT, "y")
    source, target, change = figure.data
    np.testing.assert_array_equal(source.z, REPORT.source_probabilities[1])
    np.testing.assert_array_equal(target.z, REPORT.target_probabilities[1])
    np.testing.assert_array_equal(change.z, REPORT.target_probabilities[1] - REPORT.source_probabilities[1])
    assert change.zmin == -change.zmax
    assert [note.text for note in figure.layout.annotations] == ["source", "target", "target less source"]
    p, q = REPORT.source_probabilities[1, 2, 3], REPORT.target_probabilities[1, 2, 3]
    for heat in figure.data:
        assert f"after code 2 comes code 3<br>source {p:.1%}, target {q:.1%}" in heat.text[2][3]


def test_an_unknown_channel_is_an_error():
    with pytest.raises(InputError, match=r"^channel: expected one of"):
        transition_matrices(REPORT, "w")


def test_class_names_are_no_tags_and_cut_beside_the_axis_alone():
    shares = plots.class_share_bars(NAMES, {"source": dict.fromkeys(NAMES, 0.25)}, {"source": plots.BLUE})
    assert shares.layout.xaxis.labelalias == SHOWN
    assert list(shares.data[0].x) == NAMES
    assert list(shares.data[0].customdata) == [SHOWN["sit"], SHOWN["<b>walk</b> & run"], LONG]


def test_a_cell_tells_both_names_in_full():
    found = plots.confusion(NAMES, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert found.layout.xaxis.labelalias == found.layout.yaxis.labelalias == SHOWN
    assert list(found.data[0].customdata[2][0]) == [LONG, "sit"]
