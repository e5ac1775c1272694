"""The main job for many targets, and the command that starts it."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import FAST, READ, transpl, walk
from conftest import make_waves, refusal

from transpl import TransPL
from transpl._utils.errors import UnreadableFile
from transpl.jobs import ManyJob, Source, load_model, many_job, run_many
from transpl.nn.loop import _Loop

QUICK = [*FAST, "--variant", "paper", "--backend", "inline"]


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """A lab, three homes, one of them without labels, and a broken one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homes").mkdir()
    for seed, name in enumerate(("lab", "homes/ann", "homes/bob", "homes/eve")):
        X, y = make_waves(24, seed=seed, gain=1 + seed / 4)
        known = {} if name == "homes/eve" else {"y": y, "class_names": np.array(["sit", "walk"])}
        np.savez(f"{name}.npz", X=X, channel_names=np.array(["ax", "ay"]), **known)
    (tmp_path / "homes" / "bad.npz").write_bytes(b"PK nonsense")
    return tmp_path


@pytest.fixture
def epochs(monkeypatch):
    """How many epochs were trained, in this process."""
    trained = []
    run_epoch = _Loop.run_epoch
    monkeypatch.setattr(_Loop, "run_epoch", lambda loop: trained.append(loop.run.phase) or run_epoch(loop))
    return trained


def adapt(monkeypatch, *words):
    return transpl(monkeypatch, "adapt", "--source", "lab.npz", "--out", "out", *QUICK, *words)


def good(*names):
    return [word for name in names for word in ("--target", f"homes/{name}.npz")]


def predictions(out, name):
    return Path(out, name, "predictions.csv").read_text()


def test_every_target_gets_a_folder_and_a_row(monkeypatch, capsys, homes):
    assert adapt(monkeypatch, "--target", "homes/*.npz", "--mode", "markov") == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split() == ["target", "windows", "confidence", "moved", "most", "accuracy", "error"]
    assert [line.split()[0] for line in lines[1:]] == ["ann", "bad", "bob", "eve"]
    assert "homes/bad.npz: " in lines[2]
    assert lines[1].split()[-1] == "%"
    assert "%" not in lines[4]
    assert "4/4 eve: 24 windows" in said.err
    assert "failed: UnreadableFile" in said.err

    table = pd.read_csv("out/summary.csv").set_index("target")
    assert table["windows"].tolist()[0] == 24
    assert table["error"].notna().tolist() == [False, True, False, False]
    assert table["accuracy"].notna().tolist() == [True, False, True, False]
    for name in ("ann", "bob", "eve"):
        found = pd.read_csv(f"out/{name}/predictions.csv")
        assert table.loc[name, "mean_confidence"] == pytest.approx(found["confidence"].mean())
        assert os.path.exists(f"out/{name}/metrics.json") == (name != "eve")
    truth = np.array(["sit", "walk"])[np.load("homes/ann.npz")["y"]]
    right = pd.read_csv("out/ann/predictions.csv")["label"].to_numpy() == truth
    assert table.loc["ann", "accuracy"] == pytest.approx(right.mean())
    assert os.listdir("out/bad") == ["failed.json"]


def test_moved_most_are_the_largest_distances(monkeypatch, homes):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    adapted = TransPL.load("out/ann/model")
    first, second = np.argsort(-adapted.channel_distances_)
    names, distances = ["ax", "ay"], adapted.channel_distances_
    expected = f"{names[first]} {distances[first]:.3f}, {names[second]} {distances[second]:.3f}"
    assert pd.read_csv("out/summary.csv")["moved_most"][0] == expected


def test_the_same_command_goes_on_with_what_is_missing(monkeypatch, capsys, homes, epochs):
    assert adapt(monkeypatch, "--target", "homes/*.npz") == 1
    assert epochs == ["source", "adapt", "adapt", "adapt"]
    before = {name: predictions("out", name) for name in ("ann", "bob", "eve")}
    X, _ = make_waves(20, seed=7)
    np.savez("homes/bad.npz", X=X, channel_names=np.array(["ax", "ay"]))
    epochs.clear()
    assert adapt(monkeypatch, "--target", "homes/*.npz") == 0
    assert epochs == ["adapt"]
    assert {name: predictions("out", name) for name in before} == before
    table = pd.read_csv("out/summary.csv")
    assert table["windows"].tolist() == [24, 20, 24, 24]
    assert "error" not in capsys.readouterr().out.splitlines()[-5]

    # Resumed or not, the results are the same.
    assert adapt(monkeypatch, "--target", "homes/*.npz", "--out", "afresh") == 0
    for name in (*before, "bad"):
        assert predictions("afresh", name) == predictions("out", name)


