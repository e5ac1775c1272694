from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal
from torch import nn
from torch.nn import functional as F

from transpl.methods import Labelled, SourceModel
from transpl.methods.att import (
    ATT,
    ATTSettings,
    TriNetwork,
    TriTrainingObjective,
    agreed,
    candidates,
    tri_training_labels,
)
from transpl.nn import Execution, loop
from transpl.nn.inference import class_probabilities
from transpl.nn.losses import weight_overlap
from transpl.nn.objectives import join_domains
from transpl.nn.rows import labelled_rows, take
from transpl.windows import as_windows

CPU = Execution(device="cpu")
SETTINGS = ATTSettings(
    **{name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")},
    max_epochs=24,
    dropout=0.0,
    check_every=1,
    batch_size=8,
    source_lr=2e-3,
    adapt_lr=2e-3,
    warmup_steps=0,
    pretrain_epochs=2,
    rounds=2,
    round_epochs=2,
    threshold=0.5,
)


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 2)


TARGET = labelled(15, 2, gain=1.5, offset=0.3)


@pytest.fixture(scope="module")
def source() -> SourceModel:
    return SourceModel(labelled(24, 0), labelled(12, 1), SETTINGS.source(), CPU)


def adapted(source: SourceModel, execution: Execution = CPU, **changes: object) -> ATT:
    method = ATT(replace(SETTINGS, **changes), execution)
    method.start_from(source)
    method.adapt(TARGET.windows)
    return method


@pytest.fixture(scope="module")
def method(source) -> ATT:
    return adapted(source)


@pytest.fixture
def objective(source) -> TriTrainingObjective:
    """In a round: the target rows 1, 4 and 5 are in T_l."""
    made = ATT(SETTINGS, CPU)
    made.start_from(source)
    objective = made._objective(TARGET.windows).train()
    objective.chosen[[1, 4, 5]] = True
    objective.labels[[1, 4, 5]] = torch.tensor([1, 0, 1])
    return objective


def batch_of(source: SourceModel, *, of_source: list[int], of_target: list[int]) -> dict[str, torch.Tensor]:
    n = len(source.source.y)
    target = {"x": torch.from_numpy(TARGET.windows.values), "y": torch.zeros(15, dtype=torch.int64)}
    rows = join_domains(labelled_rows(source.source), target | {"confidence": torch.zeros(15)})
    return take(rows, torch.tensor(of_source + [n + row for row in of_target]))


def test_rounds_come_after_the_epochs_on_the_source():
    settings = ATTSettings(pretrain_epochs=2, rounds=3, round_epochs=2)
    assert settings.adapt_loop().max_epochs == 8
    assert [settings.round_starting(epoch) for epoch in range(8)] == [None, None, 0, None, 1, None, 2, None]
    assert ATTSettings().adapt_loop().max_epochs == 105


def test_candidates_grow_to_all_rows_and_follow_from_seed_and_round():
    drawn = [candidates(41, k, 20, seed=3) for k in range(20)]
    sizes = [int(chosen.sum()) for chosen in drawn]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[9], sizes[19]) == (2, 20, 41)
    assert np.array_equal(candidates(41, 4, 20, seed=3), drawn[4])
    assert not np.array_equal(candidates(41, 4, 20, seed=4), drawn[4])
    assert not (drawn[4] <= drawn[5]).all(), "drawn anew"
    assert candidates(1, 0, 20, seed=0).tolist() == [True]


def test_heads_start_apart_and_the_predictor_as_the_source_model(source, objective):
    heads = objective.model
    assert not torch.equal(heads.first[0].weight, heads.second[0].weight)
    assert [p.shape for p in heads.first.parameters()] == [p.shape for p in source.network.head.parameters()]
    expected = class_probabilities(source.network, TARGET.windows)
    assert np.array_equal(class_probabilities(heads, TARGET.windows), expected)


