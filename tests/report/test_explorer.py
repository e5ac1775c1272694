"""The explorer's numbers are those of the explanation, and fit into a page."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from made_up_explanation import made_up
from made_up_results import saved

from transpl.report.adaptation.explorer import ABSENT, POINTS, explorer_data, pack_signals, steps_of, windows_that_fit

CLOSE = {"rtol": 0, "atol": 5.1e-7}  # six digits


def shown(**change):
    explanation = made_up(windows=np.arange(12), **change)
    return explanation, explorer_data(saved(explanation))


@pytest.mark.parametrize("ragged", [False, True])
def test_votes_and_sentences_are_the_explanations(ragged):
    explanation, data = shown(ragged=ragged)
    json.dumps(data, allow_nan=False)
    windows = data["windows"]
    assert [window["row"] for window in windows] == explanation.windows.tolist()
    np.testing.assert_allclose([window["vote"] for window in windows], explanation.probabilities, **CLOSE)
    np.testing.assert_allclose([window["answer"] for window in windows], explanation.answers, **CLOSE)
    np.testing.assert_allclose([window["says"] for window in windows], explanation.posteriors, **CLOSE)
    np.testing.assert_array_equal([window["codes"] for window in windows], explanation.codes)
    np.testing.assert_array_equal(data["shares"], explanation.shares)
    assert [window["sentence"] for window in windows] == [explanation.sentence(i) for i in range(12)]
    assert [data["classes"][window["label"]] for window in windows] == explanation.labels.tolist()
    for window, rows, labels in zip(windows, explanation.nearest.rows, explanation.nearest.labels, strict=True):
        assert [near[0] for near in window["near"]] == rows.tolist()
        assert [data["classes"][near[1]] for near in window["near"]] == labels.tolist()


@pytest.mark.parametrize("ragged", [False, True])
def test_steps_of_one_kind_are_added_up(ragged):
    explanation = made_up(ragged=ragged)
    for i in range(len(explanation)):
        one, found = explanation[i], explanation.contributions(i)
        expected: dict[tuple[int, int, int], list[float]] = {}
        for d in range(4):
            for t in range(8):
                before, after = one.codes[0, d, t : t + 2].tolist()
                if after >= 0:
                    expected.setdefault((d, before, after), []).append(found.transitions[d, t])
        steps = {tuple(step[:3]): step for step in steps_of(one.codes[0], found.transitions, found.log_odds)}
        assert steps.keys() == expected.keys()
        for kind, parts in expected.items():
            _, _, _, times, first, part, log_odds = steps[kind]
            assert times == len(parts)
            assert part == pytest.approx(sum(parts), abs=5.1e-7)
            assert tuple(one.codes[0, kind[0], first : first + 2]) == kind[1:]
            assert log_odds == pytest.approx(found.log_odds[kind[0], first], abs=5.1e-7)


def test_the_strongest_steps_come_first_on_either_side():
    explanation, data = shown()
    for i, window in enumerate(data["windows"]):
        parts = [step[5] for step in window["for"]], [-step[5] for step in window["other"]]
        for side in parts:
            assert side == sorted(side, reverse=True)
            assert all(part > 0 for part in side)
            assert len(side) <= 5
        assert window["margin"] == pytest.approx(explanation.contributions(i).margin, abs=5.1e-7)
        assert sum(window["parts"]) == pytest.approx(window["margin"], abs=4e-6)


def test_a_class_without_source_windows_leaves_no_infinity():
    _, data = shown(absent=1)
    assert "Infinity" not in json.dumps(data, allow_nan=False)


def test_a_single_class_has_nothing_to_be_held_against():
    three = made_up(windows=np.arange(12), nearest=None)
    alone = replace(
        three,
        classes=three.classes[:1],
        answers=np.ones((12, 1)),
        log_probabilities=three.log_probabilities[:1],
    )
    window = explorer_data(replace(saved(three), explanation=alone))["windows"][0]
    assert (window["label"], window["against"], window["near"]) == (0, None, [])


def test_large_windows_are_fewer():
    small = made_up()
    assert windows_that_fit(small) == 400
    large = made_up(n=2, weights=(1.0,) * 4, signals=np.zeros((2, 4, 5000), np.float32))
    assert windows_that_fit(large) == 400  # points are left out first
    codes = np.zeros((2, 4, 5000), np.int8)
    assert 20 < windows_that_fit(made_up(n=2, codes=codes, nearest=None)) < 200


def unpacked(found):
    levels = np.frombuffer(base64.b64decode(found["data"]), "<u2").astype(float)
    levels[levels == ABSENT] = np.nan
    low, high = np.array(found["low"])[:, None], np.array(found["high"])[:, None]
    return low + levels.reshape(-1, len(low), found["points"]) / (ABSENT - 1) * (high - low)


def test_signals_come_back_to_half_a_level():
    X = np.random.default_rng(0).normal(size=(5, 3, 40)).astype(np.float32) * [[[1.0], [1000.0], [0.0]]] + 7
    X[2, :, 30:] = np.nan
    found = pack_signals(X.astype(np.float32))
    span = np.nanmax(X, axis=(0, 2)) - np.nanmin(X, axis=(0, 2))
    again = unpacked(found)
    assert np.array_equal(np.isnan(again), np.isnan(X))
    assert (np.nanmax(np.abs(again - X), axis=(0, 2)) <= 0.51 * span / (ABSENT - 1) + 1e-4).all()
    assert found["stride"] == 1


def test_long_signals_are_thinned():
    X = np.arange(1200, dtype=np.float32).reshape(1, 1, 1200)
    found = pack_signals(X)
    assert (found["steps"], found["stride"], found["points"]) == (1200, 3, 400)
    assert found["points"] <= POINTS
    np.testing.assert_allclose(unpacked(found), X[..., ::3], atol=0.02)
