"""Source models that earlier jobs left: a job whose source model would be trained in the same way takes it from there.

Beside a saved model, `source.json` says what its source model was trained on: version, settings, a hash of the rows,
and the digest of the model that it describes. An adapted model holds its source model unchanged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transpl import TransPL, __version__
from transpl._utils.errors import invalid
from transpl._utils.files import read_json
from transpl._utils.hashing import hash_values
from transpl._utils.source_cache import OtherSource, SourceCache
from transpl.estimator.parameters import OF_THE_MACHINE
from transpl.estimator.validation import to_python
from transpl.windows import as_windows


def source_model_cache(
    folder: Path, model: TransPL, X: Any, y: ArrayLike, X_val: Any = None, y_val: ArrayLike | None = None
) -> SourceCache[TransPL]:
    """The cache, in a model folder, of the source model that `model.fit(X, y, X_val, y_val)` would give.

    `model` stays unfitted. A source model that is found has the parameters of `model`, whatever it was adapted with
    before, and remembers the source rows.
    """

    def read(home: Path, record: dict[str, Any]) -> TransPL:
        if record.get("model") != _model_facts(home)["model"]:
            raise OtherSource("its source.json does not describe its model")
        found = TransPL.load(home).set_params(**model.get_params(deep=False)).unadapted()
        found.method_.remember_source(*found.source_rows(X, y, X_val, y_val))
        return found

    def write(fitted: TransPL, home: Path) -> dict[str, Any]:
        fitted.save(home)
        return _model_facts(home)

    return SourceCache(folder, _identity(model, X, y, X_val, y_val), read, write)


def load_source(cache: SourceCache[TransPL], folder: Path) -> TransPL:
    """The source model in another folder, of a job or a model, which the user named as `source_from`."""
    home = folder / "model" if (folder / "model").is_dir() else folder
    try:
        return replace(cache, folder=home).load()
    except OtherSource as error:
        expected, advice = "a folder with a model of this source", "Without it the source model is trained again."
        raise invalid("source_from", expected=expected, got=f"{folder}: {error}", advice=advice) from None


def save_source(cache: SourceCache[TransPL], fitted: TransPL) -> None:
    """Save a source model, unless the same one is there already with the same parameters."""
    if cache.find() is None or _content(TransPL.load(cache.folder)) != _content(fitted):
        cache.save(fitted)


def describe_model(cache: SourceCache[TransPL], home: Path) -> None:
    """Record of an adapted model, saved to `home`, what its source model was trained on."""
    replace(cache, folder=home).describe(_model_facts(home))


@contextmanager
def checkpoints_in(model: TransPL, folder: Path) -> Iterator[None]:
    """Let training resume from `folder`, which is removed after success; then restore the model's `checkpoint_dir`."""
    before = model.checkpoint_dir
    model.set_params(checkpoint_dir=folder)
    try:
        yield
    finally:
        model.set_params(checkpoint_dir=before)
    shutil.rmtree(folder, ignore_errors=True)


def _identity(model: TransPL, X: Any, y: ArrayLike, X_val: Any, y_val: ArrayLike | None) -> dict[str, Any] | None:
    """All that decides the source model, as JSON has it; None if it depends on chance."""
    seed = to_python(model.random_state)
    if not isinstance(seed, int):
        return None
    settings = {**model.new_method(seed).source_settings(), "variant": model.variant}
    parts = [(X, y)] if X_val is None else [(X, y), (X_val, y_val)]
    checked = [(as_windows(windows), np.asarray(labels)) for windows, labels in parts]
    arrays = [array for windows, labels in checked for array in (windows.values, windows.lengths, labels)]
    return {"version": __version__, "settings": settings, "rows": hash_values(*arrays)}


def _content(model: TransPL) -> tuple[dict[str, Any], str]:
    """Parameters as they are saved, and a hash of the source model."""
    params = {
        name: to_python(value) for name, value in model.get_params(deep=False).items() if name not in OF_THE_MACHINE
    }
    return params, model.fitted_method().unadapted().fingerprint()


def _model_facts(home: Path) -> dict[str, Any]:
    """What the record says of a saved model: a digest that changes with every weight, count and parameter."""
    if not (home / "model.json").is_file():
        raise OtherSource("no model")
    card = read_json(home / "model.json")
    return {"model": card.get("digest") if isinstance(card, dict) else None}
