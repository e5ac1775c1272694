"""A head that tells channels apart, where the network's own cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transpl.network import ChannelHead, Network, NetworkSettings
from transpl.network.inference import channel_summaries, class_probabilities
from transpl.windows import as_windows

D, K, WIDTH = 2, 3, 8
X = as_windows(np.random.default_rng(0).normal(size=(5, D, 16)))


@pytest.fixture
def network():
    torch.manual_seed(0)
    settings = NetworkSettings(n_classes=K, patch_length=4, width=WIDTH, n_coarse=4, n_fine=4, n_heads=2)
    return Network(settings).eval()


@pytest.fixture
def head(network):
    rng = np.random.default_rng(0)
    return ChannelHead.of(network, rng.normal(size=(K, D * WIDTH)), rng.normal(size=K))


def test_logits_are_one_product_of_all_summaries(network, head):
    W, b = head.linear.weight.detach().numpy(), head.linear.bias.detach().numpy()
    logits = channel_summaries(network, X).reshape(5, -1) @ W.T + b
    assert np.allclose(class_probabilities(head, X), torch.from_numpy(logits).softmax(dim=1).numpy(), atol=1e-5)


def test_exchanged_channels_are_another_window_to_it_alone(network, head):
    turned = as_windows(X.values[:, ::-1])
    assert np.allclose(class_probabilities(network, X), class_probabilities(network, turned), atol=1e-5)
    # Logarithms: a class that is nearly sure hides in its probability what the channels changed.
    before, after = (np.log(class_probabilities(head, windows)) for windows in (X, turned))
    assert not np.allclose(before, after, atol=1e-2)


def test_windows_of_unequal_length_are_read_up_to_their_end(head):
    ragged = as_windows([X.values[0], X.values[1][:, :8]])
    alone = as_windows(X.values[1:2, :, :8])
    assert np.allclose(class_probabilities(head, ragged)[1:], class_probabilities(head, alone), atol=1e-5)