def test_heads_are_apart_after_training(method):
    heads = method.classifier
    p1, p2 = heads.head_probabilities(TARGET.windows)
    assert not np.allclose(p1, p2, atol=1e-4)
    one, two = (head[0].weight.detach().flatten() for head in (heads.first, heads.second))
    assert abs(float(F.cosine_similarity(one, two, dim=0))) < 0.5


def test_losses_by_hand(source, objective):
    """Source rows 0 and 3; of target rows 1, 2 and 4 the second is not in T_l."""
    objective.settings = replace(objective.settings, target_weight=0.5, overlap_weight=0.1)
    batch = batch_of(source, of_source=[0, 3], of_target=[1, 2, 4])
    losses = objective(batch)
    heads = objective.model
    z = heads.network.features(batch["x"][[0, 1, 2, 4]])
    y = torch.tensor([source.source.y[0], source.source.y[3], 1, 0])
    one, two, predicted = (
        F.cross_entropy(head(z), y, reduction="none") for head in (heads.first, heads.second, heads.network.head)
    )
    labelling = ((one + two) * torch.tensor([1, 1, 0.5, 0.5])).sum() / 4
    common = weight_overlap(heads.first[0].weight, heads.second[0].weight)
    assert torch.allclose(losses["labelling_cross_entropy"], labelling)
    assert torch.allclose(losses["overlap"], common)
    assert torch.allclose(losses["predictor_cross_entropy"], predicted[2:].mean())
    assert torch.allclose(losses["loss"], labelling + 0.1 * common + 0.5 * predicted[2:].mean())
    assert float(losses["coverage"]) == pytest.approx(3 / 15)


def test_rows_outside_the_labelled_set_are_not_seen(source, objective):
    batch = batch_of(source, of_source=[0], of_target=[1, 2])
    other = {**batch, "x": batch["x"].clone()}
    other["x"][2] = 100.0
    assert torch.equal(objective(batch)["loss"], objective(other)["loss"])


def test_each_loss_moves_its_own_heads(source, objective):
    losses = objective(batch_of(source, of_source=[0, 1], of_target=[1, 4]))
    heads = objective.model

    def moves(term: str, module: nn.Module) -> bool:
        found = torch.autograd.grad(losses[term], list(module.parameters()), retain_graph=True, allow_unused=True)
        return any(g is not None and bool(g.any()) for g in found)

    moved = {
        term: [moves(term, part) for part in (heads.network.encoder, heads.first, heads.second, heads.network.head)]
        for term in objective.terms
    }
    assert moved == {
        "labelling_cross_entropy": [True, True, True, False],
        "overlap": [False, True, True, False],
        "predictor_cross_entropy": [True, False, False, True],
    }


@pytest.mark.parametrize("rows", [([0, 1], []), ([0], [2, 3]), ([], [2]), ([], [1])])
def test_batches_without_some_kind_of_row(source, objective, rows):
    batch = batch_of(source, of_source=rows[0], of_target=rows[1])
    losses = objective(batch)
    losses["loss"].backward()
    assert all(torch.isfinite(value) for value in losses.values())
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in objective.model.network.head.parameters())
    assert (float(losses["predictor_cross_entropy"].detach()) == 0) == (rows[1] != [1])


def test_while_nothing_is_labelled_the_predictor_learns_from_the_source(source, objective):
    objective.chosen[:] = False
    batch = batch_of(source, of_source=[0, 5], of_target=[1, 2])
    losses = objective(batch)
    logits = objective.model.classify(batch["x"][:2])
    assert torch.allclose(losses["predictor_cross_entropy"], F.cross_entropy(logits, batch["y"][:2]))


