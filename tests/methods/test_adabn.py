"""AdaBN: the target's statistics, the source's weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_source import CPU, SHORT, source_model, waves

from transpl.methods import adabn
from transpl.methods.adabn import AdaBN, AdaBNSettings
from transpl.nn import CNN, BatchNorm
from transpl.windows import Windows

SETTINGS = AdaBNSettings(**{**SHORT, "dropout": 0.3})
TARGET = waves(20, 2, gain=3.0, offset=1.0).windows


@pytest.fixture(scope="module")
def source():
    return source_model(backbone="cnn", dropout=0.3)


def adapted(source, target: Windows) -> AdaBN:
    method = AdaBN(SETTINGS, CPU)
    method.start_from(source)
    method.adapt(target)
    return method


def norms(network: CNN) -> list[BatchNorm]:
    return [module for module in network.modules() if isinstance(module, BatchNorm)]


def test_statistics_are_those_of_the_target(source):
    network = adapted(source, TARGET).classifier
    first = network.blocks[0][0](torch.from_numpy(TARGET.values)).detach()
    assert torch.allclose(norms(network)[0].running_mean, first.mean(dim=(0, 2)), atol=1e-5)
    assert torch.allclose(norms(network)[0].running_var, first.var(dim=(0, 2)), rtol=1e-4)


def test_weights_are_those_of_the_source(source):
    method = adapted(source, TARGET)
    before, after = dict(source.network.named_parameters()), dict(method.classifier.named_parameters())
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not torch.equal(norms(source.network)[0].running_mean, norms(method.classifier)[0].running_mean)
    assert [layer.momentum for layer in norms(method.classifier)] == [layer.momentum for layer in norms(source.network)]
    assert method.history.keys() == {"source"}


def test_a_gain_of_all_channels_is_undone(source):
    """The first layer has no bias, so a gain is a gain of its statistics."""
    plain = waves(20, 2).windows
    louder = Windows(4 * plain.values, plain.lengths)
    expected = adapted(source, plain).predict_proba(plain)
    assert np.allclose(adapted(source, louder).predict_proba(louder), expected, atol=1e-3)
    assert not np.allclose(adapted(source, plain).predict_proba(louder), expected, atol=1e-2)


def test_order_of_the_windows_does_not_matter(source):
    order = np.random.default_rng(0).permutation(len(TARGET))
    found = [adapted(source, target).predict_proba(TARGET) for target in (TARGET, TARGET[order])]
    assert np.allclose(*found, atol=1e-5)


def test_many_windows_pass_in_interleaved_parts(source, monkeypatch):
    """The mean of a filter of the first layer stays exact when all parts have one size."""
    whole = adapted(source, TARGET).classifier
    monkeypatch.setattr(adabn, "_AT_ONCE", 5)
    seen = []
    classify = CNN.classify
    monkeypatch.setattr(CNN, "classify", lambda self, x, *rest: (seen.append(x), classify(self, x, *rest))[1])
    parts = adapted(source, TARGET).classifier
    assert [torch.from_numpy(TARGET.values[first::4]).equal(x) for first, x in enumerate(seen)] == [True] * 4
    assert torch.allclose(norms(parts)[0].running_mean, norms(whole)[0].running_mean, atol=1e-5)


def test_a_single_window_keeps_the_statistics_of_the_source(source):
    method = adapted(source, TARGET[:1])
    assert torch.equal(norms(method.classifier)[0].running_mean, norms(source.network)[0].running_mean)
