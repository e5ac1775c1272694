"""Load on `transpl serve`, with a real process and real connections: throughput, latency, memory, kill and restart.

    python -m benchmarks.serve_load --requests 10000 --clients 4

The model is the default one, adapted from person 8 to person 4 of the watch set (or of the synthetic set, where the
extra `watch` is missing). Every answer is compared with `predict_proba` of the same model here.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from transpl import TransPL, datasets

HOST = "127.0.0.1"


class Server:
    """A `transpl serve` process on a free port."""

    def __init__(self, model: Path, at_once: int) -> None:
        command = [sys.executable, "-m", "transpl.cli", "serve", str(model), "--port", "0", "--threads", "1"]
        start = time.perf_counter()
        self.process = subprocess.Popen([*command, "--at-once", str(at_once)], stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r"http://[\d.]+:(\d+)", self.process.stderr.readline())[1])
        self.seconds_to_start = time.perf_counter() - start

    def memory(self) -> float:
        """Resident megabytes."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    def stop(self, sent: signal.Signals) -> tuple[int, float]:
        """Exit code, and seconds until it has gone."""
        start = time.perf_counter()
        self.process.send_signal(sent)
        code = self.process.wait(120)
        return code, time.perf_counter() - start

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(120)
        self.process.stderr.close()


def fitted(folder: Path) -> tuple[TransPL, np.ndarray]:
    name = "watch" if "watch" in datasets.names() else "synthetic"
    data = datasets.load(name)
    source, target = (8, 4) if name == "watch" else data.pairs[0]
    one, other = data.domain(source), data.domain(target)
    model = TransPL(channel_names=data.channel_names).fit(one.X_train, one.y_train).adapt(other.X_train)
    model.save(folder)
    return model, np.asarray(other.X_test, np.float32)


def load(server: Server, model: TransPL, X: np.ndarray, n: int, clients: int, windows: int) -> dict[str, float]:
    """Send n requests of some windows each over kept connections; returns what was measured."""
    starts = [i * windows % (len(X) - windows + 1) for i in range(n)]
    expected = {start: model.predict_proba(X[start : start + windows]) for start in set(starts)}
    bodies = {start: json.dumps({"windows": X[start : start + windows].tolist()}) for start in set(starts)}
    seconds, memory, wrong, lock, left = [], [], [0], threading.Lock(), iter(starts)

    def client() -> None:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=120)
        while True:
            with lock:
                start = next(left, None)
                if len(seconds) % 500 == 0:
                    memory.append(server.memory())
            if start is None:
                return
            begin = time.perf_counter()
            connection.request("POST", "/predict", bodies[start], {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            took = time.perf_counter() - begin
            right = answer.status == 200 and np.abs(json.loads(text)["probabilities"] - expected[start]).max() <= 1e-6
            with lock:
                seconds.append(took)
                wrong[0] += not right

    begin = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = time.perf_counter() - begin
    return {
        "requests": len(seconds),
        "failed or wrong": wrong[0],
        "requests/s": len(seconds) / total,
        "windows/s": windows * len(seconds) / total,
        "p50 ms": 1000 * float(np.quantile(seconds, 0.5)),
        "p99 ms": 1000 * float(np.quantile(seconds, 0.99)),
        "MB at start": memory[0],
        "MB after 10 %": memory[len(memory) // 10],
        "MB at the end": memory[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--windows", type=int, default=1, help="per request")
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model, X = fitted(Path(folder))
        server = stack.enter_context(Server(Path(folder), options.at_once))
        print(f"started in {server.seconds_to_start:.1f} s")
        for name, value in load(server, model, X, options.requests, options.clients, options.windows).items():
            print(f"{name:<16} {value:,.1f}" if isinstance(value, float) else f"{name:<16} {value:,}")
        code, seconds = server.stop(signal.SIGKILL)
        again = stack.enter_context(Server(Path(folder), options.at_once))
        after = load(again, model, X, 50, options.clients, options.windows)
        print(f"killed (exit code {code}); restarted in {again.seconds_to_start:.1f} s")
        print(f"after it         {after['failed or wrong']} of 50 failed or wrong")
        code, seconds = again.stop(signal.SIGTERM)
        print(f"SIGTERM: exit code {code} after {seconds:.2f} s")


if __name__ == "__main__":
    main()