def test_another_source_is_learnt_anew(monkeypatch, homes, epochs):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    X, y = make_waves(24, seed=0, offset=0.2)
    np.savez("lab.npz", X=X, y=y, class_names=np.array(["sit", "walk"]), channel_names=np.array(["ax", "ay"]))
    before = predictions("out", "ann")
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    assert epochs == ["source", "source"]
    assert predictions("out", "ann") != before
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov", "--seed", "4") == 0
    assert epochs == ["source"] * 3


def test_other_ways_to_adapt_do_not_train_the_source_again(monkeypatch, homes, epochs):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    before = predictions("out", "ann")
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov", "--sigma", "0.01") == 0
    assert epochs == ["source"]
    assert predictions("out", "ann") != before
    assert [TransPL.load(f"out/{name}").sigma for name in ("model", "ann/model", "bob/model")] == [0.01] * 3


def test_the_source_model_that_was_demanded_comes_before_the_one_that_is_there(monkeypatch, homes):
    """Another number of threads may have rounded it otherwise; the answer is that of the one asked for."""
    quick = [*good("ann", "bob"), "--mode", "markov", "--out"]
    assert adapt(monkeypatch, *quick, "first") == 0
    assert adapt(monkeypatch, *quick, "second") == 0
    other = TransPL.load("second/model")
    weight = next(other.method_.state.source_network.parameters())
    weight.data += 1e-6
    other.save("second/model")
    record = json.loads(Path("second/model/source.json").read_text())
    record["model"] = json.loads(Path("second/model/model.json").read_text())["digest"]
    Path("second/model/source.json").write_text(json.dumps(record))
    assert adapt(monkeypatch, *quick, "first", "--source-from", "second") == 0
    assert torch.equal(next(TransPL.load("first/model").method_.state.source_network.parameters()), weight)


def test_a_given_checkpoint_folder_is_given_back(tmp_path):
    X, y = make_waves(12, seed=0)
    source, model = Source(X, y), TransPL(variant="paper", patch_length=100, checkpoint_dir="mine")
    job = ManyJob(source, None, {}, ("ax", "ay"), {})
    with refusal("X"):
        run_many(job, model, tmp_path)
    assert model.checkpoint_dir == "mine"


def test_a_source_model_that_was_replaced_is_noticed(monkeypatch, homes, epochs):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    X, y = make_waves(24, seed=5)
    TransPL(variant="paper", patch_length=4, width=16, n_heads=2, max_epochs=1).fit(X, y).save("out/model")
    epochs.clear()
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    assert epochs == ["source"]


def test_targets_need_not_be_quoted_and_may_be_repeated(monkeypatch, homes):
    assert adapt(monkeypatch, "--target", "homes/ann.npz", "homes/bob.npz", "--mode", "markov") == 0
    assert pd.read_csv("out/summary.csv")["target"].tolist() == ["ann", "bob"]
    twice = [*good("ann", "bob", "ann"), "--out", "other"]
    assert adapt(monkeypatch, *twice, "--mode", "markov") == 0
    assert pd.read_csv("other/summary.csv")["target"].tolist() == ["ann", "bob"]


def test_one_target_is_as_it_was_and_a_pattern_is_many(monkeypatch, homes):
    assert adapt(monkeypatch, *good("ann"), "--mode", "markov") == 0
    assert (homes / "out" / "report.html").is_file()
    assert adapt(monkeypatch, "--target", "homes/a*.npz", "--mode", "markov", "--out", "pattern") == 0
    assert pd.read_csv("pattern/summary.csv")["target"].tolist() == ["ann"]


