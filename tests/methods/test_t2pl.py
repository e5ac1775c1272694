from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from tiny_source import CPU, SHORT, TARGET, source_model

from transpl.methods.labelling import t2pl_labels
from transpl.methods.t2pl import T2PL, T2PLSettings
from transpl.nn import Execution
from transpl.nn.inference import head_outputs


@pytest.fixture(scope="module")
def source():
    return source_model()


def t2pl(source, execution=CPU, **changes) -> T2PL:
    method = T2PL(T2PLSettings(**{**SHORT, **changes}), execution)
    method.start_from(source)
    return method


@pytest.mark.parametrize("sizes", [{}, {"alpha": 1, "beta": 1}, {"alpha": 2, "beta": 3}])
def test_labels_are_those_of_the_rule_on_what_the_last_layer_sees(source, sizes):
    seen = head_outputs(source.network, TARGET)
    expected = t2pl_labels(seen.hidden, seen.probabilities, **sizes)
    for found, wanted in zip(t2pl(source, **sizes).pseudo_label(TARGET), expected, strict=True):
        assert np.array_equal(found, wanted)


def test_the_published_sizes_are_the_defaults_and_they_matter(source):
    assert (T2PLSettings().alpha, T2PLSettings().beta) == (20, 2)
    few, many = (t2pl(source, alpha=alpha).pseudo_label(TARGET).confidence for alpha in (20, 1))
    assert not np.array_equal(few, many)


def test_labels_are_renewed_each_epoch_by_default(source, monkeypatch):
    networks = []
    label = T2PL.label
    monkeypatch.setattr(T2PL, "label", lambda self, network, target: networks.append(1) or label(self, network, target))
    method = t2pl(source)
    method.adapt(TARGET)
    assert len(networks) == 1 + len(method.adapt_history["adapt"]) + 1
    assert np.array_equal(method.label_record["initial"].labels, method.pseudo_label(TARGET).labels)
    final = method._label_with(method.classifier, TARGET)
    assert np.array_equal(method.label_record["final"].probabilities, final.probabilities)


def test_a_training_on_other_labels_is_not_resumed(source, tmp_path):
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    methods = [t2pl(source, saving, adapt_lr=5e-3, relabel=relabel) for relabel in ("never", "each epoch")]
    for method in methods:
        method.adapt(TARGET)
    assert len(list(tmp_path.iterdir())) == 2
    assert methods[0].history != methods[1].history


def test_wrong_settings_are_refused():
    with refusal("alpha", "1 or more"):
        T2PLSettings(alpha=0)
    with refusal("beta", "1 or more"):
        T2PLSettings(beta=0.5)
