"""Adapt one source model to many targets at the same time, independently of each other."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl import __version__
from transpl._utils.errors import invalid
from transpl._utils.hashing import hash_values
from transpl._utils.locks import writing
from transpl._utils.parallel import check_workers, run_all
from transpl.estimator import TransPL, check_mode
from transpl.jobs.folder import write_failure
from transpl.jobs.many_worker import AdaptedTarget, ModelBundle, Rows, Task, Worker, read_finished
from transpl.jobs.target_files import as_target, target_digest
from transpl.jobs.target_summary import class_shares
from transpl.windows import name_channels

_LAYOUT = 2  # of a target's folder; results of another layout are made again


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
    """Adapt a fitted source model to many targets; yield each as soon as it is done, in any order.

    A target that cannot be read, or whose worker dies, does not stop the others: its `error` says why. `model` is not
    changed. Each target is adapted on one thread, from the source model, as `model.adapt` would: neither the other
    targets nor `jobs` and `backend` change its numbers.

    Parameters
    ----------
    model
        a fitted model
    targets
        by name: windows as `TransPL.adapt` takes them; the path of a file that the worker reads (.npy, or what
        `read_recordings` reads; a `TargetFile` says how); or a function that the worker calls for windows
    mode
        as in `TransPL.adapt`
    priors
        label proportions by name of the target, where they are known
    X_source, y_source
        the source rows, which a loaded model does not hold: "finetune" trains with them, "plus" finds shifts by them
    channel_names
        of the source; a file with other channels is refused. They also become the model's parameter of this name if it
        has none
    source_name
        for the report
    out
        a folder for the results, with a folder per target: `predictions.csv`, `summary.json`, `metrics.json` (of
        "paper" only if the target has labels) and, with `keep_models`, `model`. The same call again yields finished
        targets from there and makes only the rest; a target is made again if model, settings or windows have changed
    keep_models
        also save the adapted models
    jobs, backend, retries, address
        workers, as in `run_all`. All machines of a cluster must see `out`

    Examples
    --------
    >>> import numpy as np
    >>> from transpl import TransPL, adapt_many
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2, 32)), np.arange(40) % 2
    >>> X[y == 1] *= 3
    >>> model = TransPL(witnesses=["linear"], undo="none").fit(X, y)
    >>> homes = {"ann": 1.1 * X[:20], "bob": 0.9 * X[20:]}
    >>> for target in adapt_many(model, homes, backend="inline"):
    ...     print(target.name, target.labels.shape)
    ann (20,)
    bob (20,)
    """
    if not isinstance(model, TransPL):
        raise invalid("model", expected="a fitted TransPL", got=type(model).__name__, advice="Fit or load one.")
    check_mode(model.variant, mode)
    mode = model.default_mode if mode is None else mode
    check_workers(jobs, backend, retries, address)
    home = _check_out(out, address)
    _check_names(targets, home)
    source_model = model.unadapted()
    shares = _check_priors(source_model, priors or {}, targets)
    names = None if channel_names is None else name_channels(channel_names, source_model.n_channels_)
    if names is not None and source_model.channel_names is None:
        source_model.set_params(channel_names=names)
    rows = _source_rows(source_model, mode, X_source, y_source)
    needed = rows if source_model.fitted_method().adapts_with_source(mode) else None
    common = None if home is None else _common_digest(source_model, mode, needed, names)
    tasks = (_task(name, as_target(target), shares.get(name), home, common) for name, target in targets.items())
    source = _describe_source(source_model, rows, source_name)
    workers = {"jobs": jobs, "backend": backend, "retries": retries, "address": address}

    def results() -> Generator[AdaptedTarget, None, None]:
        with nullcontext() if home is None else writing(home):
            missing = {}
            for task in tasks:
                found = read_finished(task, source_model.classes_, with_model=keep_models)
                if found is None:
                    missing[task.name] = task
                else:
                    yield found
            if missing:
                with ModelBundle.packed(source_model, needed, near=home if address else None) as bundle:
                    worker = Worker(bundle, mode, names, keep_models, source, source_model.device)
                    yield from _adapted(worker, missing, workers)

    return results()


def _adapted(worker: Worker, tasks: Mapping[str, Task], workers: Mapping[str, Any]) -> Iterator[AdaptedTarget]:
    with closing(run_all(worker, tasks, **workers)) as outcomes:
        for outcome in outcomes:
            if outcome.error is None:
                yield outcome.value
            else:
                yield _failed(tasks[outcome.key], outcome.error, outcome.traceback)


def _failed(task: Task, error: str, traceback: str | None) -> AdaptedTarget:
    """Record why a target failed; results of an earlier run stay."""
    if task.folder is not None:
        with suppress(OSError):  # a full disk does not make it worse
            write_failure(task.folder, error, traceback, "Correct what the error names, then run it again.")
    return AdaptedTarget(task.name, error=error, traceback=traceback, folder=task.folder)


def _task(name: str, target: Any, prior: NDArray[np.float64] | None, home: Path | None, common: str | None) -> Task:
    if home is None:
        return Task(name, target, prior, None, None)
    digest = target_digest(target)
    shares = None if prior is None else prior.tolist()
    return Task(name, target, prior, home / name, None if digest is None else hash_values(common, digest, shares))


def _common_digest(model: TransPL, mode: str, rows: Rows | None, names: tuple[str, ...] | None) -> str:
    """Hash of all that decides the results of every target."""
    about = [(__version__, _LAYOUT), model.fitted_method().fingerprint(), model.classes_.tolist(), mode, names]
    parts = [part for part in rows or () if part is not None]
    arrays = [array for part in parts for array in (part.windows.values, part.windows.lengths, part.y)]
    return hash_values(about, *arrays)


def _source_rows(model: TransPL, mode: str, X: Any, y: ArrayLike | None) -> Rows | None:
    """The rows given, or those of `fit`; None for a loaded model, which then cannot fine-tune or find shifts."""
    if X is not None:
        return model.source_rows(X, y)
    method = model.fitted_method()
    return method.source_rows() if mode == "finetune" or method.holds_source_rows else None


def _describe_source(model: TransPL, rows: Rows | None, name: str) -> dict[str, Any]:
    """What summary.json says of the source."""
    if rows is None:
        return {"name": name, "windows": None, "class_shares": None}
    labels = model.classes_[rows[0].y]
    return {"name": name, "windows": len(labels), "class_shares": class_shares(labels, model.classes_)}


def _check_priors(
    model: TransPL, priors: Mapping[str, ArrayLike | dict[Any, float]], targets: Mapping[str, Any]
) -> dict[str, NDArray[np.float64]]:
    unknown = [name for name in priors if name not in targets]
    if unknown:
        raise invalid("priors", expected="names of targets", got=unknown[:5], advice="Pass {target: proportions}.")
    shares = {name: model.class_shares(prior) for name, prior in priors.items()}
    return {name: share for name, share in shares.items() if share is not None}


def _check_out(out: str | os.PathLike[str] | None, address: str | None) -> Path | None:
    if out is None and address is not None:
        expected = "a folder that all machines of the cluster see"
        raise invalid("out", expected=expected, got=None, advice="Name one: the model travels through it.")
    if out is None:
        return None
    home = Path(out).absolute()
    if home.exists() and not home.is_dir():
        raise invalid("out", expected="a folder", got=f"the file {home}", advice="Choose another name.")
    return home


def _check_names(targets: Mapping[str, Any], home: Path | None) -> None:
    if not isinstance(targets, Mapping):
        raise invalid("targets", expected="{name: windows}", got=type(targets).__name__, advice="Name the targets.")
    for name in targets:
        if not isinstance(name, str):
            raise invalid("targets", expected="names as text", got=repr(name), advice="Rename it.")
        hidden_or_outside = not name or name[0] == "." or set(name) & set("/\\\0")
        if home is not None and hidden_or_outside:
            raise invalid("targets", expected="names that a folder may have", got=repr(name), advice="Rename it.")
