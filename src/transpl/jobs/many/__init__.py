"""One source model, many target domains: at the same time, each on its own."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl import __version__
from transpl._utils.errors import invalid
from transpl._utils.hashing import digest_of
from transpl._utils.parallel import check_workers, run_all
from transpl.estimator.classifier import TransPL
from transpl.estimator.variants import check_mode
from transpl.jobs.many.adapted import AdaptedTarget
from transpl.jobs.many.folder import TargetFolder
from transpl.jobs.many.parcel import Rows, parcelled
from transpl.jobs.many.targets import TargetFile, as_target, identity
from transpl.jobs.many.work import Task, Work
from transpl.jobs.results import class_shares
from transpl.windows import name_channels

__all__ = ["AdaptedTarget", "TargetFile", "adapt_many"]
_LAYOUT = 2  # of a target's folder; one of an earlier layout is made anew


def adapt_many(
    model: TransPL,
    targets: Mapping[str, Any],
    *,
    mode: str | None = None,
    priors: Mapping[str, ArrayLike | dict[Any, float]] | None = None,
    X_source: Any = None,
    y_source: ArrayLike | None = None,
    channel_names: Sequence[str] | None = None,
    source_name: str = "source",
    out: str | os.PathLike[str] | None = None,
    keep_models: bool = False,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 0,
    address: str | None = None,
) -> Generator[AdaptedTarget, None, None]:
    """Adapt a fitted source model to many targets; yield each as it is done, in any order.

    A target that cannot be read, or whose worker dies, costs nothing but itself: its `error` says why. `model` stays as
    it is. Each target is adapted on one thread, from the source model, as `model.adapt` would: neither the others nor
    `jobs` and `backend` change its numbers.

    - targets : by name; windows as `adapt` takes them, the path of a file that the worker reads (.npy; npz, csv or
      parquet as `read_recordings` reads them; `TargetFile` says how), or a function that the worker calls for windows
    - mode : as in `adapt`. "finetune" needs source rows, and "plus" finds shifts by them: those of `fit`, or X_source
      and y_source for a loaded model
    - priors : label proportions of those targets whose are known, by name of the target
    - channel_names : of the source; a file with other channels is refused. They also take the place of the parameter of
      this name where the model has none
    - source_name : for the report
    - out : a folder. Each target gets a folder of its own there with `predictions.csv`, `summary.json`, `metrics.json`
      (of "paper" only if it has labels to score with), and `model` with `keep_models`. The same call again yields what
      is finished from there and makes only the rest; what has changed (model, settings, windows) is made anew
    - jobs, backend, retries, address : as in `run_all`. All machines of a cluster must see `out`
    """
    if not isinstance(model, TransPL):
        raise invalid("model", expected="a fitted TransPL", got=type(model).__name__, advice="Fit or load one.")
    check_mode(model.variant, mode)
    mode = model.own_mode if mode is None else mode
    check_workers(jobs, backend, retries, address)
    home = _checked_home(out, address)
    _check_targets(targets, home)
    alone = model.unadapted()
    shares = _checked_priors(alone, priors or {}, targets)
    names = _checked_names(channel_names, alone.n_channels_)
    if names is not None and alone.channel_names is None:
        alone.set_params(channel_names=names)
    rows = _source_rows(alone, mode, X_source, y_source)
    needed = rows if alone.fitted_method().adapts_with_source(mode) else None
    common = None if home is None else _digest(alone, mode, needed, names)
    tasks = (_task(name, as_target(target), shares.get(name), home, common) for name, target in targets.items())

    def adapted() -> Generator[AdaptedTarget, None, None]:
        missing = {}
        for task in tasks:
            found = _finished(task, alone.classes_, with_model=keep_models)
            if found is None:
                missing[task.name] = task
            else:
                yield found
        if not missing:
            return
        with parcelled(alone, needed, near=home if address else None) as parcel:
            work = Work(parcel, mode, names, keep_models, _about_source(alone, rows, source_name))
            yield from _worked(work, missing, jobs=jobs, backend=backend, retries=retries, address=address)

    return adapted()


def _worked(work: Work, tasks: Mapping[str, Task], **how: Any) -> Iterator[AdaptedTarget]:
    with closing(run_all(work, tasks, **how)) as outcomes:
        for outcome in outcomes:
            if outcome.error is None:
                yield outcome.value
                continue
            folder = tasks[outcome.key].folder
            if folder is not None:
                TargetFolder(folder, None).fail(outcome.error, outcome.traceback)
            yield AdaptedTarget(outcome.key, error=outcome.error, traceback=outcome.traceback, folder=folder)


def _task(name: str, target: Any, prior: NDArray[np.float64] | None, home: Path | None, common: str | None) -> Task:
    if home is None:
        return Task(name, target, prior, None, None)
    own = identity(target)
    shares = None if prior is None else prior.tolist()
    return Task(name, target, prior, home / name, None if own is None else digest_of(common, own, shares))


def _finished(task: Task, classes: NDArray, *, with_model: bool) -> AdaptedTarget | None:
    if task.folder is None:
        return None
    return TargetFolder(task.folder, task.digest).finished(task.name, classes, with_model=with_model)


def _digest(model: TransPL, mode: str, rows: Rows | None, names: tuple[str, ...] | None) -> str:
    """Of all that decides the results of every target."""
    about = [(__version__, _LAYOUT), model.fitted_method().fingerprint(), model.classes_.tolist(), mode, names]
    parts = [part for part in rows or () if part is not None]
    arrays = [array for part in parts for array in (part.windows.values, part.windows.lengths, part.y)]
    return digest_of(about, *arrays)


def _source_rows(model: TransPL, mode: str, X: Any, y: ArrayLike | None) -> Rows | None:
    """Those given, or those of `fit`; None for a loaded model, which can then not be fine-tuned, nor find shifts."""
    if X is not None:
        return model.source_rows(X, y)
    method = model.fitted_method()
    return method.source_rows() if mode == "finetune" or method.holds_source_rows else None


def _about_source(model: TransPL, rows: Rows | None, name: str) -> dict[str, Any]:
    if rows is None:
        return {"source_name": name}
    shares = class_shares(model.classes_[rows[0].y], model.classes_)
    return {"source_name": name, "source_windows": len(rows[0].y), "source_shares": shares}


def _checked_priors(
    model: TransPL, priors: Mapping[str, ArrayLike | dict[Any, float]], targets: Mapping[str, Any]
) -> dict[str, NDArray[np.float64]]:
    strangers = [name for name in priors if name not in targets]
    if strangers:
        raise invalid("priors", expected="names of targets", got=strangers[:5], advice="Pass {target: proportions}.")
    shares = {name: model.class_shares(prior) for name, prior in priors.items()}
    return {name: share for name, share in shares.items() if share is not None}


def _checked_home(out: str | os.PathLike[str] | None, address: str | None) -> Path | None:
    if out is None and address is not None:
        expected = "a folder that all machines of the cluster see"
        raise invalid("out", expected=expected, got=None, advice="Name one: the model travels through it.")
    if out is None:
        return None
    home = Path(out).absolute()
    if home.exists() and not home.is_dir():
        raise invalid("out", expected="a folder", got=f"the file {home}", advice="Choose another name.")
    return home


def _checked_names(names: Sequence[str] | None, channels: int) -> tuple[str, ...] | None:
    return None if names is None else name_channels(names, channels)


def _check_targets(targets: Mapping[str, Any], home: Path | None) -> None:
    if not isinstance(targets, Mapping):
        raise invalid("targets", expected="{name: windows}", got=type(targets).__name__, advice="Name the targets.")
    for name in targets:
        if not isinstance(name, str) or (home is not None and not is_folder_name(name)):
            expected = "names as text" if home is None else "names that a folder may have"
            raise invalid("targets", expected=expected, got=repr(name), advice="Rename it.")


def is_folder_name(name: str) -> bool:
    """True for a name that stays inside its folder, and is not hidden there."""
    return bool(name) and name[0] != "." and not set(name) & set("/\\\0")
