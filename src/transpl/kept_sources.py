"""The source model that an earlier job left, where it is of the same rows and settings: it need not be trained again.

Beside a model a `source.json` says what its source was: version, settings, a hash of the rows, and which model it
speaks of. An adapted model holds its source model unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl import TransPL, __version__
from transpl.digest import digest_of
from transpl.errors import NotReadable, wrong
from transpl.files import read_json, write_json
from transpl.sources import plain
from transpl.windows import as_windows

_FILE = "source.json"
_NOT_LEARNT = ("device", "n_threads", "checkpoint_dir", "verbose")  # parameters that say how, not what


@dataclass(frozen=True)
class WantedSource:
    """The source model that `model.fit(X, y, X_val, y_val)` would leave; `model` itself is not touched."""

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
        """The source model in a model folder; None if there is none, or one of other rows or settings."""
        try:
            return None if self._obstacle(home) else self._load(home)
        except NotReadable:
            return None

    def demanded_from(self, folder: Path) -> TransPL:
        """The source model in the folder of an earlier job, or in a model folder; an error says why it will not do."""
        home = folder / "model" if (folder / "model").is_dir() else folder
        obstacle = self._obstacle(home)
        if obstacle:
            expected, advice = "a folder with a model of this source", "Without it the source model is trained anew."
            raise wrong("source_from", expected=expected, got=f"{folder}, {obstacle}", advice=advice)
        return self._load(home)

    def record(self, home: Path) -> None:
        """Say of the model that was saved to `home` that this is its source."""
        (home / _FILE).unlink(missing_ok=True)
        if self._identity is not None:
            write_json(home / _FILE, {**self._identity, "model": _digest_of_model(home)})

    def _load(self, home: Path) -> TransPL:
        kept = TransPL.load(home)
        kept.set_params(**{name: getattr(self.model, name) for name in _NOT_LEARNT})
        method = kept.fitted_method()
        method.state = method.state.unadapted()
        method.remember_source(*kept.source_rows(*self.rows))
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
        if record.get("settings") != wanted["settings"]:
            return f"trained with another {_differing(record.get('settings'), wanted['settings'])}"
        return "" if record.get("rows") == wanted["rows"] else "trained on other windows or labels"

    @cached_property
    def _identity(self) -> dict[str, Any] | None:
        """What decides the model, as JSON has it; None if chance does."""
        params = {name: plain(value) for name, value in self.model.get_params().items() if name not in _NOT_LEARNT}
        if not isinstance(params["random_state"], int):
            return None
        arrays = [*_windows(self.X), np.asarray(self.y)]
        if self.X_val is not None:
            arrays += [*_windows(self.X_val), np.asarray(self.y_val)]
        return {"version": __version__, "settings": params, "rows": digest_of(*arrays)}


def _windows(X: Any) -> tuple[NDArray, NDArray]:
    windows = as_windows(X)
    return windows.values, windows.lengths


def _digest_of_model(home: Path) -> str | None:
    """Changes with every weight, count and parameter of a saved model."""
    card = read_json(home / "model.json")
    return card.get("digest") if isinstance(card, dict) else None


def _differing(found: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(found, dict):
        return "set of settings"
    return ", ".join(name for name in wanted if found.get(name) != wanted[name]) or "set of settings"
