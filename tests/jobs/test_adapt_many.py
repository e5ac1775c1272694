"""One source model, many targets: the same numbers on every back end, and no target is drawn into another's trouble."""

from __future__ import annotations

import json
import os
import pickle
import tempfile

import numpy as np
import pandas as pd
import pytest
from conftest import TINY, make_waves, refusal
from sklearn.exceptions import NotFittedError
from targets_to_read import Counted, be_killed, read_waves, refuse

from transpl import TransPL, adapt_many
from transpl.estimator.parameters import OF_THE_MACHINE
from transpl.jobs import TargetFile
from transpl.report import write_report

SOURCE = make_waves(40, seed=0)
QUICK = {**TINY, "max_epochs": 2, "n_threads": 1}
ARRAYS = ("labels", "confidence", "probabilities", "channel_distances", "channel_weights")


@pytest.fixture(scope="module")
def model():
    return TransPL(**QUICK).fit(*SOURCE)


@pytest.fixture
def many(tmp_path):
    """Three good targets of different kinds, and three bad ones."""
    X, y = make_waves(18, seed=2, offset=0.4)
    np.savez(tmp_path / "file.npz", X=X, y=y, channel_names=np.array(["ax", "ay"]))
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    return {
        "array": make_waves(16, seed=1, gain=1.5)[0],
        "bad file": tmp_path / "bad.npz",
        "file": str(tmp_path / "file.npz"),
        "function": read_waves,
        "bad function": refuse,
        "bad windows": np.zeros((4, 3, 32)),
    }


GOOD = ("array", "file", "function")


def by_name(found):
    return {target.name: target for target in found}


def assert_same(one, other):
    for field in ARRAYS:
        assert np.array_equal(getattr(one, field), getattr(other, field)), field
    assert (one.scores, one.channel_names, one.error) == (other.scores, other.channel_names, other.error)


def inline(model, targets, **options):
    return by_name(adapt_many(model, targets, backend="inline", **options))


# The same as adapting to one


@pytest.mark.parametrize("mode", ["markov", "finetune"])
def test_each_target_gets_what_adapt_gives_it(model, many, mode):
    found = inline(model, many, mode=mode)
    alone = pickle.loads(pickle.dumps(model))
    for name, X in (("array", many["array"]), ("function", read_waves())):
        alone.adapt(X, mode=mode)
        assert np.array_equal(found[name].probabilities, alone.predict_proba(X))
        assert np.array_equal(found[name].labels, alone.predict(X))
        assert np.array_equal(found[name].confidence, found[name].probabilities.max(axis=1))
        assert np.array_equal(found[name].channel_distances, alone.channel_distances_)
        assert np.array_equal(found[name].channel_weights, alone.channel_weights_)
        assert found[name].seconds > 0


def test_fine_tuning_is_the_default(model, many):
    found = inline(model, {"array": many["array"]})["array"]
    assert_same(found, inline(model, {"array": many["array"]}, mode="finetune")["array"])
    assert not np.array_equal(
        found.probabilities, inline(model, {"array": many["array"]}, mode="markov")["array"].probabilities
    )


def test_bad_targets_cost_only_themselves(model, many):
    found = inline(model, many, mode="markov")
    assert {name for name, target in found.items() if target.error is None} == set(GOOD)
    assert str(many["bad file"]) in found["bad file"].error
    assert found["bad function"].error == "RuntimeError: two lines"
    assert "in refuse" in found["bad function"].traceback
    assert "expected 2 channel(s)" in found["bad windows"].error
    for target in found.values():
        assert (target.labels is None) == (target.error is not None)


def test_labels_of_a_file_score_and_change_nothing(model, many, tmp_path):
    X = np.load(many["file"])["X"]
    np.savez(tmp_path / "poisoned.npz", X=X, y=np.zeros(len(X), int), channel_names=np.array(["ax", "ay"]))
    found = inline(model, {"file": many["file"], "poisoned": tmp_path / "poisoned.npz", "blind": X})
    assert np.array_equal(found["file"].probabilities, found["poisoned"].probabilities)
    assert np.array_equal(found["file"].probabilities, found["blind"].probabilities)
    truth = np.load(many["file"])["y"]
    assert found["file"].scores["after"]["accuracy"] == pytest.approx((found["file"].labels == truth).mean())
    assert found["file"].scores["before"]["accuracy"] == pytest.approx((model_before(model, X) == truth).mean())
    assert found["file"].scores != found["poisoned"].scores
    assert found["blind"].scores is None


