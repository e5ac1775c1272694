"""The commands, as a person types them."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from command_line import FAST, READ, adapt, transpl, walk
from made_up_bench import small_bench

from transpl import TransPL, __version__, datasets


def test_adapt_reads_csv_says_what_it_read_and_writes_everything(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv") == 0
    said = capsys.readouterr()
    assert "lab.csv: 1,200 rows, 2 channels (ax, ay)" in said.err
    assert "home.csv: 1,200 rows" in said.err
    assert "report.html" in said.out
    assert "estimated without labels" in said.out
    assert "after adaptation" not in said.out
    table = pd.read_csv(files / "out" / "predictions.csv")
    assert {"window", "start", "label", "confidence", "p_run", "p_walk"} <= set(table.columns)
    assert set(table["label"]) <= {"run", "walk"}
    estimate = json.loads((files / "out" / "metrics.json").read_text())["estimated_accuracy"]
    assert 0 <= estimate["low"] <= estimate["accuracy"] <= estimate["high"] <= 1
    assert (files / "out" / "report.html").is_file()


def test_the_papers_variant_has_nothing_to_score_without_labels(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv", "--variant", "paper", "--mode", "markov") == 0
    assert "accuracy" not in capsys.readouterr().out
    assert not (files / "out" / "metrics.json").exists()


def test_labels_in_the_target_score_and_change_nothing(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv") == 0
    blind = pd.read_csv(files / "out" / "predictions.csv")
    assert adapt(monkeypatch, files, "scored.parquet") == 0
    assert "after adaptation" in capsys.readouterr().out
    metrics = json.loads((files / "out" / "metrics.json").read_text())
    assert 0 < metrics["after"]["windows"] < len(blind)  # windows of two labels are labelled, not scored
    scored = pd.read_csv(files / "out" / "predictions.csv")
    assert scored["truth"].count() == metrics["after"]["windows"]
    pd.testing.assert_frame_equal(scored.drop(columns="truth"), blind)
    poisoned = walk(1, 1.5).assign(activity=lambda table: ["run", "walk"] * (len(table) // 2))
    poisoned.to_csv(files / "poisoned.csv", index=False)
    assert adapt(monkeypatch, files, "poisoned.csv") == 0
    poisoned = pd.read_csv(files / "out" / "predictions.csv")
    pd.testing.assert_frame_equal(poisoned.drop(columns="truth", errors="ignore"), blind)


def test_predict_reads_new_files_as_adapt_did(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv") == 0
    capsys.readouterr()
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "home.csv") == 0
    printed = capsys.readouterr()
    told = pd.read_csv(files / "out" / "predictions.csv").drop(columns="label_before")
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(printed.out)), told)
    assert "home.csv: 1,200 rows" in printed.err
    to_file = ["--out", files / "labels.csv"]
    assert (
        transpl(monkeypatch, "predict", "--model", files / "out" / "model", "--input", files / "home.csv", *to_file)
        == 0
    )
    assert (files / "labels.csv").read_text() == printed.out


def test_one_file_with_two_domains(monkeypatch, capsys, files):
    both = pd.concat([walk(0, 1.0).assign(who="ann"), walk(1, 1.5).assign(who="bob")])
    both.to_csv(files / "both.csv", index=False)
    words = ["--source", files / "both.csv", "--target", files / "both.csv", "--out", files / "out"]
    domains = ["--domain-col", "who", "--source-domain", "ann", "--target-domain", "bob"]
    assert transpl(monkeypatch, "adapt", *words, *READ, *FAST, *domains, "--mode", "markov") == 0
    assert "both.csv, domain bob: 1,200 rows" in capsys.readouterr().err
    summary = json.loads((files / "out" / "summary.json").read_text())
    assert (summary["source"]["name"], summary["target"]["name"], summary["mode"]) == ("ann", "bob", "markov")
    # A new file need not have the column that told the two apart, but may.
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "home.csv") == 0
    alone = capsys.readouterr()
    assert "note: home.csv: 'who' (domain_col) is not there" in alone.err
    words = ["--input", files / "both.csv", "--domain", "bob"]
    assert transpl(monkeypatch, "predict", "--model", files / "out", *words) == 0
    bob = capsys.readouterr().out
    assert len(alone.out.splitlines()) == len(bob.splitlines())
    assert transpl(monkeypatch, "predict", "--model", files / "out", *words, "--domain-col", "whom") == 2
    assert "domain_col: expected a column of both.csv" in capsys.readouterr().err
    # Nor need it have the clock.
    walk(1, 1.5).drop(columns="t").to_csv(files / "home.csv", index=False)
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "home.csv") == 0
    assert "note: home.csv: 't' (time_col) is not there" in capsys.readouterr().err


def test_no_window_to_be_labelled_spans_two_people(monkeypatch, capsys, files):
    """Without a clock only the column that the model was told of tells where one ends and another begins."""
    people = np.arange(1200) // 100
    walk(0, 1.0).drop(columns="t").assign(who=people).to_csv(files / "crowd.csv", index=False)
    words = ["--source", files / "crowd.csv", "--target", files / "crowd.csv", "--out", files / "out"]
    words += ["--domain-col", "who", "--label-col", "activity", "--window", "64", "--step", "16", "--mode", "markov"]
    assert transpl(monkeypatch, "adapt", *words, *FAST) == 0
    capsys.readouterr()
    for command, *more in (["predict"], ["review", "--n", "1000"]):
        words = ["--model", files / "out", "--input", files / "crowd.csv", "--out", files / f"{command}.csv", *more]
        assert transpl(monkeypatch, command, *words) == 0
        table = pd.read_csv(files / f"{command}.csv")
        assert len(table) == 12 * 3  # of 100 rows each: at 0, 16 and 32
        np.testing.assert_array_equal(people[table["start"]], people[table["start"] + 63])
        np.testing.assert_array_equal(people[table["start"]], table["domain"])


@pytest.mark.parametrize(
    ("command", "words"), [("predict", []), ("monitor", []), ("monitor", ["--input", "new.csv", "--reference"])]
)
def test_recordings_are_not_replaced_by_what_is_said_of_them(monkeypatch, capsys, files, command, words):
    before = (files / "home.csv").read_bytes()
    (files / "link.csv").symlink_to("home.csv")
    words = ["--model", files / "out", *(words or ["--input"]), files / "home.csv", "--out", files / "link.csv"]
    assert transpl(monkeypatch, command, *words) == 2
    assert "--out: expected another file than the recordings, got " in capsys.readouterr().err
    assert (files / "home.csv").read_bytes() == before


def test_the_length_of_windows_is_remembered(monkeypatch, capsys, files):
    """That of an npz too: a table is cut to it, and an npz of another length is taken, with a note."""
    rng = np.random.default_rng(0)
    for name, length in ("a", 32), ("b", 48):
        np.savez(files / f"{name}.npz", X=rng.normal(size=(20, 2, length)), y=np.arange(20) % 2)
    words = ["--source", files / "a.npz", "--target", files / "a.npz", "--out", files / "out", "--mode", "markov"]
    assert transpl(monkeypatch, "adapt", *words, *FAST) == 0
    capsys.readouterr()
    walk(1, 1.0)[["ax", "ay"]].to_csv(files / "two.csv", index=False)
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "two.csv") == 0
    assert "windows of 32, step 16" in capsys.readouterr().err
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "b.npz") == 0
    assert "note: b.npz: its windows have 48 samples and not 32" in capsys.readouterr().err


def test_a_foreign_reading_file_is_refused(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov") == 0
    (files / "out" / "model" / "reading.json").write_text('{"colour": "red"}')
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "home.csv") == 2
    assert "reading.json: not written by transpl adapt" in capsys.readouterr().err


def test_npz_windows(monkeypatch, files):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.savez(files / f"{name}.npz", X=rng.normal(size=(20, 2, 32)), y=np.arange(20) % 2)
    words = ["--source", files / "a.npz", "--target", files / "b.npz", "--out", files / "out"]
    assert transpl(monkeypatch, "adapt", *words, *FAST, "--prior", "0=0.9,1=0.1") == 0
    assert len(pd.read_csv(files / "out" / "predictions.csv")) == 20
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "b.npz") == 0


def test_channels_of_npz_windows_can_be_chosen(monkeypatch, files):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        X = rng.normal(size=(20, 3, 32))
        np.savez(files / f"{name}.npz", X=X, y=np.arange(20) % 2, channel_names=np.array(["p", "q", "r"]))
    words = ["--source", files / "a.npz", "--target", files / "b.npz", "--out", files / "out", "--channels", "p,r"]
    assert transpl(monkeypatch, "adapt", *words, *FAST, "--mode", "markov") == 0
    summary = json.loads((files / "out" / "summary.json").read_text())
    assert [channel["name"] for channel in summary["channels"]] == ["p", "r"]
    assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "b.npz") == 0


def test_channels_of_npz_windows_are_found_by_name(monkeypatch, capsys, files):
    """Whatever the order in a file; and a channel that the model knows must be there."""
    table, names = walk(0, 1.0), ["ax", "ay"]
    X = table[names].to_numpy()[:1152].reshape(18, 64, 2).swapaxes(1, 2) + np.array([[0.0], [3.0]])
    y = table["activity"].to_numpy(str)[:1152].reshape(18, 64)[:, 32]
    np.savez(files / "a.npz", X=X, y=y, channel_names=names)
    np.savez(files / "b.npz", X=X[:, ::-1], y=y, channel_names=names[::-1])
    np.savez(files / "c.npz", X=X, y=y, channel_names=["ax", "az"])
    np.savez(files / "d.npz", X=np.concatenate([X, X], axis=1), y=y, channel_names=["p", "q", *names])
    for target in ("a", "b"):
        words = ["--source", files / "a.npz", "--target", files / f"{target}.npz", "--out", files / target]
        assert transpl(monkeypatch, "adapt", *words, *FAST, "--mode", "markov") == 0
    assert (files / "a" / "predictions.csv").read_text() == (files / "b" / "predictions.csv").read_text()
    capsys.readouterr()
    told = []
    for new in ("a", "b", "d"):
        assert transpl(monkeypatch, "predict", "--model", files / "a", "--input", files / f"{new}.npz") == 0
        printed = capsys.readouterr()
        told.append(printed.out)
    assert told[0] == told[1] == told[2]
    assert "2 channels (ax, ay); channels not used: p, q" in printed.err
    assert transpl(monkeypatch, "predict", "--model", files / "a", "--input", files / "c.npz") == 2
    assert "channels of c.npz (ax, az), each once, got ['ax', 'ay']" in capsys.readouterr().err
    many = ["--source", files / "a.npz", "--target", files / "a.npz", "--target", files / "b.npz"]
    many += ["--out", files / "many", "--backend", "inline", "--mode", "markov"]
    assert transpl(monkeypatch, "adapt", *many, *FAST) == 0
    here, there = ((files / "many" / name / "predictions.csv").read_text() for name in ("a", "b"))
    assert here == there


def test_demo_and_report(monkeypatch, capsys, tmp_path):
    words = ["demo", "--dataset", "synthetic", "--epochs", "1", "--out", tmp_path, "--pair", "0-1", "--device", "cpu"]
    assert transpl(monkeypatch, *words) == 0
    printed = capsys.readouterr().out
    assert "before adaptation" in printed
    assert "after adaptation" in printed
    assert "pseudo-labels (windows adapted to)" in printed
    assert len({line.index(" accuracy ") for line in printed.splitlines() if " accuracy " in line}) == 1
    (tmp_path / "report.html").unlink()
    assert transpl(monkeypatch, "report", tmp_path) == 0
    assert (tmp_path / "report.html").is_file()
    capsys.readouterr()
    assert transpl(monkeypatch, "report", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(tmp_path / "report.html")}


def test_windows_with_swapped_axes_are_recognised(monkeypatch, capsys, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3, 32))
    np.savez(tmp_path / "lab.npz", X=X, y=np.arange(20) % 2)
    np.savez(tmp_path / "home.npz", X=X.transpose(0, 2, 1))
    words = ["--source", tmp_path / "lab.npz", "--target", tmp_path / "home.npz", "--out", tmp_path / "out"]
    assert transpl(monkeypatch, "adapt", *words) == 2
    assert "(n, time, channels)" in capsys.readouterr().err


def test_being_told_to_leave_is_taken_like_ctrl_c(monkeypatch, capsys, files):
    taken_before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        patch.setattr(TransPL, "adapt", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        assert adapt(patch, files, "home.csv") == 143
    assert capsys.readouterr().err.splitlines()[-1].startswith("interrupted. The same command goes on")
    assert "SystemExit" in json.loads((files / "out" / "failed.json").read_text())["error"]
    assert signal.getsignal(signal.SIGTERM) is taken_before
    assert adapt(monkeypatch, files, "home.csv") == 0
    assert not (files / "out" / "failed.json").exists()


@pytest.mark.parametrize("room", [1, 40])
def test_a_full_disk_is_told_in_one_line_and_the_command_goes_on_later(monkeypatch, capsys, files, room):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room * 1024, before[1]))
    try:
        assert adapt(monkeypatch, files, "home.csv") == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"error: {files / 'out'}")
    assert "file too large. Make room and run it again" in last
    assert adapt(monkeypatch, files, "home.csv") == 0


WRONG = {
    "missing source": (["--source", "absent.csv"], "absent.csv: no such file"),
    "unknown format": (["--source", "notes.docx"], "path: expected a file ending in"),
    "unknown label column": (["--label-col", "nope"], "label_col: expected a column of lab.csv"),
    "unknown channel": (["--channels", "ax,az"], "channels: expected a column of lab.csv"),
    "window too long": (["--window", "5000"], "expected"),
    "unknown mode": (["--mode", "magic"], "mode: expected one of"),
    "broken prior": (["--prior", "walk:1"], "--prior: expected class=share"),
    "stranger in the prior": (["--prior", "swim=1"], "prior: expected labels among"),
    "half a prior": (["--prior", "walk=0.6"], "prior: expected shares that add up to 1, got 0.6 without run."),
    "unknown device": (["--variant", "paper", "--device", "abacus"], "device: expected"),
    "windows shorter than two patches": (
        ["--variant", "paper", "--window", "12"],
        "X: expected windows of at least 16",
    ),
    "mode of the other variant": (["--mode", "finetune"], "mode: expected 'markov' with variant='plus'"),
    "mode of a variant that was set": (
        ["--set", "variant=paper", "--mode", "finetune", "--source", "absent.csv"],
        "absent.csv: no such file",  # the mode is right
    ),
    "nothing to undo like that": (["--undo", "turn,tune"], "undo: expected one of"),
    "stranger in a triad": (["--triads", "ax ay az"], "triads: expected names of channels (ax, ay), got 'az'"),
    "half a triad": (["--triads", "ax ay"], "triads: expected three channels each"),
    "no recordings to share a label": (["--one-label-per-group"], "one_label_per_group: expected recordings"),
    "order for the paper": (["--variant", "paper", "--smooth"], "smooth: expected False"),
    "both kinds of order": (
        ["--smooth", "--one-label-per-group"],
        "one_label_per_group, smooth: expected one of them, got both",
    ),
    "order for several targets": (["--smooth", "--target", "lab.csv"], "--smooth: expected one target"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_get_one_line_and_exit_code_2(monkeypatch, capsys, files, change, message):
    monkeypatch.chdir(files)
    (files / "notes.docx").write_text("no table")
    words = ["adapt", "--source", "lab.csv", "--target", "home.csv", "--out", "out", *READ, *FAST]
    assert transpl(monkeypatch, *words, *change) == 2
    said = capsys.readouterr()
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert "Traceback" not in said.err


def test_another_sampling_rate_is_noticed_by_every_command_that_reads(monkeypatch, capsys, files):
    frame = walk(1, 1.0).drop(columns="activity")
    frame["t"] *= 2
    frame.to_csv(files / "slow.csv", index=False)
    noted = "slow.csv: its rows are 2 times as far apart in time as the source's"
    both = ["--target", files / "slow.csv", "--mode", "markov", "--out", files / "many"]
    assert adapt(monkeypatch, files, "home.csv", *both) == 0
    assert f"(note: {noted}" in capsys.readouterr().err
    notes = pd.read_csv(files / "many" / "summary.csv", index_col="target")["notes"]
    assert notes["slow"].startswith(noted)
    assert pd.isna(notes["home"])
    later = ["--model", files / "many" / "home", "--input", files / "slow.csv"]
    for command in (["predict"], ["monitor"], ["review", "--out", files / "few.csv"]):
        transpl(monkeypatch, *command, *later)
        assert f"note: {noted}" in capsys.readouterr().err
    source = ["--mode", "markov", "--source-from", files / "many"]
    assert adapt(monkeypatch, files, "slow.csv", *source) == 0
    assert f"note: {noted}" in capsys.readouterr().err
    assert adapt(monkeypatch, files, "home.csv", *source) == 0
    assert "far apart" not in capsys.readouterr().err


def test_a_time_that_nobody_named_is_noticed(monkeypatch, capsys, files):
    paths = ["--source", files / "lab.csv", "--target", files / "home.csv", "--out", files / "out"]
    assert transpl(monkeypatch, "adapt", *paths, "--label-col", "activity", "--window", "64", *FAST) == 0
    said = capsys.readouterr().err
    assert "note: lab.csv: 't' is taken as a channel, but it only grows." in said
    assert "'ax' is taken" not in said
    assert transpl(monkeypatch, "adapt", *paths, *READ, *FAST) == 0
    assert "only grows" not in capsys.readouterr().err


def test_a_file_is_no_folder_for_results(monkeypatch, capsys, files):
    paths = ["--source", files / "lab.csv", "--target", files / "home.csv", "--out", files / "lab.csv"]
    assert transpl(monkeypatch, "adapt", *paths, *READ, *FAST) == 2
    assert f"error: out: expected a folder, got the file {files / 'lab.csv'}" in capsys.readouterr().err


def test_a_file_is_no_model(monkeypatch, capsys, files):
    assert transpl(monkeypatch, "predict", "--model", files / "lab.csv", "--input", files / "home.csv") == 2
    assert "error: model: expected a folder that transpl adapt wrote" in capsys.readouterr().err


@pytest.mark.filterwarnings("always:.*several targets")
def test_a_folder_of_many_targets_is_told_from_that_of_one(monkeypatch, capsys, files):
    walk(2, 1.0).to_csv(files / "work.csv", index=False)
    paths = ["--source", files / "lab.csv", "--target", files / "home.csv", "--target", files / "work.csv"]
    assert transpl(monkeypatch, "adapt", *paths, "--out", files / "many", *READ, *FAST, "--mode", "markov") == 0
    capsys.readouterr()
    assert transpl(monkeypatch, "predict", "--model", files / "many", "--input", files / "home.csv") == 0
    assert "source model, not adapted" in capsys.readouterr().err
    assert transpl(monkeypatch, "predict", "--model", files / "many" / "home", "--input", files / "home.csv") == 0
    assert "several targets" not in capsys.readouterr().err
    assert transpl(monkeypatch, "report", files / "many") == 2
    assert "one of its folders" in capsys.readouterr().err


def test_recordings_and_their_order_are_told(monkeypatch, files):
    both = pd.concat([walk(1, 1.5).assign(rec="a"), walk(2, 1.5).assign(rec="b")])
    both.drop(columns="activity").to_csv(files / "two.csv", index=False)
    lab = pd.read_csv(files / "lab.csv").assign(rec="lab")
    lab.to_csv(files / "lab.csv", index=False)
    told = ["--group-col", "rec", "--undo", "turn,unit"]
    assert adapt(monkeypatch, files, "two.csv", *told, "--smooth") == 0
    assert adapt(monkeypatch, files, "two.csv", *told, "--one-label-per-group") == 0
    table = pd.read_csv(files / "out" / "predictions.csv")
    assert (table.groupby("group")["label"].nunique() == 1).all()
    assert TransPL.load(files / "out" / "model").undo == ["turn", "unit"]


def test_the_source_is_learnt_once(monkeypatch, capsys, files):
    """By the same command with another target or prior, into the same folder or from it."""
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov") == 0
    first = (files / "out" / "predictions.csv").read_text()
    assert "source phase: 29 labelled windows" in capsys.readouterr().err
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov", "--prior", "walk=0.9,run=0.1") == 0
    assert "source phase: done by an earlier job" in capsys.readouterr().err
    assert (files / "out" / "predictions.csv").read_text() != first
    again = ["--mode", "markov", "--source-from", files / "out", "--out", files / "again"]
    assert adapt(monkeypatch, files, "home.csv", *again) == 0
    assert "source phase: done by an earlier job" in capsys.readouterr().err
    assert (files / "again" / "predictions.csv").read_text() == first


def test_a_source_model_of_something_else_is_refused(monkeypatch, capsys, files):
    again = ["--mode", "markov", "--out", files / "again", "--source-from"]
    assert adapt(monkeypatch, files, "home.csv", *again, files / "nowhere") == 2
    assert "source_from: expected a folder with a model" in capsys.readouterr().err
    assert not (files / "again").exists()
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov") == 0
    assert adapt(monkeypatch, files, "home.csv", *again, files / "out", "--patch-length", "4") == 2
    assert "differs in patch_length" in capsys.readouterr().err


def test_many_targets_take_a_source_model_and_leave_it(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov") == 0
    first, quick = (files / "out" / "predictions.csv").read_text(), ["--mode", "markov", "--out"]
    both = ["--target", files / "scored.parquet", "--source-from", files / "out" / "model"]
    assert adapt(monkeypatch, files, "home.csv", *quick, files / "many", *both) == 0
    assert adapt(monkeypatch, files, "home.csv", *quick, files / "one", "--source-from", files / "many" / "home") == 0
    assert capsys.readouterr().err.count("source phase: 29 labelled windows") == 1
    assert (files / "one" / "predictions.csv").read_text() == first


def test_source_without_labels_says_which_option(monkeypatch, capsys, files):
    words = ["--source", files / "home.csv", "--target", files / "home.csv", "--out", files / "out"]
    assert transpl(monkeypatch, "adapt", *words, "--time-col", "t") == 2
    assert "--label-col" in capsys.readouterr().err


@pytest.mark.filterwarnings("always:the target's labels")
def test_target_labels_that_the_source_does_not_have_are_noticed(monkeypatch, capsys, files):
    walk(1, 1.5).replace({"activity": {"run": "Run"}}).to_csv(files / "other.csv", index=False)
    assert adapt(monkeypatch, files, "other.csv", "--mode", "markov") == 0
    told = "note: the target's labels 'Run' are not classes of the source ('run', 'walk')"
    assert told in capsys.readouterr().err
    assert adapt(monkeypatch, files, "scored.parquet", "--mode", "markov") == 0
    assert "not classes of the source" not in capsys.readouterr().err
    many = ["--target", files / "scored.parquet", "--backend", "inline", "--mode", "markov", "--out", files / "many"]
    assert adapt(monkeypatch, files, "other.csv", *many) == 0
    notes = pd.read_csv(files / "many" / "summary.csv", index_col="target")["notes"]
    assert "not classes of the source" in notes["other"]
    assert pd.isna(notes["scored"])


def test_the_order_of_channels_is_the_models(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "home.csv", "--mode", "markov") == 0
    capsys.readouterr()
    told = []
    for channels in ([], ["--channels", "ay,ax"]):
        assert transpl(monkeypatch, "predict", "--model", files / "out", "--input", files / "home.csv", *channels) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    walk(1, 1.5).rename(columns={"ax": "bx", "ay": "by"}).to_csv(files / "renamed.csv", index=False)
    words = ["--input", files / "renamed.csv", "--channels", "bx,by"]
    assert transpl(monkeypatch, "predict", "--model", files / "out", *words) == 0
    assert capsys.readouterr().out == told[0]


def test_other_channels_in_the_target(monkeypatch, capsys, files):
    walk(1, 1.0).rename(columns={"ay": "az"}).to_csv(files / "other.csv", index=False)
    assert adapt(monkeypatch, files, "other.csv") == 2
    assert "'ay'" in capsys.readouterr().err


def test_the_demo_remembers_how_to_read_too(monkeypatch, tmp_path):
    words = ["--dataset", "synthetic", "--epochs", "1", "--variant", "paper", "--mode", "markov", "--out", tmp_path]
    assert transpl(monkeypatch, "demo", *words) == 0
    data = datasets.load("synthetic")
    reading = json.loads((tmp_path / "model" / "reading.json").read_text())
    assert reading == {"channels": list(data.channel_names), "window": data.X.shape[2]}


def test_any_parameter_can_be_set(monkeypatch, files):
    more = [
        "--set",
        "top_ratio=0.3",
        "--set",
        "adapt_stopping=labels",
        "--set",
        "n_fine=0",
        "--set",
        "channel_alignment=false",
    ]
    words = ["--source", files / "lab.csv", "--target", files / "home.csv", "--out", files / "out", *READ]
    assert transpl(monkeypatch, "adapt", *words, *FAST[2:], "--mode", "markov", *more, "--set", "max_epochs=1") == 0
    found = TransPL.load(files / "out" / "model").get_params()
    expected = {
        "top_ratio": 0.3,
        "adapt_stopping": "labels",
        "n_fine": 0,
        "channel_alignment": False,
        "max_epochs": 1,
        "width": 16,
    }
    assert {name: found[name] for name in expected} == expected


WRONG_SETTINGS = {
    "no value": (["top_ratio"], "--set: expected name=value, got 'top_ratio'"),
    "misspelt": (["topratio=0.3"], "--set: expected a parameter of TransPL ("),
    "the job's own": (["checkpoint_dir=here"], "--set: expected a parameter of TransPL ("),
    "both ways": (["max_epochs=3"], "--set: expected no max_epochs beside --epochs, got 'max_epochs=3'"),
    "both ways, other name": (["random_state=3"], "--set: expected no random_state beside --seed"),
    "value": (["top_ratio=3"], "top_ratio: expected a share in (0, 1], got 3"),
    "text for a number": (["n_coarse=many"], "n_coarse: expected a whole number, 2 or more, got 'many'"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG_SETTINGS.values(), ids=WRONG_SETTINGS)
def test_a_parameter_that_cannot_be_set_is_told_in_one_line(monkeypatch, capsys, files, settings, message):
    (files / "lab.csv").unlink()  # it is told before anything is read
    words = ["--variant", "paper", *(word for each in settings for word in ("--set", each))]
    assert adapt(monkeypatch, files, "home.csv", *words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {message}")


WRONG_OPTIONS = {
    "mode": (["--mode", "magic"], "mode: expected one of"),
    "device": (["--variant", "paper", "--device", "tpu"], "device: expected 'auto'"),
    "backend": (["--backend", "magic", "--target", "other.csv"], "backend: expected one of"),
}


@pytest.mark.parametrize(("words", "message"), WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)
def test_options_that_make_no_sense_are_told_before_anything_is_read(monkeypatch, capsys, files, words, message):
    (files / "lab.csv").unlink()
    assert adapt(monkeypatch, files, "home.csv", *words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {message}")


def test_a_parameter_of_the_demo_can_be_set(monkeypatch, capsys, tmp_path):
    words = ["demo", "--dataset", "synthetic", "--epochs", "1", "--mode", "markov", "--out", tmp_path]
    assert transpl(monkeypatch, *words, "--set", "adapt_lr=0.01", "--set", "width=16") == 0
    found = TransPL.load(tmp_path / "model")
    assert (found.adapt_lr, found.source_lr, found.width) == (0.01, 2e-3, 16)
    assert transpl(monkeypatch, *words, "--learning-rate", "0.1", "--set", "adapt_lr=0.01") == 2
    assert "--set: expected no adapt_lr beside --learning-rate" in capsys.readouterr().err


def test_unknown_pair_and_data_set(monkeypatch, capsys, tmp_path):
    assert transpl(monkeypatch, "demo", "--dataset", "synthetic", "--pair", "0:1", "--out", tmp_path) == 2
    assert transpl(monkeypatch, "demo", "--dataset", "synthetic", "--pair", "0_0-1", "--out", tmp_path) == 2
    assert transpl(monkeypatch, "demo", "--dataset", "synthetic", "--pair", "0-99", "--out", tmp_path) == 2
    assert transpl(monkeypatch, "demo", "--dataset", "atlantis", "--out", tmp_path) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 4
    assert errors[0].startswith("error: --pair: expected source and target as 2-11, got '0:1'")


def test_report_of_an_empty_folder(monkeypatch, capsys, tmp_path):
    assert transpl(monkeypatch, "report", tmp_path) == 2
    assert "no summary.json" in capsys.readouterr().err
    (tmp_path / "summary.json").write_text('{"foreign": true}')
    (tmp_path / "predictions.csv").write_text("confidence\n0.5\n")
    assert transpl(monkeypatch, "report", tmp_path) == 2
    assert "incomplete or of another version" in capsys.readouterr().err


def test_report_of_a_benchmark_is_its_leaderboard(monkeypatch, capsys, tmp_path):
    small_bench(tmp_path)
    assert transpl(monkeypatch, "report", tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    assert "<h1>Leaderboard: synthetic</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    (tmp_path / "empty" / "runs").mkdir(parents=True)
    assert transpl(monkeypatch, "report", tmp_path / "empty") == 2
    assert "no runs in it. Run `transpl bench" in capsys.readouterr().err


@pytest.mark.filterwarnings("always:.*does not hold its source rows")
def test_label_streams_a_file_of_windows(monkeypatch, capsys, files):
    rng = np.random.default_rng(0)
    np.savez(files / "a.npz", X=rng.normal(size=(20, 2, 32)), y=np.arange(20) % 2)
    words = ["--source", files / "a.npz", "--target", files / "a.npz", "--out", files / "out", "--mode", "markov"]
    assert transpl(monkeypatch, "adapt", *words, *FAST) == 0
    np.save(files / "many.npy", rng.normal(size=(100, 2, 32)))
    capsys.readouterr()
    for more in ([], ["--adapt", "--chunk", "32", "--threads", "1"]):
        folder = files / f"labels{len(more)}"
        assert transpl(monkeypatch, "label", files / "out", files / "many.npy", "--out", folder, *more) == 0
        said = capsys.readouterr().out.splitlines()
        counts = [int(line.split()[1]) for line in said[:2]]
        assert counts == np.bincount(np.load(folder / "labels.npy"), minlength=2).tolist()
        assert said[2].startswith(f"wrote {folder / 'labels.npy'}")
    assert transpl(monkeypatch, "label", files / "out", files / "none.npy", "--out", files / "new") == 2
    assert "none.npy: no such file" in capsys.readouterr().err
    assert transpl(monkeypatch, "label", files / "out", files / "many.npy", "--out", folder) == 2
    assert "error: out: expected a folder of this model and these windows" in capsys.readouterr().err


def test_version_and_help(monkeypatch, capsys):
    assert transpl(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.strip() == f"transpl {__version__}"
    for command in ("demo", "adapt", "predict", "label", "report", "methods"):
        assert transpl(monkeypatch, command, "--help") == 0
        assert f"transpl {command}" in capsys.readouterr().out


def test_interruption_says_how_to_go_on(monkeypatch, capsys, tmp_path):
    from transpl import jobs

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "run", interrupted)
    code = transpl(monkeypatch, "demo", "--dataset", "synthetic", "--out", tmp_path)
    assert code == 130
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("interrupted")]
    assert f"goes on where this one stopped: transpl demo --dataset synthetic --out {tmp_path}" in line


def test_interrupted_commands_that_save_nothing_do_not_claim_to_go_on(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("transpl.report.write_report", interrupted)
    monkeypatch.setattr("transpl.datasets.prepare.prepare", interrupted)
    for command in (["report", tmp_path], ["datasets", "prepare", "ptb"]):
        assert transpl(monkeypatch, *command) == 130
        said = capsys.readouterr().err
        assert "starts again" in said
        assert "goes on" not in said


def test_help_needs_no_torch():
    code = (
        "import sys; import transpl.cli.main; import transpl; print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
