"""scikit-learn estimators as methods: by name or as objects, their parameters, seeds, inputs and answers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import make_waves, refusal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transpl._utils.errors import InputError
from transpl.benchmark.plan import Plan, rows_of, settings_of, settings_without_seed
from transpl.benchmark.run_spec import RunSpec
from transpl.methods.estimators import estimator_entry, named_estimator
from transpl.methods.method_settings import recorded
from transpl.methods.registry import create, entries, entry, names
from transpl.windows import Labelled, as_windows

K = 3
KNN = "sklearn:sklearn.neighbors.KNeighborsClassifier"
FOREST = "sklearn:sklearn.ensemble.RandomForestClassifier"
MODULE = '''
"""Methods of a user."""
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__version__ = "1.2.3"
READY = make_pipeline(StandardScaler(), LogisticRegression(C=0.25))


def made():
    return make_pipeline(StandardScaler(), LogisticRegression())
'''


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, **shift)
    return Labelled(as_windows(X), y, K)


SOURCE, TARGET = labelled(60, 0), labelled(30, 1, gain=2.0)


class Shapes(ClassifierMixin, BaseEstimator):
    """Remembers what it is given, and answers the first class."""

    def fit(self, X, y):
        self.shape_, self.labels_, self.classes_ = X.shape, np.unique(y), np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[-1])


def predictions(method, source=SOURCE):
    method.fit_source(source)
    method.adapt(TARGET.windows)
    return method.predict_proba(TARGET.windows)


def test_a_name_is_a_method_with_the_parameters_of_the_estimator():
    found = entry(KNN)
    assert (found.name, found.family) == (KNN, "shallow")
    assert entry(KNN) is found
    method = create(KNN, n_neighbors=1, weights="distance")
    p = predictions(method)
    assert (method._classifier.n_neighbors, method._classifier.weights) == (1, "distance")
    assert (p.argmax(axis=1) == TARGET.y).mean() > 0.9
    with refusal("settings", "n_neighbours"):
        create(KNN, n_neighbours=1)


def test_an_estimator_is_in_no_list_of_methods():
    entry(KNN)
    assert KNN not in names()
    assert KNN not in entries()


def test_only_parameters_that_are_changed_name_a_run():
    usual, changed = (settings_of([FOREST], "x", changes=each)[FOREST] for each in ({}, {"n_estimators": 7}))
    assert settings_without_seed(usual) == {"standardise": "domain", "input": "features"}
    assert settings_without_seed(changed) == {**settings_without_seed(usual), "n_estimators": 7}
    bagging = "sklearn:sklearn.ensemble.BaggingClassifier"  # 1 window is not the same as a share of 1.0
    assert recorded(entry(bagging).settings(max_samples=1))["max_samples"] == 1
    assert type(settings_without_seed(entry(bagging).settings(max_samples=1))["max_samples"]) is int


def test_a_stored_spec_makes_the_same_method():
    changes = {"hidden_layer_sizes": (3, 4), "alpha": 0.5}
    name = "sklearn:sklearn.neural_network.MLPClassifier"
    settings = settings_without_seed(entry(name).settings(**changes))
    spec = RunSpec("x", "d", 0, 1, name, 5, settings)
    again = RunSpec.from_dict(spec.as_dict())
    method = entry(name).method(again.method_settings())
    made = method.make_classifier()
    assert (made.hidden_layer_sizes, made.alpha, made.random_state) == ((3, 4), 0.5, 5)
    assert again.digest == spec.digest


def test_parameters_that_are_no_plain_values_cannot_be_set():
    with refusal("changes", "base"):
        rows_of(["sklearn:sklearn.ensemble.AdaBoostClassifier"], {"base": 1})
    fields = {each.name for each in settings_of([KNN], "x")[KNN].__dataclass_fields__.values()}
    assert "metric" in fields
    plan = Plan("x", rows_of([KNN], {"standardise": "source"}), grid={"n_neighbors": [1, 3]})
    assert [each["n_neighbors"] for each in plan.settings_for(plan.rows[0])] == [1, 3]


def test_the_seed_reaches_every_random_state():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=9))
    method = estimator_entry("mine", pipeline).method
    made = [method(method.Settings(random_state=seed)).make_classifier() for seed in (3, 4)]
    assert [each[-1].random_state for each in made] == [3, 4]
    assert pipeline[-1].random_state == 9, "the caller's object is left alone"


def test_parameters_of_the_steps_of_a_pipeline():
    found = estimator_entry("mine", make_pipeline(StandardScaler(), LogisticRegression()))
    made = found.method(found.settings(logisticregression__C=0.5)).make_classifier()
    assert made[-1].C == 0.5


@pytest.mark.parametrize(
    ("rows_are", "shape"), [("features", (60, None)), ("windows", (60, 2, 32)), ("flat", (60, 64))]
)
def test_what_an_estimator_gets(rows_are, shape):
    found = estimator_entry("shapes", Shapes())
    method = found.method(found.settings(input=rows_are))
    method.fit_source(SOURCE)
    assert len(method._classifier.shape_) == len(shape)
    assert all(size in (None, got) for size, got in zip(shape, method._classifier.shape_, strict=True))


def test_windows_of_unequal_length_have_features_only():
    ragged = as_windows([window[:, : 32 - i % 3] for i, window in enumerate(SOURCE.windows.values)])
    found = estimator_entry("shapes", Shapes())
    found.method(found.settings()).fit_source(Labelled(ragged, SOURCE.y, K))
    flat = found.method(found.settings(input="flat"))
    with refusal("source", "one length"):
        flat.fit_source(Labelled(ragged, SOURCE.y, K))
    flat.fit_source(SOURCE)
    with refusal("target", "one length"):
        flat.adapt(ragged)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), RidgeClassifier()], ids=["probabilities", "labels"])
def test_answers_are_aligned_to_the_classes(estimator):
    """Class 1 has no windows in the source: the estimator's second class is our third."""
    found = estimator_entry("mine", estimator)
    rows = np.flatnonzero(SOURCE.y != 1)
    p = predictions(found.method(found.settings()), Labelled(SOURCE.windows[rows], SOURCE.y[rows], K))
    assert (p[:, 1] == 0).all()
    assert np.allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1)[TARGET.y == 2] == 2).mean() > 0.8
    assert (p.argmax(axis=1)[TARGET.y == 0] == 0).mean() > 0.8