def model_before(model, X):
    return TransPL(**QUICK).fit(*SOURCE).predict(X)


# Isolation: neither the model, nor the others, nor the order


def test_the_model_is_left_as_it_is(model, many, tmp_path):
    model.adapt(many["array"], prior=[0.3, 0.7], mode="markov")
    before = pickle.dumps(model)
    answers = model.predict_proba(many["array"])
    found = inline(model, many, mode="markov", out=tmp_path / "out")
    assert pickle.dumps(model) == before
    assert np.array_equal(model.predict_proba(many["array"]), answers)
    # A former adaptation, its prior included, does not reach the targets.
    fresh = TransPL(**QUICK).fit(*SOURCE)
    assert_same(found["array"], inline(fresh, {"array": many["array"]}, mode="markov")["array"])


def test_neither_order_nor_company_changes_a_target(model, many):
    found = inline(model, many)
    other_way = inline(model, dict(reversed(many.items())))
    for name in GOOD:
        assert_same(found[name], other_way[name])
        assert_same(found[name], inline(model, {name: many[name]})[name])


def test_nothing_stays_in_the_folder_for_temporary_files(model, many, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    targets = adapt_many(model, many, backend="inline")
    next(targets)
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    targets.close()
    assert list((tmp_path / "temporary").iterdir()) == []


# Back ends


def test_loky_gives_the_same_and_survives_a_killed_worker(model, many):
    expected = inline(model, many)
    found = by_name(adapt_many(model, {**many, "killed": be_killed}, jobs=2))
    assert found["killed"].error == "worker died (SIGKILL(-9))"
    for name in many:
        assert found[name].error == expected[name].error
        if name in GOOD:
            assert_same(found[name], expected[name])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_clusters_give_the_same(model, many, backend):
    some = {name: many[name] for name in ("array", "bad file", "file")}
    expected = inline(model, some)
    found = by_name(adapt_many(model, some, jobs=2, backend=backend))
    assert found["bad file"].error == expected["bad file"].error
    assert_same(found["array"], expected["array"])
    assert_same(found["file"], expected["file"])


# Loaded models


def test_a_loaded_model_is_fine_tuned_with_source_rows(model, many, tmp_path):
    model.save(tmp_path / "saved")
    loaded = TransPL.load(tmp_path / "saved")
    with refusal("adapt", "Pass X_source and y_source"):
        adapt_many(loaded, many)
    target = {"array": many["array"]}
    found = inline(loaded, target, X_source=SOURCE[0], y_source=SOURCE[1])["array"]
    assert_same(found, inline(model, target)["array"])
    assert not loaded.fitted_method().holds_source_rows
    assert_same(inline(loaded, target, mode="markov")["array"], inline(model, target, mode="markov")["array"])


def test_windows_of_unequal_length(many):
    X, y = SOURCE
    series = [window[:, : 32 - 4 * (i % 2)] for i, window in enumerate(X)]
    fitted = TransPL(**QUICK).fit(series, y)
    found = inline(fitted, {"unequal": series[:10]})["unequal"]
    fitted.adapt(series[:10])
    assert np.array_equal(found.probabilities, fitted.predict_proba(series[:10]))


def test_known_proportions_belong_to_their_target(model, many):
    prior = {"array": {0: 1.0}}
    found = inline(model, many, mode="markov", priors=prior)
    assert set(found["array"].labels) == {0}
    assert_same(found["function"], inline(model, many, mode="markov")["function"])


def test_npy_files_and_other_ways_of_reading(model, tmp_path):
    X, _ = make_waves(16, seed=1, gain=1.5)
    np.save(tmp_path / "windows.npy", X)
    time, rows = np.arange(16 * 32), X.transpose(0, 2, 1).reshape(-1, 2)
    pd.DataFrame({"t": time, "ax": rows[:, 0], "ay": rows[:, 1]}).to_csv(tmp_path / "rows.csv", index=False)
    reading = {"time_col": "t", "window": 32, "step": 32}
    targets = {"npy": tmp_path / "windows.npy", "csv": TargetFile(tmp_path / "rows.csv", reading), "array": X}
    found = inline(model, targets, mode="markov")
    assert np.array_equal(found["npy"].probabilities, found["array"].probabilities)
    assert np.allclose(found["csv"].probabilities, found["array"].probabilities)
    assert found["csv"].channel_names == ("ax", "ay")
    assert found["npy"].channel_names == ("channel_0", "channel_1")


def test_other_channels_are_refused_where_names_are_known(model, many):
    found = inline(model, many, mode="markov", channel_names=["ay", "ax"])
    assert "expected channels ay, ax, got ax, ay" in found["file"].error
    assert found["array"].channel_names == ("ay", "ax")


def test_warnings_become_notes_of_their_target(model):
    X, _ = make_waves(12, seed=3, length=34)
    found = inline(model, {"tail": X, "whole": X[:, :, :32]}, mode="markov")
    assert len(found["tail"].notes) == 1
    assert "fill no patch of 4" in found["tail"].notes[0]
    assert found["whole"].notes == ()


# Folders


def test_a_folder_per_target(model, many, tmp_path):
    found = inline(model, many, out=tmp_path / "out", keep_models=True)
    folder = tmp_path / "out" / "file"
    assert found["file"].folder == folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "metrics.json",
        "model",
        "predictions.csv",
        "summary.json",
    ]
    table = pd.read_csv(folder / "predictions.csv")
    assert table["label"].tolist() == found["file"].labels.tolist()
    assert json.loads((folder / "metrics.json").read_text()) == found["file"].scores
    adapted = TransPL.load(folder / "model")
    X = np.load(many["file"])["X"]
    assert np.array_equal(adapted.predict_proba(X), found["file"].probabilities)
    of_this_machine = {name: default for name, default in TransPL().get_params().items() if name in OF_THE_MACHINE}
    assert adapted.get_params() == {**model.get_params(), **of_this_machine}
    page = write_report(folder).read_text()
    assert "source: 28 windows with labels" in page
    assert "file: 18 windows to adapt to" in page
    assert "this folder has no explanation.npz" in page
    assert sorted(path.name for path in (tmp_path / "out" / "array").iterdir())[1:] == [
        "predictions.csv",
        "summary.json",
    ]
    record = json.loads((tmp_path / "out" / "bad function" / "failed.json").read_text())
    assert record["error"] == "RuntimeError: two lines"
    assert "in refuse" in record["traceback"]