def test_a_round_labels_the_candidates_that_both_heads_agree_on(objective, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.3, 0.3], size=(2, 15))
    monkeypatch.setattr(TriNetwork, "head_probabilities", lambda self, windows: p)
    objective.settings = replace(objective.settings, threshold=0.9)
    for epoch, k in ((2, 0), (4, 1)):
        objective.start_epoch(epoch)
        expected = candidates(15, k, 2, SETTINGS.random_state) & agreed(*p, 0.9)
        assert 0 < expected.sum() < 15
        assert np.array_equal(objective.chosen.numpy(), expected)
        assert np.array_equal(objective.labels.numpy(), tri_training_labels(*p).labels)
        before = objective.chosen
        objective.start_epoch(epoch + 1)
        assert objective.chosen is before, "kept for the whole round"


def test_a_round_that_labels_nothing_is_logged(objective, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="transpl.methods.att")
    apart = np.tile(np.array([[[0.9, 0.1]], [[0.1, 0.9]]]), (1, 15, 1))
    monkeypatch.setattr(TriNetwork, "head_probabilities", lambda self, windows: apart)
    objective.start_epoch(4)
    assert not objective.chosen.any()
    (message,) = caplog.messages
    assert "round 1" in message


def test_labels_before_and_after_adaptation(source, method):
    fresh = ATT(SETTINGS, CPU)
    fresh.start_from(source)
    expected = class_probabilities(source.network, TARGET.windows)
    assert np.array_equal(fresh.pseudo_label(TARGET.windows).probabilities, expected)
    by_heads = tri_training_labels(*method.classifier.head_probabilities(TARGET.windows))
    for found in (method.pseudo_label(TARGET.windows), method.label_record["final"]):
        assert np.array_equal(found.probabilities, by_heads.probabilities)
        assert np.array_equal(found.confidence, by_heads.confidence)
    assert not np.allclose(method.predict_proba(TARGET.windows), by_heads.probabilities)


def test_first_labels_are_those_after_the_epochs_on_the_source(source, method, monkeypatch):
    seen = []
    opinions = TriNetwork.head_probabilities
    monkeypatch.setattr(TriNetwork, "head_probabilities", lambda self, w: seen.append(opinions(self, w)) or seen[-1])
    again = adapted(source)
    assert len(seen) == 3  # one for each round, and the final one
    expected = tri_training_labels(*seen[0]).probabilities
    assert np.array_equal(again.label_record["initial"].probabilities, expected)
    assert np.array_equal(method.label_record["initial"].probabilities, expected)


def test_a_training_that_ends_before_the_first_round_records_what_its_heads_say(source):
    method = adapted(source, pretrain_epochs=SETTINGS.max_epochs)
    assert method.history["adapt"][-1]["coverage"] == 0
    assert list(method.label_record) == ["initial"]
    expected = tri_training_labels(*method.classifier.head_probabilities(TARGET.windows))
    assert np.array_equal(method.label_record["initial"].probabilities, expected.probabilities)
    assert len(np.unique(expected.confidence)) > 1


def test_history_tells_how_much_of_the_target_was_learnt(method):
    coverage = [row["coverage"] for row in method.history["adapt"]]
    assert len(coverage) == 6
    assert coverage[:2] == [0, 0]
    assert 0 < coverage[2] == coverage[3] < 9 / 15
    assert coverage[4] == coverage[5] > coverage[2]


def test_the_rows_it_learnt_from_are_those_of_the_last_round(source, method, monkeypatch):
    seen = []
    opinions = TriNetwork.head_probabilities
    monkeypatch.setattr(TriNetwork, "head_probabilities", lambda self, w: seen.append(opinions(self, w)) or seen[-1])
    again = adapted(source)
    expected = agreed(*seen[1], SETTINGS.threshold)  # round 1 of two: all rows are candidates
    rows, labels = again.learnt_rows
    assert np.array_equal(rows, np.flatnonzero(expected))
    assert np.array_equal(labels, tri_training_labels(*seen[1]).labels[rows])
    assert len(rows) / 15 == pytest.approx(method.history["adapt"][-1]["coverage"])
    again.start_from(source)
    assert again.learnt_rows is None