def test_the_estimator_sees_numbers_without_gaps():
    found = estimator_entry("shapes", Shapes())
    method = found.method(found.settings())
    method.fit_source(Labelled(SOURCE.windows, np.where(SOURCE.y == 0, 0, 2), K))
    assert method._classifier.labels_.tolist() == [0, 1]
    assert (method.predict_proba(TARGET.windows) == [0, 0, 1]).all()


def test_functions_and_objects_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "my_own_pipelines.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        made, ready = (entry(f"sklearn:my_own_pipelines.{name}") for name in ("made", "READY"))
        assert made.settings(logisticregression__C=2.0).logisticregression__C == 2.0
        assert ready.method(ready.settings()).make_classifier()[-1].C == 0.25
    finally:
        sys.modules.pop("my_own_pipelines", None)
        named_estimator.cache_clear()


def test_libraries_other_than_scikit_learn_state_their_version():
    assert entry(KNN).method.library_versions == {}
    assert estimator_entry("shapes", Shapes()).method.library_versions == {__name__: "unknown"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("KNeighborsClassifier", "module"),
        ("", "module"),
        ("no_such_module.Class", "no_such_module"),
        ("sklearn.neighbors.KNeighbours", "KNeighbours"),
        ("sklearn.linear_model.Ridge", "Ridge"),
        ("sklearn.preprocessing.StandardScaler", "StandardScaler"),
        ("sklearn.ensemble.VotingClassifier", "estimators"),
        ("math.pi", "3.14"),
        ("os.getcwd", "classifier"),
    ],
)
def test_what_is_no_classifier_is_refused_in_one_line(path, reason):
    with refusal("method", reason):
        entry(f"sklearn:{path}")


@pytest.mark.parametrize("wrong", [LogisticRegression, StandardScaler(), 3])
def test_objects_that_are_no_classifiers_are_refused(wrong):
    with pytest.raises(InputError, match=r"\Amethod: expected a classifier"):
        estimator_entry("x", wrong)
