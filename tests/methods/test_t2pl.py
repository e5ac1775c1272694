from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier
from tiny_source import CPU, SHORT, TARGET, source_model

from transpl.methods.pseudo_labelling import Centroids
from transpl.methods.t2pl import (
    T2PL,
    TIE_BREAK,
    T2PLSettings,
    fitting_set,
    fitting_size,
    nearest,
    neighbour_votes,
    neighbours,
    t2pl_labels,
    trusted_rows,
)
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


MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def random_case(seed, n=48, K=3, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.dirichlet(np.ones(K), size=n), rng


def separated(seed, K=4, per_class=50, right=0.7):
    """Clusters around the axes; the head is right in this share of the rows of each, and equally sure of all."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(K), per_class)
    wrong = np.tile(np.arange(per_class) >= right * per_class, K)
    head = (y + wrong * rng.integers(1, K, len(y))) % K
    p = 0.6 * np.eye(K)[head] + 0.4 * rng.dirichlet(np.ones(K), len(y))
    order = rng.permutation(len(y))
    return (np.eye(K)[y] + 0.03 * rng.normal(size=(len(y), K)))[order], p[order], y[order]


def unit(v):
    length = math.sqrt(sum(x * x for x in v))
    return [x / length for x in v]


def cosine_distance(a, b):
    return 1 - sum(x * y for x, y in zip(unit(a), unit(b), strict=True))


def total(rows, weights):
    return [sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*rows, strict=True)]


def t2pl_by_loops(g, p, alpha, beta):
    """Votes of every row, a dictionary each. Sums serve as centroids: only their direction counts."""
    rows, tables = [unit(row) for row in g.tolist()], p.tolist()
    n, K = p.shape
    n_fit, k_nn = max(n // (K * beta), 1), max(n // (K * alpha), 1)
    trusted = []
    for k in range(K):
        trusted += sorted(range(n), key=lambda i: -tables[i][k])[:n_fit]
    near = [rows[i] for i in trusted]
    classes = sorted({row.index(max(row)) for row in tables})
    centroids = {k: total(near, [tables[i][k] for i in trusted]) for k in classes}
    hard = [min(classes, key=lambda k: cosine_distance(row, centroids[k])) for row in near]
    centroids = {k: total(near, [float(y == k) for y in hard]) for k in sorted(set(hard))}
    fitting = []
    for k, c in centroids.items():
        nearest = sorted(range(n), key=lambda i: cosine_distance(rows[i], c))[:n_fit]
        fitting += [(i, k, cosine_distance(rows[i], c)) for i in nearest]
    votes = []
    for row in rows:
        voters = sorted(fitting, key=lambda entry: (math.dist(row, rows[entry[0]]), entry[2]))[:k_nn]
        votes.append({k: sum(voter[1] == k for voter in voters) for k in range(K)})
    return votes, k_nn


@MODEST
@given(SEEDS, st.sampled_from([(20, 2), (4, 2), (2, 1), (3, 3)]))
def test_labels_confidence_and_probabilities_are_those_of_plain_loops(seed, sizes):
    g, p, _ = random_case(seed)
    votes, k_nn = t2pl_by_loops(g, p, *sizes)
    pseudo = t2pl_labels(g, p, *sizes)
    for i, count in enumerate(votes):
        label = max(range(3), key=lambda k: (count[k], p[i, k]))
        assert pseudo.labels[i] == label
        assert pseudo.confidence[i] == pytest.approx((count[label] + 0.01 * p[i].max()) / (k_nn + 0.01), rel=1e-12)
        expected = [(count[k] + 0.01 * p[i, k]) / (k_nn + 0.01) for k in range(3)]
        np.testing.assert_allclose(pseudo.probabilities[i], expected, rtol=1e-12)


def test_the_integers_are_those_of_the_specification():
    assert (fitting_size(220, 6), neighbours(220, 6)) == (18, 1)
    assert (fitting_size(1000, 10), neighbours(1000, 10)) == (50, 5)
    assert (fitting_size(1000, 10, beta=1), neighbours(1000, 10, alpha=10)) == (100, 10)
    assert (fitting_size(1, 6), neighbours(1, 6)) == (1, 1)


@pytest.mark.parametrize("alpha", [2, 5, 20, 1000])  # 2 = beta: no more neighbours than a class has in the set
def test_separated_clusters_are_labelled_without_a_mistake_by_a_head_that_is_right_in_70_percent(alpha):
    for seed in range(5):
        g, p, y = separated(seed)
        assert (p.argmax(axis=1) == y).mean() == pytest.approx(0.7, abs=0.03)
        np.testing.assert_array_equal(t2pl_labels(g, p, alpha=alpha).labels, y)


@MODEST
@given(SEEDS)
def test_a_class_absent_from_the_heads_predictions_is_never_given(seed):
    g, p, _ = random_case(seed)
    p = np.insert(p, 1, p.max(axis=1) - 1e-3, axis=1)  # a close second in every row
    p /= p.sum(axis=1, keepdims=True)
    pseudo = t2pl_labels(g, p, alpha=2)
    assert 1 not in pseudo.labels
    np.testing.assert_array_equal(pseudo.probabilities.argmax(axis=1), pseudo.labels)
    np.testing.assert_allclose(pseudo.probabilities.sum(axis=1), 1, rtol=1e-12)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_and_rows_in_another_order_get_the_same_labels(seed):
    g, p, rng = random_case(seed)
    name, order = rng.permutation(3), rng.permutation(len(g))
    renamed = np.empty_like(p)
    renamed[:, name] = p
    plain, other = t2pl_labels(g, p, alpha=3), t2pl_labels(g[order], renamed[order], alpha=3)
    np.testing.assert_array_equal(other.labels, name[plain.labels[order]])
    np.testing.assert_allclose(other.confidence, plain.confidence[order], rtol=1e-12)


def test_one_neighbour_and_tight_clusters_give_the_nearest_centroid():
    g, p, y = separated(0, right=0.9)
    unit_rows = g / np.linalg.norm(g, axis=1, keepdims=True)
    centroids = np.stack([unit_rows[y == k].mean(axis=0) for k in range(4)])
    nearest = np.linalg.norm(unit_rows[:, None] - centroids, axis=2).argmin(axis=1)
    assert neighbours(len(g), 4, alpha=50) == 1
    np.testing.assert_array_equal(t2pl_labels(g, p, alpha=50).labels, nearest)


def test_the_same_input_gives_the_same_bits_even_with_ties_everywhere():
    g, p = np.ones((20, 2)), np.full((20, 4), 0.25)
    first, second = t2pl_labels(g, p), t2pl_labels(g, p)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert set(first.labels) == {0}


def test_confidence_ranks_by_share_and_then_by_the_head():
    g, p, _ = random_case(0, n=200)
    pseudo = t2pl_labels(g, p, alpha=5)
    k_nn = neighbours(200, 3, 5)
    shares = np.round(pseudo.confidence * (k_nn + TIE_BREAK) - TIE_BREAK / 2) / k_nn
    ranked = np.argsort(-pseudo.confidence.astype(np.float32), kind="stable")  # as the network's batches hold it
    by_rule = np.lexsort((-p.max(axis=1), -shares))
    np.testing.assert_array_equal(ranked, by_rule)
    assert len(np.unique(shares)) > 2
    assert pseudo.confidence.max() <= 1


def test_a_row_wanted_by_two_classes_votes_first_for_the_nearer_centroid():
    angles = np.radians([0, 30, 90])
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centroids = Centroids(np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), np.array([True, False, True]))
    rows, labels = fitting_set(u, centroids, 2)
    assert list(zip(rows.tolist(), labels.tolist(), strict=True)) == [(2, 0), (0, 2), (1, 2), (1, 0)]
    np.testing.assert_array_equal(neighbour_votes(u, u[rows], labels, 1, 3).argmax(axis=1), [2, 2, 0])


def test_trusted_rows_may_repeat():
    p = np.array([[0.4, 0.35, 0.25], [0.2, 0.3, 0.5], [0.34, 0.33, 0.33]])
    assert trusted_rows(p, 2).tolist() == [0, 2, 0, 2, 1, 2]


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_rows_than_classes(n):
    g, p, _ = random_case(3, n=n, K=5)
    pseudo = t2pl_labels(g, p)
    assert set(pseudo.labels) <= set(p.argmax(axis=1))
    assert np.isfinite(pseudo.confidence).all()


def test_a_single_class_and_rows_without_a_direction():
    assert t2pl_labels(np.eye(3), np.ones((3, 1))).labels.tolist() == [0, 0, 0]
    assert np.isfinite(t2pl_labels(np.zeros((6, 2)), np.full((6, 2), 0.5)).probabilities).all()


def test_input_that_cannot_be_used_is_refused():
    g, p, _ = random_case(0)
    with refusal("probabilities"):
        t2pl_labels(g, p[1:])


@pytest.mark.parametrize("k", [1, 4, 25])
@pytest.mark.parametrize("at_once", [1, 60, 1 << 21])
def test_votes_are_those_of_scikit_learn_however_many_rows_at_once(monkeypatch, k, at_once):
    monkeypatch.setattr("transpl.methods.t2pl._DISTANCES_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    u, fitting, labels = rng.normal(size=(40, 3)), rng.normal(size=(25, 3)), np.arange(25) % 3
    shares = KNeighborsClassifier(k).fit(fitting, labels).predict_proba(u)
    np.testing.assert_allclose(neighbour_votes(u, fitting, labels, k, 3), k * shares, rtol=1e-12)


def test_of_equally_near_rows_the_earlier_ones_vote():
    distances = np.array([[1.0, 0.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert nearest(distances, 2).astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]
    assert nearest(distances, 4).all()
    twice = neighbour_votes(np.zeros((1, 2)), np.zeros((2, 2)), np.array([2, 0]), 1, 3)
    np.testing.assert_array_equal(twice, [[0, 0, 1]])
