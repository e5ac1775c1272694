"""Model folders whose digests fit, made by somebody who means harm: refused in one line, before anything is built."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from transpl import TransPL
from transpl._utils.errors import UnreadableFile
from transpl._utils.hashing import hash_bytes, hash_json

X, Y = make_waves(24, seed=0)
NEW, _ = make_waves(16, seed=2, gain=1.4)
TREE = "council.source.seat.recorded.trees.witness."


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """By variant, the facts and the arrays of an adapted model."""
    found = {}
    for variant, settings in {"paper": {**TINY, "max_epochs": 1}, "plus": {"views": ["recorded"]}}.items():
        folder = tmp_path_factory.mktemp(variant)
        TransPL(**settings).fit(X, Y).adapt(NEW).save(folder)
        card = json.loads((folder / "model.json").read_text())
        found[variant] = card, load_file(folder / card["weights"]["file"])
    return found


def write(folder, card, arrays):
    content = serialize(arrays)
    digest = hash_bytes([content])
    (folder / "weights-1.safetensors").write_bytes(content)
    card = {**card, "weights": {"file": "weights-1.safetensors", "sha256": digest}}
    card.pop("digest")
    (folder / "model.json").write_text(json.dumps({**card, "digest": hash_json(card)}))
    return folder


def put(*path_and_value):
    """Set a value of model.json."""

    def change(card, arrays):
        *path, last, value = path_and_value
        for key in path:
            card = card[key]
        card[last] = value

    return change


def fill(name, value, position=0):
    """Set an entry of an array."""

    def change(card, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name].reshape(-1)[position] = value

    return change


def drop(name):
    return lambda card, arrays: arrays.pop(name)


def other_shape(name):
    def change(card, arrays):
        arrays[name] = np.ascontiguousarray(np.concatenate([arrays[name], arrays[name]]))

    return change


def put_inside_a_tree(card, arrays):
    inner = np.flatnonzero(arrays[f"{TREE}left"] >= 0)[-1]
    fill(f"{TREE}feature", 10**6, inner)(card, arrays)


def put_one_way(card, arrays):
    inner = np.flatnonzero(arrays[f"{TREE}left"] >= 0)[0]
    fill(f"{TREE}right", -1, inner)(card, arrays)


PAPER = {
    "a billion layers": put("network", "n_layers", 10**9),
    "a billion layers in both places": lambda card, arrays: [
        put("network", "n_layers", 10**9)(card, arrays),
        put("params", "n_layers", 10**9)(card, arrays),
    ],
    "another width": put("network", "width", 32),
    "other parameters than the network": put("params", "patch_length", 8),
    "an unknown mode": put("mode", "guess"),
    "a mode without its weights": drop("adapted.embed.0.weight"),
    "weights that are not numbers": fill("source.embed.0.weight", np.nan),
    "weights of another shape": other_shape("source.head.2.bias"),
    "negative counts": fill("counts.class", -1),
    "codes that do not exist": fill("remembered.codes", 99),
    "labels that do not exist": fill("remembered.labels", 9),
    "a prior of other classes": put("prior", [0.2, 0.3, 0.5]),
    "a book too many": put("codebook_usage", "huge", [1]),
    "a history that is text": put("history", "source", "long"),
}
PLUS = {
    "a tree that leads back": fill(f"{TREE}left", 0),
    "a tree that leads out": fill(f"{TREE}right", 10**6),
    "a feature that does not exist": fill(f"{TREE}feature", 10**6),
    "a feature that does not exist, further down": put_inside_a_tree,
    "a feature that does not exist, in a leaf": fill(f"{TREE}feature", 10**6, -1),
    "a node with one way": put_one_way,
    "a wide kernel": fill("council.source.seat.recorded.kernels.witness.dilations", 10**9),
    "columns that do not fit": other_shape("council.source.seat.recorded.linear.columns.mean"),
    "a scale of zero": fill("council.source.lens.recorded.scale", 0.0),
    "confusions of infinity": fill("council.verdict.confusions", np.inf),
    "a seat too many": put("council", "relearned", [99]),
    "text as shifts": put("council", "shifts", "none"),
    "endless windows": put("source", "shortest_window", 10**9),
    "an unknown witness": put("params", "witnesses", ["oracle"]),
    "an array too many": lambda card, arrays: arrays.update(more=np.zeros(3)),
}
BOTH = {
    "no parameters": put("params", None),
    "an unknown parameter": put("params", "pickle", "yes"),
    "a seed of text": put("params", "random_state", "x"),
    "another variant": put("variant", "oracle"),
    "labels of huge size": put("classes", "dtype", "<U100000000"),
    "labels of another number": put("classes", "values", [0, 1, 2]),
    "labels that are equal": put("classes", "values", [1, 1]),
    "labels that are objects": put("classes", "values", [{}, {}]),
    "channels of another number": put("channels", 5),
    "weights elsewhere": put("params", "sigma", -1.0),
}
CASES = [(variant, name, change) for variant, own in (("paper", PAPER), ("plus", PLUS)) for name, change in own.items()]
CASES += [(variant, name, change) for variant in ("paper", "plus") for name, change in BOTH.items()]


@pytest.mark.parametrize(("variant", "change"), [(v, c) for v, _, c in CASES], ids=[f"{v}: {n}" for v, n, _ in CASES])
def test_what_does_not_describe_a_model_is_refused_in_one_line(saved, tmp_path, variant, change):
    card, arrays = json.loads(json.dumps(saved[variant][0])), dict(saved[variant][1])
    change(card, arrays)
    with pytest.raises((UnreadableFile, ValueError)) as caught:
        TransPL.load(write(tmp_path, card, arrays))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 400])
def test_numbers_that_are_none_are_refused(saved, tmp_path, number):
    card, arrays = saved["plus"]
    home = write(tmp_path, card, arrays)
    text = (home / "model.json").read_text().replace('"sigma": 0.2', f'"sigma": {number}')
    (home / "model.json").write_text(text)
    with pytest.raises(UnreadableFile, match="not readable as JSON"):
        TransPL.load(home)


@pytest.mark.parametrize("variant", ["paper", "plus"])
def test_nothing_of_the_machine_comes_from_a_file(saved, tmp_path, variant):
    card, arrays = saved[variant]
    theirs = {"checkpoint_dir": str(tmp_path / "theirs"), "n_threads": 10**6, "devices": 64, "device": "cuda:7"}
    model = TransPL.load(write(tmp_path, {**card, "params": {**card["params"], **theirs, "verbose": True}}, arrays))
    defaults = TransPL()
    assert {name: getattr(model, name) for name in (*theirs, "verbose")} == {
        name: getattr(defaults, name) for name in (*theirs, "verbose")
    }
    model.set_params(device="cpu").adapt(NEW, X_source=X, y_source=Y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "weights-1.safetensors"]


def test_weights_that_overflow_are_refused_where_they_are_used(saved, tmp_path):
    card, arrays = json.loads(json.dumps(saved["paper"][0])), dict(saved["paper"][1])
    fill("adapted.encoder.layers.0.norm_attention.bias", 1e20)(card, arrays)
    model = TransPL.load(write(tmp_path, card, arrays))
    with refusal("X", "overflow"):
        model.predict_proba(NEW)
