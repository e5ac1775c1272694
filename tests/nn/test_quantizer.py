import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transpl.markov import codebook_usage
from transpl.nn.quantizer import Codebook, ResidualQuantizer, perplexity


@pytest.fixture
def book():
    book = Codebook(3, 2)
    book.vectors.data = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0]])
    return book


def test_nearest_code_is_by_angle_not_by_length(book):
    v = torch.tensor([[0.1, 0.01], [0.0, 9.0], [-0.3, 0.1]])
    assert book.nearest(v).tolist() == [0, 1, 2]
    assert book(v).codes.tolist() == [0, 1, 2]


def test_loss_by_hand(book):
    # l2(v) = (0.6, 0.8), nearest code (0, 1): squares 0.36 and 0.04, mean 0.2; codebook + 0.25 * commitment.
    assert book(torch.tensor([[3.0, 4.0]])).loss.item() == pytest.approx(0.2 * 1.25)


def test_output_is_the_unit_code_and_its_gradient_goes_straight_to_the_input(book):
    v = torch.tensor([[3.0, 4.0]], requires_grad=True)
    q = book(v).vectors
    assert torch.allclose(q, torch.tensor([[0.0, 1.0]]))
    g = torch.tensor([[1.0, 0.0]])
    (straight,) = torch.autograd.grad((q * g).sum(), v)
    (direct,) = torch.autograd.grad((F.normalize(v, dim=-1) * g).sum(), v)
    assert torch.allclose(straight, direct)


def test_codebook_and_commitment_each_move_one_side(book):
    v = torch.tensor([[3.0, 4.0]], requires_grad=True)
    book(v).loss.backward()
    assert v.grad.abs().sum() > 0
    assert book.vectors.grad[1].abs().sum() > 0
    assert book.vectors.grad[[0, 2]].abs().sum() == 0


def test_kmeans_start_puts_one_code_on_each_cluster():
    rng = np.random.default_rng(0)
    angles = np.repeat([0.0, 2.0, 4.0], 50) + 0.05 * rng.normal(size=150)
    points = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1)).float()
    book = Codebook(3, 2)
    book.start_from(points, seed=0)
    centres = np.array([[np.cos(a), np.sin(a)] for a in (0.0, 2.0, 4.0)])
    assert np.allclose(sorted((centres @ book.vectors.detach().numpy().T).max(axis=1)), 1.0, atol=1e-3)
    assert codebook_usage(book.nearest(points).numpy(), 3).counts.tolist() == [50, 50, 50]


@pytest.mark.parametrize("n_points", [1, 2, 5])
def test_fewer_points_than_codes_do_not_crash(n_points):
    book = Codebook(8, 4)
    points = F.normalize(torch.randn(n_points, 4), dim=-1)
    book.start_from(points, seed=0)
    assert torch.isfinite(book.vectors).all()
    assert len(set(book.nearest(points).tolist())) == n_points


@pytest.mark.parametrize(
    ("residual", "left"),
    [("normalised", [2 / 4.25**0.5 - 1, 0.5 / 4.25**0.5]), ("raw", [1.0, 0.5])],
)
def test_fine_book_sees_what_the_coarse_book_leaves(residual, left):
    quantizer = ResidualQuantizer(2, 2, 2, residual=residual)
    quantizer.coarse.vectors.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    quantizer.fine.vectors.data = torch.tensor([[0.0, 3.0], [0.0, -3.0]])
    z = torch.tensor([[2.0, 0.5], [2.0, -0.5]])
    coarse, fine = quantizer(z)
    assert coarse.codes.tolist() == [0, 0]
    assert torch.allclose(quantizer.residual(z, coarse.codes), torch.tensor([left, [left[0], -left[1]]]))
    assert fine.codes.tolist() == [0, 1]


def test_no_fine_book_is_a_setting():
    quantizer = ResidualQuantizer(4, 0, 8)
    assert quantizer.fine is None
    assert quantizer(torch.randn(5, 8))[1] is None
    quantizer.start_from(torch.randn(20, 8), seed=0)


def test_perplexity_of_a_batch_is_that_of_its_usage():
    codes = torch.tensor([[0, 0, 2, 2, 1], [3, -1, -1, 0, 0]])
    assert perplexity(codes, 5).item() == pytest.approx(codebook_usage(codes.numpy(), 5).perplexity)


def composed(v, vectors, commitment):
    """The codebook written out in torch's own operations: an oracle for value and gradient."""
    u, e = F.normalize(v, dim=-1), F.normalize(vectors, dim=-1)
    q = e[(u @ e.T).argmax(dim=-1)]
    loss = F.mse_loss(q, u.detach()) + commitment * F.mse_loss(u, q.detach())
    return u + (q - u).detach(), loss, u - q.detach()


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1, 2)])  # of vectors, loss, residual
def test_one_node_has_the_gradients_of_the_composition(used):
    torch.manual_seed(0)
    book = Codebook(5, 4, commitment=0.3).double()
    v = torch.randn(2, 3, 6, 4, dtype=torch.float64, requires_grad=True)
    weight = [torch.randn(2, 3, 6, 4), 7.0, torch.randn(2, 3, 6, 4)]

    def gradients(outputs):
        total = sum((outputs[i] * weight[i]).sum() for i in used)
        return torch.autograd.grad(total, [v, book.vectors], allow_unused=True)

    ours = book(v)
    theirs = composed(v, book.vectors, 0.3)
    for a, b in zip((ours.vectors, ours.loss, ours.residual), theirs, strict=True):
        assert torch.allclose(a, b)
    for a, b in zip(gradients((ours.vectors, ours.loss, ours.residual)), gradients(theirs), strict=True):
        assert torch.allclose(a, torch.zeros_like(a) if b is None else b)
