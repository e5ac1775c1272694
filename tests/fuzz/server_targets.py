"""The bodies of requests to `transpl serve`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from driver import target
from folder_targets import data, saved_model
from reader_targets import table

from transpl import TransPL
from transpl.jobs.server import ModelServer


@cache
def server() -> ModelServer:
    return ModelServer(TransPL.load(saved_model("plus", "markov")), {"time_col": "t", "window": 32})


def write_json_body(folder: Path) -> None:
    (folder / "body.json").write_text(json.dumps({"windows": data().domain(1).X_test.round(1).tolist()}))


def write_csv_body(folder: Path) -> None:
    three = table().drop(columns=["who", "activity", "date"]).assign(az=np.arange(160) % 7)
    three.to_csv(folder / "body.csv", index=False)


@target("request: json", write=write_json_body)
def answer_json(folder: Path) -> None:
    json.dumps(server().answer("application/json", (folder / "body.json").read_bytes(), with_drift=True))


@target("request: csv", write=write_csv_body)
def answer_csv(folder: Path) -> None:
    json.dumps(server().answer("text/csv", (folder / "body.csv").read_bytes()), allow_nan=False)
