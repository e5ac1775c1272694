from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import ot
import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import entropy

from transpl.nn.losses import (
    coral,
    divergence_from,
    diversity,
    mean_entropy,
    mean_entropy_of,
    mmd,
    proportion_divergence,
    reversal_strength,
    reverse_gradient,
    row_entropies,
    sinkhorn,
    sparsemax,
    transport_plan,
    virtual_adversarial_loss,
    weight_overlap,
)

MODEST = settings(deadline=None, max_examples=25)
S = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def features(seed, n, d=5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_coral_by_hand():
    assert coral(S, S / 2).item() == pytest.approx(0.125)
    assert coral(S, S / 2, form="adatime").item() == pytest.approx(0.28125)


@pytest.mark.parametrize("form", ["published", "adatime"])
def test_coral_identical_batches_cost_nothing(form):
    assert coral(S, S.clone(), form).item() == 0


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 6))
@MODEST
def test_adatimes_form_is_a_multiple_for_equal_batches(seed, n, d):
    z_s, z_t = features(seed, n, d), features(seed + 1, n, d)
    expected = coral(z_s, z_t).item() * (n - 1) ** 2 / d**2
    assert coral(z_s, z_t, "adatime").item() == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12), st.floats(-50, 50))
@MODEST
def test_symmetric_and_blind_to_a_shift(seed, n_s, n_t, shift):
    z_s, z_t = features(seed, n_s), features(seed + 1, n_t)
    expected = pytest.approx(coral(z_s, z_t).item(), abs=1e-9)
    assert coral(z_t, z_s).item() == expected
    assert coral(z_s, z_t + shift).item() == expected


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12))
@MODEST
def test_covariances_are_torchs(seed, n_s, n_t):
    z_s, z_t = features(seed, n_s), features(seed + 1, n_t)
    expected = (torch.cov(z_s.T) - torch.cov(z_t.T)).square().sum() / (4 * 25)
    assert coral(z_s, z_t).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("form", ["published", "adatime"])
def test_coral_gradient_is_the_finite_difference(form):
    z_s, z_t = features(0, 4).requires_grad_(), features(1, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: coral(a, b, form), (z_s, z_t))


@pytest.mark.parametrize(("n_s", "n_t"), [(1, 4), (4, 1), (1, 1), (0, 4), (0, 0)])
def test_too_few_rows_give_a_zero_with_a_gradient(n_s, n_t):
    z_s, z_t = features(0, n_s).requires_grad_(), features(1, n_t).requires_grad_()
    loss = coral(z_s, z_t)
    loss.backward()
    assert loss.item() == 0
    assert not z_s.grad.any()
    assert not z_t.grad.any()


def test_coral_bad_input_is_named():
    with refusal("form", "'published', 'adatime', got 'paper'"):
        coral(S, S, form="paper")
    with refusal("z_t", r"\(rows, 2\).*got \(4, 3\)"):
        coral(S, torch.zeros(4, 3))
    with refusal("z_s", r"\(rows, columns\), got \(2,\)"):
        coral(S[0], S)


def by_loops(z_s, z_t):
    pooled = [*z_s.tolist(), *z_t.tolist()]
    n = len(pooled)
    b0 = sum(math.dist(a, b) ** 2 for a in pooled for b in pooled) / (n * (n - 1)) / 4

    def mean_kernel(rows, columns):
        values = [math.exp(-(math.dist(a, b) ** 2) / (b0 * 2**i)) for a in rows for b in columns for i in range(5)]
        return sum(values) / (len(rows) * len(columns))

    s, t = z_s.tolist(), z_t.tolist()
    return mean_kernel(s, s) + mean_kernel(t, t) - 2 * mean_kernel(s, t)


