"""`transpl export` and `transpl serve`, as people use them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import READ, transpl, walk

from transpl.datasets.recordings import read_recordings
from transpl.jobs import load_model
from transpl.jobs.numpy_predictor import Predictor


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results, and a file to label."""
    home = tmp_path_factory.mktemp("production")
    walk(0, 1.0).to_csv(home / "lab.csv", index=False)
    walk(1, 1.5).drop(columns="activity").to_csv(home / "home.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        paths = ["--source", home / "lab.csv", "--target", home / "home.csv", "--out", home / "out"]
        assert transpl(patch, "adapt", *paths, *READ, "--set", "witnesses=['linear','codes']") == 0
    return home


def windows_of(home):
    model, reading = load_model(home / "out")
    return model, read_recordings(home / "home.csv", **reading).X


def test_export_to_numpy_is_checked_on_windows_of_the_target(monkeypatch, capsys, results, tmp_path):
    assert transpl(monkeypatch, "export", results / "out", "--out", tmp_path / "numpy") == 0
    said = capsys.readouterr()
    model, X = windows_of(results)
    assert said.out == f"wrote {tmp_path / 'numpy'}\n"
    assert f"checked on {len(X)} windows: {len(X)} agree" in said.err
    assert np.array_equal(Predictor(tmp_path / "numpy").predict(X), model.predict(X))


def test_export_to_onnx_knows_the_length_of_the_windows(monkeypatch, capsys, results, tmp_path):
    pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    assert transpl(monkeypatch, "export", results / "out", "--to", "onnx", "--out", path) == 0
    assert "checked on" in capsys.readouterr().err
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    assert session.get_inputs()[0].shape == ["n", 2, 64]
    model, X = windows_of(results)
    assert session.run(["labels"], {"windows": X})[0].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("to", ["numpy", "onnx"])
def test_an_export_as_json_says_what_was_written_and_how_it_compares(monkeypatch, capsys, results, tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    assert transpl(monkeypatch, "export", results / "out", "--to", to, "--out", tmp_path / "made", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    n = len(windows_of(results)[1])
    assert found["written"] == str(tmp_path / "made")
    assert (found["check"]["windows"], found["check"]["same_labels"]) == (n, n)


def test_wrong_calls_of_export_are_one_line(monkeypatch, capsys, results, tmp_path):
    for words, argument in (
        (["--to", "pickle", "--out", tmp_path / "x"], "--to"),
        (["--out", tmp_path / "x", "--window", "3"], "window"),
        (["--to", "onnx", "--out", tmp_path], "out"),
    ):
        assert transpl(monkeypatch, "export", results / "out", *words) == 2
        (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error")]
        assert line.startswith(f"error: {argument}: ")
    assert transpl(monkeypatch, "export", tmp_path / "nothing", "--out", tmp_path / "x") == 2
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("blocked", "words", "extra"),
    [
        ("onnx", ["export", "out", "--to", "onnx", "--out", "model.onnx"], "onnx"),
        ("uvicorn", ["serve", "out"], "serve"),
        ("starlette", ["serve", "out"], "serve"),
    ],
)
def test_a_missing_extra_says_what_to_install(results, blocked, words, extra):
    code = (
        f"import sys; sys.modules[{blocked!r}] = None; sys.argv[1:] = {words!r}; from transpl.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=results, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(f'pip install "transpl[{extra}]"')


def test_the_server_answers_what_predict_prints(monkeypatch, capsys, results):
    server = pytest.importorskip("transpl.jobs.server")
    served = []
    monkeypatch.setattr(server, "serve", lambda made, host, port, log: served.append((made, host, port)))
    words = ["--port", "0", "--at-once", "3", "--timeout", "5", "--body-limit", "1", "--waiting", "4"]
    assert transpl(monkeypatch, "serve", results / "out", *words) == 0
    ((made, host, port),) = served
    assert (host, port, made.limits) == ("127.0.0.1", 0, server.Limits(3, 4, 5.0, 1 << 20))
    answer = json.loads(json.dumps(made.answer("text/csv", (results / "home.csv").read_bytes())))
    assert transpl(monkeypatch, "predict", "--model", results / "out", "--input", results / "home.csv") == 0
    printed = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    assert answer["labels"] == printed["label"].tolist()
    assert answer["confidence"] == pytest.approx(printed["confidence"].tolist(), abs=1e-12)
    assert answer["origin"]["start"] == printed["start"].tolist()
