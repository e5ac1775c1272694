"""Label windows with an exported TransPL model. Needs numpy and the two files beside this one, nothing else.

    python predict.py windows.npy > labels.csv

    from predict import Predictor
    model = Predictor()  # reads model.json and weights.npz
    model.predict(X), model.predict_proba(X)  # X (n, channels, time), or a list of (channels, T_i)

Every window is labelled by itself: answers do not depend on the other windows of a call.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
Arrays = dict[str, np.ndarray]

_MAX_VALUE = 1e15
_AT_ONCE = 4096  # windows in memory
_RESPONSES_AT_ONCE = 1 << 22
_STEP = 256  # points of the table of erf per unit


class Predictor:
    """The model of a folder that `transpl export --to numpy` wrote."""

    def __init__(self, folder: str | Path = Path(__file__).parent) -> None:
        self.about = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
        with np.load(Path(folder) / "weights.npz", allow_pickle=False) as archive:
            self.arrays = dict(archive)
        self.classes_ = np.array(self.about["classes"])
        self._answer = {"plus": _council, "paper": _network}[self.about["variant"]]

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each window, (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (n, K), columns in the order of `classes_`."""
        windows = [_checked(window, self.about) for window in X]
        if not windows:
            raise ValueError("X: expected at least one window")
        found = np.empty((len(windows), len(self.classes_)))
        lengths = np.array([window.shape[1] for window in windows])
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for part in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                x = np.stack([windows[row] for row in part])
                found[part] = self._answer(x, self.about, self.arrays)
        return found


def _checked(window: Any, about: dict[str, Any]) -> Array:
    window = np.asarray(window, np.float32)
    D, least, only = about["n_channels"], about["min_length"], about["only_length"]
    window = window[None] if D == 1 and window.ndim == 1 else window
    if window.ndim != 2 or len(window) != D or window.shape[1] < least or (only and window.shape[1] != only):
        steps = f"exactly {only}" if only else f"at least {least}"
        raise ValueError(f"X: expected windows ({D} channels, {steps} time steps), got shape {window.shape}")
    if not (np.abs(window) <= _MAX_VALUE).all():
        raise ValueError("X: expected finite numbers of moderate size")
    return window


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}.")}


def _codes_to_likelihoods(codes: Array, log_p: Array) -> Array:
    """sum_t log p(s_{t+1} | s_t, k, d) of codes (n, D, N), (n, D, K)."""
    K, D, c, _ = log_p.shape
    table = log_p.reshape(K, -1).T
    return table[codes[..., :-1] * c + codes[..., 1:] + (np.arange(D) * c**2)[:, None]].sum(axis=2)


# variant "plus": the council


def _council(x: Array, about: dict[str, Any], arrays: Arrays) -> Array:
    for i, shift in enumerate(about["shifts"]):
        x = _undo(x, shift, _under(arrays, f"shift.{i}"))
    views = {view: _viewed(x, view, _under(arrays, f"view.{view}")) for view in about["views"]}
    statistics = {view: _statistics(values, about["settings"]) for view, values in views.items()}
    rows, answers = [], []
    for i, (witness, view) in enumerate(about["seats"]):
        seat = _under(arrays, f"seat.{i}")
        if witness == "codes":
            found = _patch_codes(views[view], seat)
        else:
            found = _kernel_features(views[view], seat) if witness == "kernels" else statistics[view]
            found = np.clip((found - seat["columns.mean"]) / seat["columns.scale"], -10, 10).astype(np.float32)
        rows.append(found)
        answers.append(_WITNESSES[witness](found, seat, len(about["classes"])))
    for i, at in enumerate(about["relearned"]):
        answers.append(_gaussian(rows[at], _under(arrays, f"relearned.{i}")))
    return _joined(np.stack(answers), _under(arrays, "votes"), about)


def _undo(x: Array, shift: str, arrays: Arrays) -> Array:
    if shift == "order":  # turned, mirrored, reversed or swapped channels
        undone = np.empty_like(x)
        undone[:, arrays["order"]] = x * arrays["signs"][:, None]
        return undone
    if shift == "unit":
        return (x * arrays["factors"][:, None]).astype(np.float32)
    if shift == "pace":
        return (x.astype(np.float64) @ arrays["resample"]).astype(np.float32)
    blank = x.copy()
    blank[:, arrays["dead"]] = arrays["fill"][:, None]
    return blank


def _viewed(x: Array, view: str, arrays: Arrays) -> Array:
    mean, scale = arrays["mean"][None, :, None], arrays["scale"][None, :, None]
    if view == "shape":
        T = np.full((1, 1, 1), x.shape[2])
        mean = x.sum(axis=2, keepdims=True, dtype=np.float64) / T
        scale = np.sqrt(((x - mean) ** 2).sum(axis=2, keepdims=True) / T) + 1e-2 * scale
    return ((x - mean) / scale).astype(np.float32)