def test_mmd_by_hand():
    assert mmd(torch.tensor([[0.0]]), torch.tensor([[1.0]])).item() == pytest.approx(6.186276, abs=1e-6)
    assert mmd(S, S / 2).item() == pytest.approx(1.089949, abs=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
@MODEST
def test_equals_the_loops_is_symmetric_and_not_negative(seed, n_s, n_t):
    z_s, z_t = features(seed, n_s), features(seed + 1, n_t)
    value = mmd(z_s, z_t).item()
    assert value == pytest.approx(by_loops(z_s, z_t), abs=1e-12)
    assert mmd(z_t, z_s).item() == pytest.approx(value, abs=1e-12)
    assert value >= -1e-12


@given(st.integers(0, 10**6), st.floats(-20, 20), st.floats(0.01, 100))
@MODEST
def test_blind_to_a_shift_and_a_scale_of_both(seed, shift, scale):
    z_s, z_t = features(seed, 5), features(seed + 1, 4)
    assert mmd(z_s * scale + shift, z_t * scale + shift).item() == pytest.approx(mmd(z_s, z_t).item(), abs=1e-9)


def test_mmd_identical_batches_cost_nothing():
    assert mmd(S, S.clone()).item() == pytest.approx(0, abs=1e-6)


def test_gradient_is_the_finite_difference_at_a_given_bandwidth():
    inputs = features(0, 3).requires_grad_(), features(1, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: mmd(a, b, torch.tensor(1.7, dtype=torch.float64)), inputs)


def test_default_bandwidth_is_a_constant_to_the_gradient():
    z_s, z_t = features(0, 3).requires_grad_(), features(1, 4)
    pooled = torch.cat([z_s, z_t]).detach()
    b0 = (pooled[:, None] - pooled).square().sum() / (7 * 6) / 4
    (own,) = torch.autograd.grad(mmd(z_s, z_t), z_s)
    (given_,) = torch.autograd.grad(mmd(z_s, z_t, b0), z_s)
    assert own.abs().min() > 0
    torch.testing.assert_close(own, given_)


@pytest.mark.parametrize(("n_s", "n_t"), [(1, 1), (1, 5), (32, 32)])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_identical_points_are_harmless(n_s, n_t, value):
    z_s = torch.full((n_s, 3), value, requires_grad=True)
    loss = mmd(z_s, torch.full((n_t, 3), value))
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert not z_s.grad.any()


@pytest.mark.parametrize(("n_s", "n_t"), [(0, 4), (4, 0), (0, 0)])
def test_mmd_no_rows_give_a_zero_with_a_gradient(n_s, n_t):
    z_s, z_t = features(0, n_s).requires_grad_(), features(1, n_t).requires_grad_()
    loss = mmd(z_s, z_t)
    loss.backward()
    assert loss.item() == 0


def test_mmd_bad_input_is_named():
    with refusal("z_t", r"\(rows, 2\).*got \(4, 3\)"):
        mmd(S, torch.zeros(4, 3))


X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
Y = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
EXACT = {"max_iterations": 20_000, "tolerance": 1e-14}


def points(seed, n, d=3, shift=0.0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + shift


def plan_in_plain_logs(C, epsilon, n_iterations):
    f, g = torch.zeros(len(C), dtype=C.dtype), torch.zeros(C.shape[1], dtype=C.dtype)
    for _ in range(n_iterations):
        f = -math.log(len(C)) - torch.logsumexp(-C / epsilon + g, dim=1)
        g = -math.log(C.shape[1]) - torch.logsumexp(-C / epsilon + f[:, None], dim=0)
    return torch.exp(-C / epsilon + f[:, None] + g)


def closed_form(epsilon):
    """<P, C> of X and Y; the exact transport costs 2."""
    return 2 + 3 / (1 + math.exp(3 / epsilon))


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0])
def test_closed_form(epsilon):
    assert sinkhorn(X, Y, epsilon, **EXACT).item() == pytest.approx(closed_form(epsilon), abs=1e-9)
    assert closed_form(1) == pytest.approx(2.142278, abs=1e-6)


