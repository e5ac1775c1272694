"""Batches through a network: any number of windows, wherever they are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from transpl.nn import Network, NetworkSettings, inference
from transpl.nn.inference import (
    channel_summaries,
    class_probabilities,
    coarse_codes,
    code_type,
    codes_by_book,
    decoded_codes,
    features,
    head_outputs,
    reconstruction_error,
)
from transpl.windows import as_windows

SMALL = NetworkSettings(n_classes=3, patch_length=4, width=16, n_coarse=4, n_fine=8, n_layers=1, n_heads=2)
X = np.random.default_rng(0).normal(size=(70, 2, 16)).astype(np.float32)


def fine_codes(network, windows):
    return codes_by_book(network, windows)["fine"]


FUNCTIONS = [coarse_codes, fine_codes, class_probabilities]


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(SMALL).eval()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ">f4"])
def test_a_memory_map_gives_what_the_array_gives(network, tmp_path, function, dtype):
    np.save(tmp_path / "X.npy", X.astype(dtype))
    mapped = as_windows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert np.array_equal(function(network, mapped), function(network, as_windows(X.astype(dtype))))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_slice_and_a_choice_of_rows_give_their_rows(monkeypatch, network, function):
    monkeypatch.setattr(inference, "BATCH", 1)
    windows = as_windows(X)
    whole = function(network, windows)
    assert np.array_equal(function(network, windows[::2]), whole[::2])
    assert np.array_equal(function(network, windows[[5, 3]]), whole[[5, 3]])


def test_what_the_head_sees_is_features_hidden_layer_and_probabilities(network):
    windows = as_windows(X)
    z, hidden, probabilities = head_outputs(network.train(), windows)
    assert network.training
    assert np.array_equal(z, features(network, windows))
    with torch.no_grad():
        assert np.allclose(hidden, network.hidden(torch.from_numpy(z).float()), atol=1e-6)
    assert np.array_equal(probabilities, class_probabilities(network, windows))


def test_codes_take_one_byte_and_probabilities_are_float64(network):
    windows = as_windows(X)
    assert coarse_codes(network, windows).dtype == np.int8
    assert {codes.dtype for codes in codes_by_book(network, windows).values()} == {np.dtype(np.int8)}
    assert class_probabilities(network, windows).dtype == np.float64


@pytest.mark.parametrize(("n_codes", "dtype"), [(2, "int8"), (128, "int8"), (129, "int16"), (40_000, "int32")])
def test_the_type_of_codes_holds_the_last_code_and_minus_one(n_codes, dtype):
    assert code_type(n_codes) == np.dtype(dtype)
    assert np.iinfo(code_type(n_codes)).max >= n_codes - 1


def test_codes_of_books_of_any_size_have_a_type_each_and_come_from_one_pass(network):
    large = Network(replace(SMALL, n_fine=200)).eval()
    passes = []
    large.encoder.register_forward_hook(lambda *_: passes.append(1))
    codes = codes_by_book(large, as_windows(X[:32]))
    assert len(passes) == 1
    assert {book: found.dtype for book, found in codes.items()} == {"coarse": np.int8, "fine": np.int16}
    assert np.array_equal(codes["coarse"], coarse_codes(large, as_windows(X[:32])))


def test_shorter_windows_keep_minus_one(network):
    windows = as_windows([np.ones((2, 16)), np.ones((2, 8))])
    assert (coarse_codes(network, windows)[1, :, 2:] == -1).all()
    assert (coarse_codes(network, windows)[0] >= 0).all()


@pytest.mark.parametrize("lengths", [[16, 8, 16, 11, 8], [16] * 5])
def test_the_reconstruction_error_is_the_mean_over_all_values_whatever_the_batches(monkeypatch, network, lengths):
    """Of long windows beside short ones, which fill batches of their own."""
    longest_first = sorted(lengths, reverse=True)
    series = [20 * i * x[:, :length] for i, (x, length) in enumerate(zip(X, longest_first, strict=False))]
    squares = []
    with torch.no_grad():
        for one in series:
            x = torch.from_numpy(one)[None, :, : one.shape[1] // 4 * 4]
            patches = x.unflatten(2, (-1, 4))
            squares.append((network(x).reconstruction - patches).square().flatten().double())
    expected = float(torch.cat(squares).mean())
    for batch in (1, 2, 3, 5):
        monkeypatch.setattr(inference, "BATCH", batch)
        assert reconstruction_error(network, as_windows(series)) == pytest.approx(expected, rel=1e-5)


def test_the_summaries_of_channels_have_the_features_as_their_mean(network):
    windows = as_windows(X)
    summaries = channel_summaries(network, windows)
    assert summaries.shape == (70, 2, 16)
    assert np.allclose(summaries.mean(axis=1), features(network, windows), atol=1e-6)


def test_decoded_codes_are_what_the_decoder_makes_of_each_vector_alone(network):
    network.train()
    found = decoded_codes(network)
    assert network.training
    network.eval()
    for book in ("coarse", "fine"):
        for vector, values in zip(getattr(network.quantizer, book).vectors.detach(), found[book], strict=True):
            q = (vector / vector.norm()).view(1, 1, -1)
            expected = network.to_patch(network.decoder(q)).detach()
            assert torch.allclose(torch.from_numpy(values), expected[0, 0].double(), atol=1e-6)
