"""`compare`: methods on many pairs, as a table."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tiny_bench import CHANGES

from transpl.benchmark import compare, run_pair, selection
from transpl.datasets import make_shifted
from transpl.methods import source_model
from transpl.methods.shallow import FeaturesLinear
from transpl.nn import Execution

DATA = make_shifted(n_train=24, n_test=15, length=32, n_channels=2, n_domains=3)
CPU = Execution("cpu", n_threads=1)


@pytest.fixture(autouse=True)
def quick_risks(monkeypatch):
    """Weights of source rows are slow to find, and no score depends on them."""
    monkeypatch.setattr(selection, "density_ratio", lambda source, target, validation, seed: np.ones(len(validation)))


def test_one_row_per_pair_seed_and_method():
    table = compare(DATA, ["features-linear", "features-trees"], seeds=2, execution=CPU)
    assert list(table.columns[:4]) == ["dataset", "pair", "method", "seed"]
    assert {"accuracy", "macro_f1", "calibration_error", "label_accuracy", "seconds", "error"} <= set(table.columns)
    assert len(table) == len(DATA.pairs) * 2 * 2
    assert not table.duplicated(["dataset", "pair", "method", "seed"]).any()
    assert set(table["pair"]) == {f"{source}-{target}" for source, target in DATA.pairs}
    assert table["error"].isna().all()
    assert (table["seconds"] > 0).all()


def test_scores_are_those_of_each_pair():
    table = compare(DATA, ["features-linear"], [(0, 1), (1, 2)], seeds=[3], execution=CPU)
    for row, pair in zip(table.itertuples(), ((0, 1), (1, 2)), strict=True):
        (result,) = run_pair(DATA, pair, ["features-linear"], seed=3, execution=CPU)
        assert (row.accuracy, row.macro_f1) == (result.test["accuracy"], result.test["macro_f1"])
        assert row.label_accuracy == result.pseudo_labels["initial"]["accuracy"]
        assert row.seed == 3


def test_names_and_estimators_beside_each_other():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    methods = ["features-linear", "sklearn:sklearn.naive_bayes.GaussianNB", KNeighborsClassifier(1), pipeline]
    table = compare(DATA, methods, (0, 1), execution=CPU)
    assert table["method"].tolist() == [*methods[:2], "KNeighborsClassifier", "StandardScaler + LogisticRegression"]
    assert (table["accuracy"] > 0.5).all()
    assert not hasattr(pipeline[-1], "coef_"), "the caller's object is left alone"


def test_names_of_ones_own_and_a_single_method():
    table = compare(DATA, {"one": KNeighborsClassifier(1), "five": KNeighborsClassifier(5)}, (0, 1), execution=CPU)
    assert table["method"].tolist() == ["one", "five"]
    for alone in (DummyClassifier(), "features-linear"):
        assert len(compare(DATA, alone, (0, 1), execution=CPU)) == 1
    with refusal("methods", "KNeighborsClassifier twice.*dict"):
        compare(DATA, [KNeighborsClassifier(1), KNeighborsClassifier(5)])


def test_settings_reach_the_methods_that_have_them():
    plain, changed = (
        compare(DATA, ["features-linear", KNeighborsClassifier()], (0, 1), execution=CPU, changes=changes)
        for changes in ({}, {"standardise": "source", "n_neighbors": 20})
    )
    assert (plain["calibration_error"].to_numpy() != changed["calibration_error"].to_numpy()).all()


def test_a_source_network_is_trained_once_for_all_targets(monkeypatch):
    trained, train_network = [], source_model.train_network

    def counted(*args, **options):
        trained.append(args)
        return train_network(*args, **options)

    monkeypatch.setattr(source_model, "train_network", counted)
    compare(DATA, ["no-adapt"], [(0, 1), (0, 2)], seeds=2, execution=CPU, changes=CHANGES)
    assert len(trained) == 2


def test_a_method_that_fails_has_no_scores(monkeypatch):
    def fail(self, target, info):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(FeaturesLinear, "_adapt", fail)
    failed, other = compare(DATA, ["features-linear", "features-trees"], (0, 1), execution=CPU).itertuples()
    assert failed.error == "RuntimeError: out of luck"
    assert np.isnan([failed.accuracy, failed.seconds]).all()
    assert other.error is None


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"methods": ["magic"]}, "method"),
        ({"methods": []}, "methods"),
        ({"methods": [StandardScaler()]}, "method"),
        ({"pairs": (0, 9)}, "pairs"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [(0, 1, 2)]}, "pairs"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "random_state"),
        ({"changes": {"widht": 3}}, "changes"),
        ({"preset": "adatome"}, "preset"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(options, argument, monkeypatch):
    monkeypatch.setattr(FeaturesLinear, "fit_source", None)
    with refusal(argument):
        compare(**{"dataset": DATA, "methods": ["features-linear"], **options})