def test_models_are_kept_only_on_demand(model, many, tmp_path):
    target = {"array": many["array"]}
    inline(model, target, mode="markov", out=tmp_path)
    assert not (tmp_path / "array" / "model").exists()
    (found,) = adapt_many(model, target, mode="markov", out=tmp_path, keep_models=True, backend="inline")
    assert np.array_equal(TransPL.load(tmp_path / "array" / "model").predict(many["array"]), found.labels)


def test_finished_targets_are_not_made_again(model, many, tmp_path):
    many["counted"] = Counted(tmp_path / "calls")
    first = inline(model, many, out=tmp_path / "out")
    stamps = {name: os.stat(tmp_path / "out" / name / "summary.json").st_mtime_ns for name in GOOD}
    np.savez(many["bad file"], X=many["array"])  # mended
    again = inline(model, many, out=tmp_path / "out")
    assert (tmp_path / "calls").read_text() == "x"
    for name in (*GOOD, "counted"):
        assert_same(first[name], again[name])
        assert (again[name].seconds, again[name].notes) == (first[name].seconds, first[name].notes)
    for name, stamp in stamps.items():
        assert os.stat(tmp_path / "out" / name / "summary.json").st_mtime_ns == stamp
    assert again["bad file"].error is None
    assert np.array_equal(again["bad file"].probabilities, again["array"].probabilities)
    assert not (tmp_path / "out" / "bad file" / "failed.json").exists()


def changes(folder):
    X, y = SOURCE
    return {
        "mode": {"mode": "finetune"},
        "prior": {"priors": {"array": [0.2, 0.8]}},
        "setting": {"model": TransPL(**{**QUICK, "sigma": 0.1}).fit(X, y)},
        "source": {"model": TransPL(**QUICK).fit(X + 0.1, y)},
        "windows": {"targets": {"array": make_waves(16, seed=9)[0]}},
        "predictions": {"tamper": lambda: (folder / "predictions.csv").write_text("window,label\n")},
        "summary": {"tamper": lambda: (folder / "summary.json").write_text("{}")},
        "half of it": {"tamper": lambda: (folder / "summary.json").unlink()},
    }


@pytest.mark.parametrize("change", changes(None))
def test_what_has_changed_is_made_anew(model, many, tmp_path, change):
    common = {"mode": "markov", "backend": "inline", "out": tmp_path}
    usual = {"model": model, "targets": {"array": many["array"]}}
    (first,) = adapt_many(**usual, **common)
    options = changes(tmp_path / "array")[change]
    options.pop("tamper", lambda: None)()
    (again,) = adapt_many(**{**usual, **common, **options})
    assert again.seconds != first.seconds
    (once_more,) = adapt_many(**{**usual, **common, **options})
    assert once_more.seconds == again.seconds
    assert_same(once_more, again)