def test_closed_form_where_iterations_are_slow():
    """At epsilon = 0.1 the k-th iterate of X to Y is 1 / (4 k) too dear, far from 2 + 2.8e-13 in any affordable run.

    The plan does not change with numbers added to a row or column of C. Those of the exact dual solution leave
    (0, 3; 3, 0), which converges at once.
    """
    for k in (1000, 4000):
        assert sinkhorn(X, Y, 0.1, max_iterations=k).item() == pytest.approx(2 + 1 / (4 * k), abs=0.01 / k)
    C = torch.cdist(X, Y).square()  # (0, 9; 1, 4)
    P = transport_plan(C - torch.tensor([[0.0], [-2.0]]) - torch.tensor([0.0, 6.0]), 0.1, tolerance=0)
    assert (P * C).sum().item() - 2 == pytest.approx(2.8e-13, abs=1e-14)
    assert closed_form(0.1) - 2 == pytest.approx(2.8e-13, abs=1e-14)


def test_points_on_themselves():
    assert sinkhorn(X, X, 0.1).item() == pytest.approx(4.5398e-5, abs=1e-9)
    assert sinkhorn(X, X, 0.1, debiased=True).item() == 0


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.floats(0.5, 5))
@MODEST
def test_equals_pot_and_has_the_marginals(seed, n, m, relative):
    x, y = points(seed, n), points(seed + 1, m, shift=0.5)
    C = torch.cdist(x, y).square()
    epsilon = relative * C.mean().item()
    P = transport_plan(C, epsilon, max_iterations=20_000, tolerance=1e-10)
    assert P.sum(1).tolist() == pytest.approx([1 / n] * n, abs=1e-6)
    assert P.sum(0).tolist() == pytest.approx([1 / m] * m, abs=1e-6)
    reference = ot.sinkhorn2(
        [], [], C.numpy(), epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-10, warn=False
    )
    value = sinkhorn(x, y, epsilon, max_iterations=20_000, tolerance=1e-10).item()
    assert value == pytest.approx(float(reference), abs=1e-5)
    assert value == pytest.approx((P * C).sum().item())


def test_equals_pot_at_the_default_epsilon():
    x, y = points(0, 32, d=64), points(1, 32, d=64, shift=0.5)
    C = torch.cdist(x, y).square()
    options = {"method": "sinkhorn_log", "numItermax": 5000, "stopThr": 1e-10}
    reference = ot.sinkhorn2([], [], C.numpy(), 0.05 * C.mean().item(), **options)
    assert sinkhorn(x, y, tolerance=1e-8).item() == pytest.approx(float(reference), abs=1e-5)


@given(st.integers(0, 10**6), st.floats(-20, 20))
@MODEST
def test_symmetric_blind_to_a_shift_of_both_and_above_the_exact_cost(seed, shift):
    x, y = points(seed, 5), points(seed + 1, 7, shift=1)
    value = sinkhorn(x, y, 5.0, tolerance=1e-8).item()
    assert sinkhorn(y, x, 5.0, tolerance=1e-8).item() == pytest.approx(value, rel=1e-5)
    assert sinkhorn(x + shift, y + shift, 5.0, tolerance=1e-8).item() == pytest.approx(value, rel=1e-5)
    assert value >= ot.emd2([], [], torch.cdist(x, y).square().numpy()) - 1e-6


@pytest.mark.parametrize("n_iterations", [1, 7, 10, 13, 40])
def test_fast_iterations_are_the_plain_ones(n_iterations):
    C = torch.cdist(points(0, 6), points(1, 5)).square().requires_grad_()
    P = transport_plan(C, 0.5, max_iterations=n_iterations, tolerance=0)
    expected = plan_in_plain_logs(C, 0.5, n_iterations)
    torch.testing.assert_close(P, expected)
    (own,) = torch.autograd.grad((P * C).sum(), C)
    (plain,) = torch.autograd.grad((expected * C).sum(), C)
    torch.testing.assert_close(own, plain)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_stops_once_the_marginals_are_right(tolerance):
    C = torch.cdist(points(0, 32, d=2), points(1, 32, d=2)).square()
    P = transport_plan(C, tolerance=tolerance)
    assert (P.sum(1) - 1 / 32).abs().sum() <= tolerance
    finer = transport_plan(C, tolerance=tolerance / 1e3)
    assert not torch.equal(P, finer)


