"""TransPL among scikit-learn's tools and those of its friends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY, make_waves
from sklearn import config_context, get_config, set_config
from sklearn.base import clone
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from transpl import TransPL

QUICK = {"witnesses": ("linear", "codes"), "views": ("recorded", "standardised")}


@pytest.fixture(scope="module")
def data():
    X, y = make_waves(48, 0)
    return X, np.array(["run", "walk"])[y], np.repeat(["anna", "ben", "cleo"], 16)


@pytest.fixture(scope="module")
def domains():
    """Source rows, and target rows whose labels are hidden."""
    X, y = make_waves(60, 0)
    sample_domain = np.where(np.arange(60) < 40, 1, -2)
    X[sample_domain < 0] *= 1.5
    return X, y, sample_domain


def test_a_pipeline_with_a_step_before_it(data):
    X, y, _ = data
    pipe = Pipeline([("scale", FunctionTransformer(lambda X: 2 * X)), ("model", TransPL(**QUICK))]).fit(X, y)
    assert np.array_equal(pipe.predict_proba(X), TransPL(**QUICK).fit(2 * X, y).predict_proba(2 * X))
    assert clone(pipe).set_params(model__views=("shape",)).fit(X, y).score(X, y) > 0.9


def test_cross_validation_leaves_out_one_person_at_a_time(data):
    X, y, person = data
    scoring = {"accuracy": "accuracy", "mcc": make_scorer(matthews_corrcoef), "loss": "neg_log_loss"}
    found = cross_validate(TransPL(**QUICK), X, y, groups=person, cv=LeaveOneGroupOut(), scoring=scoring)
    assert found["test_accuracy"].shape == (3,)
    assert found["test_accuracy"].min() > 0.9
    assert found["test_loss"].min() > -1
    labels = cross_val_predict(TransPL(**QUICK), X, y, groups=person, cv=GroupKFold(3))
    assert (labels == y).mean() > 0.9


@pytest.mark.parametrize(
    ("fixed", "name", "values"),
    [
        ({"views": ("recorded",)}, "witnesses", [("linear",), ("codes", "linear")]),
        ({**TINY, "variant": "paper", "max_epochs": 1}, "prior_temperature", [0.5, 2.0]),
    ],
)
def test_a_search_over_a_parameter_of_each_variant(data, fixed, name, values):
    X, y, person = data
    search = GridSearchCV(TransPL(**fixed), {name: values}, cv=GroupKFold(3), error_score="raise")
    search.fit(X, y, groups=person)
    assert len(search.cv_results_["params"]) == 2
    assert search.best_params_[name] in values
    assert np.array_equal(search.best_estimator_.fitted_params_[name], search.best_params_[name])
    assert search.predict(X[:3]).shape == (3,)


def test_set_output_of_a_pipeline_gives_it_a_table(data):
    X, y, _ = data
    one = X[:, 0]  # (n, time): a table
    pipe = make_pipeline(StandardScaler(), TransPL(**QUICK)).set_output(transform="pandas").fit(one, y)
    assert pipe[-1].feature_names_in_.tolist() == [f"x{t}" for t in range(one.shape[1])]
    assert isinstance(pipe.predict(one), np.ndarray)


def test_sample_domain_is_routed_through_pipeline_and_cross_validation(domains):
    X, y, sample_domain = domains
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(FunctionTransformer(), TransPL(**QUICK)).fit(X, y, sample_domain=sample_domain)
        assert pipe[-1].mode_ == "markov"
        alone = TransPL(**QUICK).fit(X, y, sample_domain=sample_domain)
        assert np.array_equal(pipe.predict_proba(X), alone.predict_proba(X))
        params = {"sample_domain": sample_domain}
        folds = KFold(3, shuffle=True, random_state=0)
        found = cross_validate(pipe, X, y, params=params, cv=folds, return_estimator=True, error_score="raise")
        assert [each[-1].mode_ for each in found["estimator"]] == ["markov"] * 3


def test_groups_are_routed_to_fit_and_predict(domains):
    X, y, sample_domain = domains
    target = sample_domain < 0
    y[target] = np.arange(20) // 10  # each recording has one label
    recording = np.where(target, np.arange(60) // 10, 0)
    with config_context(enable_metadata_routing=True):
        model = TransPL(**QUICK).set_fit_request(groups=True).set_predict_request(groups=True)
        pipe = make_pipeline(FunctionTransformer(), model)
        pipe.fit(X, y, sample_domain=sample_domain, groups=recording)
        found = pipe.predict(X[target], groups=recording[target])
        scored = make_pipeline(pipe[-1].set_score_request(groups=True)).score(
            X[target], y[target], groups=recording[target]
        )
    assert scored == (found == y[target]).mean()
    direct = TransPL(**QUICK).fit(X[~target], y[~target]).adapt(X[target], groups=recording[target])
    assert np.array_equal(found, direct.predict(X[target], groups=recording[target]))
    assert all(len(set(found[recording[target] == each])) == 1 for each in set(recording[target]))


def test_groups_of_another_number_are_refused(domains):
    X, y, sample_domain = domains
    with pytest.raises(ValueError, match=r"^groups: "):
        TransPL(**QUICK).fit(X, y, sample_domain=sample_domain, groups=[1, 2])


def test_pandas_tables_keep_their_columns(data):
    X, y, _ = data
    table = pd.DataFrame(X[:, 0], columns=[f"t{i}" for i in range(X.shape[2])])
    model = TransPL(**QUICK).fit(table, pd.Series(y, dtype="category"))
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    assert np.array_equal(model.predict(table), TransPL(**QUICK).fit(X[:, 0], y).predict(X[:, 0]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[table.columns[::-1]])


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_tensors_of_torch(data, kind):
    X, y, _ = data
    tensor = torch.tensor(X, dtype=kind, requires_grad=True)
    exact = tensor.detach().float().numpy()
    numbers = torch.tensor((y == "walk").astype(int))
    model = TransPL(**QUICK).fit(tensor, numbers)
    assert np.array_equal(
        model.predict_proba(tensor), TransPL(**QUICK).fit(exact, numbers.numpy()).predict_proba(exact)
    )
    assert tensor.requires_grad
    assert np.array_equal(model.predict(list(tensor)), model.predict(tensor))
    table = TransPL(**QUICK).fit(tensor[:, 0], numbers)
    assert np.array_equal(table.predict(list(tensor[:, 0].detach().float())), table.predict(tensor[:, 0]))


def test_callbacks_hear_of_both_phases(domains):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y, sample_domain = domains
    heard = []

    class Listener:
        def setup(self, estimator, context):
            heard.append("setup")

        def on_fit_task_begin(self, estimator, context, **_):
            heard.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context, **_):
            heard.append(f"end {context.task_name}")
            return False

        def teardown(self, estimator, context):
            heard.append("teardown")

    model = TransPL(**QUICK).set_callbacks(Listener())
    model.fit(X, y, sample_domain=sample_domain)
    phases = ["begin source", "end source", "begin target", "end target"]
    assert heard == ["setup", "begin fit", *phases, "end fit", "teardown"]
    heard.clear()
    with pytest.raises(ValueError, match=r"^y: "):
        model.fit(X, np.zeros(len(X)))
    assert set(heard) <= {"setup", "teardown"}


@pytest.fixture
def skada_metrics():
    before = get_config()["enable_metadata_routing"]
    try:  # importing skada switches metadata routing on for good
        yield pytest.importorskip("skada.metrics", reason="skada is not installed")
    finally:
        set_config(enable_metadata_routing=before)


@pytest.mark.parametrize(
    "name",
    ["SupervisedScorer", "PredictionEntropyScorer", "SoftNeighborhoodDensity", "CircularValidation", "MixValScorer"],
)
def test_skadas_scorers_judge_it(domains, skada_metrics, name):
    X, y, sample_domain = domains
    with config_context(enable_metadata_routing=True):
        model = TransPL(**QUICK)
        hidden = np.where(sample_domain < 0, -1, y)
        params = {"sample_domain": sample_domain}
        if name == "SupervisedScorer":
            params["target_labels"] = y
        scorer = getattr(skada_metrics, name)()
        model.fit(X, hidden, sample_domain=sample_domain)
        score = scorer(model, X, hidden, **params)
        assert np.isfinite(score)
        if name == "SupervisedScorer":
            assert score == model.score(X[sample_domain < 0], y[sample_domain < 0])
