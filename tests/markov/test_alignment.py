"""Transport cost, channel distances and channel weights against independent computations."""

import numpy as np
import ot
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from transpl.markov import (
    TransitionCounts,
    channel_distances,
    channel_weights,
    row_distances,
    transport_cost,
    unread_channels,
)

MODEST = settings(deadline=None, max_examples=40)
SWAP = [[0.0, 1.0], [1.0, 0.0]]  # the cost of two orthogonal codes


def random_counts(seed, channels=3, n=5, mean=1.0):
    """Sparse counts: some rows are empty, many entries zero."""
    return TransitionCounts(np.random.default_rng(seed).poisson(mean, (channels, n, n)))


def random_cost(seed, n=5):
    return transport_cost(np.random.default_rng(seed).normal(size=(n, 4)))


def emd_by_linear_programming(a, b, cost):
    """Minimise <gamma, M> over the transport plans gamma from a to b."""
    n = len(a)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    result = linprog(np.ravel(cost), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b]), bounds=(0, None))
    assert result.success
    return result.fun


def distances_by_loops(source, target, cost, emd):
    """The authors' rule, one row at a time: a row empty on either side costs 0."""
    channels, n, _ = source.counts.shape
    result = np.zeros((channels, n))
    for d in range(channels):
        for i in range(n):
            s, t = source.counts[d, i], target.counts[d, i]
            if s.sum() > 0 and t.sum() > 0:
                result[d, i] = emd(s / s.sum(), t / t.sum(), cost)
    return result


# transport_cost


def test_the_cost_is_one_minus_the_cosine():
    # equal direction 1 - 1 = 0, orthogonal 1 - 0 = 1, opposite 1 + 1 = 2, at 45 degrees 1 - 1 / sqrt(2).
    cost = transport_cost([[1, 0], [3, 0], [0, 2], [-5, 0], [1, 1]])
    near, far = 1 - 0.5**0.5, 1 + 0.5**0.5
    expected = [
        [0, 0, 1, 2, near],
        [0, 0, 1, 2, near],
        [1, 1, 0, 1, near],
        [2, 2, 1, 0, far],
        [near, near, near, far, 0],
    ]
    np.testing.assert_allclose(cost, expected, atol=1e-15)


@MODEST
@given(arrays(np.float64, (4, 3), elements=st.floats(0.01, 10)), st.lists(st.booleans(), min_size=4, max_size=4))
def test_the_cost_is_symmetric_with_zero_diagonal_within_bounds_and_agrees_with_scipy(codebook, flipped):
    codebook = codebook * np.where(flipped, -1, 1)[:, None]
    cost = transport_cost(codebook)
    np.testing.assert_array_equal(np.diag(cost), 0)
    np.testing.assert_array_equal(cost, cost.T)
    assert cost.min() >= 0
    assert cost.max() <= 2
    np.testing.assert_allclose(cost, cdist(codebook, codebook, "cosine"), atol=1e-12)


def test_the_cost_of_equal_codes_is_not_negative_by_rounding():
    cost = transport_cost(np.full((3, 7), 0.1))
    assert cost.min() >= 0
    np.testing.assert_allclose(cost, 0, atol=1e-15)


def test_the_cost_is_computed_in_double_precision():
    codebook = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    assert transport_cost(codebook).dtype == np.float64
    np.testing.assert_allclose(transport_cost(codebook), cdist(codebook, codebook, "cosine"), atol=1e-12)


def test_the_codebook_is_left_alone():
    codebook = np.array([[3.0, 4.0], [1.0, 0.0]])
    transport_cost(codebook)
    np.testing.assert_array_equal(codebook, [[3.0, 4.0], [1.0, 0.0]])


@pytest.mark.parametrize("row", [[0, 0], [float("nan"), 1], [float("inf"), 1]])
def test_a_code_without_direction_is_refused(row):
    with refusal("codebook", "finite, non-zero"):
        transport_cost([[1, 0], row])