def test_single_precision_is_enough_for_the_defaults():
    x, y = points(0, 32, d=64).float(), points(1, 32, d=64, shift=0.5).float()
    P = transport_plan(torch.cdist(x, y).square())
    assert (P.sum(1) - 1 / 32).abs().sum() <= 1.1e-4
    assert sinkhorn(x, y).item() == pytest.approx(sinkhorn(x.double(), y.double()).item(), rel=1e-4)


def test_a_tiny_epsilon_neither_overflows_nor_loses_the_gradient():
    x = points(0, 8).float().requires_grad_()
    loss = sinkhorn(x, points(1, 8, shift=20).float(), epsilon=1e-3)
    loss.backward()
    assert math.isfinite(loss.item())
    assert x.grad.isfinite().all()
    assert x.grad.abs().max() > 0


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("n_iterations", [5, 30])
def test_unrolled_gradient_is_the_finite_difference(debiased, n_iterations):
    def cost(x, y):
        return sinkhorn(x, y, 0.8, n_iterations, 0, debiased)

    assert torch.autograd.gradcheck(cost, (points(0, 4).requires_grad_(), points(1, 3).requires_grad_()))


def test_envelope_gradient_takes_the_plan_as_a_constant():
    x, y = points(0, 4).requires_grad_(), points(1, 5)
    P = transport_plan(torch.cdist(x, y).square(), 0.8).detach()
    (gradient,) = torch.autograd.grad(sinkhorn(x, y, 0.8, gradient="envelope"), x)
    torch.testing.assert_close(gradient, 2 * (P[..., None] * (x.detach()[:, None] - y)).sum(1))


def test_envelope_gradient_is_that_of_the_regularised_cost():
    x, y = points(0, 4).requires_grad_(), points(1, 5)
    C = torch.cdist(x, y).square()
    P = transport_plan(C, 0.8, **EXACT)
    regularised = (P * C).sum() + 0.8 * (P * P.log()).sum()
    (expected,) = torch.autograd.grad(regularised, x)
    (gradient,) = torch.autograd.grad(sinkhorn(x, y, 0.8, gradient="envelope", **EXACT), x)
    torch.testing.assert_close(gradient, expected, atol=1e-8, rtol=1e-6)


def test_default_epsilon_is_a_share_of_the_mean_cost_and_constant_to_the_gradient():
    x, y = points(0, 4).requires_grad_(), points(1, 5)
    epsilon = 0.05 * torch.cdist(x, y).square().mean().item()
    own, explicit = sinkhorn(x, y), sinkhorn(x, y, epsilon)
    assert own.item() == pytest.approx(explicit.item())
    torch.testing.assert_close(torch.autograd.grad(own, x), torch.autograd.grad(explicit, x))


def test_debiased_uses_one_epsilon_and_grows_with_the_distance():
    x = points(0, 6)
    costs = [sinkhorn(x, x + shift, 0.5, debiased=True, tolerance=1e-9).item() for shift in (0, 0.5, 1, 2)]
    assert costs[0] == 0
    assert costs == sorted(costs)
    expected = sinkhorn(x, x + 1).item()
    epsilon = 0.05 * torch.cdist(x, x + 1).square().mean().item()
    expected -= sinkhorn(x, x, epsilon).item() / 2 + sinkhorn(x + 1, x + 1, epsilon).item() / 2
    assert sinkhorn(x, x + 1, debiased=True).item() == pytest.approx(expected)


@pytest.mark.parametrize("gradient", ["unrolled", "envelope"])
@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (32, 32)])
def test_identical_points_cost_nothing(gradient, debiased, n, m):
    x = torch.full((n, 3), 0.1, requires_grad=True)
    loss = sinkhorn(x, torch.full((m, 3), 0.1), debiased=debiased, gradient=gradient)
    loss.backward()
    assert loss.item() == 0
    assert not x.grad.any()


def test_one_row_goes_everywhere():
    x, y = points(0, 1), points(1, 4)
    assert sinkhorn(x, y).item() == pytest.approx(torch.cdist(x, y).square().mean().item())


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_sinkhorn_no_rows_give_a_zero_with_a_gradient(n, m):
    x, y = points(0, n).requires_grad_(), points(1, m).requires_grad_()
    loss = sinkhorn(x, y)
    loss.backward()
    assert loss.item() == 0


