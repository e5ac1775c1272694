"""The main job: data in, folder out."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from conftest import TINY, refusal

from transpl import Explanation, ShiftReport, TransPL, jobs
from transpl._utils.errors import InputError
from transpl.datasets import make_shifted
from transpl.jobs import Target, review_job
from transpl.jobs.target import explain_some
from transpl.jobs.target_summary import warnings_about
from transpl.nn.objectives import AdaptationObjective
from transpl.report import write_report
from transpl.report.figures import make_figure

DATA = make_shifted(n_train=30, n_test=20, length=32)


def job(**change):
    made = jobs.from_dataset(DATA, 0, 1)
    return jobs.Job(**{**vars(made), **change})


def without_truth(folder):
    """The table of predictions, text as it is written, without the column that repeats the target's own labels."""
    return pd.read_csv(folder / "predictions.csv", dtype=str).drop(columns="truth", errors="ignore").to_csv()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("job")
    jobs.run(job(), TransPL(**TINY), out)
    return out


def test_folder_holds_what_the_docs_promise(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "explanation.npz",
        "metrics.json",
        "model",
        "predictions.csv",
        "sample.npz",
        "shift.json",
        "summary.json",
    ]


def test_predictions_have_label_confidence_and_a_probability_per_class(folder):
    table = pd.read_csv(folder / "predictions.csv")
    shares = [f"p_{name}" for name in DATA.class_names]
    assert table.columns.tolist() == ["window", "label", "confidence", "check", "label_before", "truth", *shares]
    p = table[[f"p_{name}" for name in DATA.class_names]].to_numpy()
    assert len(table) == 20
    assert np.allclose(p.sum(axis=1), 1)
    assert np.allclose(p.max(axis=1), table["confidence"])
    assert (np.array(DATA.class_names)[p.argmax(axis=1)] == table["label"]).all()


