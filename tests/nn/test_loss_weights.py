import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transpl.nn.loss_weights import LearnableWeights, Weighting


def test_starts_at_half_the_sum_plus_log_two_each():
    weights = LearnableWeights(2)
    assert weights(torch.tensor([3.0, 5.0])).item() == pytest.approx(3 / 2 + 5 / 2 + 2 * math.log(2))


def test_formula_by_hand():
    weights = LearnableWeights(2)
    weights.s.data = torch.tensor([2.0, 0.5])
    expected = 3 / 8 + math.log(5) + 5 / 0.5 + math.log(1.25)
    assert weights(torch.tensor([3.0, 5.0])).item() == pytest.approx(expected)


def test_the_larger_loss_learns_the_smaller_weight():
    weights = LearnableWeights(2)
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        weights(torch.tensor([10.0, 0.1])).backward()
        optimizer.step()
    large, small = (1 / (2 * weights.s.detach().square())).tolist()
    assert large < 0.5 < small


# loss, the s^2 it draws to, and what it then costs
OPTIMA = [(1.0, 1.0, 1.193147), (4.0, 2.732051, 2.049009), (0.25, 0.421535, 0.648273)]


@pytest.mark.parametrize(("loss", "square", "cost"), OPTIMA)
def test_optimum_by_formula(loss, square, cost):
    assert (loss + math.sqrt(loss**2 + 8 * loss)) / 4 == pytest.approx(square, abs=1e-6)
    weights = LearnableWeights(1).double()
    weights.s.data.fill_(math.sqrt(square))
    value = weights(torch.tensor([loss], dtype=torch.float64))
    value.backward()
    assert value.item() == pytest.approx(cost, abs=1e-6)
    assert weights.s.grad.item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("start", [0.5, -2.0])
def test_optimum_by_minimising(start):
    losses, squares, costs = (torch.tensor(column, dtype=torch.float64) for column in zip(*OPTIMA, strict=True))
    weights = LearnableWeights(3).double()
    weights.s.data.fill_(start)
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    for _ in range(2000):
        optimizer.zero_grad()
        weights(losses).backward()
        optimizer.step()
    torch.testing.assert_close(weights.s.detach().square(), squares, atol=1e-5, rtol=0)
    assert weights(losses).item() == pytest.approx(costs.sum().item(), abs=1e-6)


@given(st.floats(0.0101, 100), st.booleans(), st.floats(0, 100))
def test_above_the_floor_nothing_is_changed_to_the_last_bit(s, negative, loss):
    weights = LearnableWeights(1)
    weights.s.data.fill_(-s if negative else s)
    plain = weights.s.detach().clone().requires_grad_()
    losses = torch.tensor([loss])
    squares = plain.square()
    expected = (losses / (2 * squares) + torch.log1p(squares)).sum()
    value = weights(losses)
    assert torch.equal(value, expected)
    assert torch.equal(torch.autograd.grad(value, weights.s)[0], torch.autograd.grad(expected, plain)[0])


@pytest.mark.parametrize("s", [0.0, 1e-30, 0.005, -0.005, -1e-9])
def test_below_the_floor_the_cost_is_bounded_and_the_gradient_leads_out(s):
    weights = LearnableWeights(1)
    weights.s.data.fill_(s)
    value = weights(torch.tensor([1.0]))
    value.backward()
    assert value.item() == pytest.approx(1 / 2e-4 + math.log1p(1e-4), rel=1e-5)
    assert weights.s.grad.isfinite().all()
    assert weights.s.grad.item() * (-1 if s < 0 else 1) < 0


def test_s_grows_back_from_zero():
    weights = LearnableWeights(1)
    weights.s.data.zero_()
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    passed = []
    for _ in range(100):
        optimizer.zero_grad()
        weights(torch.ones(1)).backward()
        optimizer.step()
        passed.append(weights.s.item())
    assert passed == sorted(passed)
    assert passed[-1] > 0.1


def test_a_loss_of_zero_keeps_s_near_the_floor():
    weights = LearnableWeights(1)
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        weights(torch.zeros(1)).backward()
        optimizer.step()
    assert weights.s.abs().item() < 0.1
    assert weights(torch.ones(1)).item() <= 1 / 2e-4 + 1


def test_weights_by_name_fixed_and_learnt():
    losses = {"a": torch.tensor(3.0), "b": torch.tensor(5.0), "c": torch.tensor(7.0)}
    assert Weighting({"a": 2.0, "b": 0.0, "c": 1.0})(losses).item() == pytest.approx(13.0)
    mixed = Weighting({"b": 10.0}, ["a", "c"])
    assert mixed(losses).item() == pytest.approx(50 + (3 + 7) / 2 + 2 * math.log(2))
    assert [name for name, _ in mixed.named_parameters()] == ["scales.s"]


def test_fixed_weights_are_no_parameters_and_learnt_ones_all_get_a_gradient():
    losses = {"a": torch.tensor(2.0), "b": torch.tensor(3.0)}
    fixed = Weighting({"a": 1.0, "b": 0.5})
    assert fixed(losses).item() == 3.5
    assert list(fixed.parameters()) == []
    mixed = Weighting({"a": 2.0}, ["b"])
    mixed(losses).backward()
    assert [p.grad is not None for p in mixed.parameters()] == [True]
    assert mixed(losses).item() == pytest.approx(4 + 3 / 2 + math.log(2))
