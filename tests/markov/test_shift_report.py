"""What shifted: by hand, by loops, and on disk."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import refusal

from transpl import ShiftReport
from transpl._utils.errors import UnreadableFile
from transpl.markov import TransitionCounts, Undone, channel_distances, channel_weights, transport_cost

SOURCE = TransitionCounts(np.array([[[4, 4, 0], [2, 2, 0], [0, 0, 0]], [[3, 1, 1], [1, 3, 1], [0, 0, 5]]]))
TARGET = TransitionCounts(np.array([[[2, 6, 0], [0, 2, 0], [0, 0, 10]], [[3, 1, 1], [1, 3, 1], [0, 0, 5]]]))
COST = transport_cost(np.random.default_rng(0).normal(size=(3, 4)))


def report(**change):
    given = {
        "sigma": 0.2,
        "channel_names": ("acc", "gyro"),
        "classes": [1, 2],
        "source_shares": np.array([0.25, 0.75]),
        "target_shares": np.array([0.5, 0.5]),
    }
    return ShiftReport.from_counts(SOURCE, TARGET, COST, **{**given, **change})


@pytest.mark.parametrize("smoothing", ["floor", "additive"])
def test_distances_and_weights_are_the_papers(smoothing):
    found = report(smoothing=smoothing)
    expected = channel_distances(SOURCE, TARGET, COST, smoothing)
    np.testing.assert_array_equal(found.distances, expected)
    np.testing.assert_array_equal(found.weights, channel_weights(expected, 0.2))
    assert report(sigma=None).weights.tolist() == [1.0, 1.0]


def test_channels_are_ranked_by_distance():
    found = report().channels()
    assert found["channel"].tolist() == ["acc", "gyro"]
    assert found["rank"].tolist() == [1, 2]
    assert found["distance"].tolist() == [report().distances[0], 0.0]
    assert found["weight"].tolist()[1] == 1.0
    turned = ShiftReport.from_counts(
        TransitionCounts(SOURCE.counts[::-1]),
        TransitionCounts(TARGET.counts[::-1]),
        COST,
        sigma=0.2,
        channel_names=("gyro", "acc"),
        classes=[1, 2],
        source_shares=np.array([0.25, 0.75]),
    )
    assert turned.ranks.tolist() == [2, 1]
    assert turned.channels()["channel"].tolist() == ["acc", "gyro"]


def test_transitions_that_moved_are_as_by_hand():
    """Of 20 steps of the target 8 leave code 0, 2 code 1, 10 code 2, which the source never showed."""
    table = report().transitions(10)
    assert set(table["channel"]) == {"acc"}  # the other did not move
    rows = [
        (2, 2, 0.0, 1.0, 0.5, 0.5),
        (0, 0, 0.5, 0.25, 0.4, 0.1),
        (0, 1, 0.5, 0.75, 0.4, 0.1),
        (1, 0, 0.5, 0.0, 0.1, 0.05),
        (1, 1, 0.5, 1.0, 0.1, 0.05),
    ]
    columns = ["from_code", "to_code", "source", "target", "visited", "moved"]
    np.testing.assert_allclose(table[columns].to_numpy(float), rows)
    np.testing.assert_allclose(table["difference"], table["target"] - table["source"])
    expected = report().row_distances[0] / report().row_distances[0].sum()
    np.testing.assert_allclose(table["row_share"], expected[table["from_code"]])
    assert expected[2] == 0  # a row that is empty on one side costs nothing


def test_n_transitions_of_each_channel():
    rng = np.random.default_rng(1)
    one, other = (TransitionCounts(rng.integers(1, 9, (3, 4, 4))) for _ in range(2))
    found = ShiftReport.from_counts(
        one,
        other,
        np.ones((4, 4)) - np.eye(4),
        sigma=0.2,
        channel_names="abc",
        classes=["x"],
        source_shares=np.ones(1),
    )
    table = found.transitions(3)
    assert table["channel"].tolist() == np.repeat(found.channels()["channel"], 3).tolist()
    assert all((part["moved"].diff().dropna() <= 0).all() for _, part in table.groupby("channel"))


def test_nothing_moved():
    found = ShiftReport.from_counts(
        SOURCE, SOURCE, COST, sigma=0.2, channel_names="ab", classes=["x"], source_shares=np.ones(1)
    )
    assert found.distances.tolist() == [0.0, 0.0]
    assert len(found.transitions()) == 0
    assert "row_share" in found.transitions()


def test_class_shares_stand_side_by_side():
    assert report().shares().to_dict("list") == {
        "class": ["1", "2"],
        "source": [0.25, 0.75],
        "target_estimate": [0.5, 0.5],
    }
    assert report(target_shares=None).shares()["target_estimate"].isna().all()


@pytest.mark.parametrize("shares", [None, np.array([1 / 3, 2 / 3])])
def test_a_report_survives_its_file(tmp_path, shares):
    found = report(target_shares=shares)
    found.save(tmp_path / "shift.json")
    again = ShiftReport.load(tmp_path / "shift.json")
    assert again.as_dict() == found.as_dict()
    assert again.transitions(9).equals(found.transitions(9))
    assert again.channels().equals(found.channels())
    assert json.loads((tmp_path / "shift.json").read_text())["channel_names"] == ["acc", "gyro"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: [],
        lambda value: {"format": "something else"},
        lambda value: {**value, "weights": [1.0]},
        lambda value: {**value, "source_counts": "many"},
        lambda value: {**value, "row_distances": 3},
        lambda value: {name: part for name, part in value.items() if name != "target_counts"},
        lambda value: {**value, "target_counts": [[1, 2], [3]]},
        lambda value: {**value, "classes": None},
    ],
)
def test_damaged_and_foreign_files_are_refused_in_one_line(tmp_path, damage):
    path = tmp_path / "shift.json"
    path.write_text(json.dumps(damage(report().as_dict())))
    with refusal(path, "Write it with ShiftReport.save", UnreadableFile) as caught:
        ShiftReport.load(path)
    assert "\n" not in str(caught.value)


def test_arrays_that_do_not_fit_are_refused():
    with refusal("source_shares"):
        report(source_shares=np.ones(3))
    with refusal("target_shares"):
        report(target_shares=np.ones(3))


TURN = Undone("The device sits turned: undone.", "turn", 21.5, 5.0, {"kind": "turn", "order": [1, 0], "signs": [1, -1]})


def test_what_was_undone_is_kept(tmp_path):
    found = report(undone=[TURN, Undone("gyro shows nothing: left out.", "dead")])
    assert found.as_dict()["undone"][0] == {
        "sentence": TURN.sentence,
        "kind": "turn",
        "margin": 21.5,
        "threshold": 5.0,
        "shift": {"kind": "turn", "order": [1, 0], "signs": [1, -1]},
    }
    found.save(tmp_path / "shift.json")
    assert ShiftReport.load(tmp_path / "shift.json").undone == found.undone


def test_older_reports_have_nothing_undone(tmp_path):
    older = report(undone=[TURN]).as_dict()
    del older["undone"]
    assert ShiftReport.from_dict(older).undone == ()


@pytest.mark.parametrize("undone", [4, ["turn"], [{"kind": "turn"}], [{"sentence": "a", "kind": "b", "more": 1}]])
def test_what_was_undone_is_refused_if_damaged(tmp_path, undone):
    damaged = {**report().as_dict(), "undone": undone}
    (tmp_path / "shift.json").write_text(json.dumps(damaged))
    with refusal(tmp_path / "shift.json", error=UnreadableFile):
        ShiftReport.load(tmp_path / "shift.json")


def test_a_channel_of_one_code_is_unread_and_not_the_most_trusted():
    one_code = np.array([[10, 0, 0], [0, 0, 0], [0, 0, 0]])
    source, target = (TransitionCounts(np.stack([each.counts[0], one_code])) for each in (SOURCE, TARGET))
    options = {"sigma": 0.2, "channel_names": ("acc", "still"), "classes": [1, 2]}
    found = ShiftReport.from_counts(source, target, COST, source_shares=np.array([0.5, 0.5]), **options)
    assert found.unread.tolist() == [False, True]
    assert found.distances[1] == 0
    assert found.weights[0] > 0
    assert found.weights[1] == 0
    assert ShiftReport.from_dict(found.as_dict()).unread.tolist() == [False, True]
