"""A head that tells channels apart, where the network's own cannot."""

from __future__ import annotations

import numpy as np
import torch

from transpl.network import ChannelHead, Network, NetworkSettings
from transpl.network.inference import channel_summaries, class_probabilities
from transpl.windows import as_windows

D, K = 2, 3
NETWORK = Network(NetworkSettings(n_classes=K, patch_length=4, width=8, n_coarse=4, n_fine=4, n_heads=2)).eval()
X = as_windows(np.random.default_rng(0).normal(size=(5, D, 16)))


def head(seed=0):
    rng = np.random.default_rng(seed)
    return ChannelHead.of(NETWORK, rng.normal(size=(K, D * 8)), rng.normal(size=K))


def test_logits_are_one_product_of_all_summaries():
    one = head()
    W, b = one.linear.weight.detach().numpy(), one.linear.bias.detach().numpy()
    logits = channel_summaries(NETWORK, X).reshape(5, -1) @ W.T + b
    assert np.allclose(class_probabilities(one, X), torch.from_numpy(logits).softmax(dim=1).numpy(), atol=1e-5)


def test_exchanged_channels_are_another_window_to_it_alone():
    turned = as_windows(X.values[:, ::-1])
    assert np.allclose(class_probabilities(NETWORK, X), class_probabilities(NETWORK, turned), atol=1e-5)
    assert not np.allclose(class_probabilities(head(), X), class_probabilities(head(), turned), atol=1e-2)


def test_windows_of_unequal_length_are_read_up_to_their_end():
    ragged = as_windows([X.values[0], X.values[1][:, :8]])
    alone = as_windows(X.values[1:2, :, :8])
    assert np.allclose(class_probabilities(head(), ragged)[1:], class_probabilities(head(), alone), atol=1e-5)
