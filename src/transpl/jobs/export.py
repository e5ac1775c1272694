"""A fitted model for production: as a folder that needs only numpy, or as one ONNX file.

Both label every window by itself, as `TransPL.predict_proba(X)` does. What needs other windows is not exported: voting
by groups, smoothing over time, adapting, explaining.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl import TransPL, __version__
from transpl._utils.errors import InputError, check_int, invalid, require_extra
from transpl._utils.files import replacing, write_json, write_text
from transpl._utils.layout import prefixed, without_prefix
from transpl.council.shifts.shift import Shift
from transpl.council.witnesses.linear import BANDS, MAX_PAIRS, QUANTILES
from transpl.jobs import numpy_predictor
from transpl.jobs.folder import SAMPLE_FILE, load_sample
from transpl.windows import Windows, as_windows

CHECKED = 256  # windows on which an export is compared with the model
TOLERANCE = 1e-6
_WITHIN, _SAME_LABEL = 0.9, 0.99  # least shares of the checked windows; docs/production.md says why not all
_AT_ONCE = 64  # windows
_WITNESSES = ("codes", "kernels", "linear", "trees")

Arrays = dict[str, NDArray]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExportedModel:
    """What answers of a fitted model, as plain data and arrays.

    Attributes
    ----------
    about : dict
        Classes, channels and settings; `numpy_predictor` and `onnx_graph` read it.
    arrays : dict of arrays
    """

    about: dict[str, Any]
    arrays: Arrays


class ExportCheck(NamedTuple):
    """How an export compares with the model on some windows."""

    windows: int
    within: int  # windows whose probabilities differ by at most `TOLERANCE`
    largest: float  # difference of a probability
    same_labels: int  # windows

    def sentence(self) -> str:
        """Say it in one sentence."""
        return (
            f"checked on {self.windows} windows: {self.within} agree to {TOLERANCE:g}, largest difference "
            f"{self.largest:.1e}, {self.same_labels} have the same label"
        )


def export_numpy(
    model: TransPL, folder: str | os.PathLike[str], *, window: int | None = None, X: Any = None
) -> ExportCheck:
    """Write a folder with predict.py, model.json and weights.npz, which runs with numpy alone.

    Parameters
    ----------
    model : TransPL
        Fitted, and usually adapted.
    folder : path
    window : int, optional
        The length of the windows; only needed where another sampling rate is undone.
    X : windows, optional
        On which the export is checked; by default random ones.
    """
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise invalid("out", expected="a folder", got=f"the file {home}", advice="Choose another name.")
    exported = exported_model(model, window)
    with tempfile.TemporaryDirectory() as trial:
        _write_folder(Path(trial), exported)
        check = _checked(numpy_predictor.Predictor(trial).predict_proba, model, window, X)
    home.mkdir(parents=True, exist_ok=True)
    _write_folder(home, exported)
    return check


def _write_folder(home: Path, exported: ExportedModel) -> None:
    arrays: dict[str, Any] = {**exported.arrays}
    with replacing(home / "weights.npz") as part, part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    write_text(home / "predict.py", Path(numpy_predictor.__file__).read_text(encoding="utf-8"))
    write_json(home / "model.json", exported.about)


def export_onnx(
    model: TransPL, path: str | os.PathLike[str], *, window: int | None = None, X: Any = None
) -> ExportCheck | None:
    """Write one ONNX file: input "windows" (n, channels, time), outputs "labels" and "probabilities".

    Parameters
    ----------
    model, X
        As in `export_numpy`.
    path : path
    window : int
        The length of the windows, which is part of the graph.

    Returns
    -------
    ExportCheck or None
        None if onnxruntime is not installed.
    """
    require_extra("export to ONNX", "onnx", "onnx")
    from transpl.jobs.onnx_graph import onnx_model

    if window is None:
        raise invalid("window", expected="the length of the windows", got=None, advice="Name it with --window.")
    if Path(path).is_dir():
        raise invalid("out", expected="a file", got=f"the folder {path}", advice="Choose another name.")
    exported = exported_model(model, window)
    serialized = onnx_model(exported.about, exported.arrays, window).SerializeToString()
    try:
        import onnxruntime
    except ImportError:
        check = None
    else:
        session = onnxruntime.InferenceSession(serialized, providers=["CPUExecutionProvider"])

        def answer(x: NDArray[np.float32]) -> Floats:
            parts = [x[first : first + _AT_ONCE] for first in range(0, len(x), _AT_ONCE)]
            return np.concatenate([session.run(["probabilities"], {"windows": part})[0] for part in parts])

        check = _checked(answer, model, window, X)
    with replacing(path) as part:
        part.write_bytes(serialized)
    return check


def windows_to_check(folder: Path) -> Windows | None:
    """Windows of the target in a folder of results; None elsewhere."""
    return load_sample(folder).target if (folder / SAMPLE_FILE).is_file() else None


def exported_model(model: TransPL, window: int | None = None) -> ExportedModel:
    """Take what answers out of a fitted model; raise for what cannot be exported."""
    method = model.fitted_method()
    if window is not None:
        check_int("window", window, least=method.shortest_window)
    part = _council(method, window) if method.variant == "plus" else _network(method, model.fitted_params_)
    about = {
        "format": "transpl-export-1",
        "transpl_version": __version__,
        "variant": method.variant,
        "classes": model.classes_.tolist(),
        "n_channels": model.n_channels_,
        "channel_names": None if model.channel_names is None else list(model.channel_names),
        "min_length": method.shortest_window,
        "only_length": None,
    }
    return ExportedModel(about | part.about, part.arrays)


def _council(method: Any, window: int | None) -> ExportedModel:
    council = method.council
    facts, saved = council.facts(), council.arrays()
    seats = [(seat.name, seat.view) for seat in council.seats]
    for name, _ in seats:
        if name not in _WITNESSES:
            expected = f"witnesses among {', '.join(_WITNESSES)}"
            raise invalid("export", expected=expected, got=repr(name), advice="Fit a model without it.")
    learnt = "source" if facts["heard"] == "source" else "heard"
    arrays: Arrays = {}
    views = list(dict.fromkeys(view for _, view in seats))
    for view in views:
        lens = f"target_lens.{view}" if facts["adapted"] else f"{learnt}.lens.{view}"
        arrays |= _moved(saved, lens, f"view.{view}")
    for i, (name, view) in enumerate(seats):
        seat = f"{learnt}.seat.{view}.{name}"
        arrays |= _moved(saved, f"{seat}.witness", f"seat.{i}")
        arrays |= _moved(saved, f"{seat}.columns", f"seat.{i}.columns")
        arrays |= _moved(saved, f"{seat}.target_columns", f"seat.{i}.columns")
    for i, at in enumerate(facts["relearned"]):
        arrays |= _moved(saved, f"relearned.{at}", f"relearned.{i}")
    if facts["adapted"]:
        arrays |= _votes(_moved(saved, "verdict", "votes"))
    about: dict[str, Any] = {"views": views, "seats": seats, "relearned": facts["relearned"], "shifts": []}
    about["settings"] = {"quantiles": QUANTILES, "bands": BANDS, "max_pairs": MAX_PAIRS}
    for i, shift in enumerate([] if council.shifts is None else council.shifts.shifts):
        kind, found = _shift(shift, window)
        about["shifts"].append(kind)
        arrays |= {f"shift.{i}.{name}": array for name, array in found.items()}
        if kind == "pace":
            about["only_length"] = window
    return ExportedModel(about, arrays)


def _votes(saved: Arrays) -> Arrays:
    """The tables that are looked up, from what the vote model saves."""
    sharpness = saved["votes.numbers"][1]
    log_confusions = sharpness * saved["votes.weights"][:, None, None] * np.log(saved["votes.confusions"])
    bias = sharpness * np.log(saved["votes.shares"])
    return {"votes.thresholds": saved["votes.thresholds"], "votes.log_confusions": log_confusions, "votes.bias": bias}


def _shift(shift: Shift, window: int | None) -> tuple[str, Arrays]:
    """How a shift is undone, as arrays."""
    if shift.kind == "unit":
        return "unit", {"factors": 1 / np.asarray(shift.factors)}
    if shift.kind == "dead":
        return "dead", {"dead": np.array(shift.dead), "fill": np.array(shift.fill, np.float32)}
    if shift.kind == "pace":  # resampling is linear, so that its matrix is what it does to unit vectors
        if window is None:
            problem = "the model resamples windows, so that their length must be known"
            raise InputError(f"window: {problem}. Name it with --window.")
        return "pace", {"resample": shift.undo(np.eye(window)[:, None])[:, 0]}
    return "order", {"order": np.array(shift.order), "signs": np.array(shift.signs, np.float32)}


def _network(method: Any, params: Mapping[str, Any]) -> ExportedModel:
    facts, saved = method.facts(), method.arrays()
    markov = facts["mode"] == "markov"
    settings = {name: facts["network"][name] for name in ("patch_length", "n_layers", "n_heads")}
    about = {
        "settings": {**settings, "mode": facts["mode"], "fewer_than_codes": int(params["length"] == "transitions")}
    }
    weights = _moved(saved, "adapted" if facts["mode"] == "finetune" else "source", "network")
    used = ("network.embed", "network.cls", "network.encoder", "network.head")
    arrays = {name: array for name, array in weights.items() if name.startswith(used)}
    if markov:
        vote, codebook = method.vote(method.state), weights["network.quantizer.coarse.vectors"]
        K = len(vote.log_probabilities)
        with np.errstate(divide="ignore"):
            log_prior = np.zeros(K) if vote.prior is None else np.log(vote.prior) / params["prior_temperature"]
        arrays |= {"log_p": vote.log_probabilities, "shares": vote.shares, "log_prior": log_prior}
        arrays["codes"] = codebook / np.linalg.norm(codebook, axis=1, keepdims=True)
    return ExportedModel(about, arrays)


def _moved(arrays: Mapping[str, NDArray], old: str, new: str) -> Arrays:
    """The arrays under one prefix, renamed to another."""
    return prefixed(new, without_prefix(old, arrays))


def _checked(answer: Any, model: TransPL, window: int | None, X: Any) -> ExportCheck:
    """Compare answers with the model's; raise if too many windows differ."""
    windows = _random_windows(model, window) if X is None else as_windows(X)[:CHECKED].in_memory()
    if window is not None and (windows.ragged or windows.values.shape[2] != window):
        windows = _random_windows(model, window)
    series = [each[:, :length] for each, length in zip(windows.values, windows.lengths, strict=True)]
    found, expected = answer(series if windows.ragged else windows.values), model.predict_proba(windows)
    apart = np.abs(found - expected).max(axis=1)
    same = int((found.argmax(axis=1) == expected.argmax(axis=1)).sum())
    check = ExportCheck(len(windows), int((apart <= TOLERANCE).sum()), float(apart.max()), same)
    if check.within < _WITHIN * check.windows or check.same_labels < _SAME_LABEL * check.windows:
        raise RuntimeError(f"the export does not answer as the model does ({check.sentence()}). Please report it.")
    return check


def _random_windows(model: TransPL, window: int | None) -> Windows:
    """Random walks with about the mean and deviation of each channel, as far as the model knows them."""
    method, random = model.fitted_method(), np.random.default_rng(0)
    length = 2 * method.shortest_window if window is None else window
    walks = random.normal(size=(CHECKED, model.n_channels_, length)).cumsum(axis=2) / np.sqrt(length)
    saved = method.arrays()
    if "codes.mean" in saved:  # of variant "plus"
        walks = walks * saved["codes.deviation"][:, None] + saved["codes.mean"][:, None]
    return as_windows(walks)
