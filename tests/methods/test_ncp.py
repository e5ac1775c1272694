from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from tiny_source import CPU, SHORT, TARGET, K, source_model

from transpl.methods.labelling import class_prototypes, pooled_mean, prototype_probabilities
from transpl.methods.ncp import NCP, NCPSettings
from transpl.nn.inference import features


@pytest.fixture(scope="module")
def source():
    return source_model()


def ncp(source, **changes) -> NCP:
    method = NCP(NCPSettings(**{**SHORT, **changes}), CPU)
    method.start_from(source)
    return method


@pytest.mark.parametrize("centred", [True, False])
def test_labels_are_those_of_the_rule_on_the_source_networks_features(source, centred):
    z_s, z_t = (features(source.network, windows) for windows in (source.source.windows, TARGET))
    mean = pooled_mean(z_s, z_t) if centred else None
    p = prototype_probabilities(z_t, class_prototypes(z_s, source.source.y, K, mean))
    labels = ncp(source, centred=centred).pseudo_label(TARGET)
    assert np.allclose(labels.probabilities, p, rtol=1e-12)
    assert np.allclose(labels.confidence, p.max(axis=1), rtol=1e-12)


def test_centring_matters(source):
    plain, centred = (ncp(source, centred=value).pseudo_label(TARGET) for value in (False, True))
    assert not np.allclose(plain.probabilities, centred.probabilities)


def test_rows_in_another_order_get_the_same_labels(source):
    order = np.random.default_rng(0).permutation(len(TARGET))
    method = ncp(source)
    expected = method.pseudo_label(TARGET).probabilities[order]
    assert np.allclose(method.pseudo_label(TARGET[order]).probabilities, expected, atol=1e-5)


def test_one_round_labels_once(source):
    method = ncp(source)
    method.adapt(TARGET)
    assert set(method.label_record) == {"initial"}
    assert set(method.adapt_history) == {"adapt"}
    assert method.settings.adaptation().top_ratio == method.settings.top_ratio == 0.5


def test_rounds_trust_more_of_each_class_and_go_on_from_the_last_network(source, monkeypatch):
    seen = []
    finetuned = NCP._finetuned

    def watched(self, target, labels, network):
        result = finetuned(self, target, labels, network)
        seen.append((target, labels, network, result[0], self._label_with(network, TARGET)))
        return result

    monkeypatch.setattr(NCP, "_finetuned", watched)
    method = ncp(source, rounds=3)
    method.adapt(TARGET)
    (_, first, start, middle, all_first), (rows, second, again, end, all_second) = seen
    assert start is source.network
    assert again is middle
    assert method.classifier is end
    counts = np.bincount(all_first.labels, minlength=K)
    assert np.bincount(first.labels, minlength=K).tolist() == [max(n // 2, 1) if n else 0 for n in counts]
    for k in np.unique(first.labels):
        left_out = np.sort(all_first.confidence[all_first.labels == k])[: counts[k] - (first.labels == k).sum()]
        assert first.confidence[first.labels == k].min() >= left_out.max()
    assert np.array_equal(rows.values, TARGET.values), "the last round trusts all"
    assert np.array_equal(second.labels, all_second.labels)
    assert list(method.adapt_history) == ["round 1", "round 2"]
    assert np.array_equal(method.label_record["initial"].labels, all_first.labels)
    assert np.array_equal(method.label_record["final"].labels, method._label_with(end, TARGET).labels)
    assert method.settings.adaptation().top_ratio == 1


def test_wrong_settings_are_refused():
    with refusal("rounds", "1 or more"):
        NCPSettings(rounds=0)
    with refusal("centred"):
        NCPSettings(centred="yes")
    with refusal("relabel", "Rounds label anew"):
        NCPSettings(rounds=2, relabel="each epoch")
