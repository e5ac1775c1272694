import math

import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.nn.losses import mmd

MODEST = settings(deadline=None, max_examples=25)
S = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def features(seed, n, d=5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_loops(z_s, z_t):
    pooled = [*z_s.tolist(), *z_t.tolist()]
    n = len(pooled)
    b0 = sum(math.dist(a, b) ** 2 for a in pooled for b in pooled) / (n * (n - 1)) / 4

    def mean_kernel(rows, columns):
        values = [math.exp(-(math.dist(a, b) ** 2) / (b0 * 2**i)) for a in rows for b in columns for i in range(5)]
        return sum(values) / (len(rows) * len(columns))

    s, t = z_s.tolist(), z_t.tolist()
    return mean_kernel(s, s) + mean_kernel(t, t) - 2 * mean_kernel(s, t)


def test_by_hand():
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


def test_identical_batches_cost_nothing():
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
def test_no_rows_give_a_zero_with_a_gradient(n_s, n_t):
    z_s, z_t = features(0, n_s).requires_grad_(), features(1, n_t).requires_grad_()
    loss = mmd(z_s, z_t)
    loss.backward()
    assert loss.item() == 0


def test_bad_input_is_named():
    with refusal("z_t", r"\(rows, 2\).*got \(4, 3\)"):
        mmd(S, torch.zeros(4, 3))
