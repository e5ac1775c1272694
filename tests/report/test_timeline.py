"""What the timeline draws: every window of every recording, in order, at its time."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_explanation import CLASSES, made_up_council
from made_up_results import predictions, saved_council
from page_reading import page_of, text_of

from transpl.report.adaptation.timeline import timeline_data


def drawn(**columns):
    p = np.random.default_rng(0).dirichlet([1, 1, 1], size=12)
    table = predictions(p, **columns)
    results = saved_council(made_up_council(windows=np.arange(12), answers=p), predictions=table)
    return results, timeline_data(results), table


def test_windows_without_times_are_drawn_in_the_order_of_the_file():
    results, data, table = drawn()
    (one,) = data["recordings"]
    assert data["kind"] == "order"
    assert one["rows"] == one["start"] == list(range(12))
    assert one["end"] == list(range(1, 13))
    assert [data["classes"][k] for k in one["label"]] == table["label"].tolist()
    assert one["sure"] == pytest.approx(table["confidence"].tolist(), abs=5e-4)
    assert one["truth"] is None
    assert not data["truth"]
    assert "when they were recorded is not known" in text_of(page_of(results))


def test_a_recording_is_drawn_from_its_first_to_its_last_window():
    _, data, _ = drawn(domain=["a"] * 12, group=["x", "y"] * 6, start=np.arange(12)[::-1] * 10)
    assert [one["name"] for one in data["recordings"]] == ["a, x", "a, y"]
    first = data["recordings"][0]
    assert first["rows"] == [10, 8, 6, 4, 2, 0]
    assert first["start"] == [10, 30, 50, 70, 90, 110]
    assert first["end"] == [30, 50, 70, 90, 110, 130]


def test_a_gap_stays_empty():
    start = np.arange(12) * 10 + np.where(np.arange(12) > 5, 100, 0)
    _, data, _ = drawn(start=start)
    assert data["recordings"][0]["end"][5] == 60
    _, data, _ = drawn(start=start, end=start + 20)
    assert data["recordings"][0]["end"][4:6] == [50, 70]  # up to the next window, and to its own end


def test_dates_are_times_too():
    start = [f"2026-01-01T00:00:{second:02d}" for second in range(12)]
    _, data, _ = drawn(start=start, end=[f"2026-01-01T00:00:{second + 2:02d}" for second in range(12)])
    assert data["kind"] == "date"
    assert np.diff(data["recordings"][0]["start"]).tolist() == [1000] * 11
    assert data["recordings"][0]["end"][-1] - data["recordings"][0]["start"][-1] == 2000


def test_times_of_day_grow_over_midnight():
    start = [f"23:59:{second:02d}" for second in range(54, 60)] + [f"00:00:{second:02d}" for second in range(6)]
    _, data, _ = drawn(start=start, end=[*start[2:], "00:00:06", "00:00:07"])
    assert data["kind"] == "time of day"
    assert np.diff(data["recordings"][0]["start"]).tolist() == [1000] * 11


def test_the_truth_may_be_unknown_or_a_class_that_the_source_lacks():
    truth = ["", "run", *CLASSES[np.arange(10) % 3]]
    _, data, _ = drawn(truth=truth)
    assert data["classes"] == [*CLASSES, "run"]
    assert data["recordings"][0]["truth"][:2] == [-1, 3]
