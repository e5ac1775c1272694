from __future__ import annotations

import copy
import logging
import math

import numpy as np
import pytest
import torch
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from tiny_source import CPU, SHORT, TARGET, K, source_model, waves
from torch.nn import functional as F

from transpl.methods import source_model as source_model_module
from transpl.methods.pseudo_labelling import MethodAsTeacher
from transpl.methods.shot import SHOT, SHOTObjective, SHOTSettings, shot_labels
from transpl.nn.inference import class_probabilities, head_outputs
from transpl.nn.rows import window_rows

WEIGHTS = {"entropy": 1.0, "diversity": 1.0, "label": 0.3}


@pytest.fixture(scope="module")
def source():
    return source_model()


def shot(source, **changes) -> SHOT:
    method = SHOT(SHOTSettings(**{**SHORT, "adapt_epochs": 3, "adapt_lr": 2e-3, **changes}), CPU)
    method.start_from(source)
    return method


def objective_of(method: SHOT, labels: torch.Tensor, weights: dict | None = None) -> SHOTObjective:
    network = copy.deepcopy(method.source.network)
    teacher = MethodAsTeacher(method, TARGET)
    return SHOTObjective(network, weights or WEIGHTS, teacher, labels, freeze_head=method.settings.freeze_head)


def batch_of(rows: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"x": window_rows(TARGET)["x"][rows], "row": rows}


def frozen_and_moved(before: torch.nn.Module, after: torch.nn.Module) -> tuple[set[str], set[str]]:
    old, new = before.state_dict(), after.state_dict()
    frozen = {name for name in old if torch.equal(old[name], new[name])}
    return frozen, set(old) - frozen


def test_published_values():
    settings = SHOTSettings()
    assert settings.weights() == WEIGHTS
    loop = settings.adapt_loop()
    assert (loop.max_epochs, loop.keep) == (15, "last")


def test_loss_is_information_maximisation_and_weighed_cross_entropy(source):
    labels = torch.arange(len(TARGET)) % K
    objective = objective_of(shot(source), labels).eval()
    rows = torch.tensor([19, 3, 5, 7, 0, 1, 2, 8, 11])
    losses, logits = objective(batch_of(rows)), objective.network.classify(batch_of(rows)["x"])
    p, label = logits.softmax(dim=-1).detach().numpy(), F.cross_entropy(logits, labels[rows]).item()
    certain, diverse = entropy(p, axis=1).mean(), entropy(p.mean(axis=0))
    assert losses["label"].item() == pytest.approx(label, abs=1e-6)
    # The logs are of p + 1e-5.
    assert losses["entropy"].item() == pytest.approx(certain, abs=1e-4)
    assert losses["diversity"].item() == pytest.approx(diverse, abs=1e-4)
    assert losses["loss"].item() == pytest.approx(certain - diverse + 0.3 * label, abs=2e-4)


@pytest.mark.parametrize("weights", [(2.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 2.0)])
def test_each_weight_belongs_to_its_term(source, weights):
    labels = torch.arange(len(TARGET)) % K
    objective = objective_of(shot(source), labels, dict(zip(SHOTObjective.terms, weights, strict=True))).eval()
    losses = objective(batch_of(torch.arange(8)))
    entropy, diversity, label = (2 * losses[term].item() for term in SHOTObjective.terms)
    expected = {0: entropy, 1: -diversity, 2: label}[weights.index(2.0)]
    assert losses["loss"].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("n", "counted"), [(1, False), (7, False), (8, True)])
def test_few_rows_say_nothing_about_diversity(source, n, counted):
    objective = objective_of(shot(source), torch.zeros(len(TARGET), dtype=torch.int64)).eval()
    losses = objective(batch_of(torch.arange(n)))
    assert (losses["diversity"].item() > 0) == counted
    rest = losses["entropy"] + 0.3 * losses["label"]
    assert losses["loss"].item() == pytest.approx((rest - losses["diversity"]).item(), abs=1e-6)