@pytest.mark.parametrize("epochs_before", [3, 5])
def test_resumed_inside_a_round_equals_uninterrupted(source, method, epochs_before, tmp_path, monkeypatch):
    """The labelled set is in the checkpoint: in its second epoch a round draws nothing."""
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    run_epoch = loop._Loop.run_epoch

    def cut_off(self):
        if self.epoch == epochs_before:
            raise KeyboardInterrupt
        return run_epoch(self)

    monkeypatch.setattr(loop._Loop, "run_epoch", cut_off)
    with pytest.raises(KeyboardInterrupt):
        adapted(source, saving)
    monkeypatch.setattr(loop._Loop, "run_epoch", run_epoch)
    resumed = adapted(source, saving)
    assert resumed.history == method.history
    assert np.array_equal(resumed.predict_proba(TARGET.windows), method.predict_proba(TARGET.windows))
    for name, labels in method.label_record.items():
        assert np.array_equal(resumed.label_record[name].probabilities, labels.probabilities)


def test_without_weight_the_source_model_stays(source):
    method = adapted(source, target_weight=0.0)
    assert method.classifier is source.network
    assert list(method.label_record) == ["initial"]


def test_labels_itself_most_of_a_shifted_target(source):
    method = adapted(source, threshold=0.9, rounds=6, pretrain_epochs=8, adapt_lr=4e-3)
    assert method.history["adapt"][-1]["coverage"] > 0.5
    assert (method.predict_proba(TARGET.windows).argmax(axis=1) == TARGET.y).mean() > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [("rounds", 0), ("round_epochs", 0), ("pretrain_epochs", 0), ("threshold", 1.0), ("overlap_weight", -1.0)],
)
def test_settings_that_cannot_be_used_are_refused(name, value):
    with refusal(name):
        ATTSettings(**{name: value})


# Agree and both sure; agree and both unsure; sure but of different classes; agree with one sure.
P1 = np.array([[0.95, 0.05], [0.6, 0.4], [0.95, 0.05], [0.99, 0.01]])
P2 = np.array([[0.92, 0.08], [0.7, 0.3], [0.03, 0.97], [0.55, 0.45]])


def test_the_rule_on_four_rows():
    assert agreed(P1, P2).tolist() == [True, False, False, True]
    assert agreed(P2, P1).tolist() == [True, False, False, True]


def test_the_threshold_itself_is_not_enough():
    p = [[0.75, 0.25]]
    assert agreed(p, p, threshold=0.75).tolist() == [False]
    assert agreed(p, p, threshold=0.7499).tolist() == [True]


def test_every_row_gets_a_label_and_disagreement_no_confidence():
    pseudo = tri_training_labels(P1, P2)
    np.testing.assert_array_equal(pseudo.labels, [0, 0, 1, 0])
    np.testing.assert_allclose(pseudo.confidence, [0.95, 0.7, 0, 0.99], rtol=1e-15)
    np.testing.assert_allclose(pseudo.probabilities, (P1 + P2) / 2, rtol=1e-15)


def test_where_the_rule_holds_the_table_has_the_common_label():
    rng = np.random.default_rng(0)
    p1, p2 = rng.dirichlet(np.full(3, 0.2), 300), rng.dirichlet(np.full(3, 0.2), 300)
    rows = agreed(p1, p2)
    assert 0 < rows.sum() < 300
    pseudo = tri_training_labels(p1, p2)
    np.testing.assert_array_equal(pseudo.labels[rows], p1.argmax(axis=1)[rows])
    assert (pseudo.confidence[rows] > 0.9).all()


def test_one_row_and_one_class():
    assert agreed(P1[:1], P2[:1]).tolist() == [True]
    assert agreed([[1.0]], [[1.0]]).tolist() == [True]


def test_what_is_no_probability_is_refused():
    with refusal("probabilities"):
        agreed(P1[:0], P2[:0])
