"""The source model that an earlier job left, where it would be trained alike again: it need not be.

Beside a model a `source.json` says what its source was: version, the settings that train it, a hash of the rows, and
which model it speaks of. An adapted model holds its source model unchanged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl import TransPL, __version__
from transpl._utils.errors import UnreadableFile, invalid
from transpl._utils.files import read_json, write_json
from transpl._utils.hashing import digest_of
from transpl.estimator.validation import plain
from transpl.windows import as_windows

_FILE = "source.json"


@dataclass(frozen=True)
class WantedSource:
    """The source model that `model.fit(X, y, X_val, y_val)` would leave; `model` itself is not touched.

    A kept one adapts with the parameters of `model`, whichever it was adapted with before.
    """

    model: TransPL
    X: Any
    y: ArrayLike
    X_val: Any = None
    y_val: ArrayLike | None = None

    @property
    def rows(self) -> tuple[Any, ArrayLike, Any, ArrayLike | None]:
        """As `fit` takes them."""
        return self.X, self.y, self.X_val, self.y_val

    def kept_in(self, home: Path) -> TransPL | None:
        """The source model in a model folder; None if there is none, or one that was trained otherwise."""
        try:
            return None if self._obstacle(home) else self._load(home)
        except UnreadableFile:
            return None

    def demanded_from(self, folder: Path) -> TransPL:
        """The source model in the folder of an earlier job, or in a model folder; an error says why it will not do."""
        home = folder / "model" if (folder / "model").is_dir() else folder
        obstacle = self._obstacle(home)
        if obstacle:
            expected, advice = "a folder with a model of this source", "Without it the source model is trained anew."
            raise invalid("source_from", expected=expected, got=f"{folder}, {obstacle}", advice=advice)
        return self._load(home)

    def fitted(self, demanded: TransPL | None, home: Path, name: str, say: Callable[[str], None]) -> TransPL:
        """The source model that was demanded, or the one that an earlier job left in `home`, or a new one.

        name : of the source, to be said
        """
        kept = self.kept_in(home) if demanded is None else demanded
        if kept is not None:
            say("source phase: done by an earlier job")
            return kept
        say(f"source phase: {len(self.X)} labelled windows of {name}")
        return self.model.fit(*self.rows)

    def leave(self, fitted: TransPL, home: Path) -> None:
        """Save the source model to `home`, unless this very one is there already, with the same parameters."""
        if self.kept_in(home) is None or _about(TransPL.load(home)) != _about(fitted):
            fitted.save(home)
            self.record(home)

    def record(self, home: Path) -> None:
        """Say of the model that was saved to `home` that this is its source."""
        if self._identity is None:
            (home / _FILE).unlink(missing_ok=True)
        else:
            write_json(home / _FILE, {**self._identity, "model": _digest_of_model(home)})

    def _load(self, home: Path) -> TransPL:
        kept = TransPL.load(home).set_params(**self.model.get_params(deep=False)).unadapted()
        kept.method_.remember_source(*kept.source_rows(*self.rows))
        return kept

    def _obstacle(self, home: Path) -> str:
        """Why the model there will not do, in words; empty if it will."""
        if not (home / "model.json").is_file():
            return "where there is no model"
        if not (home / _FILE).is_file():
            return "which does not say what its source was"
        record, wanted = read_json(home / _FILE), self._identity
        if not isinstance(record, dict) or record.get("model") != _digest_of_model(home):
            return "whose source.json is not of its model"
        if wanted is None:
            return "while random_state is to be drawn anew"
        if record.get("version") != wanted["version"]:
            return f"made by version {record.get('version')}"
        differing = _differing(record.get("settings"), wanted["settings"])
        if differing:
            return f"trained with another {differing}"
        return "" if record.get("rows") == wanted["rows"] else "trained on other windows or labels"

    @cached_property
    def _identity(self) -> dict[str, Any] | None:
        """What decides the model, as JSON has it; None if chance does."""
        seed = plain(self.model.random_state)
        if not isinstance(seed, int):
            return None
        settings = {**self.model.new_method(seed).source_settings(), "variant": self.model.variant}
        arrays = [*_windows(self.X), np.asarray(self.y)]
        if self.X_val is not None:
            arrays += [*_windows(self.X_val), np.asarray(self.y_val)]
        return {"version": __version__, "settings": settings, "rows": digest_of(*arrays)}


@contextmanager
def checkpoints_in(model: TransPL, folder: Path) -> Iterator[None]:
    """Training inside the block goes on from `folder`, which is removed after success; `model` gets its own back."""
    given = model.checkpoint_dir
    model.set_params(checkpoint_dir=folder)
    try:
        yield
    finally:
        model.set_params(checkpoint_dir=given)
    shutil.rmtree(folder, ignore_errors=True)


def _about(model: TransPL) -> tuple[dict[str, Any], str]:
    """Parameters as they are saved, and a hash of the source model."""
    params = {name: plain(value) for name, value in model.get_params(deep=False).items() if name != "checkpoint_dir"}
    return params, model.fitted_method().unadapted().fingerprint()


def _windows(X: Any) -> tuple[NDArray, NDArray]:
    windows = as_windows(X)
    return windows.values, windows.lengths


def _digest_of_model(home: Path) -> str | None:
    """Changes with every weight, count and parameter of a saved model."""
    card = read_json(home / "model.json")
    return card.get("digest") if isinstance(card, dict) else None


def _differing(found: Any, wanted: dict[str, Any]) -> str:
    """The names of those that differ; a record of before may have settings that train nothing, and no variant."""
    if not isinstance(found, dict):
        return "set of settings"
    found = {"variant": "paper", **found}
    return ", ".join(name for name, value in wanted.items() if name not in found or found[name] != value)