def test_without_gradient_nothing_is_recorded():
    with torch.no_grad():
        assert not sinkhorn(points(0, 3).requires_grad_(), points(1, 3)).requires_grad


def test_sinkhorn_bad_input_is_named():
    with refusal("gradient", "'unrolled', 'envelope', got 'implicit'"):
        sinkhorn(X, Y, gradient="implicit")
    with refusal("y", r"\(rows, 1\).*got \(2, 2\)"):
        sinkhorn(X, torch.zeros(2, 2))
    with refusal("epsilon", "positive"):
        sinkhorn(X, Y, epsilon=0)
    with refusal("max_iterations", "1 or more"):
        transport_plan(X @ Y.T, 1.0, max_iterations=0)
    with refusal("tolerance"):
        transport_plan(X @ Y.T, 1.0, tolerance=-1)
    with refusal("C", r"got \(0, 3\)"):
        transport_plan(torch.zeros(0, 3), 1.0)


def random_logits(seed, n=5, K=4):
    return 2 * torch.randn(n, K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def information_maximisation(logits):
    """What SHOT minimises with weights of 1: certain about each row, diverse over all."""
    p = logits.softmax(dim=-1)
    return mean_entropy_of(p) - diversity(p)


@pytest.mark.parametrize("K", [1, 2, 6])
def test_equal_logits_have_entropy_log_k(K):
    assert mean_entropy(torch.full((3, K), 7.0)).item() == pytest.approx(math.log(K), abs=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 6), st.floats(-30, 30))
@MODEST
def test_mean_entropy_is_scipys_whatever_the_shift(seed, n, K, shift):
    logits = random_logits(seed, n, K)
    expected = entropy(softmax(logits.numpy(), axis=1), axis=1).mean()
    assert mean_entropy(logits + shift).item() == pytest.approx(expected, abs=1e-9)


def test_huge_logits_are_harmless():
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = mean_entropy(logits)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("K", [2, 3, 6])
def test_information_maximisation_oracles(K):
    """-ln K balanced and certain, 0 uniform, 0 collapsed: to 1e-4, because the logs are of p + 1e-5."""
    certain = 100 * torch.eye(K)
    assert information_maximisation(certain.repeat(4, 1)).item() == pytest.approx(-math.log(K), abs=1e-4)
    assert information_maximisation(torch.zeros(8, K)).item() == pytest.approx(0, abs=1e-4)
    assert information_maximisation(certain[:1].repeat(8, 1)).item() == pytest.approx(0, abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 6))
@MODEST
def test_entropies_are_scipys_and_their_difference_is_between_its_bounds(seed, n, K):
    logits = random_logits(seed, n, K)
    p = softmax(logits.numpy(), axis=1)
    certain, diverse = mean_entropy_of(torch.from_numpy(p)).item(), diversity(torch.from_numpy(p)).item()
    assert certain == pytest.approx(entropy(p, axis=1).mean(), abs=1e-4)
    assert diverse == pytest.approx(entropy(p.mean(axis=0)), abs=1e-4)
    assert -math.log(K) - 1e-4 <= information_maximisation(logits).item() <= 1e-4


@pytest.mark.parametrize("loss", [mean_entropy, information_maximisation])
def test_gradients_are_finite_differences(loss):
    assert torch.autograd.gradcheck(loss, (random_logits(0).requires_grad_(),))


def test_permuting_rows_or_classes_changes_nothing():
    logits = random_logits(1)
    moved = logits[torch.tensor([3, 0, 4, 1, 2])][:, torch.tensor([2, 0, 3, 1])]
    for loss in (mean_entropy, information_maximisation):
        assert loss(moved).item() == pytest.approx(loss(logits).item())


@pytest.mark.parametrize("loss", [mean_entropy, information_maximisation])
def test_no_rows_give_zero_and_one_row_a_number(loss):
    assert loss(torch.zeros(0, 3)).item() == 0
    assert np.isfinite(loss(torch.tensor([[1.0, 2.0, 3.0]])).item())