def test_fine_tuning_depends_on_the_source_rows(model, many, tmp_path):
    model.save(tmp_path / "saved")
    loaded, target = TransPL.load(tmp_path / "saved"), {"array": many["array"]}
    X, y = SOURCE
    one = inline(loaded, target, X_source=X, y_source=y, out=tmp_path / "out")["array"]
    other = inline(loaded, target, X_source=X[:30], y_source=y[:30], out=tmp_path / "out")["array"]
    assert not np.array_equal(one.probabilities, other.probabilities)


def test_results_outlive_a_file_that_is_gone(model, many, tmp_path):
    path, target = tmp_path / "file.npz", {"file": many["file"]}
    first = inline(model, target, mode="markov", out=tmp_path / "out")["file"]
    path.rename(tmp_path / "away.npz")
    assert "no such file" in inline(model, target, mode="markov", out=tmp_path / "out")["file"].error
    assert (tmp_path / "out" / "file" / "failed.json").exists()
    (tmp_path / "away.npz").rename(path)
    again = inline(model, target, mode="markov", out=tmp_path / "out")["file"]
    assert again.seconds == first.seconds
    assert not (tmp_path / "out" / "file" / "failed.json").exists()


def test_an_interrupted_fine_tuning_goes_on(model, many, tmp_path, monkeypatch):
    target = {"array": many["array"]}
    expected = inline(model, target)["array"]
    with monkeypatch.context() as patch:
        patch.setattr("transpl.jobs.many_worker.write_target_folder", lambda *_, **__: refuse())
        assert inline(model, target, out=tmp_path)["array"].error == "RuntimeError: two lines"
    assert len(list((tmp_path / "array" / "checkpoints").iterdir())) == 1
    epochs = []
    from transpl.nn.loop import _Loop

    run_epoch = _Loop.run_epoch
    monkeypatch.setattr(_Loop, "run_epoch", lambda loop: epochs.append(loop.epoch) or run_epoch(loop))
    assert_same(inline(model, target, out=tmp_path)["array"], expected)
    assert epochs == []
    assert not (tmp_path / "array" / "checkpoints").exists()


# Refusals


def test_nothing_to_do(model):
    assert list(adapt_many(model, {}, backend="inline")) == []


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        adapt_many(TransPL(), {})
    with refusal("model", "a fitted TransPL"):
        adapt_many("model", {})


WRONG = {
    "mode": ({"mode": "magic"}, "mode", "'finetune', 'markov'"),
    "back end": ({"backend": "threads"}, "backend", "'loky'"),
    "jobs": ({"jobs": 0}, "jobs", ""),
    "retries": ({"retries": -1}, "retries", ""),
    "address of no cluster": ({"address": "here:1"}, "address", "Leave it out"),
    "cluster without folder": ({"backend": "dask", "address": "here:1"}, "out", "machines of the cluster see"),
    "prior of nobody": ({"priors": {"zoe": [0.5, 0.5]}}, "priors", "names of targets"),
    "prior of no class": ({"priors": {"array": {"swim": 1.0}}}, "prior", "labels among"),
    "negative prior": ({"priors": {"array": [2.0, -1.0]}}, "prior", ""),
    "channel names": ({"channel_names": ["ax"]}, "channel_names", "2 names"),
    "list": ({"targets": [np.zeros((4, 2, 32))]}, "targets", "Name the targets"),
    "number as name": ({"targets": {1: np.zeros((4, 2, 32))}}, "targets", "names as text"),
    "source without labels": ({"X_source": SOURCE[0]}, "y_source", ""),
}


@pytest.mark.parametrize(("options", "argument", "words"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_are_refused_at_once(model, many, options, argument, words):
    with refusal(argument, words):
        adapt_many(**{"model": model, "targets": many, **options})


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../up", "a\\b", "nul\0"])
def test_names_must_stay_in_their_folder(model, tmp_path, name):
    with refusal("targets", "names that a folder may have"):
        adapt_many(model, {name: read_waves}, out=tmp_path)
    assert len(list(adapt_many(model, {name: read_waves}, mode="markov", backend="inline"))) == 1


def test_out_must_be_a_folder(model, tmp_path):
    (tmp_path / "file").write_text("")
    with refusal("out", "expected a folder"):
        adapt_many(model, {}, out=tmp_path / "file")
