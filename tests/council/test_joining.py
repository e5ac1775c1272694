"""Joining seats without labels: against loops over the written equations, and what must stay the same."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from transpl.council import joining
from transpl.council.joining import (
    LEVELS,
    VoteModel,
    estimate_accuracy,
    join,
    redundancy_weights,
    sharpness_for,
    symbols_of,
)
from transpl.windows import UNKNOWN, TargetInfo

K = 3
EVEN = np.full(K, 1 / K)
SAME = {"rtol": 0, "atol": 1e-5}  # EM stops when nothing changes by more than a millionth
FEW = settings(max_examples=15)


def answers_of(named: np.ndarray, seed: int = 0, K: int = K) -> np.ndarray:
    """Answers (S, n, K) that name these classes (S, n) with a random confidence of a half or more."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(K), named.shape)
    sure = rng.uniform(0.5, 0.95, named.shape)[..., None]
    return sure * np.eye(K)[named] + (1 - sure) * p


def opinions(accuracies: list[float], n: int, seed: int = 0, K: int = K) -> tuple[np.ndarray, np.ndarray]:
    """Answers (S, n, K) of seats that err independently, and the truth (n,)."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % K)
    wrong = (truth + rng.integers(1, K, (len(accuracies), n))) % K
    right = rng.random(wrong.shape) < np.array(accuracies)[:, None]
    return answers_of(np.where(right, truth, wrong), seed, K), truth


ANSWERS, TRUTH = opinions([0.85, 0.75, 0.7, 0.8], 60)


def written_confusions(q: np.ndarray, symbols: np.ndarray, counted: np.ndarray) -> np.ndarray:
    S, n = symbols.shape
    K = q.shape[1]
    found = np.zeros((S, K, K * LEVELS))
    for s in range(S):
        for k in range(K):
            for symbol in range(K * LEVELS):
                found[s, k, symbol] = joining._ANY_SYMBOL / LEVELS
                found[s, k, symbol] += joining._RIGHT_SYMBOL / LEVELS * (symbol % K == k)
                found[s, k, symbol] += sum(counted[i] * q[i, k] for i in range(n) if symbols[s, i] == symbol)
            found[s, k] /= found[s, k].sum()
    return found


def written_q(verdict: VoteModel, symbols: np.ndarray) -> np.ndarray:
    S, n = symbols.shape
    K = len(verdict.shares)
    q = np.zeros((n, K))
    for i in range(n):
        for k in range(K):
            q[i, k] = verdict.shares[k]
            for s in range(S):
                q[i, k] *= verdict.confusions[s, k, symbols[s, i]] ** verdict.weights[s]
    return q / q.sum(axis=1, keepdims=True)


# the equations


@pytest.mark.parametrize(("n", "K"), [(12, 3), (40, 2), (200, 3)])
def test_what_em_finds_obeys_its_equations(n, K):
    """200 windows of 3 classes are more than a confusion is learnt from."""
    answers, _ = opinions([0.9, 0.8, 0.85], n, K=K)
    known = np.full(n, UNKNOWN)
    known[:2] = [1, 0]
    source_shares = np.arange(1, K + 1) / np.arange(1, K + 1).sum()
    verdict, q = join(answers, source_shares, TargetInfo(few_labels=known))
    symbols = symbols_of(answers, verdict.thresholds)
    counted = np.where(known == UNKNOWN, 1.0, joining._LABEL_WEIGHT)
    counted *= min(1.0, joining._WINDOWS_PER_CLASS * K / n)
    assert np.allclose(verdict.confusions, written_confusions(q, symbols, counted), **SAME)
    drawn = q.sum(axis=0) + joining._SOURCE_WEIGHT * n * source_shares
    assert np.allclose(verdict.shares, drawn / drawn.sum(), **SAME)
    assert np.allclose(q[2:], written_q(verdict, symbols)[2:], atol=1e-12)
    named = answers.argmax(axis=2)
    assert np.allclose(verdict.accuracies, [q[np.arange(n), said].mean() for said in named], atol=1e-12)


def test_evidence_and_bias_add_up_to_log_q():
    verdict, q = join(ANSWERS, EVEN)
    for sharpness in (1.0, 0.3):
        sharpened = verdict.calibrated(ANSWERS, sharpness)
        log_q = sharpened.log_probabilities(sharpened.evidence(ANSWERS), TargetInfo())
        scores = sharpness * np.log(q)
        assert np.allclose(log_q, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)), atol=1e-9)


def test_symbols_by_hand():
    answers = np.array([[[0.8, 0.1, 0.1], [0.1, 0.65, 0.25], [0.3, 0.3, 0.4]]])
    thresholds = np.log([[2.0, 4.0]])  # odds of 8, of 2.6 and of 4 / 3
    assert symbols_of(answers, thresholds).tolist() == [[0, 1 + K, 2 + 2 * K]]


def test_every_seat_is_hesitant_and_sure_equally_often():
    verdict, _ = join(ANSWERS, EVEN)
    levels = symbols_of(ANSWERS, verdict.thresholds) // K
    assert (np.stack([np.bincount(level, minlength=LEVELS) for level in levels]) == 60 / LEVELS).all()


def test_weights_follow_their_formula():
    named = ANSWERS.argmax(axis=2)
    raw = [1 / sum(np.mean(one == other) ** 2 for other in named) for one in named]
    assert np.allclose(redundancy_weights(named), np.array(raw) / np.mean(raw))


def test_a_seat_that_is_there_twice_counts_once():
    truth = np.arange(60) % K
    named = np.stack([truth, truth, np.roll(truth, 1)])
    twice, again, alone = redundancy_weights(named)
    assert twice == again < alone
    assert twice + again == pytest.approx(alone)


# what it is for


def test_seats_that_are_always_right_are_believed():
    answers, truth = opinions([1.0, 1.0, 1.0], 60)
    verdict, q = join(answers, EVEN)
    assert (q.argmax(axis=1) == truth).all()
    assert q.max(axis=1).min() > 0.9
    assert verdict.accuracies.min() > 0.95
    assert np.allclose(verdict.shares, EVEN, atol=0.02)


def test_a_seat_that_guesses_is_found_out():
    answers, truth = opinions([0.85, 0.85, 0.85, 1 / K], 200)
    verdict, q = join(answers, EVEN)
    assert (q.argmax(axis=1) == truth).mean() > 0.9
    assert verdict.accuracies[-1] < 0.5 < verdict.accuracies[:-1].min()
    heard = verdict.evidence(answers) / verdict.weights[:, None, None]
    said = (heard.max(axis=2) - heard.min(axis=2)).mean(axis=1)
    assert said[-1] < said[:-1].min() / 2


def test_joining_beats_the_mean_answer_when_most_seats_are_bad():
    answers, truth = opinions([0.9, 0.9, 0.9, 0.4, 0.4, 0.4], 200)
    _, q = join(answers, EVEN)
    assert (q.argmax(axis=1) == truth).mean() >= (answers.mean(axis=0).argmax(axis=1) == truth).mean()


@pytest.mark.parametrize("right", [0, 1])
def test_a_few_known_labels_decide_between_two_seats(right):
    """Both seats are equally plausible: one says the opposite of the other for classes 0 and 1."""
    truth = np.arange(60) % K
    named = np.stack([truth, np.array([1, 0, 2])[truth]])
    known = np.full(60, UNKNOWN)
    known[:12] = named[right, :12]
    verdict, q = join(answers_of(named), EVEN, TargetInfo(few_labels=known))
    assert np.array_equal(q[:12], np.eye(K)[known[:12]])
    assert (q[12:].argmax(axis=1) == named[right, 12:]).all()
    assert verdict.accuracies[right] > verdict.accuracies[1 - right]


def test_known_labels_are_obeyed_against_all_seats():
    answers, truth = opinions([1.0, 1.0, 1.0], 30)
    known = np.full(30, UNKNOWN)
    known[4] = (truth[4] + 1) % K
    _, q = join(answers, EVEN, TargetInfo(few_labels=known))
    assert np.array_equal(q[4], np.eye(K)[known[4]])
    others = np.arange(30) != 4
    assert (q[others].argmax(axis=1) == truth[others]).all()


def test_known_class_shares_are_taken():
    prior = np.array([0.7, 0.2, 0.1])
    verdict, q = join(ANSWERS, EVEN, TargetInfo(prior=prior))
    assert np.allclose(verdict.shares, prior, **SAME)
    plain, without = join(ANSWERS, EVEN)
    assert q[:, 0].sum() > without[:, 0].sum()
    assert np.allclose(plain.with_shares(prior).shares, prior, **SAME)


def test_an_excluded_class_is_no_answer():
    answers, _ = opinions([0.6, 0.6], 40)
    _, q = join(answers, EVEN, TargetInfo(prior=np.array([0.0, 0.5, 0.5])))
    assert q[:, 0].max() < 0.01
    assert np.isfinite(q).all()


# what must not matter


@FEW
@given(st.integers(0, 1000), st.permutations(range(K)))
def test_classes_may_be_numbered_in_any_order(seed, order):
    answers, _ = opinions([0.8, 0.7, 0.75], 30, seed)
    source_shares = np.array([0.5, 0.3, 0.2])
    known = np.full(30, UNKNOWN)
    known[:3] = [0, 1, 2]
    number = np.argsort(order)  # class order[k] is now k
    verdict, q = join(answers, source_shares, TargetInfo(few_labels=known))
    other, other_q = join(
        answers[:, :, order],
        source_shares[order],
        TargetInfo(few_labels=np.where(known == UNKNOWN, UNKNOWN, number[known])),
    )
    symbols = np.concatenate([np.array(order) + K * level for level in range(LEVELS)])
    assert np.allclose(other_q, q[:, order], **SAME)
    assert np.allclose(other.shares, verdict.shares[order], **SAME)
    assert np.allclose(other.confusions, verdict.confusions[:, order][:, :, symbols], **SAME)
    assert np.allclose(other.accuracies, verdict.accuracies, **SAME)


@FEW
@given(st.integers(0, 1000), st.permutations(range(30)), st.permutations(range(3)))
def test_windows_and_seats_may_come_in_any_order(seed, windows, seats):
    answers, _ = opinions([0.8, 0.7, 0.75], 30, seed)
    groups = np.random.default_rng(seed).integers(0, 10, 30)
    verdict, q = join(answers, EVEN, TargetInfo(groups=groups))
    mixed, mixed_q = join(answers[seats][:, windows], EVEN, TargetInfo(groups=groups[windows]))
    assert np.allclose(mixed_q, q[windows], **SAME)
    assert np.allclose(mixed.weights, verdict.weights[seats])
    assert np.allclose(mixed.confusions, verdict.confusions[seats], **SAME)


def test_the_callers_arrays_stay_as_they_are():
    known = np.full(60, UNKNOWN)
    known[0] = 1
    given = [ANSWERS.copy(), EVEN.copy(), known.copy(), np.arange(60) // 2]
    kept = [array.copy() for array in given]
    join(given[0], given[1], TargetInfo(few_labels=given[2], groups=given[3]))
    assert all(np.array_equal(now, before) for now, before in zip(given, kept, strict=True))


# windows that belong together


def test_windows_of_a_group_get_the_same_answer_from_their_mean_evidence():
    groups = np.array([7, -2, 7, 30, -2, 7] * 10)
    verdict, q = join(ANSWERS, EVEN, TargetInfo(groups=groups))
    evidence = verdict.evidence(ANSWERS).sum(axis=0)
    for group in np.unique(groups):
        scores = evidence[groups == group].mean(axis=0) + verdict.bias
        expected = np.exp(scores - scores.max())
        assert np.allclose(q[groups == group], expected / expected.sum(), atol=1e-9)


def test_groups_of_one_window_change_nothing():
    _, alone = join(ANSWERS, EVEN)
    _, grouped = join(ANSWERS, EVEN, TargetInfo(groups=np.arange(60)[::-1]))
    assert np.allclose(alone, grouped)


def chain_by_enumeration(evidence: np.ndarray, shares: np.ndarray, stays: float) -> np.ndarray:
    """p(k_t | everything said), summed over all paths of classes."""
    n, K = evidence.shape
    q = np.zeros((n, K))
    for path in product(range(K), repeat=n):
        p = shares[path[0]] * np.prod(np.exp(evidence[range(n), path]))
        for k, following in pairwise(path):
            p *= stays * (k == following) + (1 - stays) * shares[following]
        q[range(n), path] += p
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("stays", [0.5, 0.9, 0.99])
def test_neighbours_in_time_against_all_paths(stays):
    rng = np.random.default_rng(0)
    sequences = np.array([0, 3, 0, 0, 3, 0, 0, 9])  # of 5, 2 and 1 windows, not side by side
    evidence, shares = rng.normal(0, 2, (4, 8, K)), rng.dirichlet(np.ones(K))
    nothing = np.zeros(0)
    verdict = VoteModel(nothing, nothing, nothing, shares, nothing, stays=stays)
    q = np.exp(verdict.log_probabilities(evidence, TargetInfo(groups=sequences, smooth=True)))
    for sequence in np.unique(sequences):
        rows = sequences == sequence
        assert np.allclose(q[rows], chain_by_enumeration(evidence.sum(axis=0)[rows], shares, stays), atol=1e-12)


def test_order_in_time_helps_where_classes_last():
    answers, _ = opinions([0.6, 0.6], 120)
    truth = np.arange(120) // 20 % K
    rng = np.random.default_rng(1)
    named = np.where(rng.random((2, 120)) < 0.6, truth, rng.integers(0, K, (2, 120)))
    answers = answers_of(named)
    _, alone = join(answers, EVEN)
    verdict, q = join(answers, EVEN, TargetInfo(groups=np.zeros(120, int), smooth=True))
    assert (q.argmax(axis=1) == truth).mean() > (alone.argmax(axis=1) == truth).mean() + 0.05
    assert verdict.stays > 0.8
    jumping, _ = join(ANSWERS, EVEN, TargetInfo(groups=np.zeros(60, int), smooth=True))
    assert jumping.stays < verdict.stays


def test_sequences_may_be_interleaved():
    """Only the order within a sequence matters."""
    answers, _ = opinions([0.8, 0.7], 30)
    sequences = np.repeat([4, 2, 7], 10)
    mixed = np.arange(30).reshape(3, 10).T.ravel()
    verdict, q = join(answers, EVEN, TargetInfo(groups=sequences, smooth=True))
    other, other_q = join(answers[:, mixed], EVEN, TargetInfo(groups=sequences[mixed], smooth=True))
    assert other.stays == pytest.approx(verdict.stays, abs=1e-5)
    assert np.allclose(other_q, q[mixed], **SAME)


# little data


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("S", [1, 3])
def test_little_data_gets_sound_probabilities(n, n_classes, S):
    answers, truth = opinions([1.0] * S, n, K=n_classes)
    shares = np.full(n_classes, 1 / n_classes)
    for info in (TargetInfo(), TargetInfo(groups=np.zeros(n, int)), TargetInfo(groups=np.zeros(n, int), smooth=True)):
        verdict, q = join(answers, shares, info)
        assert q.shape == (n, n_classes)
        assert np.allclose(q.sum(axis=1), 1)
        assert np.isfinite(verdict.evidence(answers)).all()
    assert (q[0].argmax() == truth[0]) or n > 1


def test_a_target_of_one_class_is_believed():
    answers = answers_of(np.ones((3, 40), int))
    answers[:, ::8] = answers[:, ::8][..., [1, 0, 2]]  # all err together now and then
    verdict, q = join(answers, EVEN)
    assert np.array_equal(q.argmax(axis=1), answers[0].argmax(axis=1))
    assert verdict.shares.argmax() == 1


def test_seats_without_an_opinion_leave_the_source_shares():
    """All answers alike; what a seat names then is the first class."""
    _, q = join(np.full((2, 20, K), 1 / K), np.array([0.2, 0.2, 0.6]))
    assert np.isfinite(q).all()
    assert np.allclose(q, q[0])


def test_a_verdict_survives_a_file(tmp_path):
    verdict, _ = join(ANSWERS, np.array([0.5, 0.3, 0.2]), TargetInfo(groups=np.arange(60) // 20, smooth=True))
    verdict = verdict.calibrated(ANSWERS, 0.4)
    np.savez(tmp_path / "verdict.npz", **verdict.arrays())
    with np.load(tmp_path / "verdict.npz", allow_pickle=False) as saved:
        again = VoteModel.from_arrays(dict(saved))
    assert np.array_equal(again.evidence(ANSWERS), verdict.evidence(ANSWERS))
    assert np.array_equal(again.bias, verdict.bias)
    assert np.array_equal(again.accuracies, verdict.accuracies)
    assert (again.stays, again.sharpness) == (verdict.stays, 0.4)


# The estimate of accuracy without labels, and confidence that agrees with it


MODEST = settings(max_examples=30)


def log_odds(share: float) -> float:
    share = min(max(share, joining._EXTREME), 1 - joining._EXTREME)
    return math.log(share / (1 - share))


def by_hand(confidence: float, agreement: float, best_view: float) -> list[float]:
    odds = joining._INTERCEPT + joining._OWN_CONFIDENCE * log_odds(confidence)
    odds += joining._AGREEMENT * log_odds(agreement) + joining._BEST_VIEW * log_odds(best_view)
    accuracy, low, high = (1 / (1 + math.exp(-o)) for o in (odds, odds - joining._BELOW, odds + joining._ABOVE))
    return [accuracy, low if low > 0.02 else 0.0, high if high < 0.98 else 1.0]


def naming(named: list[list[int]], confidence: float = 0.7) -> np.ndarray:
    """Answers (S, n, K) with one confidence."""
    return np.where(np.eye(K)[np.array(named)] > 0, confidence, (1 - confidence) / (K - 1))


@st.composite
def answered(draw):
    S, n = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    views = draw(st.lists(st.sampled_from(["recorded", "shape"]), min_size=S, max_size=S))
    return rng.dirichlet(np.ones(K), (S, n)), views, rng.dirichlet(np.ones(K), n)


def test_by_hand():
    # pairs agree on 3, 1 and 1 of 4 windows; the council is named 3 and 4 of 4 times in "shape", 1 in "recorded"
    answers = naming([[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 1, 1]])
    q = np.eye(K)[[0, 1, 2, 0]]
    estimate = estimate_accuracy(answers, ["shape", "shape", "recorded"], q)
    assert list(estimate) == pytest.approx(by_hand(0.7, (3 + 1 + 1) / 12, (3 / 4 + 4 / 4) / 2))


def test_one_seat_agrees_with_the_council_alone():
    answers, q = naming([[0, 1, 2, 2]]), np.eye(K)[[0, 1, 2, 0]]
    assert list(estimate_accuracy(answers, ["shape"], q)) == pytest.approx(by_hand(0.7, 0.75, 0.75))


@MODEST
@given(answered())
def test_the_interval_holds_the_estimate(given):
    estimate = estimate_accuracy(*given)
    assert 0 <= estimate.low <= estimate.accuracy <= estimate.high <= 1
    assert all(type(number) is float for number in estimate)


def test_an_interval_near_an_end_reaches_it():
    everybody = estimate_accuracy(naming([[0] * 5] * 3, 0.5), ["shape"] * 3, np.eye(K)[[0] * 5])
    nobody = estimate_accuracy(naming([[0] * 5, [1] * 5], 1 - 1e-12), ["shape"] * 2, np.eye(K)[[2] * 5])
    assert nobody.low == 0 < nobody.accuracy < nobody.high < everybody.low < everybody.accuracy < everybody.high == 1


def test_seats_that_agree_more_are_likelier_to_be_right():
    label = np.arange(30) % K
    found = []
    for apart in (0, 5, 10, 15):
        second, third = label.copy(), label.copy()
        second[:apart], third[10 : 10 + apart] = (label[:apart] + 1) % K, (label[10 : 10 + apart] + 2) % K
        answers = naming([label.tolist(), second.tolist(), third.tolist()])
        found.append(estimate_accuracy(answers, ["shape", "shape", "recorded"], np.eye(K)[label]).accuracy)
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4


@MODEST
@given(answered(), st.randoms(use_true_random=False))
def test_neither_the_order_of_seats_nor_of_windows_nor_of_classes_matters(given, random):
    answers, views, q = given
    assume(len(views) > 1)
    seats, windows, classes = (random.sample(range(n), n) for n in answers.shape)
    mixed = answers[seats][:, windows][:, :, classes]
    other = estimate_accuracy(mixed, [views[s] for s in seats], q[windows][:, classes])
    assert list(other) == pytest.approx(list(estimate_accuracy(answers, views, q)))


# sharpness


@MODEST
@given(st.integers(0, 1000), st.floats(0, 1), st.floats(0.1, 30))
def test_confidence_becomes_what_is_wanted(seed, wanted, size):
    scores = np.random.default_rng(seed).normal(0, size, (20, K))
    sharpness = sharpness_for(scores, wanted)
    assert 0 < sharpness <= 1
    confidence = softmax(scores, axis=1).max(axis=1).mean()
    reached = softmax(sharpness * scores, axis=1)
    assert np.array_equal(reached.argmax(axis=1), scores.argmax(axis=1))
    if confidence <= wanted:
        assert sharpness == 1
    elif wanted > 0.36:  # less than a third cannot be
        assert reached.max(axis=1).mean() == pytest.approx(wanted, abs=1e-6)
    else:
        assert reached.max(axis=1).mean() < 0.37


def test_scores_without_an_opinion_stay_as_they_are():
    assert sharpness_for(np.zeros((5, K)), 0.9) == 1


def test_a_higher_goal_never_makes_less_sure():
    scores = np.random.default_rng(0).normal(0, 5, (50, K))
    found = [sharpness_for(scores, wanted) for wanted in np.linspace(0.2, 1, 9)]
    assert found == sorted(found)


def test_the_last_bits_of_an_answer_decide_nothing():
    """Windows computed one at a time differ in them; at the limit of certainty all answers are the same number."""
    rng = np.random.default_rng(0)
    answers = ANSWERS.copy()
    certain = np.maximum(np.eye(K)[TRUTH[::2]], 1e-6)
    answers[:, ::2] = certain / certain.sum(axis=1, keepdims=True)  # half: one threshold lies among them
    model, _ = join(answers, EVEN)
    for _ in range(5):
        rounded = answers * (1 + 1e-12 * rng.uniform(-1, 1, answers.shape))
        np.testing.assert_array_equal(model.evidence(rounded), model.evidence(answers))