@pytest.mark.parametrize("shape", [(4,), (2, 2, 2)])
def test_a_codebook_must_have_one_code_a_row(shape):
    with refusal("codebook", "codes, width"):
        transport_cost(np.ones(shape))


# distances


def test_distances_of_two_codes_are_as_by_hand():
    # Two codes at cost 1: the distance of two rows is |p - q| of the first entry.
    # channel 0: row 0 |3/4 - 1/4| = 0.5, row 1 |0 - 1/2| = 0.5, mean 0.5; channel 1: 0 and |1 - 0| = 1, mean 0.5 too,
    # but under a cost of 2 twice that.
    source = TransitionCounts(np.array([[[3, 1], [0, 2]], [[1, 1], [4, 0]]]))
    target = TransitionCounts(np.array([[[1, 3], [1, 1]], [[7, 7], [0, 1]]]))
    np.testing.assert_allclose(row_distances(source, target, SWAP), [[0.5, 0.5], [0, 1]], atol=1e-15)
    np.testing.assert_allclose(channel_distances(source, target, SWAP), [0.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(channel_distances(source, target, 2 * np.array(SWAP)), [1, 1], atol=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_distances_agree_with_emd2_row_by_row(seed):
    source, target, cost = random_counts(seed), random_counts(seed + 100), random_cost(seed)
    expected = distances_by_loops(source, target, cost, ot.emd2)
    np.testing.assert_allclose(row_distances(source, target, cost), expected, atol=1e-12)
    np.testing.assert_allclose(channel_distances(source, target, cost), expected.mean(axis=1), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_distances_agree_with_linear_programming(seed):
    source, target, cost = random_counts(seed), random_counts(seed + 100), random_cost(seed)
    expected = distances_by_loops(source, target, cost, emd_by_linear_programming)
    assert expected.max() > 0.1
    np.testing.assert_allclose(row_distances(source, target, cost), expected, atol=1e-9)


@pytest.mark.parametrize("smoothing", ["floor", "additive"])
@pytest.mark.parametrize("factor", [1, 7])
def test_a_domain_in_the_same_proportions_is_at_distance_zero_and_weighs_one(smoothing, factor):
    source = random_counts(5, mean=3)
    target = TransitionCounts(source.counts * factor)
    distances = channel_distances(source, target, random_cost(5), smoothing)
    assert distances.tolist() == [0.0, 0.0, 0.0]
    assert channel_weights(distances, 0.2).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("empty_side", ["source", "target", "both"])
def test_a_row_that_is_empty_on_either_side_costs_nothing_under_the_floor(empty_side):
    full, empty = [[[3, 1], [0, 2]]], [[[3, 1], [0, 0]]]
    source = TransitionCounts(np.array(full if empty_side == "target" else empty))
    target = TransitionCounts(np.array(full if empty_side == "source" else empty))
    assert row_distances(source, target, SWAP, "floor").tolist() == [[0, 0]]


def test_the_mean_counts_empty_rows_too():
    # row 0 costs |1 - 0| = 1, row 1 is empty and costs 0: the mean over the two codes is 0.5.
    source, target = TransitionCounts(np.array([[[1, 0], [0, 0]]])), TransitionCounts(np.array([[[0, 1], [1, 1]]]))
    np.testing.assert_allclose(channel_distances(source, target, SWAP), [0.5], atol=1e-15)


def test_additive_smoothing_compares_smoothed_rows():
    # epsilon 0.1. row 0: (0.85, 0.35) / 1.2 against (0.35, 0.85) / 1.2 costs 0.5 / 1.2 = 5/12.
    # row 1: empty becomes (1/2, 1/2) against (1.1, 0.1) / 1.2 costs 11/12 - 1/2 = 5/12. The floor gives 0.5 and 0.
    source = TransitionCounts(np.array([[[3, 1], [0, 0]]]))
    target = TransitionCounts(np.array([[[1, 3], [1, 0]]]))
    np.testing.assert_allclose(row_distances(source, target, SWAP, "additive", 0.1), [[5 / 12, 5 / 12]], atol=1e-15)
    np.testing.assert_allclose(row_distances(source, target, SWAP, "floor", 0.1), [[0.5, 0]], atol=1e-15)
    np.testing.assert_allclose(channel_distances(source, target, SWAP, "additive", 0.1), [5 / 12], atol=1e-15)


def test_pseudocounts_are_added_before_rows_are_compared():
    # epsilon 0.5. row 0: (3.5, 1.5) / 5 against (1.5, 3.5) / 5 costs 0.4.
    # row 1: empty becomes (1/2, 1/2) against (1.5, 0.5) / 2 costs 0.25.
    source = TransitionCounts(np.array([[[3, 1], [0, 0]]]))
    target = TransitionCounts(np.array([[[1, 3], [1, 0]]]))
    np.testing.assert_allclose(row_distances(source, target, SWAP, "pseudocount", 0.5), [[0.4, 0.25]], atol=1e-15)


def test_additive_distances_agree_with_linear_programming_on_smoothed_rows():
    source, target, cost, eps = random_counts(6), random_counts(7), random_cost(6), 0.05
    expected = np.zeros((3, 5))
    for d in range(3):
        for i in range(5):
            p, q = (c.counts[d, i] / max(1, c.counts[d, i].sum()) + eps for c in (source, target))
            expected[d, i] = emd_by_linear_programming(p / p.sum(), q / q.sum(), cost)
    np.testing.assert_allclose(row_distances(source, target, cost, "additive", eps), expected, atol=1e-9)


def test_the_smoothing_of_distances_is_the_floor_unless_told():
    source, target, cost = random_counts(8), random_counts(9), random_cost(8)
    default = channel_distances(source, target, cost)
    np.testing.assert_array_equal(default, channel_distances(source, target, cost, "floor"))
    assert not np.allclose(default, channel_distances(source, target, cost, "additive", 0.1))


def small_counts():
    return arrays(np.int64, (3, 3, 3), elements=st.integers(0, 4))


@MODEST
@given(small_counts(), small_counts(), st.permutations(range(3)), st.sampled_from(["floor", "additive"]))
def test_permuting_channels_permutes_distances(source, target, order, smoothing):
    cost = random_cost(0, n=3)
    distances = channel_distances(TransitionCounts(source), TransitionCounts(target), cost, smoothing)
    permuted = channel_distances(TransitionCounts(source[order]), TransitionCounts(target[order]), cost, smoothing)
    np.testing.assert_array_equal(permuted, distances[order])


@MODEST
@given(small_counts(), small_counts(), st.permutations(range(3)), st.sampled_from(["floor", "additive"]))
def test_relabelling_codes_leaves_distances_unchanged(source, target, order, smoothing):
    cost = random_cost(1, n=3)
    rows, columns = np.ix_(order, order)
    before = channel_distances(TransitionCounts(source), TransitionCounts(target), cost, smoothing)
    after = channel_distances(
        TransitionCounts(source[:, rows, columns]),
        TransitionCounts(target[:, rows, columns]),
        cost[rows, columns],
        smoothing,
    )
    np.testing.assert_allclose(after, before, atol=1e-12)


@MODEST
@given(small_counts(), small_counts())
def test_distances_are_symmetric_and_bounded_by_the_largest_cost(source, target):
    cost = random_cost(2, n=3)
    there = row_distances(TransitionCounts(source), TransitionCounts(target), cost)
    back = row_distances(TransitionCounts(target), TransitionCounts(source), cost)
    np.testing.assert_allclose(there, back, atol=1e-12)
    assert there.min() >= 0
    assert there.max() <= cost.max() + 1e-12


def test_distances_leave_their_inputs_alone():
    source, target, cost = random_counts(10), random_counts(11), random_cost(10)
    before = [array.copy() for array in (source.counts, target.counts, cost)]
    channel_distances(source, target, cost)
    for array, copy in zip((source.counts, target.counts, cost), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("other", [(2, 2), (1, 3), (1, 2, 1)], ids=["channels", "codes", "classes"])
def test_domains_of_different_shape_are_refused(other):
    with refusal("source, target", "one shape"):
        channel_distances(TransitionCounts.empty(1, 2), TransitionCounts.empty(*other), SWAP)


def test_counts_with_a_class_axis_are_refused():
    with refusal("source, target", "pooled"):
        channel_distances(TransitionCounts.empty(1, 2, 3), TransitionCounts.empty(1, 2, 3), SWAP)


@pytest.mark.parametrize("cost", [np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(4)])
def test_a_cost_of_the_wrong_shape_is_refused(cost):
    with refusal("cost", "transport_cost"):
        channel_distances(TransitionCounts.empty(1, 2), TransitionCounts.empty(1, 2), cost)


@pytest.mark.filterwarnings("ignore:Problem unbounded")
def test_a_cost_that_is_not_a_number_is_refused():
    source, target = TransitionCounts(np.array([[[1, 0], [1, 0]]])), TransitionCounts(np.array([[[0, 1], [0, 1]]]))
    with refusal("cost"):
        channel_distances(source, target, np.full((2, 2), np.nan))


def test_an_unknown_smoothing_of_distances_is_refused():
    with refusal("smoothing", "'additive'"):
        channel_distances(TransitionCounts.empty(1, 2), TransitionCounts.empty(1, 2), SWAP, "aditive")


# weights


def test_weights_follow_the_printed_formula():
    # exp(-0 / 0.04) = 1, exp(-0.01 / 0.04) = exp(-1/4), exp(-0.04 / 0.04) = exp(-1)
    np.testing.assert_allclose(channel_weights([0, 0.1, 0.2], 0.2), [1, np.exp(-0.25), np.exp(-1)], rtol=1e-14)


def test_the_authors_setting_is_reached_with_the_square_root_of_two():
    distances = np.array([0.0, 0.05, 0.3])
    authors = np.exp(-(distances**2) / (2 * 0.2**2))
    np.testing.assert_allclose(channel_weights(distances, 0.2 * 2**0.5), authors, rtol=1e-14)


@MODEST
@given(arrays(np.float64, 4, elements=st.floats(0, 2)), st.floats(0.01, 10))
def test_weights_lie_between_zero_and_one_and_fall_with_distance(distances, sigma):
    weights = channel_weights(distances, sigma)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (np.diff(weights[np.argsort(distances)]) <= 0).all()


def test_an_unmoved_channel_weighs_one_however_small_sigma():
    assert channel_weights([0.0], 1e-200).tolist() == [1.0]


@pytest.mark.parametrize("sigma", [0, -0.2, float("nan")])
def test_a_sigma_that_is_not_positive_is_refused(sigma):
    with refusal("sigma", "positive"):
        channel_weights([0.1], sigma)


# channels that are not read


def coded(*channels):
    return TransitionCounts.from_codes([channels], n_codes=3)


@pytest.mark.parametrize(
    ("source", "target", "unread"),
    [
        ([0, 0, 0], [0, 0, 0], True),  # one code everywhere: distance 0, and no class differs from another
        ([0, 0, 0], [0, 1, 0], True),  # the source says nothing about what follows
        ([0, 1, 0], [2, 2, 2], True),  # no row can be compared
        ([0, 1, 0], [0, 0, 0], False),  # a target that stands still differs from a source that does not
        ([0, 1, 0], [0, 1, 0], False),
    ],
)
def test_a_channel_whose_codes_cannot_tell_classes_apart_is_not_read(source, target, unread):
    found = unread_channels(coded(source, [0, 1, 2]), coded(target, [0, 1, 2]))
    assert found.tolist() == [unread, False]
    weights = channel_weights([0.0, 0.0], 0.2, found)
    assert weights.tolist() == [0.0 if unread else 1.0, 1.0]
