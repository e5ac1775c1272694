"""Softmax labels, and the ramp of their weight."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal

from transpl.methods import Labelled
from transpl.methods.softmax import Softmax, SoftmaxSettings
from transpl.nn import Execution
from transpl.windows import as_windows

SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "variant")}


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 2)


def adapted(**changes: object) -> Softmax:
    method = Softmax(SoftmaxSettings(**SHAPE | changes), Execution(device="cpu"))
    method.fit_source(labelled(24, 0), labelled(12, 1))
    method.adapt(TARGET)
    return method


TARGET = labelled(16, 2, gain=1.5).windows


def test_labels_are_argmax_of_the_source_models_logits():
    method = adapted()
    with torch.no_grad():
        logits = method.source.network.eval().classify(torch.from_numpy(TARGET.values))
    labels = method.pseudo_label(TARGET)
    assert np.array_equal(labels.labels, logits.argmax(dim=1).numpy())
    assert ((labels.confidence >= 0.5) & (labels.confidence <= 1)).all()
    assert np.array_equal(method.label_record["initial"].labels, labels.labels)
    assert "final" not in method.label_record


def test_relabelling_uses_the_network_as_it_is():
    method = adapted(relabel="each epoch")
    final = method.label_record["final"]
    assert np.array_equal(final.probabilities, method.predict_proba(TARGET))
    assert not np.array_equal(final.probabilities, method.label_record["initial"].probabilities)


@pytest.mark.parametrize(("epoch", "weight"), [(0, 0), (10, 0), (35, 1.5), (60, 3), (99, 3)])
def test_lees_ramp(epoch, weight):
    assert Softmax(SoftmaxSettings(max_epochs=100, schedule="ramp")).target_weight(epoch) == pytest.approx(weight)
    assert Softmax(SoftmaxSettings(max_epochs=100)).target_weight(epoch) == 1


def test_a_tiny_share_still_trusts_one_row():
    assert adapted(top_ratio=1e-6).history["adapt"][0]["target_cross_entropy"] > 0


@pytest.mark.parametrize(("name", "value"), [("relabel", "x"), ("schedule", "x"), ("target_weight", -1.0)])
def test_wrong_settings_are_named(name, value):
    with refusal(name):
        SoftmaxSettings(**{name: value})
