from itertools import pairwise

import pytest
import torch
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl.nn.losses import reversal_strength, reverse_gradient


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