@pytest.mark.parametrize("freeze_head", [False, True])
def test_the_hypothesis_stays_bit_by_bit_and_the_features_move(source, freeze_head):
    method = shot(source, freeze_head=freeze_head, source_guard=False)
    method.adapt(TARGET)
    frozen, moved = frozen_and_moved(source.network, method.classifier)
    assert {"head.2.weight", "head.2.bias"} <= frozen
    assert ({"head.0.weight", "head.0.bias"} <= frozen) == freeze_head
    assert {name for name in frozen if name.startswith(("encoder.", "embed."))} == set()
    assert not any(name.startswith(("quantizer.", "decoder.", "to_patch.")) for name in moved)
    assert all(parameter.requires_grad for parameter in method.classifier.parameters()), "nothing is left frozen"


@pytest.mark.parametrize("confidence", ["distance", "entropy"])
@pytest.mark.parametrize("freeze_head", [False, True])
def test_labels_are_those_of_the_rule(source, freeze_head, confidence):
    seen = head_outputs(source.network, TARGET)
    expected = shot_labels(seen.z if freeze_head else seen.hidden, seen.probabilities, confidence)
    found = shot(source, freeze_head=freeze_head, confidence=confidence).pseudo_label(TARGET)
    for values, wanted in zip(found, expected, strict=True):
        assert np.array_equal(values, wanted)


def test_labels_are_renewed_before_an_epoch_without_dropout_and_by_row(source):
    method = shot(source)
    before = method.pseudo_label(TARGET).labels
    objective = objective_of(method, torch.from_numpy(before)).train()
    last = objective.network.head[-1]
    with torch.no_grad():
        last.weight.copy_(last.weight.flip(0))
        last.bias.copy_(last.bias.flip(0))
    objective.start_epoch(4)
    assert objective.training
    assert len(set(before.tolist())) > 1
    assert objective.labels.tolist() == (K - 1 - before).tolist()


def test_both_ends_of_the_labels_are_recorded(source):
    method = shot(source)
    method.adapt(TARGET)
    assert np.array_equal(method.label_record["initial"].labels, method.pseudo_label(TARGET).labels)
    final = method.label(method.classifier, TARGET)
    assert np.array_equal(method.label_record["final"].probabilities, final.probabilities)


def test_training_has_a_fixed_length_and_keeps_the_last_weights(source, monkeypatch):
    """However validation goes."""
    monkeypatch.setattr(SHOTObjective, "risk", _rising())
    method = shot(source, adapt_epochs=3, adapt_patience=1, source_guard=False)
    method.adapt(TARGET)
    history = method.adapt_history["adapt"]
    assert [record["epoch"] for record in history] == [0, 1, 2]
    short = shot(source, adapt_epochs=2, source_guard=False)
    short.adapt(TARGET)
    assert not np.array_equal(short.predict_proba(TARGET), method.predict_proba(TARGET))


def _rising():
    values = iter(range(1000))
    return lambda self, batch: torch.tensor(float(next(values)))


def test_adaptation_needs_no_source_rows(source):
    expected = shot(source)
    expected.adapt(TARGET)
    other = copy.copy(source)
    other.source = waves(6, 77, gain=-9.0)
    method = shot(other)
    method.adapt(TARGET)
    assert np.array_equal(method.predict_proba(TARGET), expected.predict_proba(TARGET))


@pytest.mark.parametrize(
    ("cross_entropy", "guard", "stays"),
    [(math.log(K) + 0.01, True, True), (math.log(K) - 0.01, True, False), (math.log(K) + 0.01, False, False)],
)
def test_a_model_worse_than_guessing_on_the_source_is_not_kept(
    source, monkeypatch, caplog, cross_entropy, guard, stays
):
    caplog.set_level(logging.INFO, logger="transpl.methods.shot")
    monkeypatch.setattr(SHOTObjective, "risk", lambda self, batch: torch.tensor(cross_entropy))
    method = shot(source, source_guard=guard)
    method.adapt(TARGET)
    assert np.array_equal(method.predict_proba(TARGET), class_probabilities(source.network, TARGET)) == stays
    assert len(caplog.messages) == stays
    assert method.adapt_history["adapt"], "what happened is on record either way"
    if guard:
        told = method.details["source_guard"]
        assert told["held_back"] is stays
        assert (told["cross_entropy"], told["bound"]) == pytest.approx((cross_entropy, math.log(K)))
    else:
        assert method.details == {}
    method.start_from(source)
    assert method.details == {}


