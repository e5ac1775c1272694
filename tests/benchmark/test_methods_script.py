"""python -m benchmarks.methods: many runs in one file of JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transpl.methods.softmax import Softmax

ROOT = Path(__file__).parents[2]
SET = ["--set", "max_epochs=1", "width=16", "n_layers=1", "coral_weight=2", "n_coarse=4", "n_fine=8"]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import methods

    return methods


def test_runs_are_appended_and_not_repeated(script, tmp_path, capsys):
    out = tmp_path / "runs" / "a.jsonl"
    words = ["--dataset", "synthetic", "--pairs", "0-1", *SET, "--out", str(out), "--methods"]
    script.main([*words, "no-adapt"])
    first = capsys.readouterr().out
    script.main([*words, "no-adapt", "deepcoral"])
    second = capsys.readouterr().out
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["no-adapt", "deepcoral"]
    assert lines[1]["settings"]["coral_weight"] == 2
    assert first.startswith("0-1      0  no-adapt ")
    assert second.startswith("0-1      0  deepcoral ")
    accuracy = 100 * lines[0]["test"]["accuracy"]
    assert f"| no-adapt | 1 | {accuracy:.1f} |" in first
    assert f"| no-adapt | 1 | {accuracy:.1f} |" in second
    script.main([*words, "no-adapt", "--set", "max_epochs=2", *SET[2:]])
    assert len(out.read_text().splitlines()) == 3, "other settings are another run"


def test_a_line_that_was_cut_off_and_a_failed_run_are_run_again(script, tmp_path, capsys, monkeypatch):
    out = tmp_path / "a.jsonl"
    words = ["--dataset", "synthetic", "--pairs", "0-1", *SET, "--out", str(out), "--methods", "softmax"]

    def fail(self, target, prior):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(Softmax, "_adapt", fail)
        script.main(words)
    printed = capsys.readouterr().out
    assert "softmax     RuntimeError: out of luck" in printed
    assert "| softmax | 0 of 1 | - | - | - | - |" in printed
    with out.open("a") as file:
        file.write('{"dataset": "synth')
    script.main(words)
    errors = [json.loads(line)["error"] for line in out.read_text().splitlines()]
    assert errors == ["RuntimeError: out of luck", None]
    assert "| softmax | 1 |" in capsys.readouterr().out
