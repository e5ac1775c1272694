"""Scores and shares of a target, and the files of its folder."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from transpl.jobs.target import AdaptResult, Target, write_target_folder
from transpl.jobs.target_summary import class_shares, score


def test_windows_of_unknown_truth_are_left_out_of_the_scores():
    truth = np.array(["a", "", "b", "b"])
    found = score(truth, np.array(["a", "a", "b", "a"]))
    assert found["windows"] == 3
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["macro_f1"] == pytest.approx(2 / 3)  # a: 2*1/(2+1) = 2/3; b: 2*1/(1+2) = 2/3


def test_macro_f1_is_the_benchmarks():
    """A class that is predicted but absent counts with 0."""
    found = score(np.array(["a", "a", "b"]), np.array(["a", "c", "b"]))
    assert found == {"windows": 3, "accuracy": pytest.approx(2 / 3), "macro_f1": pytest.approx((2 / 3 + 1 + 0) / 3)}


def test_shares_are_of_the_known_labels():
    assert class_shares(np.array(["a", "", "b", "b"]), np.array(["a", "b", "c"])) == {
        "a": pytest.approx(1 / 3),
        "b": pytest.approx(2 / 3),
        "c": 0.0,
    }


def test_files_of_an_earlier_run_do_not_stay(tmp_path):
    table = pd.DataFrame({"label": ["a"], "confidence": [1.0], "p_a": [1.0]})
    for name in ("explanation.npz", "shift.json", "sample.npz", "report.html", "model/model.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    scored = AdaptResult(table, {"of": "first"}, scores={"after": {"windows": 1}}, estimate={"accuracy": 0.5})
    write_target_folder(tmp_path, scored, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.json", "predictions.csv", "summary.json"]
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == {"after": {"windows": 1}, "estimated_accuracy": {"accuracy": 0.5}}
    write_target_folder(tmp_path, AdaptResult(table, {"of": "second"}), None, receipt={"digest": "abc"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["predictions.csv", "summary.json"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["of"], summary["many"]["digest"]) == ("second", "abc")


def test_masked_labels_of_a_target_are_unknown():
    labels = Target(np.zeros((3, 1, 8)), np.ma.masked_array(["a", "b", "a"], [False, True, False])).y
    assert labels.tolist() == ["a", "", "a"]
    assert not np.ma.isMaskedArray(labels)
