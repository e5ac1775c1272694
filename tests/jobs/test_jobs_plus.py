"""What is done with a model, done with variant="plus": jobs, many targets, streams, review, monitoring."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pytest
from conftest import refusal

from transpl import ShiftReport, TransPL, adapt_many, jobs
from transpl.council import CouncilExplanation, load_explanation
from transpl.datasets import make_shifted
from transpl.jobs import ManyJob, Target, TargetFile, label_windows, review_job, run_many, table_as_text
from transpl.markov import TransitionCounts
from transpl.report import write_report

DATA = make_shifted(n_train=30, n_test=20, length=32)
NAMES = np.array(DATA.class_names)
QUICK = {"witnesses": ("codes", "linear"), "patch_length": 4}


def job(**change):
    made = jobs.from_dataset(DATA, 0, 1, all_source=True, hold_out=False)
    return jobs.Job(**{**vars(made), **change})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("job")
    jobs.run(job(), TransPL(**QUICK), out)
    return out


@pytest.fixture(scope="module")
def fitted():
    made = job()
    return TransPL(**QUICK).fit(made.source.X, made.source.y)


def without_truth(folder):
    """The table of predictions, text as it is written, without the column that repeats the target's own labels."""
    return pd.read_csv(folder / "predictions.csv", dtype=str).drop(columns="truth", errors="ignore").to_csv()


def read(path):
    return json.loads(path.read_text())


# one target


def test_all_of_the_source_is_learnt_from(folder):
    assert read(folder / "summary.json")["source"]["windows"] == 50
    assert job().validation is None


def test_folder_holds_what_the_docs_promise(folder):
    names = ["explanation.npz", "metrics.json", "model", "predictions.csv", "sample.npz"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "shift.json", "summary.json"]


def test_it_says_how_good_it_is_whom_it_believed_and_what_it_undid(folder):
    summary, metrics, (model, _) = read(folder / "summary.json"), read(folder / "metrics.json"), jobs.load_model(folder)
    assert metrics["estimated_accuracy"] == summary["estimated_accuracy"] == model.estimated_accuracy_._asdict()
    assert [(w["witness"], w["view"], w["accuracy"]) for w in summary["witnesses"]] == list(model.witnesses_)
    assert summary["undone"] == list(model.shifts_)
    assert (summary["variant"], summary["mode"]) == ("plus", "markov")
    assert metrics["after"]["windows"] == 20
    assert model.channel_names == list(DATA.channel_names)


def test_saved_files_are_those_of_the_saved_model(folder):
    model, _ = jobs.load_model(folder)
    X, table = DATA.domain(1).X_test, pd.read_csv(folder / "predictions.csv")
    assert np.allclose(model.predict_proba(X).max(axis=1), table["confidence"])
    explanation = load_explanation(folder / "explanation.npz")
    assert isinstance(explanation, CouncilExplanation)
    assert explanation.answer_labels.tolist() == table["label"].tolist()
    np.testing.assert_allclose(explanation.probabilities, model.pseudo_label(X).probabilities, atol=1e-12)
    shift = ShiftReport.load(folder / "shift.json")
    assert np.array_equal(shift.distances, model.channel_distances_)
    assert shift.as_dict() == model.shift_report().as_dict()


def test_true_target_labels_change_nothing_but_the_scores(folder, tmp_path):
    test, target = job().test, job().target
    poisoned = job(target=Target(target.X, np.full(30, "class_0")), test=Target(test.X, np.full(20, "class_0")))
    jobs.run(poisoned, TransPL(**QUICK), tmp_path / "poisoned")
    outcome = jobs.run(job(target=Target(target.X), test=Target(test.X)), TransPL(**QUICK), tmp_path / "absent")
    expected = without_truth(folder)
    assert without_truth(tmp_path / "poisoned") == expected
    assert without_truth(tmp_path / "absent") == expected
    assert set(outcome.metrics) == {"estimated_accuracy"}
    assert outcome.metrics == read(tmp_path / "absent" / "metrics.json")
    write_report(tmp_path / "absent")


