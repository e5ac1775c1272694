import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transpl.nn.losses import sparsemax

MODEST = settings(deadline=None, max_examples=60)
INF = float("inf")
VECTORS = st.integers(1, 8).flatmap(lambda K: arrays(np.float64, K, elements=st.floats(-5, 5)))


def projection_by_bisection(z):
    """The threshold at which max(z - tau, 0) sums to 1: the sum falls as tau rises."""
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(z - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(z - low, 0)


def test_by_hand():
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


def test_gradient_is_the_finite_difference():
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
