"""Decoded codes, and how varied they are."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import refusal
from tiny_subject import tiny_subject
from torch.nn import functional as F

from transpl._utils.errors import InputError
from transpl.nn.inference import coarse_codes
from transpl.report.figures.code_entropy import entropy_study, permutation_entropy
from transpl.report.figures.decoded_codes import codes_study, decoded_in_place


def test_a_code_alone_is_what_the_decoder_makes_of_a_sequence_of_one():
    method = tiny_subject().method
    network, decoded = method.state.source_network, method.decoded_codes
    assert decoded["coarse"].shape == (4, 4)
    assert decoded["fine"].shape == (8, 4)
    e = F.normalize(network.quantizer.coarse.vectors[2], dim=0)
    with torch.no_grad():
        expected = network.to_patch(network.decoder(e[None, None]))[0, 0]
    np.testing.assert_allclose(decoded["coarse"][2], expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_code_in_place_is_the_mean_of_what_is_decoded_there():
    subject = tiny_subject()
    method, windows = subject.method, subject.windows.source
    network, decoded = method.state.source_network, decoded_in_place(method, windows)
    with torch.no_grad():
        out = network(torch.from_numpy(windows.values))
    codes = coarse_codes(network, windows)
    for c in range(4):
        patches = out.reconstruction.numpy()[codes == c]
        if len(patches):
            np.testing.assert_allclose(decoded["coarse"][c], patches.mean(axis=0), rtol=1e-4, atol=1e-5)
        else:
            assert np.isnan(decoded["coarse"][c]).all()


@pytest.mark.parametrize("context", ["alone", "source"])
def test_study_is_plain_data_with_shares_of_the_source(context):
    found = codes_study(tiny_subject(), context)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for book, n in (("coarse", 4), ("fine", 8)):
        codes = found["books"][book]
        assert [code["code"] for code in codes] == list(range(n))
        assert sum(code["share"] for code in codes) == pytest.approx(1)
        absent = [code for code in codes if code["values"] is None]
        assert all(code["share"] == 0 for code in absent)
        assert context == "source" or not absent


def test_a_single_book_has_no_fine_codes():
    assert set(codes_study(tiny_subject(n_fine=0))["books"]) == {"coarse"}
    assert set(entropy_study([tiny_subject(n_fine=0)])["models"][0]) == {"name", "group", "coarse"}


def test_entropies_are_those_of_the_codes_that_occur():
    subject = tiny_subject()
    found = entropy_study([subject, subject], order=2)
    codes = codes_study(subject)["books"]["fine"]
    expected = [permutation_entropy(code["values"], 2) for code in codes if code["share"] > 0]
    assert [model["fine"] for model in found["models"]] == [expected, expected]
    assert [code["entropy"] for code in found["drawn"]["books"]["fine"]] == expected


def test_a_context_needs_a_known_name_and_its_windows():
    with refusal("context"):
        codes_study(tiny_subject(), "nowhere")
    with pytest.raises(InputError, match=r"no sample\.npz"):
        codes_study(replace(tiny_subject(), domains=None), "source")
    with refusal("x", "order 5"):
        entropy_study([tiny_subject()], order=5)