INF = float("inf")
VECTORS = st.integers(1, 8).flatmap(lambda K: arrays(np.float64, K, elements=st.floats(-5, 5)))


def projection_by_bisection(z):
    """The threshold at which max(z - tau, 0) sums to 1: the sum falls as tau rises."""
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(z - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(z - low, 0)


def test_sparsemax_by_hand():
    p = sparsemax(torch.tensor([1.0, 0.2, -1.0], dtype=torch.float64))
    assert p.tolist() == pytest.approx([0.9, 0.1, 0.0], abs=1e-12)


@given(VECTORS)
@MODEST
def test_is_the_projection_on_the_simplex(z):
    p = sparsemax(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(p, projection_by_bisection(z), atol=1e-9)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)


@given(VECTORS, st.floats(-100, 100))
@MODEST
def test_blind_to_a_shift(z, shift):
    z = torch.from_numpy(z)
    torch.testing.assert_close(sparsemax(z + shift), sparsemax(z), atol=1e-9, rtol=0)


@given(VECTORS, st.integers(1, 3), st.randoms())
@MODEST
def test_masked_entries_are_as_if_absent(z, n_masked, random):
    where = sorted(random.sample(range(len(z) + n_masked), len(z)))
    full = torch.full((len(z) + n_masked,), -INF, dtype=torch.float64)
    full[where] = torch.from_numpy(z)
    p = sparsemax(full)
    torch.testing.assert_close(p[where], sparsemax(torch.from_numpy(z)))
    assert p.sum().item() == pytest.approx(1)
    assert p[full == -INF].count_nonzero() == 0


def test_any_axis():
    z = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    for dim in (0, 1, -1):
        by_last = sparsemax(z.movedim(dim, -1)).movedim(-1, dim)
        torch.testing.assert_close(sparsemax(z, dim=dim), by_last)
        torch.testing.assert_close(sparsemax(z, dim=dim).sum(dim), torch.ones_like(z.sum(dim)))


def test_sparsemax_gradient_is_the_finite_difference():
    z = torch.tensor([[0.95, 0.2, -1.0, 0.5], [0.0, 0.1, 0.3, -0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sparsemax, (z,))
    assert torch.autograd.gradcheck(lambda z: sparsemax(z, dim=0), (z,))


def test_gradient_stays_on_the_simplex_even_where_an_entry_is_about_to_leave():
    z = torch.tensor([0.0, 0.1, 0.3, -0.2], dtype=torch.float64)  # tau is -0.2 too
    jacobian = torch.autograd.functional.jacobian(sparsemax, z)
    torch.testing.assert_close(jacobian.sum(0), torch.zeros(4, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(jacobian, jacobian.T)


def test_gradient_of_masked_entries_is_zero_not_nan():
    z = torch.tensor([[1.0, -INF, 0.8], [-INF, -INF, 0.3]], requires_grad=True)
    (sparsemax(z) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert z.grad.tolist() == [[-1, 0, 1], [0, 0, 0]]


def test_everything_masked_gets_nothing():
    z = torch.full((2, 3), -INF, requires_grad=True)
    p = sparsemax(z)
    p.sum().backward()
    assert p.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert z.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_ties_share_and_one_entry_has_all():
    assert sparsemax(torch.zeros(4)).tolist() == [0.25] * 4
    assert sparsemax(torch.tensor([[-3.0], [1e30]])).tolist() == [[1], [1]]


@given(st.floats(0, 3), st.integers(0, 10**6))
def test_forward_is_the_identity_and_the_gradient_exactly_minus_strength_times(strength, seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(4, 3, generator=generator).requires_grad_()
    A = torch.randn(4, 3, generator=generator)
    (plain,) = torch.autograd.grad((A * z.sin()).sum(), z)
    reversed_ = reverse_gradient(z, strength)
    assert torch.equal(reversed_, z)
    (gradient,) = torch.autograd.grad((A * reversed_.sin()).sum(), z)
    assert torch.equal(gradient, -strength * plain)


def test_encoder_moves_against_the_discriminator():
    z = torch.ones(2, requires_grad=True)
    (reverse_gradient(3 * z, 0.5)).sum().backward()
    assert z.grad.tolist() == [-1.5, -1.5]


def test_strength_starts_at_zero_grows_and_stays_below_one():
    strengths = [reversal_strength(step / 1000) for step in range(1001)]
    assert strengths[0] == 0
    assert all(a < b for a, b in pairwise(strengths))
    assert 0.999 < strengths[-1] < 1
    assert reversal_strength(0.1) == pytest.approx(0.46211716)


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan")])
def test_progress_outside_the_run_is_refused(q):
    with refusal("q", "share in"):
        reversal_strength(q)


def weights(seed, units, features=4):
    return torch.randn(units, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_overlap_by_hand():
    assert weight_overlap(torch.eye(2), torch.eye(2)).item() == 2
    assert weight_overlap(torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([[0.0, 0.0, 3.0]])).item() == 0
    assert weight_overlap(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -4.0], [1.0, 1.0]])).item() == 8


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5))
def test_symmetric_and_the_same_for_any_order_and_sign_of_units(seed, n1, n2):
    W1, W2 = weights(seed, n1), weights(seed + 1, n2)
    expected = pytest.approx(weight_overlap(W1, W2).item())
    assert weight_overlap(W2, W1).item() == expected
    assert weight_overlap(-W1.flip(0), W2).item() == expected


def test_overlap_gradient_is_the_finite_difference():
    assert torch.autograd.gradcheck(weight_overlap, (weights(0, 3).requires_grad_(), weights(1, 2).requires_grad_()))


def test_overlap_bad_input_is_named():
    with refusal("W2", r"\(rows, 4\).*got \(3, 5\)"):
        weight_overlap(torch.zeros(3, 4), torch.zeros(3, 5))


def proportions(seed, K=4):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(K)))


def test_proportions_by_hand():
    assert proportion_divergence(torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])).item() == pytest.approx(
        0.223144, abs=1e-6
    )