@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_a_target_among_many_has_the_labels_and_counts_of_a_target_alone(monkeypatch, homes, mode):
    for name in ("ann", "eve"):  # with labels to score with, and without
        assert adapt(monkeypatch, *good(name), "--mode", mode, "--threads", "1", "--out", f"one-{name}") == 0
    assert adapt(monkeypatch, *good("ann", "eve"), "--mode", mode, "--threads", "1") == 0
    for name in ("ann", "eve"):
        assert predictions("out", name) == predictions(".", f"one-{name}")
        many, one = (json.loads(Path(out, "summary.json").read_text()) for out in (f"out/{name}", f"one-{name}"))
        assert many["test"] == one["test"]


def test_model_and_report_of_a_target_are_at_hand(monkeypatch, capsys, homes):
    assert adapt(monkeypatch, *good("ann", "bob")) == 0
    capsys.readouterr()
    words = ["predict", "--model", "out/ann", "--input", "homes/ann.npz", "--threads", "1"]
    assert transpl(monkeypatch, *words) == 0
    found, kept = (pd.read_csv(StringIO(text)) for text in (capsys.readouterr().out, predictions("out", "ann")))
    pd.testing.assert_frame_equal(found, kept[found.columns], check_exact=True)
    assert transpl(monkeypatch, "report", "out/ann") == 0
    assert "From lab to ann" in (homes / "out" / "ann" / "report.html").read_text()


def test_tables_are_read_as_the_command_says(monkeypatch, homes):
    walk(0, 1.0).to_csv("lab.csv", index=False)
    walk(1, 1.5).assign(who="ann", extra=1.0).to_csv("ann.csv", index=False)
    walk(2, 1.2).drop(columns="activity").to_parquet("bob.parquet")
    walk(3, 1.0).rename(columns={"ay": "az"}).to_csv("eve.csv", index=False)
    words = ["--source", "lab.csv", "--target", "ann.csv", "--target", "bob.parquet", "--target", "eve.csv"]
    assert transpl(monkeypatch, "adapt", *words, "--out", "out", *READ, *QUICK, "--prior", "walk=0.6,run=0.4") == 1
    table = pd.read_csv("out/summary.csv").set_index("target")
    assert table["error"].notna().tolist() == [False, False, True]
    assert "'ay'" in table.loc["eve", "error"]
    assert {"window", "start", "label", "p_run", "p_walk"} <= set(pd.read_csv("out/ann/predictions.csv").columns)
    assert transpl(monkeypatch, "predict", "--model", "out/bob", "--input", "bob.parquet") == 0


@pytest.mark.slow  # test_adapt_many.py has the same on loky
def test_processes_give_the_same(monkeypatch, homes):
    assert adapt(monkeypatch, "--target", "homes/*.npz") == 1
    assert adapt(monkeypatch, "--target", "homes/*.npz", "--out", "two", "--backend", "loky", "--jobs", "2") == 1
    for name in ("ann", "bob", "eve"):
        assert predictions("two", name) == predictions("out", name)
    columns = ["target", "windows", "mean_confidence", "moved_most", "accuracy", "error"]
    pd.testing.assert_frame_equal(pd.read_csv("two/summary.csv")[columns], pd.read_csv("out/summary.csv")[columns])


def test_ctrl_c_leaves_what_is_finished(monkeypatch, capsys, homes, epochs):
    row = many_job._row

    def interrupt(target):
        if target.name == "bob":
            raise KeyboardInterrupt
        return row(target)

    with monkeypatch.context() as patch:
        patch.setattr(many_job, "_row", interrupt)
        assert adapt(patch, *good("ann", "bob", "eve")) == 130
    assert "The same command goes on" in capsys.readouterr().err.splitlines()[-1]
    epochs.clear()
    assert adapt(monkeypatch, *good("ann", "bob", "eve")) == 0
    assert epochs == ["adapt"]
    assert not os.path.exists("out/failed.json")