def test_the_source_is_learnt_once_and_found_again_by_another_job(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(TransPL, "fit", lambda *_, **__: pytest.fail("the source was learnt again"))
    jobs.run(job(), TransPL(**QUICK), tmp_path, source_from=folder)
    assert (tmp_path / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()
    with refusal("source_from", "differs in witnesses"):
        jobs.run(job(), TransPL(**{**QUICK, "witnesses": ("codes",)}), tmp_path, source_from=folder)


def test_smoothed_labels_are_scored_as_they_are_written(tmp_path):
    """The windows adapted to are those labelled here, so that both scores are of the same labels."""
    jobs.run(job(test=None, smooth=True), TransPL(**QUICK), tmp_path)
    metrics = read(tmp_path / "metrics.json")
    assert metrics["pseudo_labels"] == metrics["after"]


def test_windows_of_a_recording_have_one_label(tmp_path):
    target = DATA.domain(1)
    recordings = np.array([f"recording {k}" for k in target.y_train])
    made = job(target=Target(target.X_train, NAMES[target.y_train], groups=recordings), test=None)
    jobs.run(made, TransPL(**QUICK), tmp_path)
    labels = pd.read_csv(tmp_path / "predictions.csv")["label"]
    assert (labels.groupby(recordings).nunique() == 1).all()


def test_what_cannot_be_done_is_told_before_anything_is_learnt(tmp_path):
    unfitted = TransPL(**QUICK)
    with refusal("mode", "'markov' with variant='plus'"):
        jobs.run(job(mode="finetune"), unfitted, tmp_path)
    with refusal("smooth", "variant='paper'"):
        jobs.run(job(smooth=True), TransPL(variant="paper"), tmp_path)
    with refusal("triads", "three channels"):
        jobs.run(job(), TransPL(**QUICK, triads=[(0, 1)]), tmp_path)
    assert not hasattr(unfitted, "classes_")


def test_labels_of_a_person_are_obeyed_and_not_scored(tmp_path):
    few = dict.fromkeys(range(10), "class_1")
    outcome = jobs.run(job(few_labels=few, test=None), TransPL(**QUICK), tmp_path)
    assert outcome.metrics["labels_given"] == 10
    assert outcome.metrics["after"]["windows"] == 20
    assert len(review_job(tmp_path, 5)) == 5


# many targets


def test_many_targets_are_adapted_as_each_alone(fitted, tmp_path):
    targets = {"one": DATA.domain(1).X_train, "two": DATA.domain(1).X_test}
    found = {each.name: each for each in adapt_many(fitted, targets, out=tmp_path, backend="inline", keep_models=True)}
    for name, X in targets.items():
        alone = copy.deepcopy(fitted).set_params(n_threads=1).adapt(X)
        assert found[name].error is None
        assert np.array_equal(found[name].probabilities, alone.predict_proba(X))
        assert found[name].estimated_accuracy == alone.estimated_accuracy_._asdict()
        assert found[name].undone == alone.shifts_
        assert np.array_equal(TransPL.load(tmp_path / name / "model").predict_proba(X), found[name].probabilities)
        assert read(tmp_path / name / "metrics.json") == {"estimated_accuracy": found[name].estimated_accuracy}
        write_report(tmp_path / name)
    again = {each.name: each for each in adapt_many(fitted, targets, out=tmp_path, backend="inline", keep_models=True)}
    for name in targets:
        assert again[name].seconds == found[name].seconds, "it was made again"
        assert again[name].estimated_accuracy == found[name].estimated_accuracy
        assert again[name].scores is None


def test_a_loaded_model_adapts_to_many_and_notes_what_it_lacks(fitted, tmp_path):
    fitted.save(tmp_path)
    loaded, targets = TransPL.load(tmp_path), {"one": DATA.domain(1).X_train}
    (found,) = adapt_many(loaded, targets, backend="inline")
    assert any("does not hold its source rows" in note for note in found.notes)
    made = job()
    (found,) = adapt_many(loaded, targets, backend="inline", X_source=made.source.X, y_source=made.source.y)
    alone = copy.deepcopy(fitted).set_params(n_threads=1).adapt(targets["one"])
    assert np.array_equal(found.probabilities, alone.predict_proba(targets["one"]))
    assert found.notes == ()
    with refusal("mode", "variant='plus'"):
        adapt_many(loaded, targets, mode="finetune")


def test_a_table_of_many_targets_shows_the_estimate(tmp_path):
    domain = DATA.domain(1)
    np.savez(tmp_path / "home.npz", X=domain.X_train, channel_names=np.array(DATA.channel_names))
    made = job()
    many = ManyJob(made.source, None, {"home": TargetFile(tmp_path / "home.npz")}, DATA.channel_names, {})
    table = run_many(many, TransPL(**QUICK), tmp_path / "out", backend="inline")
    assert 0 <= table["estimated_accuracy"][0] <= 1
    assert "estimated" in table_as_text(table)
    assert pd.isna(table["accuracy"][0])


# streams


@pytest.mark.parametrize("chunk", [32, 100, 10_000])
def test_a_stream_is_labelled_as_a_whole(fitted, tmp_path, chunk):
    X = make_shifted(n_train=150, n_test=20, length=32).domain(1).X_train
    np.save(tmp_path / "X.npy", X)
    found = label_windows(fitted, tmp_path / "X.npy", tmp_path / "as it is", chunk=chunk)
    np.testing.assert_allclose(found.probabilities, fitted.predict_proba(X), atol=1e-6)
    adapted = copy.deepcopy(fitted).adapt(X)
    found = label_windows(fitted, tmp_path / "X.npy", tmp_path / "adapted", adapt=True, chunk=chunk)
    np.testing.assert_allclose(found.probabilities, adapted.predict_proba(X), atol=1e-6)
    assert TransitionCounts.load(tmp_path / "adapted" / "target_counts.npz") == adapted.target_counts_
    assert not (tmp_path / "adapted" / "codes.npy").exists(), "windows are not copied"
    assert fitted.mode_ == "source"


def test_of_a_long_stream_windows_in_equal_steps_are_heard(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("transpl.methods.council_method.MAX_WINDOWS", 50)
    X = make_shifted(n_train=150, n_test=20, length=32).domain(1).X_train
    found = label_windows(fitted, X, tmp_path, adapt=True, chunk=32)
    rows = np.linspace(0, 149, 50).round().astype(int)
    expected = copy.deepcopy(fitted).adapt(X[rows]).predict_proba(X)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-6)


# watching


def test_drift_is_measured_by_the_codes(fitted, tmp_path):
    fitted.save(tmp_path)
    X = DATA.domain(1).X_train
    one, other = fitted.drift(X), TransPL.load(tmp_path).drift(X)
    assert one.as_json() == other.as_json()
    assert fitted.drift(X, reference=DATA.domain(0).X_train).compared_with == "reference"
