"""The readers of what transpl itself writes: models, results of a job, lists to review, benchmarks and their plans."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from driver import target
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from transpl import TransPL, jobs
from transpl._utils.errors import InputError
from transpl._utils.hashing import hash_bytes, hash_json
from transpl.benchmark import (
    Plan,
    Store,
    missing_lines,
    paper_table_from,
    read_leaderboard,
    read_plans,
    render,
    restore_run,
    rows_of,
    run_plan,
    runs_as_csv,
    status_lines,
)
from transpl.benchmark.leaderboard import leaderboard_of_lines
from transpl.benchmark.run_lines import add_lines, line_of, row_names
from transpl.datasets import make_shifted
from transpl.datasets.prepared import save_prepared
from transpl.jobs import stream
from transpl.jobs.folder import write_table
from transpl.jobs.review import review_job
from transpl.markov import TransitionCounts
from transpl.report import write_leaderboard, write_report
from transpl.report.figures import make_figure

SIZE = {"patch_length": 4, "width": 16, "n_coarse": 4, "n_fine": 8, "n_layers": 1, "n_heads": 2, "max_epochs": 1}
MODELS: dict[str, dict[str, Any]] = {
    "plus": {"patch_length": 4, "n_coarse": 4},
    "paper": {**SIZE, "variant": "paper", "device": "cpu"},
}


@cache
def data():
    return make_shifted(n_train=24, n_test=12, length=32, n_channels=3, n_domains=2, seed=0)


# models


@cache
def saved_model(variant: str, mode: str) -> Path:
    """A folder with an adapted model."""
    source, target_ = data().domain(0), data().domain(1)
    model = TransPL(**MODELS[variant], random_state=0).fit(source.X_train, source.y_train)
    model.adapt(target_.X_train, prior=[1 / 3] * 3, mode=mode)
    if variant == "plus":
        model.partial_adapt(target_.X_test)  # so that the sample of windows is saved too
    folder = Path(tempfile.mkdtemp(prefix="fuzz-model-"))
    model.save(folder)
    return folder


def write_model(folder: Path, variant: str, mode: str) -> None:
    """Model.json without its digest, and every array in a file of its own, so that damage gets behind the digests."""
    saved = saved_model(variant, mode)
    card = json.loads((saved / "model.json").read_text())
    del card["digest"]
    (folder / "card.json").write_text(json.dumps(card))
    (folder / "arrays").mkdir()
    for name, array in load_file(saved / card["weights"]["file"]).items():
        np.save(folder / "arrays" / f"{name}.npy", array)


def read_model(folder: Path) -> None:
    """Make a model folder of the parts with digests that fit, and use it."""
    try:
        card = json.loads((folder / "card.json").read_text())
        paths = sorted((folder / "arrays").iterdir())
        arrays = {path.stem: np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) for path in paths}
        content = serialize({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        name = f"weights-{hash_bytes([content])[:16]}.safetensors"
        if isinstance(card.get("weights"), dict):
            card["weights"] = {"file": name, "sha256": hash_bytes([content])}
        text = json.dumps({**card, "digest": hash_json(card)})
    except Exception as error:
        raise InputError(f"not even the parts can be read: {type(error).__name__}") from None
    home = folder / "model"
    home.mkdir()
    (home / "model.json").write_text(text)
    (home / name).write_bytes(content)
    use(TransPL.load(home))
    assert sorted(path.name for path in folder.iterdir()) == ["arrays", "card.json", "model"], "a file elsewhere"


def use(model: TransPL) -> None:
    X = data().domain(1).X_test
    if X.shape[1] != model.n_channels_:
        X = np.repeat(X[:, :1], model.n_channels_, axis=1)
    found = [model.predict_proba(X), model.pseudo_label(X).probabilities, model.channel_distances_]
    assert all(np.isfinite(array).all() for array in found)
    model.explain(X[:3]).sentence(0)
    model.shift_report().as_dict()
    model.drift(X, n_shuffles=99).sentence()
    model.set_params(n_threads=1).method_.fingerprint()
    assert model.checkpoint_dir is None


@target("plus: facts", write=lambda folder: write_model(folder, "plus", "markov"), damage=["card.json"])
def read_facts_of_plus(folder: Path) -> None:
    read_model(folder)


@target("plus: arrays", write=lambda folder: write_model(folder, "plus", "markov"), damage=["arrays/*"])
def read_arrays_of_plus(folder: Path) -> None:
    read_model(folder)


@target("paper: facts", write=lambda folder: write_model(folder, "paper", "finetune"), damage=["card.json"])
def read_facts_of_paper(folder: Path) -> None:
    read_model(folder)


@target("paper: arrays", write=lambda folder: write_model(folder, "paper", "finetune"), damage=["arrays/*"])
def read_arrays_of_paper(folder: Path) -> None:
    read_model(folder)


# results


def write_results(folder: Path, variant: str = "plus") -> None:
    job = jobs.from_dataset(data(), 0, 1, hold_out=variant == "paper", mode="markov")
    jobs.run(job, TransPL(**MODELS[variant], random_state=0), folder / "out")


def write_list(folder: Path) -> None:
    write_results(folder)
    listed = review_job(folder / "out", 6)
    listed["true_label"] = listed["label"].where(listed.index < 4, "")
    write_table(folder / "few.csv", listed)


@target("results", write=write_results)
def read_results(folder: Path) -> None:
    """What `report`, `review`, `predict` and `monitor` read; each may be refused by itself."""
    refused = None
    for read in (
        lambda: write_report(folder / "out"),
        lambda: write_table(folder / "few.csv", review_job(folder / "out", 5)),
        lambda: use(jobs.load_model(folder / "out")[0]),
    ):
        try:
            read()
        except InputError as error:
            refused = error
    if refused is not None:
        raise refused


@target("results: figure", write=lambda folder: write_results(folder, "paper"), damage=["out/*.*"])
def draw_results(folder: Path) -> None:
    make_figure("likelihoods", folder / "out")


@cache
def half_labelled() -> dict[str, bytes]:
    """The files of a folder that `label` left when it was interrupted."""
    home = Path(tempfile.mkdtemp(prefix="fuzz-labels-"))
    save_rows = stream.write_rows

    def interrupt(path: Path, first: int, rows: Any) -> None:
        save_rows(path, first, rows)
        if first and path.name.startswith("labels"):
            raise KeyboardInterrupt

    stream.write_rows = interrupt
    try:
        with suppress(KeyboardInterrupt):
            stream.label_windows(model_of_labels(), WINDOWS, home / "labels", adapt=True, chunk=1)
    finally:
        stream.write_rows = save_rows
    return {path.name: path.read_bytes() for path in (home / "labels").iterdir() if path.name != ".lock"}


WINDOWS = np.random.default_rng(0).normal(size=(300, 3, 32)).astype(np.float32)


@cache
def model_of_labels() -> TransPL:
    return TransPL.load(saved_model("paper", "markov"))


def write_half_labelled(folder: Path) -> None:
    (folder / "labels").mkdir()
    for name, content in half_labelled().items():
        (folder / "labels" / name).write_bytes(content)


@target("label", write=write_half_labelled)
def label_on(folder: Path) -> None:
    found = stream.label_windows(model_of_labels(), WINDOWS, folder / "labels", adapt=True)
    assert found.windows_per_class().sum() == len(WINDOWS)


@target("counts", write=lambda folder: (folder / "counts.npz").write_bytes(half_labelled()["target_counts.npz"]))
def read_counts(folder: Path) -> None:
    counts = TransitionCounts.load(folder / "counts.npz")
    assert np.isfinite(counts.probabilities()).all()


@target("review", write=write_list, damage=["few.csv"])
def review_again(folder: Path) -> None:
    listed = review_job(folder / "out", 5, earlier=folder / "few.csv")
    assert isinstance(listed, pd.DataFrame)


# benchmarks


@cache
def plans() -> Plan:
    home = Path(tempfile.mkdtemp(prefix="fuzz-data-"))
    save_prepared(data(), home / "tiny.npz")
    os.environ["TRANSPL_DATA"] = str(home)
    return Plan("tiny", rows_of(("no-adapt", "transpl"), SIZE), ((0, 1),), (0,))


def write_bench(folder: Path) -> None:
    specs = plans().runs()
    store = Store(folder)
    store.plan(specs)
    assert all(done.error is None for done in run_plan(specs, folder, backend="inline"))
    other = Plan("tiny", rows_of(("deepcoral",), SIZE), ((0, 1),), (0,)).runs()
    store.plan([*specs, *other])
    store.fail(other[0], "ValueError: no", "traceback", 1)


@target("bench", write=write_bench, damage=["runs/*", "plans/*", "failures/*", "locks/*"])
def read_bench(folder: Path) -> None:
    store = Store(folder)
    specs = store.planned()
    lines = [*status_lines(store, specs, 1), *missing_lines(store, specs, 1)]
    lines += [str(store.failure(spec)) for spec in specs]
    board = read_leaderboard(folder)
    write_leaderboard(board, folder)
    runs_as_csv(folder, "full", ["tiny"])
    render(paper_table_from(folder, "full", ["tiny"]))
    for spec, result in store.known().values():
        if result is not None:
            store.arrays(spec)


@target("bench: figure", write=write_bench)
def draw_bench(folder: Path) -> None:
    make_figure("alignment", folder)


@target("bench: sources", write=write_bench, damage=["sources/*"])
def restore_a_run(folder: Path) -> None:
    """What `transpl figure` reads of a benchmark, and what a further run would start from."""
    for spec in plans().runs():
        method, pair = restore_run(spec, folder)
        assert np.isfinite(method.predict_proba(pair.test)).all()


def write_lines(folder: Path) -> None:
    write_bench(folder / "bench")
    store, plan = Store(folder / "bench"), plans()
    finished = [(spec, result) for spec, result in store.known().values() if result is not None]
    add_lines(folder / "runs.csv", [line_of(spec, result, row_names([plan])) for spec, result in finished])
    shutil.rmtree(folder / "bench")


@target("lines", write=write_lines, damage=["runs.csv"])
def read_run_lines(folder: Path) -> None:
    render(paper_table_from(folder / "runs.csv", "full", ["tiny"]))
    write_leaderboard(leaderboard_of_lines([folder / "runs.csv"]), folder)
    runs_as_csv(folder / "runs.csv", "full", ["tiny"])
    add_lines(folder / "runs.csv", [dict.fromkeys(("run", "row", "dataset", "pair", "seed"), "1")])


PLAN = """
dataset: tiny
methods: [no-adapt]
rows: [softmax, {method: transpl, changes: {sigma: 0.3}, label: wide, goal: label}]
changes: {max_epochs: 3, patch_length: 4}
pairs: [0-1, [1, 0]]
seeds: 2
preset: paper
grid: {adapt_lr: [1e-3, 5.0e-4]}
"""


@target("plan", write=lambda folder: (folder / "plan.yaml").write_text(PLAN))
def read_plan(folder: Path) -> None:
    plans()
    for plan in read_plans(folder / "plan.yaml"):
        plan.runs()


def write_plan_as_json(folder: Path) -> None:
    """JSON is YAML too, and is damaged value by value."""
    (folder / "plan.json").write_text(json.dumps(yaml.safe_load(PLAN)))


@target("plan: values", write=write_plan_as_json)
def read_values_of_plan(folder: Path) -> None:
    plans()
    for plan in read_plans(folder / "plan.json"):
        plan.runs()
