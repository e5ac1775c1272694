"""Fine-tuning that an earlier run of the same job finished: a job that is repeated takes it from its folder.

Fine-tuning takes minutes, everything else of an adaptation seconds. Beside the adapted model, `adapted.json` says what
it was adapted to, and to which model it belongs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transpl import TransPL
from transpl._utils.errors import UnreadableFile
from transpl._utils.files import read_json, write_json
from transpl._utils.hashing import hash_json, hash_values
from transpl.estimator.parameters import EFFECTIVE_AT_ONCE
from transpl.estimator.validation import prior_shares, to_python
from transpl.jobs.target import AdaptTask
from transpl.windows import as_windows

RECORD = "adapted.json"
_COSTLY = "finetune"  # the mode that is worth finding again


def adaptation_digest(source: Mapping[str, Any] | None, model: TransPL, task: AdaptTask) -> str | None:
    """A hash of all that decides the adapted model; None where adapting again is cheap or depends on chance.

    Parameters
    ----------
    source
        the identity of the source model, see `SourceCache`
    model
        with the parameters of this job
    task
        what it is adapted to
    """
    if source is None or task.mode != _COSTLY:
        return None
    windows = as_windows(task.target.X)
    parameters = model.get_params(deep=False)
    known = {} if task.few_labels is None else task.few_labels
    return hash_json(
        {
            "source": dict(source),
            "parameters": {k: to_python(v) for k, v in parameters.items() if k not in EFFECTIVE_AT_ONCE},
            "windows": hash_values(windows.values, windows.lengths),
            "prior": None if task.prior is None else np.asarray(prior_shares(task.prior, model.classes_)).tolist(),
            "few_labels": sorted([int(row), str(label)] for row, label in known.items()),
        }
    )


def find_adapted(home: Path, digest: str | None, source: TransPL) -> TransPL | None:
    """The model in a folder if it was adapted as `digest` says, with the execution of `source`; else None."""
    if digest is None or not (home / RECORD).is_file():
        return None
    try:
        if read_json(home / RECORD) != {"adaptation": digest, "model": _model_digest(home)}:
            return None
        return TransPL.load(home).set_params(**source.get_params(deep=False))
    except UnreadableFile:  # damaged: adapt again
        return None


def record_adaptation(home: Path, digest: str | None) -> None:
    """Record what the model in a folder was adapted to."""
    (home / RECORD).unlink(missing_ok=True)
    if digest is not None:
        write_json(home / RECORD, {"adaptation": digest, "model": _model_digest(home)})


def _model_digest(home: Path) -> Any:
    card = read_json(home / "model.json")
    return card.get("digest") if isinstance(card, dict) else None
