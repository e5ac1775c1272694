import numpy as np
import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from transpl.nn.losses import proportion_divergence

MODEST = settings(deadline=None, max_examples=25)


def proportions(seed, K=4):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(K)))


def test_by_hand():
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


def test_gradient_is_the_finite_difference():
    p_bar = proportions(1).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: proportion_divergence(proportions(0), p), (p_bar,))


def test_a_step_predicts_the_neglected_class_more_often():
    logits = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.0, 0.5]], requires_grad=True)
    p_bar = logits.softmax(dim=-1).mean(dim=0)
    proportion_divergence(torch.tensor([0.2, 0.6, 0.2]), p_bar).backward()
    assert (logits.grad[:, 1] < 0).all()
    assert (logits.grad[:, 0] > 0).all()


def test_bad_input_is_named():
    with refusal("p_bar", r"shape \(2,\).*got \(3,\)"):
        proportion_divergence(torch.ones(2) / 2, torch.ones(3) / 3)
    with refusal("pi", r"\(classes,\), got \(1, 2\)"):
        proportion_divergence(torch.ones(1, 2) / 2, torch.ones(1, 2) / 2)
