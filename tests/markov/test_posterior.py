"""Likelihoods, posteriors and confidence: by hand, by loops, and under permutation."""

import math
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import entropy

from transpl.markov import (
    TransitionCounts,
    channel_posteriors,
    confidence,
    label_probabilities,
    log_likelihoods,
    posterior,
    transition_log_probabilities,
)

MODEST = settings(deadline=None, max_examples=40)
NAN, INF = float("nan"), float("inf")

# Two codes, two classes, one channel. Leaving code 0: class 0 stays with 3/4, class 1 with 1/4. Leaving code 1: 1/2.
HAND = TransitionCounts(np.array([[[[3, 1], [1, 1]]], [[[1, 3], [1, 1]]]]))


def random_case(seed, windows=6, channels=2, patches=7, n_codes=3, classes=3, ragged=False):
    """Codes, and sparse counts of every class."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_codes, (windows, channels, patches))
    if ragged:
        for window, end in zip(codes, rng.integers(1, patches + 1, windows), strict=True):
            window[:, end:] = -1
    counts = rng.poisson(1.0, (classes, channels, n_codes, n_codes))
    counts[:, 0, 0, 0] += 1  # no class is empty
    return codes, TransitionCounts(counts)


def probability_by_hand(row, j, smoothing, epsilon):
    """p(j) of one row of counts, under a smoothing rule."""
    total = sum(row)
    if smoothing == "pseudocount":
        return (row[j] + epsilon) / (total + len(row) * epsilon)
    share = [count / total if total else 0.0 for count in row]
    if smoothing == "floor":
        return share[j] if share[j] > 0 else epsilon
    return (share[j] + epsilon) / (sum(share) + len(row) * epsilon)


def log_likelihoods_by_loops(codes, class_counts, smoothing, epsilon, length):
    counts = class_counts.counts.tolist()
    result = np.zeros((*codes.shape[:2], len(counts)))
    for w, d, k in np.ndindex(*result.shape):
        sequence = [code for code in codes[w, d].tolist() if code != -1]
        total = 0.0
        for i, j in pairwise(sequence):
            total += math.log(probability_by_hand(counts[k][d][i], j, smoothing, epsilon))
        divisor = len(sequence) - 1 if length == "transitions" else len(sequence)
        result[w, d, k] = total / divisor if len(sequence) > 1 else 0.0
    return result


# log_likelihoods


def test_the_likelihood_of_one_window_is_as_by_hand():
    # 0 0 1 0: transitions 0->0, 0->1, 1->0, three of them among four codes.
    # class 0: log 3/4 + log 1/4 + log 1/2; class 1: log 1/4 + log 3/4 + log 1/2.
    total = math.log(3 / 4) + math.log(1 / 4) + math.log(1 / 2)
    np.testing.assert_allclose(log_likelihoods([[[0, 0, 1, 0]]], HAND), [[[total / 3, total / 3]]], rtol=1e-14)
    # 0 0 0: class 0 log 3/4 twice, class 1 log 1/4 twice; over 2 transitions or over 3 codes.
    np.testing.assert_allclose(log_likelihoods([[[0, 0, 0]]], HAND), [[np.log([3 / 4, 1 / 4])]], rtol=1e-14)
    printed = log_likelihoods([[[0, 0, 0]]], HAND, length="codes")
    np.testing.assert_allclose(printed, [[2 / 3 * np.log([3 / 4, 1 / 4])]], rtol=1e-14)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("length", ["transitions", "codes"])
@pytest.mark.parametrize(
    ("smoothing", "epsilon"),
    [("floor", 1e-4), ("floor", 0.02), ("additive", 1e-6), ("additive", 0.1), ("pseudocount", 0.1)],
)
def test_likelihoods_agree_with_explicit_loops(smoothing, epsilon, length, ragged):
    codes, class_counts = random_case(1, ragged=ragged)
    np.testing.assert_allclose(
        log_likelihoods(codes, class_counts, smoothing, epsilon, length),
        log_likelihoods_by_loops(codes, class_counts, smoothing, epsilon, length),
        rtol=1e-12,
        atol=1e-14,  # the logarithm of a probability close to 1
    )


def test_likelihoods_use_the_authors_conventions_unless_told():
    codes, class_counts = random_case(2)
    np.testing.assert_array_equal(
        log_likelihoods(codes, class_counts), log_likelihoods(codes, class_counts, "floor", 1e-4, "transitions")
    )


def test_the_printed_length_scales_by_transitions_over_codes():
    codes, class_counts = random_case(3, patches=7)
    np.testing.assert_allclose(
        log_likelihoods(codes, class_counts, length="codes"),
        log_likelihoods(codes, class_counts, length="transitions") * 6 / 7,
        rtol=1e-12,
    )


@pytest.mark.parametrize("length", ["transitions", "codes"])
def test_a_padded_window_has_the_likelihood_of_the_unpadded_one(length):
    codes, class_counts = random_case(4, ragged=True)
    together = log_likelihoods(codes, class_counts, length=length)
    for w, window in enumerate(codes):
        alone = window[:, window[0] != -1][None]
        np.testing.assert_allclose(log_likelihoods(alone, class_counts, length=length)[0], together[w], rtol=1e-12)


def test_a_window_with_no_transition_has_likelihood_zero_in_every_class():
    codes, class_counts = random_case(5, patches=1)
    np.testing.assert_array_equal(log_likelihoods(codes, class_counts), np.zeros((6, 2, 3)))
    np.testing.assert_array_equal(log_likelihoods(codes[:, :, :0], class_counts, length="codes"), np.zeros((6, 2, 3)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("smoothing", ["floor", "additive"])
@pytest.mark.parametrize("patches", [1, 7])
def test_a_class_without_source_rows_has_likelihood_minus_infinity(smoothing, patches):
    codes, class_counts = random_case(6, patches=patches)
    counts = class_counts.counts.copy()
    counts[1] = 0
    result = log_likelihoods(codes, TransitionCounts(counts), smoothing)
    assert (result[..., 1] == -INF).all()
    assert np.isfinite(result[..., [0, 2]]).all()


def test_a_class_seen_in_one_channel_only_keeps_its_likelihood_in_the_other():
    codes, class_counts = random_case(7)
    counts = class_counts.counts.copy()
    counts[1, 1] = 0
    result = log_likelihoods(codes, TransitionCounts(counts))
    np.testing.assert_allclose(result[:, 1, 1], math.log(1e-4), rtol=1e-12)


def test_unsmoothed_likelihoods_are_minus_infinity_for_an_unseen_transition():
    counts = TransitionCounts.from_codes([[[0, 0]], [[0, 1]]], 2, [0, 1])
    assert log_likelihoods([[[0, 1]]], counts, "none").tolist() == [[[-INF, 0.0]]]


@pytest.mark.parametrize("at_once", [1, 100])
def test_likelihoods_in_small_chunks_are_the_same(monkeypatch, at_once):
    codes, class_counts = random_case(8, ragged=True)
    monkeypatch.setattr(posterior, "_LOOKUPS_AT_ONCE", at_once)
    np.testing.assert_allclose(
        log_likelihoods(codes, class_counts),
        log_likelihoods_by_loops(codes, class_counts, "floor", 1e-4, "transitions"),
        rtol=1e-12,
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_every_integer_type_gives_the_same_likelihoods(dtype):
    codes, class_counts = random_case(9)
    np.testing.assert_array_equal(
        log_likelihoods(codes.astype(dtype), class_counts), log_likelihoods(codes, class_counts)
    )


def test_a_small_integer_type_does_not_overflow_in_the_look_up():
    codes = np.array([[[127, 126, 127]]])
    class_counts = TransitionCounts.from_codes(codes, 128, [0])
    assert log_likelihoods(codes.astype(np.int8), class_counts).tolist() == [[[0.0]]]  # both transitions are certain


def test_likelihoods_leave_their_inputs_alone():
    codes, class_counts = random_case(10, ragged=True)
    codes_before, counts_before = codes.copy(), class_counts.counts.copy()
    log_likelihoods(codes, class_counts)
    np.testing.assert_array_equal(codes, codes_before)
    np.testing.assert_array_equal(class_counts.counts, counts_before)


def test_likelihoods_of_no_windows_are_none():
    _, class_counts = random_case(11)
    assert log_likelihoods(np.zeros((0, 2, 7), int), class_counts).shape == (0, 2, 3)


def test_likelihoods_need_counts_with_a_class_axis():
    codes, class_counts = random_case(12)
    with refusal("class_counts", "from_codes"):
        log_likelihoods(codes, class_counts.pooled())


def test_likelihoods_need_the_channels_of_the_counts():
    codes, class_counts = random_case(13)
    with refusal("class_counts", "same channels"):
        log_likelihoods(codes[:, :1], class_counts)


def test_likelihoods_refuse_codes_outside_the_codebook():
    with refusal("codes"):
        log_likelihoods([[[0, 2]]], HAND)


def test_likelihoods_refuse_unknown_conventions():
    with refusal("length", "'transitions', 'codes'"):
        log_likelihoods([[[0, 1]]], HAND, length="patches")
    with refusal("smoothing"):
        log_likelihoods([[[0, 1]]], HAND, smoothing="laplace")


# channel_posteriors


def test_the_posterior_of_one_channel_is_as_by_hand():
    # 0 0: likelihoods 3/4 and 1/4, uniform prior: 3 to 1.
    scores = log_likelihoods([[[0, 0]]], HAND)
    np.testing.assert_allclose(channel_posteriors(scores), [[[3 / 4, 1 / 4]]], rtol=1e-14)
    # prior (1/5, 4/5): 3 * 1 to 1 * 4.
    np.testing.assert_allclose(channel_posteriors(scores, [0.2, 0.8]), [[[3 / 7, 4 / 7]]], rtol=1e-14)
    # temperature 2 takes the square root of the prior, 1 to 2: 3 * 1 to 1 * 2.
    np.testing.assert_allclose(channel_posteriors(scores, [0.2, 0.8], 2.0), [[[3 / 5, 2 / 5]]], rtol=1e-14)


def test_a_prior_given_as_numbers_of_rows_is_the_same_as_proportions():
    scores = log_likelihoods(*random_case(14))
    np.testing.assert_allclose(channel_posteriors(scores, [2, 5, 3]), channel_posteriors(scores, [0.2, 0.5, 0.3]))


def test_no_prior_is_the_uniform_prior():
    scores = log_likelihoods(*random_case(15))
    np.testing.assert_allclose(channel_posteriors(scores), channel_posteriors(scores, [1, 1, 1], 0.3), rtol=1e-12)


def test_very_unlikely_windows_still_have_a_posterior():
    # softmax of (-5000, -5000 + log 3) is 1/4, 3/4 although both likelihoods underflow.
    np.testing.assert_allclose(channel_posteriors([[[-5000, -5000 + math.log(3)]]]), [[[0.25, 0.75]]], rtol=1e-10)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2, 3)])
def test_posteriors_need_three_axes(shape):
    with refusal("log_likelihoods", "windows, channels, classes"):
        channel_posteriors(np.zeros(shape))


@pytest.mark.parametrize("temperature", [0, -1, NAN])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    with refusal("prior_temperature", "positive"):
        channel_posteriors(np.zeros((1, 1, 2)), [0.5, 0.5], temperature)


@pytest.mark.parametrize(
    "prior",
    [[1.0], [0.2, 0.3, 0.5], [[0.5, 0.5]], [0.5, -0.5], [-1, -1], [0.5, NAN], [INF, 1], [0, 0], 0.5, []],
    ids=str,
)
def test_a_prior_that_is_no_list_of_proportions_is_refused(prior):
    with refusal("prior", "2 non-negative proportions"):
        label_probabilities(np.zeros((1, 1, 2)), [1.0], prior)


@pytest.mark.parametrize("shape", [(100,), (2, 2)])
def test_a_prior_of_the_wrong_shape_is_refused_in_one_line_however_long_it_is(shape):
    with refusal("prior"):
        label_probabilities(np.zeros((1, 1, 2)), [1.0], np.full(shape, 0.01))


@pytest.mark.parametrize("prior", [[0, 1], [0, 0.3]])
def test_a_prior_of_zero_on_the_only_class_with_source_rows_is_refused(prior):
    class_counts = TransitionCounts.from_codes([[[0, 1]]], 2, [0], n_classes=2)
    with refusal("log_likelihoods, prior", "positive prior"):
        label_probabilities(log_likelihoods([[[0, 1]]], class_counts), [1.0], prior)


def test_likelihoods_that_are_no_numbers_are_refused():
    with refusal("log_likelihoods, prior"):
        channel_posteriors([[[NAN, 0.0]]])


def test_sources_without_any_transition_are_refused():
    with refusal("log_likelihoods, prior"):
        label_probabilities(log_likelihoods([[[0, 1]]], TransitionCounts.empty(1, 2, 2)), [1.0])


# label_probabilities


def test_label_probabilities_of_two_channels_are_as_by_hand():
    # Channel 0 as HAND, channel 1 with the classes exchanged. Window 0 0 in both.
    # Prior (1/5, 4/5) at temperature 2: 1 to 2.
    # channel 0: 3 * 1 to 1 * 2, so 3/5; channel 1: 1 * 1 to 3 * 2, so 1/7. Weights 1 and 1/2:
    # (1 * 3/5 + 1/2 * 1/7) / (3/2) = (42/70 + 5/70) / (3/2) = 47/105.
    two = TransitionCounts(np.concatenate([HAND.counts, HAND.counts[::-1]], axis=1))
    scores = log_likelihoods([[[0, 0], [0, 0]]], two)
    result = label_probabilities(scores, [1, 0.5], prior=[0.2, 0.8], prior_temperature=2.0)
    np.testing.assert_allclose(result, [[47 / 105, 58 / 105]], rtol=1e-14)


def test_the_scale_of_the_weights_does_not_matter():
    scores = log_likelihoods(*random_case(16))
    np.testing.assert_allclose(
        label_probabilities(scores, [0.02, 0.01]), label_probabilities(scores, [1, 0.5]), rtol=1e-12
    )


def test_a_channel_of_weight_zero_has_no_say():
    scores = log_likelihoods(*random_case(17))
    np.testing.assert_allclose(label_probabilities(scores, [0, 1]), channel_posteriors(scores)[:, 1], rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("smoothing", ["floor", "additive"])
@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_a_class_without_source_rows_gets_probability_exactly_zero(smoothing, prior):
    codes, class_counts = random_case(18)
    counts = class_counts.counts.copy()
    counts[1] = 0
    result = label_probabilities(log_likelihoods(codes, TransitionCounts(counts), smoothing), [1, 0.5], prior)
    assert (result[:, 1] == 0).all()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_the_other_classes_share_as_if_the_class_without_source_rows_did_not_exist():
    codes, class_counts = random_case(19)
    counts = class_counts.counts.copy()
    counts[1] = 0
    result = label_probabilities(log_likelihoods(codes, TransitionCounts(counts)), [1, 0.5])
    without = label_probabilities(log_likelihoods(codes, TransitionCounts(counts[[0, 2]])), [1, 0.5])
    np.testing.assert_allclose(result[:, [0, 2]], without, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_a_prior_of_zero_gives_probability_exactly_zero():
    scores = log_likelihoods(*random_case(20))
    result = label_probabilities(scores, [1, 0.5], [0.4, 0, 0.6], prior_temperature=3.0)
    assert (result[:, 1] == 0).all()
    assert (result[:, [0, 2]] > 0).all()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-12)


def test_a_window_of_a_single_patch_gets_the_prior():
    codes, class_counts = random_case(21, patches=1)
    scores = log_likelihoods(codes, class_counts)
    prior = [0.2, 0.7, 0.1]
    np.testing.assert_allclose(label_probabilities(scores, [1, 0.5], prior), np.tile(prior, (6, 1)), rtol=1e-12)
    np.testing.assert_allclose(label_probabilities(scores, [1, 0.5]), np.full((6, 3), 1 / 3), rtol=1e-12)


@pytest.mark.parametrize("weights", [[0, 0], [1e-300, 1e-7], [1e-6, 0]])
def test_if_every_channel_has_shifted_away_all_count_alike_with_a_warning(weights):
    scores = log_likelihoods(*random_case(22))
    with pytest.warns(UserWarning, match="every channel has shifted away") as caught:
        result = label_probabilities(scores, weights)
    np.testing.assert_allclose(result, channel_posteriors(scores).mean(axis=1), rtol=1e-12)
    assert [warning.filename for warning in caught] == [__file__]  # it points at the caller


def test_one_channel_that_has_not_shifted_away_is_enough():
    scores = log_likelihoods(*random_case(23))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = label_probabilities(scores, [1.1e-6, 0])
    np.testing.assert_allclose(result, channel_posteriors(scores)[:, 0], rtol=1e-12)


@pytest.mark.parametrize("weights", [[1], [1, 1, 1], [[1, 1]], [1, -0.1], [1, NAN], [1, INF], 1.0], ids=str)
def test_weights_that_are_not_one_number_per_channel_are_refused(weights):
    with refusal("weights", "2 non-negative numbers"):
        label_probabilities(np.zeros((1, 2, 3)), weights)


def test_many_weights_are_refused_in_one_line():
    with refusal("weights"):
        label_probabilities(np.zeros((1, 60, 3)), np.full(60, -0.123))


def test_label_probabilities_leave_their_inputs_alone():
    scores = log_likelihoods(*random_case(24))
    weights, prior = np.array([1, 0.5]), np.array([2.0, 1.0, 1.0])
    scores_before = scores.copy()
    label_probabilities(scores, weights, prior)
    np.testing.assert_array_equal(scores, scores_before)
    assert weights.tolist() == [1, 0.5]
    assert prior.tolist() == [2, 1, 1]


@st.composite
def labelling_cases(draw):
    """Codes, class counts, weights and prior: all that the labels depend on."""
    windows, channels, patches, n, classes = (draw(st.integers(1, high)) for high in (5, 3, 5, 3, 4))
    codes = draw(arrays(np.int64, (windows, channels, patches), elements=st.integers(0, n - 1)))
    counts = draw(arrays(np.int64, (classes, channels, n, n), elements=st.integers(0, 3)))
    counts[0, 0, 0, 0] += 1  # some class has source rows
    weights = draw(arrays(np.float64, channels, elements=st.floats(0.01, 1)))
    prior = draw(arrays(np.float64, classes, elements=st.floats(0.01, 1)))
    return codes, counts, weights, prior


def label(codes, counts, weights, prior):
    return label_probabilities(log_likelihoods(codes, TransitionCounts(counts)), weights, prior, 1.5)


@MODEST
@given(labelling_cases())
def test_rows_are_probabilities(case):
    result = label(*case)
    assert (result >= 0).all()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=0, atol=1e-12)


@MODEST
@given(labelling_cases(), st.data())
def test_permuting_classes_permutes_the_columns(case, data):
    codes, counts, weights, prior = case
    order = data.draw(st.permutations(range(len(counts))))
    permuted = label(codes, counts[order], weights, prior[order])
    np.testing.assert_allclose(permuted, label(*case)[:, order], rtol=0, atol=1e-12)


@MODEST
@given(labelling_cases(), st.data())
def test_permuting_channels_changes_nothing(case, data):
    codes, counts, weights, prior = case
    order = data.draw(st.permutations(range(codes.shape[1])))
    permuted = label(codes[:, order], counts[:, order], weights[order], prior)
    np.testing.assert_allclose(permuted, label(*case), rtol=0, atol=1e-12)


@MODEST
@given(labelling_cases(), st.data())
def test_permuting_windows_permutes_the_rows(case, data):
    codes, counts, weights, prior = case
    order = data.draw(st.permutations(range(len(codes))))
    np.testing.assert_allclose(label(codes[order], counts, weights, prior), label(*case)[order], rtol=0, atol=1e-12)


@MODEST
@given(labelling_cases(), st.data())
def test_permuting_channels_permutes_likelihoods_and_posteriors(case, data):
    codes, counts, _, prior = case
    order = data.draw(st.permutations(range(codes.shape[1])))
    before = log_likelihoods(codes, TransitionCounts(counts))
    after = log_likelihoods(codes[:, order], TransitionCounts(counts[:, order]))
    np.testing.assert_array_equal(after, before[:, order])
    np.testing.assert_allclose(
        channel_posteriors(after, prior), channel_posteriors(before, prior)[:, order], atol=1e-12
    )


@MODEST
@given(labelling_cases(), st.data())
def test_relabelling_codes_changes_nothing(case, data):
    codes, counts, weights, prior = case
    order = np.array(data.draw(st.permutations(range(counts.shape[-1]))))
    rows, columns = np.ix_(order, order)
    relabelled = label(np.argsort(order)[codes], counts[:, :, rows, columns], weights, prior)
    np.testing.assert_allclose(relabelled, label(*case), rtol=0, atol=1e-12)


# confidence


def test_confidence_is_the_largest_probability_unless_told():
    assert confidence([[0.2, 0.5, 0.3], [1, 0, 0]]).tolist() == [0.5, 1.0]


@MODEST
@given(arrays(np.float64, (3, 4), elements=st.floats(0.01, 1)))
def test_confidence_agrees_with_scipy(scores):
    probabilities = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(confidence(probabilities, "max"), [max(row) for row in probabilities.tolist()])
    uniform = np.full(4, 1 / 4)
    expected = [entropy(uniform, softmax(row)) for row in probabilities]
    np.testing.assert_allclose(confidence(probabilities, "kl"), expected, rtol=0, atol=1e-12)


def test_an_undecided_window_has_no_confidence_by_divergence():
    np.testing.assert_allclose(confidence([[0.25] * 4], "kl"), [0], atol=1e-15)


def test_confidence_by_divergence_grows_with_certainty():
    undecided, sure, certain = confidence([[0.5, 0.5], [0.8, 0.2], [1, 0]], "kl")
    assert undecided < sure < certain


def test_an_unknown_rule_of_confidence_is_refused():
    with refusal("rule", "'max', 'kl'"):
        confidence([[0.5, 0.5]], "entropy")


# The log probability of every transition: by loops, and as the parts of the likelihood


def case(seed, *, ragged=False, absent=False):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (7, 2, 6))
    if ragged:
        codes[1, :, 4:] = codes[5, :, 1:] = -1
    counts = TransitionCounts.from_codes(rng.integers(0, 4, (20, 2, 6)), 4, rng.integers(0, 3, 20), 4 if absent else 3)
    return codes, counts


@pytest.mark.parametrize("smoothing", ["floor", "additive"])
def test_each_transition_is_looked_up(smoothing):
    codes, counts = case(0, ragged=True)
    p, found = counts.probabilities(smoothing), transition_log_probabilities(codes, counts, smoothing)
    assert found.shape == (7, 2, 5, 3)
    for w, d, t, k in product(range(7), range(2), range(5), range(3)):
        i, j = codes[w, d, t], codes[w, d, t + 1]
        expected = math.log(p[k, d, i, j]) if i >= 0 and j >= 0 else 0.0
        assert found[w, d, t, k] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("length", "more"), [("transitions", 0), ("codes", 1)])
def test_sums_over_transitions_are_the_likelihoods(length, more):
    codes, counts = case(1, ragged=True)
    transitions = ((codes[..., :-1] >= 0) & (codes[..., 1:] >= 0)).sum(axis=-1)
    sums = transition_log_probabilities(codes, counts).sum(axis=2)
    found = log_likelihoods(codes, counts, length=length)
    np.testing.assert_allclose(found * np.maximum(transitions + more, 1)[..., None], sums, atol=1e-12)


def test_a_class_without_source_rows_explains_no_transition():
    codes, counts = case(2, absent=True)
    assert (transition_log_probabilities(codes, counts)[..., 3] == -np.inf).all()
    assert np.isfinite(transition_log_probabilities(codes, counts)[..., :3]).all()


def test_a_class_without_source_rows_is_impossible_even_without_a_transition():
    _, counts = case(2, absent=True)
    assert log_likelihoods(np.zeros((1, 2, 1), int), counts)[0, 0].tolist() == [0.0, 0.0, 0.0, -np.inf]


def test_counts_that_do_not_belong_to_the_codes_are_refused():
    codes, counts = case(3)
    with refusal("class_counts"):
        transition_log_probabilities(codes, counts.pooled())
    with refusal("class_counts"):
        transition_log_probabilities(codes[:, :1], counts)
