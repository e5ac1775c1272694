import math

import ot
import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.nn.losses import sinkhorn, transport_plan

MODEST = settings(deadline=None, max_examples=20)
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
def test_no_rows_give_a_zero_with_a_gradient(n, m):
    x, y = points(0, n).requires_grad_(), points(1, m).requires_grad_()
    loss = sinkhorn(x, y)
    loss.backward()
    assert loss.item() == 0


def test_without_gradient_nothing_is_recorded():
    with torch.no_grad():
        assert not sinkhorn(points(0, 3).requires_grad_(), points(1, 3)).requires_grad


def test_bad_input_is_named():
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