WRONG = {
    "pattern": (["--target", "homes/*.csv"], "target: expected files"),
    "mode": ([*good("ann", "bob"), "--mode", "magic"], "mode: expected one of"),
    "prior": ([*good("ann", "bob"), "--prior", "swim=1"], "prior: expected labels among"),
    "back end": ([*good("ann", "bob"), "--backend", "threads"], "backend: expected one of"),
    "address": ([*good("ann", "bob"), "--address", "here:1"], "address: expected None for backend 'inline'"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_found_before_any_work(monkeypatch, capsys, homes, epochs, words, message):
    assert adapt(monkeypatch, *words) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"error: {message}")
    assert epochs == []


def test_a_folder_of_one_target_is_not_mixed_with_many(monkeypatch, capsys, homes):
    assert adapt(monkeypatch, *good("ann"), "--mode", "markov") == 0
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 2
    assert "out: expected a folder for many targets" in capsys.readouterr().err
    for name in ("summary.json", "predictions.csv"):  # as if the first had died early
        (homes / "out" / name).unlink()
    (homes / "out" / "unfinished.json").write_text("{}")
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 2


def test_a_folder_of_many_targets_keeps_its_source_model(monkeypatch, capsys, homes):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    kept = (homes / "out" / "model" / "model.json").read_bytes()
    assert adapt(monkeypatch, *good("ann"), "--mode", "markov") == 2
    assert "error: out: expected a folder for one target, got out, which holds many" in capsys.readouterr().err
    assert (homes / "out" / "model" / "model.json").read_bytes() == kept
    assert not (homes / "out" / "predictions.csv").exists()


def test_temporary_files_of_a_run_that_was_killed_go(monkeypatch, homes):
    home = homes / "out" / "model"
    home.mkdir(parents=True)
    (home / ".weights.safetensors.edrw36ro.part.safetensors").touch()
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    assert not list(home.glob(".*"))


def die(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("early", [True, False])
def test_a_folder_of_many_targets_is_known_before_it_is_finished(monkeypatch, capsys, homes, early):
    with monkeypatch.context() as patch:
        patch.setattr(many_job, "checkpoints_in" if early else "adapt_many", die)
        assert adapt(patch, *good("ann", "bob")) == 130
    assert json.loads((homes / "out" / "targets.json").read_text()) == {"targets": ["ann", "bob"]}
    assert adapt(monkeypatch, *good("ann"), "--mode", "markov") == 2
    assert "which holds many targets" in capsys.readouterr().err
    if early:
        with pytest.raises(
            UnreadableFile, match=r"model\.json: no such file"
        ):  # and no note on a model that is not there
            load_model(homes / "out")
    else:
        with pytest.warns(UserWarning, match="source model, not adapted"):
            load_model(homes / "out")
    assert transpl(monkeypatch, "report", "out") == 2
    assert "one of its folders" in capsys.readouterr().err


def test_a_table_of_an_earlier_run_does_not_stay_beside_newer_targets(monkeypatch, homes):
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    with monkeypatch.context() as patch:
        patch.setattr(many_job, "_row", die)
        assert adapt(patch, *good("ann", "eve"), "--mode", "markov") == 130
    assert not (homes / "out" / "summary.csv").exists()


def test_a_target_that_died_while_it_was_written_is_noticed_and_made_again(monkeypatch, capsys, homes):
    with monkeypatch.context() as patch:
        patch.setattr("transpl.jobs.target.write_table", die)
        assert adapt(patch, *good("ann", "bob"), "--mode", "markov") == 130
    assert transpl(monkeypatch, "predict", "--model", "out/ann", "--input", "homes/ann.npz") == 2
    assert "out/ann: its results are being written, or that was interrupted" in capsys.readouterr().err
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    (homes / "out" / "ann" / "unfinished.json").write_text("{}")  # died when all but this was done
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    assert transpl(monkeypatch, "predict", "--model", "out/ann", "--input", "homes/ann.npz") == 0


def test_nothing_of_a_job_for_one_target_stays_in_the_folder_of_a_target(monkeypatch, homes):
    assert adapt(monkeypatch, *good("ann"), "--mode", "markov", "--out", "out/ann") == 0
    assert adapt(monkeypatch, *good("ann", "bob"), "--mode", "markov") == 0
    assert sorted(os.listdir("out/ann")) == sorted(os.listdir("out/bob"))


def test_a_source_without_labels_is_refused(homes):
    from transpl.datasets.recordings.reading import read_recordings

    with refusal("source", "--label-col"):
        ManyJob.from_recordings(read_recordings("homes/eve.npz"), [], {})
