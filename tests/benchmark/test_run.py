"""Methods one after the other on one pair."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from conftest import TINY, refusal

from transpl.benchmark import Result, run_pair, settings_of
from transpl.datasets import make_shifted
from transpl.methods import PseudoLabels, registry, source_model
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import create
from transpl.methods.softmax import Softmax
from transpl.nn import Execution
from transpl.windows import as_windows

DATA = make_shifted(n_train=24, n_test=15, length=32)
CPU = Execution("cpu", n_threads=1)
CHANGES = {name: value for name, value in TINY.items() if name not in ("device", "variant")} | {"max_epochs": 2}


def run(*methods: str, **options) -> list[Result]:
    return list(run_pair(DATA, (0, 1), methods, **{"execution": CPU, "changes": CHANGES, **options}))


def test_a_result_says_what_was_run_and_what_came_of_it():
    (result,) = run("softmax", seed=3)
    assert (result.dataset, result.pair, result.method, result.seed) == ("synthetic", (0, 1), "softmax", 3)
    assert result.settings == asdict(settings_of(["softmax"], "synthetic", 3, changes=CHANGES)["softmax"])
    assert (result.settings["random_state"], result.settings["width"]) == (3, 16)
    assert set(result.test) == {"accuracy", "macro_f1", "balanced_accuracy", "calibration_error"}
    assert set(result.pseudo_labels) == {"initial"}
    assert set(result.seconds) == {"source", "start", "adapt", "predict"}
    assert all(seconds > 0 for seconds in result.seconds.values())
    assert result.epochs == {"source": 2, "adapt": 2}
    assert result.error is None


def test_scores_are_those_of_the_method_by_itself():
    (result,) = run("deepcoral")
    one, other = DATA.domain(0), DATA.domain(1)
    method = create("deepcoral", CPU, dataset="synthetic", **CHANGES)
    source, validation = (
        source_model.Labelled(as_windows(X), y, 3) for X, y in ((one.X_train, one.y_train), (one.X_test, one.y_test))
    )
    method.fit_source(source, validation)
    method.adapt(as_windows(other.X_train))
    p = method.predict_proba(as_windows(other.X_test))
    assert result.test["accuracy"] == pytest.approx((p.argmax(axis=1) == other.y_test).mean())
    labels = method.pseudo_label(as_windows(other.X_train)).labels
    assert result.pseudo_labels["initial"]["accuracy"] == pytest.approx((labels == other.y_train).mean())
    assert result.epochs == {"joint": 2}
    assert result.seconds["source"] == 0


def test_final_pseudo_labels_are_scored_where_there_are_any():
    (result,) = run("softmax", changes={**CHANGES, "relabel": "each epoch"})
    assert set(result.pseudo_labels) == {"initial", "final"}


def test_one_source_model_for_all_that_start_from_it(monkeypatch):
    trained = []
    train_network = source_model.train_network

    def counted(*args, **options):
        trained.append(options["loss"])
        return train_network(*args, **options)

    monkeypatch.setattr(source_model, "train_network", counted)
    results = run("no-adapt", "softmax", "transpl", "deepcoral")
    assert [result.error for result in results] == [None] * 4
    assert len(trained) == 1
    assert len({results[i].seconds["source"] for i in (0, 1, 2)}) == 1
    run("no-adapt", "target-only")
    assert len(trained) == 3, "an upper bound has a source of its own"


def test_results_come_one_by_one(monkeypatch):
    adapted = []
    monkeypatch.setattr(Softmax, "_adapt", lambda self, target, prior: adapted.append(self))
    results = run_pair(DATA, (0, 1), ["no-adapt", "softmax"], execution=CPU, changes=CHANGES)
    assert next(results).method == "no-adapt"
    assert not adapted
    assert next(results).method == "softmax"
    assert adapted


def test_a_failing_method_says_why_and_the_others_go_on(monkeypatch):
    def fail(self, target, prior):
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr(Softmax, "_adapt", fail)
    failed, other = run("softmax", "no-adapt")
    assert failed.error == "RuntimeError: out of luck"
    assert (failed.method, failed.test, failed.fingerprint) == ("softmax", {}, "")
    assert failed.settings["width"] == 16
    assert other.error is None
    assert Result.from_dict(json.loads(json.dumps(failed.as_dict()))) == failed


def test_a_method_that_answers_no_probabilities_fails(monkeypatch):
    monkeypatch.setattr(Softmax, "predict_proba", lambda self, windows, groups=None: np.full((len(windows), 3), np.nan))
    (result,) = run("softmax")
    assert "probabilities: " in result.error


def test_an_interruption_is_not_a_failure(monkeypatch):
    def interrupt(self, target, prior):
        raise KeyboardInterrupt

    monkeypatch.setattr(Softmax, "_adapt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run("softmax")


def test_results_survive_json():
    (result,) = run("no-adapt")
    text = json.dumps(result.as_dict(), allow_nan=False)
    assert Result.from_dict(json.loads(text)) == result
    with refusal("values", "fingerprint"):
        Result.from_dict({key: value for key, value in result.as_dict().items() if key != "fingerprint"})


def test_same_seed_same_fingerprint():
    first, again = run("no-adapt") + run("no-adapt")
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != run("no-adapt", seed=1)[0].fingerprint


def test_settings_reach_the_methods_that_have_them():
    chosen = settings_of(["no-adapt", "deepcoral"], "ucihar", 0, "adatime", {"coral_weight": 9.0, "width": 32})
    assert (chosen["no-adapt"].width, chosen["deepcoral"].width) == (32, 32)
    assert chosen["deepcoral"].coral_weight == 9
    assert chosen["deepcoral"].coral_form == "adatime"
    assert not hasattr(chosen["no-adapt"], "coral_weight")
    assert settings_of(["no-adapt"], "wisdm")["no-adapt"].width == 128


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"methods": ["magic"]}, "method"),
        ({"preset": "adatome"}, "preset"),
        ({"changes": {"widht": 32}}, "changes"),
        ({"changes": {"coral_weight": 2.0}}, "changes"),
        ({"changes": {"random_state": 1}}, "changes"),
        ({"changes": {"width": 7}}, "width"),
        ({"pair": (0, 9)}, "domain"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(options, argument):
    with refusal(argument):
        run_pair(**{"dataset": DATA, "pair": (0, 1), "methods": ["no-adapt"], **options})


def test_a_method_that_needs_no_source_network_causes_none_to_be_trained(monkeypatch):
    class Constant(NoAdapt):
        """Answers without a network."""

        starts_from_source = False

        def _adapt(self, target, info):
            pass

        def predict_proba(self, windows, groups=None, smooth=False):
            return np.full((len(windows), self.n_classes), 1 / self.n_classes)

        def pseudo_label(self, target, prior=None):
            return PseudoLabels.from_probabilities(self.predict_proba(target))

    monkeypatch.setattr(source_model.SourceModel, "_trained", property(lambda _: 1 / 0))
    monkeypatch.setattr(registry, "_entries", dict(registry.entries()))
    registry.register("constant", family="own", needs="source", reference="-")(Constant)
    (result,) = run("constant")
    assert result.error is None
    assert "source_risk" in result.risks
    assert "iwcv" not in result.risks  # there are no features to weigh by