@given(st.integers(0, 10**6), st.integers(1, 6))
@MODEST
def test_is_scipys_and_zero_only_for_equals(seed, K):
    pi, p_bar = proportions(seed, K), proportions(seed + 1, K)
    assert proportion_divergence(pi, p_bar).item() == pytest.approx(entropy(pi.numpy(), p_bar.numpy()), abs=1e-6)
    assert proportion_divergence(pi, pi).item() == pytest.approx(0, abs=1e-12)
    assert K == 1 or proportion_divergence(pi, p_bar).item() > 0


def test_an_absent_class_contributes_nothing():
    pi, p_bar = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5], requires_grad=True)
    loss = proportion_divergence(pi, p_bar)
    loss.backward()
    assert loss.item() == pytest.approx(np.log(2))
    assert p_bar.grad.tolist() == [0, -2]


def test_a_class_that_is_never_predicted_costs_much_but_not_infinitely_much():
    pi, p_bar = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0], requires_grad=True)
    loss = proportion_divergence(pi, p_bar)
    loss.backward()
    assert loss.item() == pytest.approx(0.5 * np.log(0.5) + 0.5 * np.log(0.5 / 1e-7), rel=1e-5)
    assert p_bar.grad.isfinite().all()


def test_proportions_gradient_is_the_finite_difference():
    p_bar = proportions(1).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: proportion_divergence(proportions(0), p), (p_bar,))


def test_a_step_predicts_the_neglected_class_more_often():
    logits = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.0, 0.5]], requires_grad=True)
    p_bar = logits.softmax(dim=-1).mean(dim=0)
    proportion_divergence(torch.tensor([0.2, 0.6, 0.2]), p_bar).backward()
    assert (logits.grad[:, 1] < 0).all()
    assert (logits.grad[:, 0] > 0).all()


def test_proportions_bad_input_is_named():
    with refusal("p_bar", r"shape \(2,\).*got \(3,\)"):
        proportion_divergence(torch.ones(2) / 2, torch.ones(3) / 3)
    with refusal("pi", r"\(classes,\), got \(1, 2\)"):
        proportion_divergence(torch.ones(1, 2) / 2, torch.ones(1, 2) / 2)