def test_scores_are_those_of_the_predictions(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    truth = np.array(DATA.class_names)[DATA.domain(1).y_test]
    labels = pd.read_csv(folder / "predictions.csv")["label"].to_numpy()
    assert metrics["after"]["accuracy"] == pytest.approx((truth == labels).mean())
    assert metrics["after"]["windows"] == 20
    assert metrics["pseudo_labels"]["windows"] == 30
    assert np.sum(metrics["confusion"]["counts"]) == 20
    assert np.trace(metrics["confusion"]["counts"]) == (truth == labels).sum()


def test_saved_model_gives_the_saved_predictions(folder):
    model, reading = jobs.load_model(folder)
    table = pd.read_csv(folder / "predictions.csv")
    assert np.allclose(model.predict_proba(DATA.domain(1).X_test).max(axis=1), table["confidence"])
    assert reading == {"channels": list(DATA.channel_names), "window": 32}
    assert model.checkpoint_dir is None


def test_summary_names_channels_and_shares(folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert [channel["name"] for channel in summary["channels"]] == list(DATA.channel_names)
    assert all(0 <= channel["weight"] <= 1 for channel in summary["channels"])
    assert sum(summary["test"]["class_shares"].values()) == pytest.approx(1)
    assert summary["mode"] == "finetune"
    assert np.shape(summary["decoded_codes"]) == (TINY["n_coarse"], TINY["patch_length"])


def test_explanation_is_that_of_the_saved_model_and_its_predictions(folder):
    found, (model, _) = Explanation.load(folder / "explanation.npz"), jobs.load_model(folder)
    X, table = DATA.domain(1).X_test, pd.read_csv(folder / "predictions.csv")
    assert found.windows.tolist() == list(range(20))
    assert found.channel_names == DATA.channel_names
    assert np.array_equal(found.signals, X.astype(np.float32))
    assert found.answer_labels.tolist() == table["label"].tolist()
    np.testing.assert_allclose(found.probabilities, model.pseudo_label(X).probabilities, atol=1e-12)
    assert np.array_equal(found.nearest.rows, model.explain(X).nearest.rows)


def test_shift_is_that_of_the_saved_model(folder):
    found, (model, _) = ShiftReport.load(folder / "shift.json"), jobs.load_model(folder)
    assert np.array_equal(found.distances, model.channel_distances_)
    assert np.array_equal(found.target_counts, model.target_counts_.counts)
    assert found.channel_names == DATA.channel_names
    expected = model.pseudo_label(DATA.domain(1).X_train).probabilities.mean(axis=0)
    np.testing.assert_allclose(found.target_shares, expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_labels_of_a_person_count_in_the_shares_of_the_target(tmp_path, mode):
    few = dict.fromkeys(range(10), "class_1")
    jobs.run(job(mode=mode, few_labels=few, test=None), TransPL(**TINY), tmp_path)
    found, (model, _) = ShiftReport.load(tmp_path / "shift.json"), jobs.load_model(tmp_path)
    p = model.pseudo_label(DATA.domain(1).X_train).probabilities
    p[:10] = [name == "class_1" for name in DATA.class_names]
    np.testing.assert_allclose(found.target_shares, p.mean(axis=0), atol=1e-12)
    again = model.shift_report(channel_names=DATA.channel_names).target_shares
    assert again is None or np.array_equal(again, found.target_shares)


def test_many_windows_are_thinned_and_keep_their_numbers(folder, monkeypatch):
    monkeypatch.setattr("transpl.jobs.target.windows_to_explain", lambda p, order: np.array([3, 17]))
    model, X = jobs.load_model(folder)[0], DATA.domain(1).X_test
    for windows in (X, list(X)):
        found = explain_some(model, windows, model.predict_proba(X), np.arange(len(X)), DATA.channel_names)
        assert found.windows.tolist() == [3, 17]
        assert np.array_equal(found.signals, X[[3, 17]].astype(np.float32))


def test_true_target_labels_change_nothing_but_the_scores(folder, tmp_path):
    """Poisoned and absent labels: the same predictions."""
    test, target = job().test, job().target
    poisoned = job(target=Target(target.X, np.full(30, "nonsense")), test=Target(test.X, np.full(20, "class_0")))
    jobs.run(poisoned, TransPL(**TINY), tmp_path / "poisoned")
    absent = job(target=Target(target.X), test=Target(test.X))
    outcome = jobs.run(absent, TransPL(**TINY), tmp_path / "absent")
    expected = without_truth(folder)
    assert without_truth(tmp_path / "poisoned") == expected
    assert without_truth(tmp_path / "absent") == expected
    assert outcome.metrics is None
    assert not (tmp_path / "absent" / "metrics.json").exists()


def test_a_failed_job_leaves_a_record_and_goes_on_where_it_stopped(folder, tmp_path, monkeypatch):
    working = AdaptationObjective.forward

    def fail(self, batch):
        raise RuntimeError("the lights went out")

    monkeypatch.setattr(AdaptationObjective, "forward", fail)
    with pytest.raises(RuntimeError, match="lights"):
        jobs.run(job(), TransPL(**TINY), tmp_path)
    record = json.loads((tmp_path / "failed.json").read_text())
    assert "the lights went out" in record["error"]
    assert "Traceback" in record["traceback"]
    assert list((tmp_path / "checkpoints").glob("source-*.ckpt"))
    assert "goes on from the last checkpoint" in record["what_to_do"]

    monkeypatch.setattr(AdaptationObjective, "forward", working)
    jobs.run(job(), TransPL(**TINY), tmp_path)
    assert not (tmp_path / "failed.json").exists()
    assert not (tmp_path / "checkpoints").exists()
    assert (tmp_path / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()


READERS = (
    jobs.load_model,
    lambda out: jobs.load_model(out / "model"),
    write_report,
    lambda out: review_job(out, 3),
    lambda out: make_figure("alignment", out),
)


@pytest.mark.parametrize("step", ["write_table", "save_reading", "save_sample", "write_json"])
def test_a_death_while_results_are_written_is_noticed_by_all_who_read_them(folder, tmp_path, monkeypatch, step):
    out = shutil.copytree(folder, tmp_path / "out")
    (out / ".predictions.csv.abcdefgh.part.csv").write_text("half")  # a kill leaves it
    (out / ".profile.part.txt").write_text("of the user")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"transpl.jobs.target.{step}", die)
        with pytest.raises(KeyboardInterrupt):
            jobs.run(job(mode="markov"), TransPL(**TINY), out)
    for read in READERS:
        with refusal(out, "or that was interrupted.*Run transpl adapt"):
            read(out)
    jobs.run(job(mode="markov"), TransPL(**TINY), out)
    for read in READERS:
        read(out)
    left = {path.name for path in out.iterdir()} - {path.name for path in folder.iterdir()}
    assert left == {".profile.part.txt", "figures", "report.html"}


def test_results_that_are_whole_can_be_read_while_a_new_run_learns(folder, tmp_path, monkeypatch):
    out = shutil.copytree(folder, tmp_path / "out")
    monkeypatch.setattr(TransPL, "adapt", lambda *_, **__: [read(out) for read in READERS])
    monkeypatch.setattr(TransPL, "pseudo_label", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jobs.run(job(), TransPL(**TINY), out)


def test_a_reading_of_an_earlier_job_does_not_stay(tmp_path):
    jobs.run(job(mode="markov", reading={"window": 32}), TransPL(**TINY), tmp_path)
    assert jobs.load_model(tmp_path)[1] == {"window": 32}
    jobs.run(job(mode="markov", reading=None), TransPL(**TINY), tmp_path)
    assert jobs.load_model(tmp_path)[1] == {}


def test_known_class_shares_reach_the_labels(tmp_path):
    with_prior = job(prior={"class_0": 1.0}, mode="markov")
    jobs.run(with_prior, TransPL(**TINY), tmp_path)
    assert set(pd.read_csv(tmp_path / "predictions.csv")["label"]) == {"class_0"}


def test_a_users_mistake_is_not_advised_to_be_repeated(tmp_path):
    with pytest.raises(InputError):
        jobs.run(job(), TransPL(**{**TINY, "patch_length": 100}), tmp_path)
    assert "Correct" in json.loads((tmp_path / "failed.json").read_text())["what_to_do"]


def test_a_given_checkpoint_folder_is_given_back(tmp_path):
    model = TransPL(**{**TINY, "patch_length": 100, "checkpoint_dir": "mine"})
    with pytest.raises(InputError):
        jobs.run(job(), model, tmp_path)
    assert model.checkpoint_dir == "mine"


def test_the_end_of_every_class_and_group_is_held_out():
    y = np.array(["a"] * 10 + ["b"] * 10 + ["a"] * 3)
    group = np.array(["1"] * 20 + ["2"] * 3)
    train, held = jobs.hold_out_ends(np.arange(23), y, group)
    assert held.X.tolist() == [7, 8, 9, 17, 18, 19, 22]
    assert sorted([*train.X, *held.X]) == list(range(23))
    assert jobs.hold_out_ends(np.arange(2), np.array(["a", "b"]))[1] is None


def test_wrong_jobs_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"^channel_names: expected 3 names"):
        jobs.run(job(channel_names=("x",)), TransPL(**TINY), tmp_path)
    with pytest.raises(InputError, match=r"^prior: expected labels among"):
        jobs.run(job(prior={"swim": 1.0}), TransPL(**TINY), tmp_path)


def test_a_finished_fine_tuning_is_taken_from_the_folder(folder, tmp_path, monkeypatch):
    out = tmp_path / "again"
    shutil.copytree(folder, out)
    before = json.loads((out / "summary.json").read_text())
    labels = (out / "predictions.csv").read_text()

    def run(**changes: object) -> list[str]:
        said: list[str] = []
        jobs.run(jobs.from_dataset(DATA, 0, 1, **changes), TransPL(**TINY), out, said.append)
        return said

    with monkeypatch.context() as patch:
        patch.setattr(TransPL, "adapt", lambda *_, **__: 1 / 0)
        assert "adaptation: done by an earlier job" in run()
        assert (out / "predictions.csv").read_text() == labels
        after = json.loads((out / "summary.json").read_text())
        assert {**after, "written": ""} == {**before, "written": ""}
        with pytest.raises(ZeroDivisionError):  # other settings of the adaptation
            jobs.run(jobs.from_dataset(DATA, 0, 1), TransPL(**{**TINY, "sigma": 0.7}), out)
        with pytest.raises(ZeroDivisionError):  # another target
            jobs.run(jobs.from_dataset(DATA, 0, 2), TransPL(**TINY), out)
    weights = next((out / "model").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        run()  # trained again
    assert "adaptation: done by an earlier job" in run()


def test_a_target_that_lacks_classes_and_a_low_estimate_are_warned_of():
    shares, source = {"a": 0.6, "b": 0.4, "c": 0.0, "d": 0.0}, {"a": 0.4, "b": 0.3, "c": 0.28, "d": 0.02}
    good, low = ({"accuracy": value, "low": 0.1, "high": 1.0} for value in (0.95, 0.5))
    (absent,) = warnings_about(shares, source, good, lacks_classes=True)
    assert " c;" in absent  # d is rare in the source, too
    assert warnings_about({"a": 0.5, "b": 0.2, "c": 0.3}, source, good, lacks_classes=False) == []
    (noticed,) = warnings_about({"a": 0.5, "b": 0.2, "c": 0.3}, source, good, lacks_classes=True)
    assert "lack classes" in noticed
    assert len(warnings_about(shares, None, low, lacks_classes=False)) == 2
    assert warnings_about(shares, {"a": 0.5, "b": 0.5}, None, lacks_classes=False) == []
    (silent,) = warnings_about(shares, {"a": 0.5, "b": 0.5}, None, lacks_classes=False, unread=["temp"])
    assert "temp" in silent
