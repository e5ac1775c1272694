"""The source model that an earlier job left, where it is of the same rows and settings: it need not be trained again.

Beside the model a `source.json` says what it was trained on, and which weights and counts belong to that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transpl import TransPL, __version__
from transpl.errors import NotReadable
from transpl.files import read_json, write_json
from transpl.many.digest import digest_of
from transpl.persistence import fingerprint

_NOT_LEARNT = ("device", "n_threads", "checkpoint_dir", "verbose")  # parameters that say how, not what
Rows = tuple[Any, Any, Any, Any]  # X, y, X_val, y_val as `fit` takes them


def keep_source(model: TransPL, rows: Rows, home: Path) -> None:
    """Save a fitted or adapted model so that `kept_source` finds it."""
    model.save(home)
    write_json(home / "source.json", _record(model, model, rows))


def kept_source(model: TransPL, rows: Rows, home: Path) -> TransPL | None:
    """The source model in the folder `home`, as `model.fit(*rows)` would leave it; None if it is of other rows.

    An adapted model holds its source model unchanged. How to work (device, threads) is taken from `model`.
    """
    try:
        record, kept = read_json(home / "source.json"), TransPL.load(home)
    except NotReadable:
        return None
    if record != _record(model, kept, rows):
        return None
    kept.set_params(**{name: getattr(model, name) for name in _NOT_LEARNT})
    method = kept.fitted_method()
    method.state = method.state.unadapted()
    method.remember_source(*kept.source_rows(*rows))
    return kept


def _record(wanted: TransPL, fitted: TransPL, rows: Rows) -> dict[str, str]:
    params = {name: value for name, value in wanted.get_params().items() if name not in _NOT_LEARNT}
    return {"identity": digest_of(__version__, params, *rows), "model": fingerprint(fitted.fitted_method().state)}
