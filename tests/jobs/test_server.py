"""The HTTP server by its ASGI interface, and once as a process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pandas as pd
import pytest
from command_line import walk
from conftest import make_waves, refusal

from transpl import TransPL

httpx = pytest.importorskip("httpx")
server_module = pytest.importorskip("transpl.jobs.server")

READING = {"window": 32, "time_col": "t", "channels": ["ax", "ay"]}


@pytest.fixture(scope="module")
def model() -> TransPL:
    X, y = make_waves(40, 0)
    fitted = TransPL(witnesses=("linear", "codes"), channel_names=("ax", "ay")).fit(X, np.array(["run", "walk"])[y])
    return fitted.adapt(make_waves(30, 1, gain=1.5)[0])


def app_of(model: TransPL, reading=READING, **limits):
    return server_module.ModelServer(model, reading, server_module.Limits(**limits))


@pytest.fixture(scope="module")
def server(model):
    return app_of(model, body_bytes=100_000)


def ask(server, *requests: tuple, together: bool = False) -> list:
    """Send requests (method, path, options) to the application."""

    async def run() -> list:
        transport = httpx.ASGITransport(app=server.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            sent = [client.request(method, path, **how) for method, path, how in requests]
            return await asyncio.gather(*sent) if together else [await each for each in sent]

    return asyncio.run(run())


def predict(server, path: str = "/predict", **how):
    (answer,) = ask(server, ("POST", path, how))
    return answer


def get(server, path: str):
    (answer,) = ask(server, ("GET", path, {}))
    return answer


def refused(answer, status: int, containing: str) -> None:
    assert answer.status_code == status, answer.text
    (line,) = answer.json()["error"].splitlines()
    assert answer.json().keys() == {"error"}
    assert containing in line


def test_json_windows_are_labelled_as_by_the_model(server, model):
    X = make_waves(12, 2)[0]
    answer = predict(server, json={"windows": X.tolist()})
    assert answer.status_code == 200
    found = answer.json()
    assert found["labels"] == model.predict(X).tolist()
    assert np.array_equal(found["probabilities"], model.predict_proba(X))
    assert np.array_equal(found["confidence"], model.predict_proba(X).max(axis=1))
    assert (found["classes"], found["drift"], found["origin"], found["warnings"]) == (["run", "walk"], None, {}, [])


def test_windows_of_unequal_length(server, model):
    X = [x[:, : 24 + i] for i, x in enumerate(make_waves(5, 2)[0])]
    answer = predict(server, json={"windows": [x.tolist() for x in X]})
    assert answer.json()["labels"] == model.predict(X).tolist()


def test_a_csv_is_read_as_the_models_recordings_were(server, model, tmp_path):
    from transpl.datasets.recordings.reading import read_recordings

    walk(3, 1.2).drop(columns="activity").to_csv(tmp_path / "new.csv", index=False)
    answer = predict(server, content=(tmp_path / "new.csv").read_bytes(), headers={"content-type": "text/csv"})
    expected = read_recordings(tmp_path / "new.csv", **READING)
    assert answer.status_code == 200
    assert answer.json()["labels"] == model.predict(expected.X).tolist()
    assert answer.json()["origin"]["start"] == expected.start.tolist()


def test_drift_is_what_monitor_reports(server, model):
    X = make_waves(30, 2)[0]
    X[:, 1] = 3.0
    found = predict(server, "/predict?drift=true", json={"windows": X.tolist()}).json()["drift"]
    assert found == json.loads(json.dumps(model.drift(X, channel_names=("ax", "ay")).as_json()))
    assert found["drifted"]
    few = predict(server, "/predict?drift=true", json={"windows": X[:3].tolist()})
    refused(few, 400, "10 or more windows")


@pytest.mark.parametrize(
    ("body", "containing"),
    [
        (b"", "not JSON"),
        (b'{"windows": [[', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b"[1, 2]", '{"windows": [...]}'),
        (b'{"window": [[1]]}', '{"windows": [...]}'),
        (b'{"windows": "text"}', '{"windows": [...]}'),
        (b'{"windows": []}', "shape (0,)"),
        (json.dumps({"windows": np.zeros((2, 3, 32)).tolist()}).encode(), "2 channel(s)"),
        (json.dumps({"windows": np.zeros((2, 2, 4)).tolist()}).encode(), "at least 16"),
        (json.dumps({"windows": np.full((2, 2, 32), np.nan).tolist()}).encode(), "NaN"),
        (json.dumps({"windows": np.full((1, 2, 32), 1e300).tolist()}).encode(), "infinite"),
        (b'{"windows": [[["a", "b"]]]}', "windows"),
        (b'{"windows": [[[{"a": 1}]]]}', "windows"),
        (b'{"windows": [[[1, 2], [3]]]}', "unequal shape"),
        (b'{"windows": [[[null, null], [1, 2]]]}', "windows"),
        (b'{"windows": [[[1' + b"0" * 400 + b"]]]}", "windows"),
    ],
)
def test_json_that_cannot_be_used_is_refused_in_one_line(server, body, containing):
    refused(predict(server, content=body, headers={"content-type": "application/json"}), 400, containing)


@pytest.mark.parametrize(
    ("text", "containing"), [("", "recording.csv"), ("a,b\n1,2\n", "t"), ("t,ax,ay\n0,1,2\n", "recording.csv")]
)
def test_a_csv_that_cannot_be_used_is_refused_without_our_paths(server, text, containing):
    answer = predict(server, content=text.encode(), headers={"content-type": "text/csv"})
    refused(answer, 400, containing)
    assert "/tmp" not in answer.text


def test_bodies_have_a_limit_and_a_kind(server):
    refused(predict(server, content=b"x" * 100_001, headers={"content-type": "text/csv"}), 413, "100,000 bytes")
    refused(predict(server, content=b"x"), 415, "text/csv")
    refused(get(server, "/predict"), 405, "Method Not Allowed")
    refused(get(server, "/nothing"), 404, "Not Found")


def test_health_and_model(server, model):
    assert get(server, "/health").json() == {"status": "ok"}
    card = get(server, "/model").json()
    assert (card["classes"], card["channels"], card["window"]) == (["run", "walk"], ["ax", "ay"], 32)
    assert card["estimated_accuracy"]["accuracy"] == pytest.approx(model.estimated_accuracy_.accuracy)
    assert (card["adapted"], card["variant"], card["undone"]) == (True, "plus", list(model.shifts_))


def test_metrics_count_what_happened(model):
    server = app_of(model)
    good = {"json": {"windows": make_waves(7, 2)[0].tolist()}}
    ask(server, ("POST", "/predict", good), ("POST", "/predict", good), ("POST", "/predict", {"json": {}}))
    ask(server, *[("GET", f"/{name}", {}) for name in ("health", "a", "b")])
    answer = get(server, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert found['transpl_requests_total{path="/predict",status="200"}'] == "2"
    assert found['transpl_requests_total{path="/predict",status="400"}'] == "1"
    assert found['transpl_requests_total{path="other",status="404"}'] == "2"
    assert (found["transpl_errors_total"], found["transpl_windows_total"]) == ("3", "14")
    assert found["transpl_predict_seconds_count"] == found['transpl_predict_seconds_bucket{le="+Inf"}'] == "2"
    buckets = [int(n) for name, n in found.items() if "_bucket" in name]
    assert buckets == sorted(buckets)
    assert 0 < float(found["transpl_predict_seconds_sum"]) < 60
    assert found["transpl_in_progress"] == "0"
    for line in answer.text.splitlines():
        assert re.fullmatch(r'# TYPE \w+ (counter|gauge|histogram)|\w+(\{(\w+="[^"]*",?)+\})? [\d.]+', line), line


@pytest.fixture
def slow(model, monkeypatch):
    """A server whose model waits until it is told to go on, and how many requests are computed at once."""
    go, working, most = threading.Event(), [0], [0]
    server = app_of(model, at_once=2, waiting=1, seconds=20)

    def answer(kind, body, with_drift=False):
        working[0] += 1
        most[0] = max(most[0], working[0])
        go.wait(30)
        working[0] -= 1
        return {"labels": []}

    monkeypatch.setattr(server, "answer", answer)
    return server, go, most


def test_only_so_many_are_computed_at_once_and_more_are_refused(slow):
    server, go, most = slow
    threading.Timer(0.5, go.set).start()
    answers = ask(server, *[("POST", "/predict", {"json": {}}) for _ in range(8)], together=True)
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 5
    assert most == [2]
    busy = next(answer for answer in answers if answer.status_code == 503)
    refused(busy, 503, "busy")
    assert busy.headers["retry-after"] == "1"


def test_a_request_that_takes_too_long_is_answered_and_its_place_stays_taken_until_it_ends(model, monkeypatch):
    go = threading.Event()
    server = app_of(model, at_once=1, waiting=0, seconds=0.2)
    monkeypatch.setattr(server, "answer", lambda *_: go.wait(30) and {"labels": []})

    async def run() -> None:
        transport = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            refused(await client.post("/predict", json={}), 503, "timeout")
            refused(await client.post("/predict", json={}), 503, "busy")
            go.set()
            for _ in range(100):
                await asyncio.sleep(0.05)
                answer = await client.post("/predict", json={})
                if answer.status_code == 200:
                    return
            raise AssertionError("the place never became free")

    asyncio.run(run())


def test_an_error_of_ours_is_500_without_a_traceback(model, monkeypatch):
    server = app_of(model)
    monkeypatch.setattr(server, "answer", lambda *_: 1 / 0)
    answer = predict(server, json={})
    refused(answer, 500, "ZeroDivisionError")
    assert "Traceback" not in answer.text


def test_requests_at_the_same_time_get_their_own_answers(server, model):
    windows = [make_waves(3 + i, i)[0] for i in range(12)]
    sent = [("POST", "/predict", {"json": {"windows": X.tolist()}}) for X in windows]
    for X, answer in zip(windows, ask(server, *sent, together=True), strict=True):
        assert answer.json()["labels"] == model.predict(X).tolist()


def test_a_taken_port_is_said(model):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken, refusal("--host, --port", "cannot listen"):
        server_module.serve(app_of(model), "127.0.0.1", taken.getsockname()[1], print)


def test_the_process_answers_and_finishes_what_has_begun_on_sigterm(model, tmp_path):
    model.save(tmp_path / "model")
    run = "from transpl.cli import main; main()"
    command = [sys.executable, "-c", run, "serve", str(tmp_path / "model"), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        base = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())[0]
        with urllib.request.urlopen(f"{base}/health", timeout=30) as answer:
            assert json.load(answer) == {"status": "ok"}
        X, answers = make_waves(1000, 2)[0], []
        body = json.dumps({"windows": X.tolist()}).encode()

        def send() -> None:
            request = urllib.request.Request(f"{base}/predict", body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                answers.append(json.load(answer))

        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(200):  # until the request has begun
            with urllib.request.urlopen(f"{base}/metrics", timeout=30) as answer:
                if "transpl_in_progress 1" in answer.read().decode():
                    break
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        sender.join(60)
        assert answers[0]["labels"] == model.predict(X).tolist()
        assert process.wait(60) == 0
        assert "stopped after" in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def test_a_csv_in_latin_letters_is_no_internal_error(server):
    table = pd.DataFrame({"t": [0.0], "ax": ["ä"], "ay": [1.0]}).to_csv(index=False).encode("latin-1")
    assert predict(server, content=table, headers={"content-type": "text/csv"}).status_code == 400
