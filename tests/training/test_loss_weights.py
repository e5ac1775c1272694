import math

import pytest
import torch

from transpl.training.loss_weights import LearnableWeights


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
