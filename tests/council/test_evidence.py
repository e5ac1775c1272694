"""The council's explanations: parts that add up, names that fit, files that come back whole or are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_up_explanation import CHANNELS, CLASSES, SEATS, edit_saved, made_up, made_up_council
from scipy.special import log_softmax, softmax

from transpl._utils.errors import InputError, UnreadableFile
from transpl.council import CouncilExplanation, load_explanation
from transpl.markov import Explanation

CASES = [{}, {"ragged": True}, {"absent": 1}, {"linear": False}, {"signals": None, "nearest": None}]
FINITE = st.floats(-50, 50)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, (2, len(SEATS), 3), elements=FINITE),
    arrays(np.float64, 3, elements=FINITE),
    arrays(np.float64, (2, 3), elements=FINITE),
    st.permutations(range(3)),
)
def test_log_odds_are_the_sum_of_their_parts(evidence, bias, rest, order):
    e = made_up_council(n=2, evidence=evidence, bias=bias, rest=rest)
    label, against, _ = (CLASSES[k] for k in order)
    log_q = log_softmax(evidence.sum(axis=1) + bias + rest, axis=1)
    for window in range(2):
        found = e.contributions(window, label, against)
        parts = found.witnesses.sum() + found.bias + found.rest
        assert found.log_odds == pytest.approx(parts, abs=1e-9)
        assert parts == pytest.approx(log_q[window, order[0]] - log_q[window, order[1]], abs=1e-9)
    np.testing.assert_allclose(e.probabilities, softmax(log_q, axis=1), atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_label_and_rival_are_the_two_most_probable(case):
    e = made_up_council(**case)
    for window, p in enumerate(e.probabilities):
        found, (second, first) = e.contributions(window), np.argsort(p, kind="stable")[-2:]
        assert (found.label, found.against) == (CLASSES[first], CLASSES[second])
        assert found.log_odds == pytest.approx(np.log(p[first] / p[second]))
        assert e.labels[window] == CLASSES[first]
        assert e.confidence[window] == p[first]


@pytest.mark.parametrize("ragged", [False, True])
def test_steps_of_codes_add_up_to_their_likelihood_ratio(ragged):
    e = made_up_council(ragged=ragged)
    for window in range(len(e)):
        parts = e.code_parts(window, "walk", "sit")
        assert parts.shape == (len(CHANNELS), e.codes.shape[2] - 1)
        ratio = 0.0
        for d, codes in enumerate(e.codes[window].tolist()):
            known = [code for code in codes if code >= 0]
            for t, (i, j) in enumerate(pairwise(known)):
                step = e.code_log_probabilities[2, d, i, j] - e.code_log_probabilities[0, d, i, j]
                assert parts[d, t] == step
                ratio += step
            assert (parts[d, max(len(known) - 1, 0) :] == 0).all()
        assert parts.sum() == pytest.approx(ratio)


def test_features_add_up_to_the_linear_witness():
    e = made_up_council()
    said = log_softmax(e.features.astype(np.float64) @ e.feature_weights.T + e.feature_bias, axis=1)
    for window in range(len(e)):
        parts = e.linear_parts(window, "sit", "stand")
        assert parts.features.shape == (len(e.feature_names),)
        assert parts.features.sum() + parts.bias == pytest.approx(said[window, 0] - said[window, 1])
    assert made_up_council(linear=False).linear_parts(0) is None


def test_top_evidence_names_what_counts_most_on_either_side():
    e = made_up_council()
    for window in range(len(e)):
        found, parts = e.top_evidence(window, n=3), e.contributions(window)
        named = [*found.witnesses_for, *found.witnesses_against]
        by_seat = dict(zip(e.seats, parts.witnesses, strict=True))
        assert {(w.witness, w.view): w.contribution for w in named} == {s: v for s, v in by_seat.items() if v != 0}
        for side, sign in ((found.witnesses_for, 1), (found.witnesses_against, -1)):
            sizes = [sign * w.contribution for w in side]
            assert sizes == sorted(sizes, reverse=True)
            assert all(size > 0 for size in sizes)
        codes = e.code_parts(window)
        assert found.transitions_for[0].contribution == codes.max()
        d = CHANNELS.index(found.transitions_for[0].channel)
        at = found.transitions_for[0].position
        assert (e.codes[window, d, at], e.codes[window, d, at + 1]) == (
            found.transitions_for[0].from_code,
            found.transitions_for[0].to_code,
        )
        features = e.linear_parts(window).features
        strongest = int(features.argmax())
        assert (found.features_for[0].channel, found.features_for[0].quantity) == e.feature_names[strongest]
        assert found.features_for[0].value == e.features[window, strongest]
        assert len(found.features_for) <= 3
        assert found.table()["contribution"].sum() == pytest.approx(parts.witnesses.sum())


def council_of_six(votes, rest=0.0, answers=None):
    """One window; six witnesses that give these classes 0.8 each and all count alike."""
    said = np.full((1, 6, 3), 0.1)
    said[0, np.arange(6), votes] = 0.8
    change = {} if answers is None else {"answers": np.array([answers])}
    return made_up_council(
        n=1,
        seat_answers=said,
        evidence=np.log(said),
        bias=np.zeros(3),
        rest=np.array([[0.0, 0.0, rest]]),
        code_log_probabilities=np.zeros((3, 4, 5, 5)),
        **change,
    )


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            council_of_six([0] * 6),
            ["sit, 1.00: all 6 witnesses say so, most strongly codes on signals as recorded"],
        ),
        (council_of_six([0, 0, 0, 0, 1, 2]), ["4 of 6 witnesses say so", "1 says stand"]),
        (council_of_six([1, 1, 1, 1, 0, 0]), ["stand", "2 say sit"]),
        (council_of_six([0] * 6, rest=40.0), ["walk", "none of its 6 witnesses says so", "decided against sit"]),
        (council_of_six([0] * 6, answers=[0.1, 0.2, 0.7]), ["walk, 0.70; by itself sit, 1.00: all 6 witnesses say so"]),
        (made_up_council(seats=(("trees", "shape"),)), ["its one witness", "trees on window shapes"]),
    ],
)
def test_a_sentence_says_who_agrees_and_who_does_not(one, words):
    said = one.sentence(0)
    assert all(word in said for word in words), said
    assert "\n" not in said


def test_channels_in_a_sentence_are_those_whose_codes_speak_most():
    e = made_up_council()
    for window in range(len(e)):
        parts = e.code_parts(window).sum(axis=1)
        if parts.max() > 0:
            assert CHANNELS[int(parts.argmax())] in e.sentence(window)


def test_channels_that_speak_against_the_label_together_are_told():
    e = made_up_council()
    for window in range(len(e)):
        parts = e.code_parts(window).sum(axis=1)
        against = f"{CHANNELS[int(parts.argmin())]} more against it"
        assert (against in e.sentence(window)) == (parts.max() > 0 > parts.sum())


def test_one_class_has_no_rival():
    e = made_up_council()
    alone = CouncilExplanation(
        **{
            **{name: getattr(e, name) for name in ("channel_names", "codes", "distances", "weights", "windows")},
            **{name: getattr(e, name) for name in ("seats", "accuracies")},
            "classes": CLASSES[:1],
            "answers": np.ones((12, 1)),
            "mode": "markov",
            "patch_length": 8,
            "evidence": e.evidence[..., :1],
            "bias": e.bias[:1],
            "rest": e.rest[:, :1],
            "seat_answers": np.ones((12, 6, 1)),
            "code_log_probabilities": e.code_log_probabilities[:1],
        }
    )
    assert "all 6 witnesses say so" in alone.sentence(0)
    with pytest.raises(InputError, match="against"):
        alone.contributions(0)


def test_classes_that_are_impossible_for_both_sides_leave_no_nan():
    bias = np.array([0.0, -np.inf, -np.inf])
    found = made_up_council(bias=bias).contributions(0, "stand", "walk")
    assert np.isfinite(found.log_odds)
    assert found.bias == 0
    assert made_up_council(bias=bias).contributions(0, "sit", "walk").log_odds == np.inf


def test_chosen_windows_are_those_of_the_whole():
    e = made_up_council()
    some = e[[7, 2]]
    assert some.windows.tolist() == [107, 102]
    assert some.sentence(0) == e.sentence(7)
    assert some.contributions(1).log_odds == e.contributions(2).log_odds
    np.testing.assert_array_equal(some.features, e.features[[7, 2]])
    np.testing.assert_array_equal(e[e.confidence > 0.5].probabilities, e.probabilities[e.confidence > 0.5])


@pytest.mark.parametrize("case", CASES)
def test_everything_comes_back_to_the_last_bit(tmp_path, case):
    e = made_up_council(**case)
    e.save(tmp_path / "explanation.npz")
    for again in (
        CouncilExplanation.load(tmp_path / "explanation.npz"),
        load_explanation(tmp_path / "explanation.npz"),
    ):
        assert type(again) is CouncilExplanation
        for name in (*e.ARRAYS, "classes", "probabilities"):
            one, other = getattr(again, name), getattr(e, name)
            assert one is other if other is None else (np.array_equal(one, other) and one.dtype == other.dtype), name
        for name in ("channel_names", *e.PLAIN):
            assert getattr(again, name) == getattr(e, name)
        assert (again.nearest is None) == (e.nearest is None)
        assert [again.sentence(w) for w in range(len(e))] == [e.sentence(w) for w in range(len(e))]


def test_the_loader_tells_both_kinds_apart(tmp_path):
    made_up().save(tmp_path / "paper.npz")
    made_up_council().save(tmp_path / "council.npz")
    assert type(load_explanation(tmp_path / "paper.npz")) is Explanation
    assert type(load_explanation(tmp_path / "council.npz")) is CouncilExplanation
    for kind, other in ((Explanation, "council"), (CouncilExplanation, "paper")):
        with refusal(tmp_path / f"{other}.npz", error=UnreadableFile):
            kind.load(tmp_path / f"{other}.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"evidence": None},
        {"evidence": np.zeros((12, 5, 3))},
        {"evidence": np.full((12, 6, 3), np.nan)},
        {"bias": np.full(3, np.inf)},
        {"seat_answers": np.zeros((12, 6, 2))},
        {"accuracies": np.zeros(5)},
        {"codes": np.full((12, 4, 9), 5, np.int8)},
        {"feature_weights": None},
        {"features": np.zeros((12, 1))},
        {"nearest_rows": np.zeros((2, 3), int)},
        {"seats": [["codes"]] * 6},
        {"seats": [["codes", 1]] * 6},
        {"seats": 6},
        {"feature_names": []},
        {"format": "transpl-council-explanation-2"},
        {"mode": "guess"},
        {"channel_names": ["x"]},
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, change):
    path = tmp_path / "e.npz"
    made_up_council().save(path)
    edit_saved(path, change)
    with refusal(path, error=UnreadableFile) as caught:
        load_explanation(path)
    assert "\n" not in str(caught.value)
