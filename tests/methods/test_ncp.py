from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_source import CPU, SHORT, TARGET, K, source_model

from transpl.methods.ncp import (
    NCP,
    NCPSettings,
    Prototypes,
    class_prototypes,
    most_confident_per_class,
    pooled_mean,
    prototype_probabilities,
    round_share,
)
from transpl.methods.pseudo_labelling import unit_rows
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
    with refusal("relabel", "rounds above 1"):
        NCPSettings(rounds=2, relabel="each epoch")


MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def random_case(seed, K=4, d=5, n_s=24, n_t=15):
    """Source features with every class, and target features."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_s) % K)
    return rng.normal(size=(n_s, d)), y, rng.normal(size=(n_t, d)), rng


def probabilities_by_loops(z_s, y, z_t, K, mean):
    def unit(v):
        length = math.sqrt(sum(x * x for x in v))
        return [x / length for x in v] if length else list(v)

    def minus_mean(v):
        return [x - m for x, m in zip(v, mean, strict=True)]

    mu = {}
    for k in range(K):
        members = [unit(minus_mean(v)) for v, label in zip(z_s.tolist(), y.tolist(), strict=True) if label == k]
        if members:
            mu[k] = unit([sum(column) / len(members) for column in zip(*members, strict=True)])
    result = np.zeros((len(z_t), K))
    for i, v in enumerate(z_t.tolist()):
        weights = {k: math.exp(-math.dist(unit(minus_mean(v)), m)) for k, m in mu.items()}
        for k, weight in weights.items():
            result[i, k] = weight / sum(weights.values())
    return result


def test_two_axes_and_one_row_are_as_in_the_specification():
    prototypes = class_prototypes([[1.0, 0.0], [0.0, 1.0]], [0, 1], 2)
    p = prototype_probabilities([[0.6, 0.8]], prototypes)
    np.testing.assert_allclose(p, [[0.434879, 0.565121]], atol=5e-7)


@pytest.mark.parametrize("centred", [False, True])
def test_probabilities_are_those_of_plain_loops(centred):
    z_s, y, z_t, _ = random_case(0)
    y[y == 2] = 0  # class 2 is absent
    mean = pooled_mean(z_s, z_t) if centred else None
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, mean))
    expected = probabilities_by_loops(z_s, y, z_t, 4, np.zeros(5) if mean is None else mean)
    np.testing.assert_allclose(p, expected, rtol=1e-12)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_get_the_same_probabilities(seed):
    z_s, y, z_t, rng = random_case(seed)
    name = rng.permutation(4)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4))
    renamed = prototype_probabilities(z_t, class_prototypes(z_s, name[y], 4))
    np.testing.assert_allclose(renamed[:, name], p, rtol=1e-10)


@MODEST
@given(SEEDS, st.floats(1e-6, 1e6))
def test_the_unit_of_features_does_not_matter(seed, scale):
    z_s, y, z_t, _ = random_case(seed)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, pooled_mean(z_s, z_t)))
    scaled = class_prototypes(scale * z_s, y, 4, pooled_mean(scale * z_s, scale * z_t))
    np.testing.assert_allclose(prototype_probabilities(scale * z_t, scaled), p, rtol=1e-9)


@MODEST
@given(SEEDS)
def test_centring_takes_away_what_both_domains_have_in_common(seed):
    z_s, y, z_t, rng = random_case(seed)
    offset = rng.normal(size=5)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, pooled_mean(z_s, z_t)))
    moved = class_prototypes(z_s + offset, y, 4, pooled_mean(z_s + offset, z_t + offset))
    np.testing.assert_allclose(prototype_probabilities(z_t + offset, moved), p, rtol=1e-8)


def test_rows_of_well_separated_classes_get_their_own():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    z = 5 * np.eye(4)[y] + 0.1 * rng.normal(size=(60, 4))
    p = prototype_probabilities(z, class_prototypes(z, y, 4, z.mean(axis=0)))
    np.testing.assert_array_equal(p.argmax(axis=1), y)


def test_a_class_absent_from_the_source_is_infinitely_far():
    z_s, y, z_t, _ = random_case(1)
    prototypes = class_prototypes(z_s, np.where(y == 3, 0, y), 5)
    assert prototypes.present.tolist() == [True, True, True, False, False]
    assert np.isfinite(prototypes.mu).all()
    p = prototype_probabilities(z_t, prototypes)
    np.testing.assert_array_equal(p[:, 3:], 0)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def test_prototypes_are_unit_vectors_and_float32_will_do():
    z_s, y, z_t, _ = random_case(2)
    prototypes = class_prototypes(z_s.astype(np.float32), y, 4)
    assert isinstance(prototypes, Prototypes)
    np.testing.assert_allclose(np.linalg.norm(prototypes.mu, axis=1), 1, rtol=1e-12)
    assert prototype_probabilities(z_t.astype(np.float32), prototypes).dtype == np.float64


def test_rows_without_a_direction_are_nobodys_and_not_nan():
    np.testing.assert_array_equal(unit_rows([[0.0, 0.0], [3.0, 4.0]]), [[0, 0], [0.6, 0.8]])
    np.testing.assert_array_equal(unit_rows([[1.0, 2.0]], mean=[1.0, 2.0]), [[0, 0]])
    opposite = class_prototypes([[1.0, 0.0], [-1.0, 0.0]], [0, 0], 2)
    assert opposite.present.tolist() == [True, False]
    np.testing.assert_array_equal(prototype_probabilities([[0.0, 0.0], [0.0, 1.0]], opposite), [[1, 0], [1, 0]])


def test_one_row_and_one_class():
    np.testing.assert_array_equal(prototype_probabilities([[2.0]], class_prototypes([[1.0]], [0], 1)), [[1.0]])


def test_input_that_cannot_be_used_is_refused():
    with refusal("features", "shape"):
        unit_rows(np.zeros((0, 3)))
    with refusal("features", "finite"):
        unit_rows([[np.nan, 1.0]])


LABELS = np.array([0, 0, 0, 0, 2, 2, 5])
CONFIDENCE = np.array([0.1, 0.9, 0.5, 0.7, 0.3, 0.2, 0.0])


@pytest.mark.parametrize(
    ("share", "rows"),
    [(0.0, []), (0.01, [1, 4, 6]), (0.5, [1, 3, 4, 6]), (0.75, [1, 2, 3, 4, 6]), (1.0, [0, 1, 2, 3, 4, 5, 6])],
)
def test_each_predicted_class_gives_its_share_and_at_least_one(share, rows):
    assert np.flatnonzero(most_confident_per_class(LABELS, CONFIDENCE, share)).tolist() == rows


def test_a_share_is_what_it_says():
    assert most_confident_per_class(np.zeros(90, int), np.arange(90.0), 0.7).sum() == 63


def test_selections_of_growing_shares_contain_each_other():
    rng = np.random.default_rng(0)
    labels, confidence = rng.integers(0, 6, 200), rng.random(200).round(1)  # with ties
    chosen = [most_confident_per_class(labels, confidence, round_share(i, 11)) for i in range(11)]
    assert not chosen[0].any()
    assert chosen[-1].all()
    assert all((a <= b).all() for a, b in itertools.pairwise(chosen))


def test_of_equal_confidence_the_first_rows_are_taken():
    assert most_confident_per_class([1, 1, 1, 1], [0.5] * 4, 0.5).tolist() == [True, True, False, False]


def test_no_rows_are_no_matter():
    assert most_confident_per_class(np.zeros(0, int), [], 0.5).tolist() == []


def test_shares_of_rounds_go_from_nothing_to_all():
    assert [round_share(i, 5) for i in range(6)] == [0, 0.25, 0.5, 0.75, 1, 1]
    assert round_share(0, 1) == 1.0