@pytest.mark.parametrize(("worse_by", "stays"), [(0.1, True), (-0.1, False)])
def test_a_source_model_that_is_worse_than_guessing_itself_sets_the_bound(source, monkeypatch, worse_by, stays):
    misled = copy.deepcopy(source)
    with torch.no_grad():
        misled.network.head[-1].weight.mul_(-3)
    y = misled.validation.y
    p = class_probabilities(misled.network, misled.validation.windows)
    before = -np.log(p[np.arange(len(y)), y]).mean()
    assert before > math.log(K) + 0.1
    monkeypatch.setattr(SHOTObjective, "risk", lambda self, batch: torch.tensor(before + worse_by))
    method = shot(misled)
    method.adapt(TARGET)
    assert np.array_equal(method.predict_proba(TARGET), class_probabilities(misled.network, TARGET)) == stays


def test_without_weights_the_source_network_stays(source):
    method = shot(source, entropy_weight=0.0, diversity_weight=0.0, label_weight=0.0)
    method.adapt(TARGET)
    assert method.classifier is source.network
    assert np.array_equal(method.label_record["initial"].labels, method.label_record["final"].labels)


def test_with_source_labels_are_learnt_as_by_the_other_methods(source):
    method = shot(source, with_source=True)
    method.adapt(TARGET)
    history = method.adapt_history["adapt"]
    assert {"source_cross_entropy", "target_cross_entropy", "code"} <= set(history[0])
    _, moved = frozen_and_moved(source.network, method.classifier)
    assert "head.2.weight" in moved
    assert set(method.label_record) == {"initial", "final"}
    assert method.settings.adapt_loop().keep == "best"


def test_label_smoothing_takes_a_source_model_of_its_own_and_trains_no_other(source, monkeypatch):
    assert shot(source).source is source
    losses = []
    train = source_model_module.train_network
    monkeypatch.setattr(
        source_model_module,
        "train_network",
        lambda *arguments, **named: losses.append(named["loss"].label_smoothing) or train(*arguments, **named),
    )
    method = SHOT(SHOTSettings(**SHORT, label_smoothing=0.1), CPU)
    method.fit_source(source.source, source.validation)
    assert losses == [0.1]
    assert not np.array_equal(method.predict_proba(TARGET), class_probabilities(source.network, TARGET))


def test_every_setting_of_the_loss_is_named_in_its_identity(source):
    labels = torch.zeros(len(TARGET), dtype=torch.int64)
    changes = [{}, {"freeze_head": True}, {"relabel": "never"}]
    names = {objective_of(shot(source, **change), labels).identity() for change in changes}
    names.add(objective_of(shot(source), labels, {**WEIGHTS, "label": 0.1}).identity())
    assert len(names) == 4


def test_wrong_settings_are_refused():
    for name in ("entropy_weight", "diversity_weight", "label_weight"):
        with refusal(name, "0 or more"):
            SHOTSettings(**{name: -0.1})
    with refusal("adapt_epochs", "1 or more"):
        SHOTSettings(adapt_epochs=0)
    with refusal("label_smoothing"):
        SHOTSettings(label_smoothing=1.0)
    with refusal("confidence", "entropy"):
        SHOTSettings(confidence="max")
    for name in ("freeze_head", "source_guard", "with_source"):
        with refusal(name):
            SHOTSettings(**{name: "yes"})


MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def random_case(seed, n=30, K=4, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.dirichlet(np.ones(K), size=n), rng


def cosine_distance(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return 1 - dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def weighted_mean(rows, weights):
    total = sum(weights) + 1e-8
    return [sum(w * x for w, x in zip(weights, column, strict=True)) / total for column in zip(*rows, strict=True)]


def shot_by_loops(g, p):
    """Labels, and distances to the final centroid of every class that has one."""
    rows = []
    for row in g.tolist():
        extended = [*row, 1.0]
        length = math.sqrt(sum(x * x for x in extended))
        rows.append([x / length for x in extended])
    tables = p.tolist()
    classes = {row.index(max(row)) for row in tables}
    centroids = {k: weighted_mean(rows, [row[k] for row in tables]) for k in classes}
    for _ in range(2):
        distances = [{k: cosine_distance(row, c) for k, c in centroids.items()} for row in rows]
        labels = [min(d, key=d.get) for d in distances]
        centroids = {k: weighted_mean(rows, [float(y == k) for y in labels]) for k in sorted(set(labels))}
    return labels, distances


@MODEST
@given(SEEDS)
def test_labels_and_probabilities_are_those_of_plain_loops(seed):
    g, p, _ = random_case(seed)
    labels, distances = shot_by_loops(g, p)
    pseudo = shot_labels(g, p)
    np.testing.assert_array_equal(pseudo.labels, labels)
    for q, confidence, row in zip(pseudo.probabilities, pseudo.confidence, distances, strict=True):
        weights = {k: math.exp(-d / 0.1) for k, d in row.items()}
        expected = [weights.get(k, 0.0) / sum(weights.values()) for k in range(4)]
        np.testing.assert_allclose(q, expected, rtol=1e-6)
        assert confidence == pytest.approx(max(expected), rel=1e-6)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_get_the_same_rows(seed):
    g, p, rng = random_case(seed)
    name = rng.permutation(4)
    renamed = np.empty_like(p)
    renamed[:, name] = p
    plain, other = shot_labels(g, p), shot_labels(g, renamed)
    np.testing.assert_array_equal(other.labels, name[plain.labels])
    np.testing.assert_allclose(other.probabilities[:, name], plain.probabilities, rtol=1e-7)


@MODEST
@given(SEEDS)
def test_a_class_that_nobody_predicts_never_appears(seed):
    g, p, _ = random_case(seed)
    p = np.insert(p, 2, p.max(axis=1) - 1e-3, axis=1)  # a close second in every row
    p /= p.sum(axis=1, keepdims=True)
    pseudo = shot_labels(g, p)
    assert 2 not in pseudo.labels
    np.testing.assert_array_equal(pseudo.probabilities[:, 2], 0)
    np.testing.assert_allclose(pseudo.probabilities.sum(axis=1), 1, rtol=1e-12)


def test_tight_confident_clusters_keep_the_label_of_the_head():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    g = 4 * np.eye(3)[y] + 0.05 * rng.normal(size=(60, 3))
    p = 0.94 * np.eye(3)[y] + 0.02
    np.testing.assert_array_equal(shot_labels(g, p).labels, p.argmax(axis=1))


def test_a_cluster_outvotes_the_rows_that_the_head_gets_wrong():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    g = 4 * np.eye(3)[y] + 0.05 * rng.normal(size=(60, 3))
    head = np.where(np.arange(60) < 12, (y + 1) % 3, y)
    np.testing.assert_array_equal(shot_labels(g, 0.7 * np.eye(3)[head] + 0.1).labels, y)


def test_a_class_that_loses_its_rows_in_the_first_round_is_gone_in_the_second():
    # Class 1 lies between two directions: it is predicted twice, but no row is nearest to it.
    g = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    p = np.array([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.1, 0.5, 0.4], [0.4, 0.5, 0.1]])
    pseudo = shot_labels(g, p)
    np.testing.assert_array_equal(pseudo.labels, [0, 2, 0, 2])
    np.testing.assert_array_equal(pseudo.probabilities[:, 1], 0)


def test_the_appended_one_lets_length_count():
    # Same direction, different length: without the 1 these rows would be one point.
    g = np.array([[0.1], [0.2], [10.0], [11.0]])
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    np.testing.assert_array_equal(shot_labels(g, p).labels, [0, 0, 1, 1])


def test_confidence_by_entropy_is_that_of_the_head():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    confidence = shot_labels(np.eye(3), p, confidence="entropy").confidence
    expected = 1 + (0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    np.testing.assert_allclose(confidence, [1, 0, expected], atol=1e-15)


@pytest.mark.parametrize("confidence", ["distance", "entropy"])
def test_one_row_one_class_and_no_direction(confidence):
    one_class = shot_labels(np.zeros((3, 2)), np.ones((3, 1)), confidence)
    assert (one_class.labels.tolist(), one_class.confidence.tolist()) == ([0, 0, 0], [1.0, 1.0, 1.0])
    assert shot_labels([[0.0, 0.0]], [[0.3, 0.7]], confidence).labels.tolist() == [1]


def test_input_that_cannot_be_used_is_refused():
    with refusal("probabilities", r"shape \(2, K\)"):
        shot_labels(np.eye(2), np.eye(3))
