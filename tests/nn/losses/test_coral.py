import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.nn.losses import coral

MODEST = settings(deadline=None, max_examples=25)
S = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def features(seed, n, d=5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_by_hand():
    assert coral(S, S / 2).item() == pytest.approx(0.125)
    assert coral(S, S / 2, form="adatime").item() == pytest.approx(0.28125)


@pytest.mark.parametrize("form", ["published", "adatime"])
def test_identical_batches_cost_nothing(form):
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
def test_gradient_is_the_finite_difference(form):
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


def test_bad_input_is_named():
    with refusal("form", "'published', 'adatime', got 'paper'"):
        coral(S, S, form="paper")
    with refusal("z_t", r"\(rows, 2\).*got \(4, 3\)"):
        coral(S, torch.zeros(4, 3))
    with refusal("z_s", r"\(rows, columns\), got \(2,\)"):
        coral(S[0], S)
