"""Target labels never reach a method: nonsense in their place gives the same predictions, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY

from transpl.benchmark import Result, run_pair, selection
from transpl.datasets import Dataset, make_shifted
from transpl.datasets.dataset import TEST, TRAIN
from transpl.methods.registry import entries, names
from transpl.nn import Execution

ALL = names()
SEES_LABELS = {name for name in ALL if entries()[name].method.uses_target_labels}
TARGET = 1
PLAIN = make_shifted(n_train=24, n_test=15, length=32)
DATA = replace(PLAIN, groups=np.arange(len(PLAIN)) // 3)
FEW = {"max_epochs": 2, "check_every": 1, "batch_size": 12}
FEW |= {"rounds": 2, "round_epochs": 1, "pretrain_epochs": 1, "adapt_epochs": 2, "classifier_epochs": 2}


def changes(method: str) -> dict[str, object]:
    known = entries()[method].setting_names - {"variant"}
    return {name: value for name, value in {**TINY, **FEW}.items() if name in known}


def poisoned(data: Dataset) -> Dataset:
    """Target train labels in another order (their proportions are known to some methods), test labels all alike."""
    y = data.y.copy()
    train, test = ((data.domain_ids == TARGET) & (data.split == part) for part in (TRAIN, TEST))
    y[train] = np.random.default_rng(0).permutation(y[train])
    y[test] = 0
    assert (y[train] != data.y[train]).mean() > 0.3
    return replace(data, y=y)


def result_of(method: str, data: Dataset) -> Result:
    (found,) = run_pair(data, (0, TARGET), [method], execution=Execution("cpu", n_threads=1), changes=changes(method))
    return found


POISONED = poisoned(DATA)


def all_alike(source, target, validation, seed):
    return np.ones(len(validation))


@pytest.mark.parametrize("name", ALL)
def test_poisoned_target_labels_change_no_prediction(name, monkeypatch):
    monkeypatch.setattr(selection, "density_ratio", all_alike)  # slow, and no prediction depends on it
    honest, misled = result_of(name, DATA), result_of(name, POISONED)
    assert honest.error is None
    assert misled.error is None
    assert honest.test != misled.test, "the scores do see them"
    assert (honest.fingerprint == misled.fingerprint) != (name in SEES_LABELS)
    assert (honest.epochs == misled.epochs) or name in SEES_LABELS


def test_target_only_is_the_one_that_sees_them():
    assert {"target-only"} == SEES_LABELS
