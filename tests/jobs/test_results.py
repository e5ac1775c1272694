"""What an adaptation leaves in a folder."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from transpl.jobs.results import class_shares, score, write_failure, write_metrics, write_table


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


def test_scores_of_a_former_run_do_not_stay(tmp_path):
    path = tmp_path / "metrics.json"
    write_metrics(path, {"after": {"windows": 1}})
    assert json.loads(path.read_text()) == {"after": {"windows": 1}}
    write_metrics(path, None)
    write_metrics(path, None)
    assert not path.exists()


def test_tables_and_failures_are_written_whole(tmp_path):
    write_table(tmp_path / "new" / "table.csv", pd.DataFrame({"a": [1, 2]}))
    assert (tmp_path / "new" / "table.csv").read_text() == "a\n1\n2\n"
    write_failure(tmp_path, "ValueError: no", None, "Mend it.")
    record = json.loads((tmp_path / "failed.json").read_text())
    assert (record["error"], record["traceback"], record["what_to_do"]) == ("ValueError: no", None, "Mend it.")
