import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import entropy

from transpl.nn.losses import diversity, mean_entropy, mean_entropy_of

MODEST = settings(deadline=None, max_examples=25)


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
