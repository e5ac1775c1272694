from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from transpl._utils.errors import InputError
from transpl.nn import Network, NetworkSettings, inference
from transpl.nn.inference import class_probabilities, coarse_codes, codes_by_book
from transpl.nn.layers import sinusoids
from transpl.nn.model import patch_mask, to_patches
from transpl.windows import as_windows

SMALL = NetworkSettings(n_classes=3, patch_length=4, width=16, n_coarse=4, n_fine=8, n_heads=2)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(SMALL).eval()


def test_shapes_are_the_documented_ones(network):
    output = network(torch.randn(5, 2, 18))
    assert output.logits.shape == (5, 3)
    assert output.coarse_codes.shape == (5, 2, 4)
    assert output.fine_codes.shape == (5, 2, 4)
    assert output.reconstruction.shape == (5, 2, 4, 4)
    assert output.code_loss.shape == output.reconstruction_loss.shape == ()
    summary, latents = network.encode(torch.randn(5, 2, 18))
    assert summary.shape == (5, 2, 16)
    assert latents.shape == (5, 2, 4, 16)


def test_codes_and_classify_agree_with_the_full_pass(network):
    x = torch.randn(5, 2, 16)
    output = network(x)
    assert torch.equal(network.codes(x), output.coarse_codes)
    assert torch.equal(network.codes_by_book(x), torch.stack([output.coarse_codes, output.fine_codes], dim=1))
    assert torch.allclose(network.classify(x), output.logits)


def test_the_encoder_sees_positions_and_nothing_is_dropped_before_it(network):
    seen = []
    network.encoder.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    x = torch.randn(1, 1, 16)
    network.train().encode(x)
    tokens = torch.cat([network.cls[None], network.embed(x.view(4, 4))])
    assert torch.allclose(seen[0][0], tokens + sinusoids(5, 16), atol=1e-6)


def test_the_decoder_knows_no_positions(network):
    q = torch.randn(1, 4, 16)
    assert torch.allclose(network.decode(q).flip(1), network.decode(q.flip(1)), atol=1e-5)


@pytest.mark.parametrize("trainable", [False, True])
def test_the_summary_token_learns_only_on_request(trainable):
    network = Network(replace(SMALL, cls_trainable=trainable))
    assert ("cls" in dict(network.named_parameters())) == trainable
    assert "cls" in network.state_dict()


def test_decoding_the_quantised_patches_gives_the_reconstruction(network):
    x = torch.randn(5, 2, 16)
    coarse, fine = network.quantizer(network.encode(x).latents)
    decoded = network.decode((coarse.vectors + fine.vectors).flatten(0, 1))
    assert torch.allclose(decoded.view(5, 2, 4, 4), network(x).reconstruction, atol=1e-6)


def test_channels_do_not_see_each_other(network):
    x = torch.randn(4, 3, 16)
    other = x.clone()
    other[:, 2] = torch.randn(4, 16)
    assert torch.equal(network.codes(x)[:, :2], network.codes(other)[:, :2])


def test_channel_order_does_not_matter_to_the_class(network):
    x = torch.randn(4, 3, 16)
    assert torch.allclose(network.classify(x), network.classify(x[:, [2, 0, 1]]), atol=1e-6)


def test_padding_changes_nothing(network):
    x = torch.randn(2, 2, 24)
    lengths = torch.tensor([24, 13])
    padded = x.clone()
    padded[1, :, 13:] = 7.0
    output = network(padded, lengths)
    alone = network(x[1:, :, :12])
    assert torch.equal(output.coarse_codes[1, :, :3], alone.coarse_codes[0])
    assert (output.coarse_codes[1, :, 3:] == -1).all()
    assert (output.fine_codes[1, :, 3:] == -1).all()
    by_book = torch.stack([output.coarse_codes, output.fine_codes], dim=1)
    assert torch.equal(network.codes_by_book(padded, lengths), by_book)
    assert torch.allclose(output.logits[1], alone.logits[0], atol=1e-5)
    assert torch.allclose(output.reconstruction[1, :, :3], alone.reconstruction[0], atol=1e-5)
    whole = network(x[:1])
    mean = (6 * whole.reconstruction_loss + 3 * alone.reconstruction_loss) / 9
    assert output.reconstruction_loss.item() == pytest.approx(mean.item(), rel=1e-4)
    mean_code = (6 * whole.code_loss + 3 * alone.code_loss) / 9
    assert output.code_loss.item() == pytest.approx(mean_code.item(), rel=1e-4)


def test_every_parameter_gets_a_gradient():
    torch.manual_seed(0)
    network = Network(SMALL)
    output = network(torch.randn(8, 2, 32))
    (output.logits.square().sum() + output.code_loss + output.reconstruction_loss).backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_single_codebook_has_no_fine_codes():
    network = Network(NetworkSettings(n_classes=2, patch_length=4, width=16, n_heads=2, n_fine=0))
    output = network(torch.randn(2, 1, 16))
    assert output.fine_codes is None
    assert "quantizer.fine.vectors" not in network.state_dict()
    assert list(codes_by_book(network, as_windows(np.zeros((2, 1, 16))))) == ["coarse"]


def test_codebooks_start_on_the_latents(network):
    x = torch.randn(16, 2, 32)
    network.start_from(x, seed=0)
    assert len(network.codes(x).unique()) == SMALL.n_coarse


def test_codebooks_start_on_real_patches_only(network):
    x = torch.randn(16, 2, 32)
    twin = Network(SMALL).eval()
    twin.load_state_dict(network.state_dict())
    lengths = torch.full((16,), 20)
    network.start_from(x, lengths, seed=0)
    twin.start_from(x[:, :, :20], seed=0)
    assert torch.allclose(network.quantizer.coarse.vectors, twin.quantizer.coarse.vectors, atol=1e-5)


def test_batches_do_not_change_inference(monkeypatch, network):
    windows = as_windows(np.random.default_rng(0).normal(size=(11, 2, 16)))
    codes, probabilities = coarse_codes(network, windows), class_probabilities(network, windows)
    monkeypatch.setattr(inference, "BATCH", 3)
    assert np.array_equal(coarse_codes(network, windows), codes)
    assert np.allclose(class_probabilities(network, windows), probabilities, atol=1e-6)
    assert np.allclose(probabilities.sum(axis=1), 1.0)


def test_inference_restores_the_mode(network):
    network.train()
    coarse_codes(network, as_windows(np.zeros((2, 2, 16))))
    assert network.training


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"width": 15}, "width"),
        ({"n_coarse": 1}, "n_coarse"),
        ({"n_fine": -1}, "n_fine"),
        ({"n_classes": 1}, "n_classes"),
        ({"dropout": 1.0}, "dropout"),
        ({"patch_length": 0}, "patch_length"),
    ],
)
def test_impossible_settings_are_named(change, argument):
    with pytest.raises(InputError, match=f"^{argument}: expected"):
        NetworkSettings(**{"n_classes": 2, **change})


def test_patches_are_consecutive_and_the_tail_is_dropped():
    x = torch.arange(2 * 1 * 7).float().reshape(2, 1, 7)
    patches = to_patches(x, 3)
    assert patches.shape == (2, 1, 2, 3)
    assert patches[0, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert patches[1, 0].tolist() == [[7, 8, 9], [10, 11, 12]]


def test_only_patches_wholly_inside_a_window_are_real():
    mask = patch_mask(torch.tensor([8, 7, 3]), 4, 2)
    assert mask.tolist() == [[True, True], [True, False], [False, False]]
