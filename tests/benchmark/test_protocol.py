"""What methods see of a pair, and what the evaluator keeps to itself."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refusal

from transpl.benchmark import Evaluator, Pair, split_pair
from transpl.benchmark.protocol import SHOTS
from transpl.datasets import make_shifted
from transpl.methods import LearntRows
from transpl.methods.registry import create
from transpl.windows import Windows

DATA = make_shifted(n_train=20, n_test=10, length=32)
HERE, THERE = DATA.domain(0), DATA.domain(1)


@pytest.fixture
def split() -> tuple[Pair, Evaluator]:
    return split_pair(DATA, 0, 1)


def test_the_parts_are_those_of_the_papers_protocol(split):
    pair, _ = split
    for part, X, y in (
        (pair.source, HERE.X_train, HERE.y_train),
        (pair.validation, HERE.X_test, HERE.y_test),
    ):
        assert np.array_equal(part.windows.values, X)
        assert np.array_equal(part.y, y)
        assert part.n_classes == 3
    assert np.array_equal(pair.target.values, THERE.X_train)
    assert np.array_equal(pair.test.values, THERE.X_test)


def test_the_targets_parts_are_windows_without_labels(split):
    pair, _ = split
    parts = ["source", "validation", "target", "test"]
    assert [field.name for field in fields(pair)] == [*parts, "target_groups", "test_groups"]
    assert type(pair.target) is Windows
    assert type(pair.test) is Windows


def test_groups_are_those_of_the_targets_windows(split):
    assert split[0].target_groups is None
    groups = np.arange(len(DATA)) // 3
    pair, _ = split_pair(replace(DATA, groups=groups), 0, 1)
    train, test = ((DATA.domain_ids == 1) & (DATA.split == part) for part in (0, 1))
    assert np.array_equal(pair.target_groups, groups[train])
    assert np.array_equal(pair.test_groups, groups[test])


def test_scores_are_of_the_test_part_and_of_all_pseudo_labels(split):
    _, evaluator = split
    assert evaluator.score(np.eye(3)[THERE.y_test])["accuracy"] == 1
    assert evaluator.score_labels(THERE.y_train)["accuracy"] == 1
    wrong_once = THERE.y_train.copy()
    wrong_once[0] = (wrong_once[0] + 1) % 3
    assert evaluator.score_labels(wrong_once)["accuracy"] == 0.95


def test_rows_that_were_learnt_from_are_scored_by_themselves(split):
    _, evaluator = split
    rows = np.array([3, 5, 8, 19])
    labels = THERE.y_train[rows]
    assert evaluator.score_learnt(LearntRows(rows, labels)) == {"rows": 4, "share": 0.2, "accuracy": 1.0}
    labels[1] = (labels[1] + 1) % 3
    assert evaluator.score_learnt(LearntRows(rows, labels))["accuracy"] == 0.75
    assert evaluator.score_learnt(LearntRows(rows[:0], labels[:0])) == {"rows": 0, "share": 0.0}
    for bad in (LearntRows(rows, labels[:3]), LearntRows(rows + 1, labels), LearntRows(rows * 0, labels)):
        with refusal("learnt", "rows of 20"):
            evaluator.score_learnt(bad)


@pytest.fixture
def asked():
    """A method that always says the same, and what it was asked for."""
    said, windows = np.array([0.5, 0.3, 0.2]), []

    def predict_proba(part):
        windows.append(part.values)
        return np.tile(said, (len(part), 1))

    return SimpleNamespace(predict_proba=predict_proba, said=said, windows=windows)


def test_the_oracles_risk_is_of_the_test_part(split):
    _, evaluator = split
    said = np.random.default_rng(0).dirichlet(np.ones(3), len(THERE.y_test))
    right = said[np.arange(len(said)), THERE.y_test]
    assert evaluator.test_risk(said) == pytest.approx(-np.log(right).mean())
    with refusal("answers", f"{len(said)} rows"):
        evaluator.test_risk(said[1:])


def test_the_few_shot_risk_is_of_a_few_windows_of_each_class_of_the_train_part(split, asked):
    _, evaluator = split
    label_of = {window.tobytes(): int(k) for window, k in zip(THERE.X_train, THERE.y_train, strict=True)}
    assert evaluator.few_shot_risk(asked, 0) == pytest.approx(-np.log(asked.said).mean())
    assert np.bincount([label_of[window.tobytes()] for window in asked.windows[0]]).tolist() == [SHOTS] * 3
    evaluator.few_shot_risk(asked, 0)
    evaluator.few_shot_risk(asked, 1)
    assert np.array_equal(asked.windows[0], asked.windows[1])
    assert not np.array_equal(asked.windows[0], asked.windows[2])


def test_answers_for_fewer_rows_are_refused(split):
    _, evaluator = split
    with refusal("answers", "10 rows"):
        evaluator.score(np.ones((9, 3)) / 3)
    with refusal("answers", "20 rows"):
        evaluator.score_labels(np.zeros(10, int))


def test_proportions_are_those_of_target_train_and_leave_absent_classes_a_little(split):
    _, evaluator = split
    expected = np.bincount(THERE.y_train, minlength=3) / 20
    assert np.allclose(evaluator.proportions(), expected, atol=1e-6)
    assert evaluator.prior_for(create("no-adapt")) is None
    assert evaluator.prior_for(create("transpl")) is None
    assert np.array_equal(evaluator.prior_for(create("transpl-ws")), evaluator.proportions())

    _, without_2 = split_pair(replace(DATA, y=np.minimum(DATA.y, 1)), 0, 1)
    proportions = without_2.proportions()
    assert 0 < proportions[2] < 1e-6
    assert proportions.sum() == pytest.approx(1)


def test_labelled_rows_go_to_upper_bounds_alone(split):
    _, evaluator = split
    with refusal("method", "uses target labels"):
        evaluator.labelled_rows(create("no-adapt"), 0)
    train, held_out = evaluator.labelled_rows(create("target-only"), 0)
    rows = {window.tobytes(): int(k) for window, k in zip(THERE.X_train, THERE.y_train, strict=True)}
    given = {
        window.tobytes(): int(k)
        for part in (train, held_out)
        for window, k in zip(part.windows.values, part.y, strict=True)
    }
    assert given == rows
    assert len(train.y) + len(held_out.y) == 20
    for k in range(3):
        assert (held_out.y == k).sum() == round(0.3 * (THERE.y_train == k).sum())


def test_a_domain_that_is_not_there_is_refused():
    with refusal("domain", "0, 1, 2"):
        split_pair(DATA, 0, 9)
