import pytest
import torch
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl.nn.losses import overlap


def weights(seed, units, features=4):
    return torch.randn(units, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_by_hand():
    assert overlap(torch.eye(2), torch.eye(2)).item() == 2
    assert overlap(torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([[0.0, 0.0, 3.0]])).item() == 0
    assert overlap(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -4.0], [1.0, 1.0]])).item() == 8


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5))
def test_symmetric_and_the_same_for_any_order_and_sign_of_units(seed, n1, n2):
    W1, W2 = weights(seed, n1), weights(seed + 1, n2)
    expected = pytest.approx(overlap(W1, W2).item())
    assert overlap(W2, W1).item() == expected
    assert overlap(-W1.flip(0), W2).item() == expected


def test_gradient_is_the_finite_difference():
    assert torch.autograd.gradcheck(overlap, (weights(0, 3).requires_grad_(), weights(1, 2).requires_grad_()))


def test_bad_input_is_named():
    with refusal("W2", r"\(rows, 4\).*got \(3, 5\)"):
        overlap(torch.zeros(3, 4), torch.zeros(3, 5))
