"""Names on the figures of an adaptation: as they are, and not longer than there is room for."""

from __future__ import annotations

from transpl.report import plots

LONG = "a class whose name goes on and on"
NAMES = ["sit", "<b>walk</b> & run", LONG]
SHOWN = {
    "sit": "sit",
    "<b>walk</b> & run": "&lt;b&gt;walk&lt;/b&gt; &amp; run",
    LONG: "a class whose name\N{HORIZONTAL ELLIPSIS}",
}


def test_class_names_are_no_tags_and_cut_beside_the_axis_alone():
    shares = plots.class_shares(NAMES, {"source": dict.fromkeys(NAMES, 0.25)}, {"source": plots.BLUE})
    assert shares.layout.xaxis.labelalias == SHOWN
    assert list(shares.data[0].x) == NAMES
    assert list(shares.data[0].customdata) == [SHOWN["sit"], SHOWN["<b>walk</b> & run"], LONG]


def test_a_cell_tells_both_names_in_full():
    found = plots.confusion(NAMES, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert found.layout.xaxis.labelalias == found.layout.yaxis.labelalias == SHOWN
    assert list(found.data[0].customdata[2][0]) == [LONG, "sit"]