def _statistics(values: Array, settings: dict[str, Any]) -> Array:
    x = values.astype(np.float64)
    T = x.shape[2]
    level = x.mean(axis=2)
    steps = np.diff(x, axis=2).std(axis=2) if T > 1 else np.zeros_like(level)
    blocks = [level, x.std(axis=2), steps, *np.quantile(x, settings["quantiles"], axis=2)]
    centred = x - level[:, :, None]
    power = np.abs(np.fft.rfft(centred, axis=2)) ** 2
    edges = np.round(np.geomspace(1, max(T // 2 + 1, 2), settings["bands"] + 1)).astype(int)
    blocks += [np.log(power[:, :, a:b].sum(axis=2) + 1e-6 * T) for a, b in itertools.pairwise(edges)]
    first, second = (pair[: settings["max_pairs"]] for pair in np.triu_indices(x.shape[1], 1))
    blocks.append(np.einsum("npt,npt->np", centred[:, first], centred[:, second]) / T)
    return np.concatenate(blocks, axis=1)


def _patch_codes(values: Array, seat: Arrays) -> Array:
    centres = seat["centres"]
    n, D, T = values.shape
    N, m = T // centres.shape[1], centres.shape[1]
    x = (values - seat["mean"][:, None]) / seat["deviation"][:, None]
    patches = x[..., : N * m].reshape(-1, m)
    return ((centres**2).sum(axis=1) - 2 * patches @ centres.T).argmin(axis=1).reshape(n, D, N)


def _kernel_features(values: Array, seat: Arrays) -> Array:
    at_once = max(1, _RESPONSES_AT_ONCE // (values.shape[2] * len(seat["dilations"])))
    parts = [values[first : first + at_once] for first in range(0, len(values), at_once)]
    return np.concatenate([_responses(part, seat) for part in parts])


def _responses(values: Array, seat: Arrays) -> Array:
    """The share of time above its threshold and the maximum of each random convolution, (n, 2 * kernels)."""
    n, D, _ = values.shape
    above, most = [], []
    for d in np.unique(seat["dilations"]):
        mine = seat["dilations"] == d
        kernels, length = seat["kernels"][mine], seat["kernels"].shape[1] // D
        padded = np.pad(values, ((0, 0), (0, 0), (d * (length // 2), d * (length // 2))))
        pieces = np.lib.stride_tricks.sliding_window_view(padded, d * (length - 1) + 1, axis=2)[:, :, :, ::d]
        flat = pieces.transpose(0, 2, 1, 3).reshape(-1, D * length)
        r = (flat @ kernels.T).reshape(n, -1, len(kernels))
        above.append((r > seat["thresholds"][mine]).mean(axis=1, dtype=np.float32))
        most.append(r.max(axis=1))
    return np.concatenate(above + most, axis=1)


def _spread(p: Array, classes: Array, n_classes: int, least: float) -> Array:
    """Probabilities of some classes as those of all, none below `least`."""
    whole = np.full((len(p), n_classes), least)
    whole[:, classes] = np.maximum(p, least)
    return whole / whole.sum(axis=1, keepdims=True)


def _of_codes(codes: Array, seat: Arrays, n_classes: int) -> Array:
    found = _codes_to_likelihoods(codes, seat["log_p"]).sum(axis=1)
    found[:, ~seat["shown"]] = found.min(axis=1, keepdims=True) - 1e3
    return _spread(_softmax(found), np.arange(n_classes), n_classes, 1e-6)


def _of_weights(rows: Array, seat: Arrays, n_classes: int) -> Array:
    return _spread(_softmax(rows @ seat["weights"].T + seat["bias"]), seat["classes"], n_classes, 1e-6)


def _of_trees(rows: Array, seat: Arrays, n_classes: int) -> Array:
    node, row = np.tile(seat["roots"], (len(rows), 1)), np.arange(len(rows))[:, None]
    while (seat["left"][node] != -1).any():
        inner = seat["left"][node] != -1
        goes_left = rows[row, np.maximum(seat["feature"][node], 0)] <= seat["threshold"][node]
        node = np.where(inner, np.where(goes_left, seat["left"][node], seat["right"][node]), node)
    return _spread(seat["shares"][node].mean(axis=1, dtype=np.float64), seat["classes"], n_classes, 1e-3)


_WITNESSES = {"codes": _of_codes, "kernels": _of_weights, "linear": _of_weights, "trees": _of_trees}


def _gaussian(rows: Array, relearned: Arrays) -> Array:
    z = (rows.astype(np.float64) - relearned["mean"]) @ relearned["axes"]
    apart = z[:, None] - relearned["means"]
    log_p = -0.5 * np.einsum("nkd,de,nke->nk", apart, relearned["precision"], apart, optimize=True)
    if relearned["shown"].any():
        log_p[:, ~relearned["shown"]] = log_p.min(axis=1, keepdims=True) - 1e3
    p = np.maximum(_softmax(log_p), 1e-6)
    return p / p.sum(axis=1, keepdims=True)


def _joined(answers: Array, votes: Arrays, about: dict[str, Any]) -> Array:
    if not votes:  # not adapted: the mean of the recorded views
        voting = np.array([view == "recorded" for _, view in about["seats"]])
        voting = voting if voting.any() else ~voting
        return _softmax((np.where(voting[:, None, None], np.log(answers), 0) / voting.sum()).sum(axis=0))
    second, first = np.moveaxis(np.partition(answers, -2, axis=2)[:, :, -2:], 2, 0)
    margins = np.log(first) - np.log(second)
    certainty = (margins[:, :, None] > votes["thresholds"][:, None]).sum(axis=2)
    K, levels = answers.shape[2], votes["thresholds"].shape[1] + 1
    symbols = answers.argmax(axis=2) + K * (levels - 1 - certainty)
    evidence = np.stack([table.T[named] for table, named in zip(votes["log_confusions"], symbols, strict=True)])
    return _softmax(evidence.sum(axis=0) + votes["bias"])


# variant "paper": the network, or the Markov posterior of its codes


def _network(x: Array, about: dict[str, Any], arrays: Arrays) -> Array:
    settings, net = about["settings"], _under(arrays, "network")
    (n, D, T), m = x.shape, settings["patch_length"]
    N = T // m
    tokens = _linear(x[..., : N * m].reshape(n * D, N, m), net, "embed.0")
    tokens = _layer_norm(_gelu(tokens), net, "embed.2")
    tokens = np.concatenate([np.broadcast_to(net["cls"], (n * D, 1, tokens.shape[2])), tokens], axis=1)
    tokens = tokens + _positions(N + 1, tokens.shape[2])
    for i in range(settings["n_layers"]):
        layer = _under(net, f"encoder.layers.{i}")
        tokens = _layer_norm(tokens + _attention(tokens, layer, settings["n_heads"]), layer, "norm_attention")
        hidden = _linear(_gelu(_linear(tokens, layer, "expand")), layer, "contract")
        tokens = _layer_norm(tokens + hidden, layer, "norm_feedforward")
    if settings["mode"] == "markov":
        codes = (tokens[:, 1:] @ arrays["codes"].T).argmax(axis=2).reshape(n, D, N)
        likelihoods = _codes_to_likelihoods(codes, arrays["log_p"]) / max(1, N - settings["fewer_than_codes"])
        y = np.einsum("d,ndk->nk", arrays["shares"], _softmax(likelihoods + arrays["log_prior"]))
        return y / y.sum(axis=1, keepdims=True)
    z = tokens[:, 0].reshape(n, D, -1).mean(axis=1)
    hidden = np.maximum(_linear(z, net, "head.0"), 0)
    return _softmax(_linear(hidden, net, "head.2").astype(np.float64))


def _linear(x: Array, net: Arrays, name: str) -> Array:
    return x @ net[f"{name}.weight"].T + net[f"{name}.bias"]


def _layer_norm(x: Array, net: Arrays, name: str) -> Array:
    apart = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((apart**2).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return apart / scale * net[f"{name}.weight"] + net[f"{name}.bias"]


def _attention(x: Array, layer: Arrays, n_heads: int) -> Array:
    S, L, d = x.shape
    heads = _linear(x, layer, "attention.project_in").reshape(S, L, 3, n_heads, d // n_heads)
    q, k, v = heads.transpose(2, 0, 3, 1, 4)
    mixed = _softmax(q / np.float32(math.sqrt(d // n_heads)) @ k.swapaxes(-1, -2)) @ v
    return _linear(mixed.transpose(0, 2, 1, 3).reshape(S, L, d), layer, "attention.project_out")


def _positions(length: int, width: int) -> Array:
    t, i = np.arange(length)[:, None], np.arange(0, width, 2)
    angle = t * np.exp(-math.log(10_000) * i / width)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, -1)[:, :width].astype(np.float32)


def _gelu(x: Array) -> Array:
    return x * np.float32(0.5) * (1 + _erf(x / np.float32(math.sqrt(2))))


_ERF = np.array([math.erf(i / _STEP) for i in range(6 * _STEP + 1)])


def _erf(x: Array) -> Array:
    """erf, which numpy lacks: the nearest entry of a table, and three terms of the Taylor series around it."""
    size = np.minimum(np.abs(x), 6).astype(np.float64)
    nearest = np.rint(size * _STEP).astype(int)
    g, off = nearest / _STEP, size - nearest / _STEP
    slope = 2 / math.sqrt(math.pi) * np.exp(-g * g)
    value = _ERF[nearest] + slope * off * (1 - g * off + (2 * g * g - 1) / 3 * off * off)
    return np.copysign(value, x).astype(x.dtype)


def main() -> None:
    """Label the windows of a .npy file; write label, confidence and probabilities as csv."""
    if len(sys.argv) != 2:
        sys.exit("usage: python predict.py windows.npy > labels.csv")
    model = Predictor()
    p = model.predict_proba(np.load(sys.argv[1], allow_pickle=False))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["window", "label", "confidence", *(f"p_{name}" for name in model.classes_)])
    for i, row in enumerate(p):
        table.writerow([i, model.classes_[row.argmax()], *np.concatenate([[row.max()], row]).tolist()])


if __name__ == "__main__":
    main()
