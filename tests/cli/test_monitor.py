"""`TransPL.drift` and `transpl monitor`, as people use them."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from command_line import transpl
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl._utils.errors import InputError

QUICK = {"n_shuffles": 60, "level": 0.95}
FEW = ["--shuffles", "60", "--level", "0.95", "--device", "cpu"]


@pytest.fixture(scope="module")
def model() -> TransPL:
    return TransPL(**TINY).fit(*make_waves(60, seed=0))


def one_channel_moved(n: int, seed: int) -> np.ndarray:
    X, _ = make_waves(n, seed)
    X[:, 1] = 0.2 * X[:, 1] + 1.5
    return X


def test_new_windows_of_the_source_stay_and_a_channel_that_moved_leaves(model):
    X, _ = make_waves(40, seed=5)
    assert not model.drift(X, **QUICK).drifted
    found = model.drift(one_channel_moved(40, 6), channel_names=["x", "y"], **QUICK)
    assert found.left.tolist() == [False, True]
    assert "y (" in found.sentence()
    assert found.compared_with == "source"
    assert found.reference_windows == 42  # 60 less those held out


def test_a_reference_takes_the_place_of_the_source(model):
    found = model.drift(one_channel_moved(40, 6), one_channel_moved(50, 7), **QUICK)
    assert (found.compared_with, found.reference_windows, found.drifted) == ("reference", 50, False)


def test_adaptation_does_not_change_what_the_source_was(model):
    X = one_channel_moved(40, 6)
    before = model.drift(X, **QUICK)
    adapted = TransPL(**TINY).fit(*make_waves(60, seed=0)).adapt(X, mode="markov")
    assert np.array_equal(adapted.drift(X, **QUICK).distances, before.distances)
    assert np.array_equal(adapted.drift(X, **QUICK).upper, before.upper)
    assert adapted.drift(X, **QUICK).channel_distances == pytest.approx(adapted.channel_distances_)


def test_what_cannot_be_compared_is_refused(model):
    with refusal("X", r"2 channel\(s\)"):
        model.drift(np.zeros((20, 3, 32), np.float32))
    with refusal("X", "10 or more windows"):
        model.drift(make_waves(4, seed=1)[0])
    old = TransPL(**TINY).fit(*make_waves(20, seed=0))
    old.method_.state.source_codes = None
    with pytest.raises(InputError, match="Fit and save it again, or pass a reference"):
        old.drift(make_waves(20, seed=1)[0])


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    home = tmp_path_factory.mktemp("monitor")
    model.save(home / "model")
    np.savez(home / "same.npz", X=make_waves(40, seed=5)[0], channel_names=np.array(["ax", "ay"]))
    np.savez(home / "moved.npz", X=one_channel_moved(40, 6), channel_names=np.array(["ax", "ay"]))
    return home


def monitor(monkeypatch, folder, name: str, *more: object) -> int:
    words = ["monitor", "--model", folder / "model", "--input", folder / name]
    return transpl(monkeypatch, *words, *FEW, *more)


def test_the_exit_code_says_whether_a_channel_left(monkeypatch, capsys, folder):
    assert monitor(monkeypatch, folder, "same.npz") == 0
    said = capsys.readouterr()
    assert "same.npz: 40 windows" in said.err
    assert said.out.count("inside") == 2
    assert "No channel moved further" in said.out
    assert monitor(monkeypatch, folder, "moved.npz") == 3
    said = capsys.readouterr().out
    assert said.splitlines()[1].split()[0] == "ay"
    assert "1 of 2 channels moved further" in said
    assert monitor(monkeypatch, folder, "moved.npz", "--reference", folder / "moved.npz") == 0


def test_json_on_stdout_and_in_a_file_is_the_same(monkeypatch, capsys, folder, model):
    assert monitor(monkeypatch, folder, "moved.npz", "--json", "--out", folder / "drift.json") == 3
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((folder / "drift.json").read_text())
    with np.load(folder / "moved.npz") as file:
        expected = model.drift(file["X"], channel_names=["ax", "ay"], **QUICK).as_json()
    assert printed == expected


def test_neighbours_are_dealt_together_where_that_is_asked_for(monkeypatch, capsys, folder, model):
    monitor(monkeypatch, folder, "same.npz", "--json", "--block", "5")
    with np.load(folder / "same.npz") as file:
        single, blocks = (model.drift(file["X"], channel_names=["ax", "ay"], block=n, **QUICK) for n in (1, 5))
    assert json.loads(capsys.readouterr().out) == blocks.as_json()
    assert not np.array_equal(single.upper, blocks.upper)


def test_errors_are_not_taken_for_drift(monkeypatch, capsys, folder):
    np.savez(folder / "few.npz", X=make_waves(3, seed=5)[0])
    np.savez(folder / "wide.npz", X=np.zeros((20, 3, 32)))
    for name, words in (("few.npz", "10 or more windows"), ("wide.npz", "channels"), ("none.npz", "no such file")):
        assert monitor(monkeypatch, folder, name) in (1, 2)
        said = capsys.readouterr()
        assert said.out == ""
        assert words in said.err.splitlines()[-1]


@pytest.fixture(scope="module")
def people(folder):
    """Three people in one file: ann as she was and as she is, who moved, and the others, who did not."""
    X = np.concatenate([one_channel_moved(40, 6), one_channel_moved(40, 7), make_waves(40, seed=8)[0]])
    domain = np.repeat(["ann", "ann before", "others"], 40)
    np.savez(folder / "people.npz", X=X, domain=domain, channel_names=np.array(["ax", "ay"]))
    return folder


def compared(monkeypatch, capsys, folder, *more: object) -> tuple[int, dict, str]:
    words = ["--domain", "ann", "--reference", folder / "people.npz", "--json", *more]
    code = monitor(monkeypatch, folder, "people.npz", *words)
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


def test_each_side_chooses_its_own_domain(monkeypatch, capsys, people):
    code, found, said = compared(monkeypatch, capsys, people, "--reference-domain", "ann before")
    assert (code, found["windows"], found["reference_windows"]) == (0, 40, 40)
    assert "note" not in said
    code, found, _ = compared(monkeypatch, capsys, people, "--reference-domain", "others")
    assert (code, found["reference_windows"]) == (3, 40)


def test_one_person_compared_with_all_of_a_file_is_noted(monkeypatch, capsys, people):
    _, found, said = compared(monkeypatch, capsys, people)
    assert found["reference_windows"] == 120
    assert re.search("note: .*3 domains.*people.npz.*--reference-domain", said)


def test_a_domain_of_no_reference_is_refused(monkeypatch, capsys, people):
    assert monitor(monkeypatch, people, "people.npz", "--reference-domain", "ann") == 2
    assert "--reference-domain: expected nothing without --reference" in capsys.readouterr().err


def test_a_column_that_was_named_is_asked_of_the_reference_too(monkeypatch, capsys, folder):
    n, rng = 1200, np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["ax", "ay"]).assign(t=np.arange(n))
    table.to_csv(folder / "timed.csv", index=False)
    table.drop(columns="t").to_csv(folder / "timeless.csv", index=False)
    words = ["--reference", folder / "timeless.csv", "--window", "32", "--channels", "ax,ay"]
    assert monitor(monkeypatch, folder, "timed.csv", *words, "--time-col", "t") == 2
    assert "time_col: expected a column of timeless.csv" in capsys.readouterr().err
    assert monitor(monkeypatch, folder, "timed.csv", *words) == 0


def test_a_reference_of_one_person_needs_no_column_that_says_so(monkeypatch, capsys, folder):
    n, rng = 1200, np.random.default_rng(0)
    alone = pd.DataFrame(rng.normal(size=(n, 2)), columns=["ax", "ay"])
    alone.to_csv(folder / "week1.csv", index=False)
    alone.assign(who=np.repeat(["ann", "bob"], n // 2)).to_csv(folder / "today.csv", index=False)
    words = ["--reference", folder / "week1.csv", "--window", "32", "--channels", "ax,ay", "--domain-col", "who"]
    assert monitor(monkeypatch, folder, "today.csv", *words, "--domain", "ann") == 0
    assert monitor(monkeypatch, folder, "today.csv", *words, "--domain", "ann", "--reference-domain", "ann") == 2
    assert "domain_col: expected a column of week1.csv" in capsys.readouterr().err