@given(seed=st.integers(0, 99), n=st.integers(1, 6), K=st.integers(2, 5))
def test_divergence_from_is_scipys(seed, n, K):
    rng = np.random.default_rng(seed)
    p, logits = softmax(rng.normal(size=(n, K)), axis=1), rng.normal(size=(n, K))
    p[0] = np.eye(K)[0]  # 0 log 0
    found = divergence_from(torch.from_numpy(p), torch.from_numpy(logits)).item()
    assert found == pytest.approx(entropy(p, softmax(logits, axis=1), axis=1).mean())


def test_row_entropies_are_scipys():
    logits = np.random.default_rng(0).normal(size=(7, 4))
    assert np.allclose(row_entropies(torch.from_numpy(logits)), entropy(softmax(logits, axis=1), axis=1))


class LinearClassifier:
    """logits = W x, and the curvature of KL(p(x) || p(x + v)) in v from its formula, W^T (diag p - p p^T) W."""

    def __init__(self, K: int, shape: tuple[int, int], dtype: torch.dtype) -> None:
        self.W = torch.randn(K, shape[0] * shape[1], generator=torch.Generator().manual_seed(1), dtype=dtype) / 4

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ self.W.T

    def most_sensitive(self, x: torch.Tensor, u: torch.Tensor) -> np.ndarray:
        """Unit vectors along H_i u_i, (n, D T)."""
        W, p = self.W.double().numpy(), softmax(self(x).double().numpy(), axis=1)
        curvature = [W.T @ (np.diag(row) - np.outer(row, row)) @ W for row in p]
        Hu = np.stack([H @ v for H, v in zip(curvature, u.double().flatten(1).numpy(), strict=True)])
        return Hu / np.linalg.norm(Hu, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("K", [2, 4])
def test_virtual_adversarial_loss_of_a_linear_classifier(K, dtype):
    shape, radius = (3, 8), 2.0
    classify = LinearClassifier(K, shape, dtype)
    x = torch.randn(5, *shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    torch.manual_seed(3)
    r = radius * classify.most_sensitive(x, torch.randn_like(x))
    changed = x.double().flatten(1).numpy() + r
    p, q = (softmax(z @ classify.W.double().numpy().T, axis=1) for z in (x.double().flatten(1).numpy(), changed))
    torch.manual_seed(3)
    found = virtual_adversarial_loss(classify, x, classify(x), radius).item()
    assert found == pytest.approx(entropy(p, q, axis=1).mean(), rel=0.02)


def test_virtual_adversarial_gradient_is_that_of_the_changed_windows_alone():
    shape = (3, 8)
    classify = LinearClassifier(3, shape, torch.float64)
    classify.W.requires_grad_()
    x = torch.randn(5, *shape, dtype=torch.float64)
    seen = []

    def watched(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.detach())
        return classify(x)

    logits = classify(x)
    loss = virtual_adversarial_loss(watched, x, logits, 2.0)
    (found,) = torch.autograd.grad(loss, classify.W)
    expected = divergence_from(logits.detach().softmax(dim=1), classify(seen[1]))
    assert torch.equal(found, *torch.autograd.grad(expected, classify.W))
    assert torch.allclose((seen[1] - x).flatten(1).norm(dim=1), torch.tensor(2.0, dtype=torch.float64))


def test_virtual_adversarial_loss_of_a_constant_classifier_is_nothing():
    x = torch.randn(4, 2, 8)
    weights = torch.zeros(3, 16, requires_grad=True)
    loss = virtual_adversarial_loss(lambda x: x.flatten(1) @ weights.T, x, torch.zeros(4, 3), 3.5)
    assert loss.item() == 0
    assert torch.isfinite(torch.autograd.grad(loss, weights)[0]).all()
    with refusal("radius"):
        virtual_adversarial_loss(lambda x: x.flatten(1), x, torch.zeros(4, 16), 0.0)
