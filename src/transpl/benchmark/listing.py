"""What a folder has of a plan and what it lacks, in lines to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transpl.benchmark.estimate import Timings, in_words
from transpl.benchmark.naming import distinct_names
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.store import Store


def missing_lines(store: Store, specs: Sequence[RunSpec], jobs: int) -> Iterator[str]:
    """Every run that is missing with an estimate of its time, then all in one line."""
    timings, names, missing = Timings(store.results()), distinct_names(specs), store.missing(specs)
    for spec in missing:
        seconds = timings.seconds(spec)
        yield f"{names[spec.digest]}  {'?' if seconds is None else in_words(seconds)}"
    yield _summary(store, len(specs), missing, timings, jobs)


def status_lines(store: Store, specs: Sequence[RunSpec], jobs: int) -> Iterator[str]:
    """How far each method is on each data set, what failed, then all in one line."""
    names, missing = distinct_names(specs), store.missing(specs)
    unfinished = {spec.digest for spec in missing}
    groups: dict[tuple[str, str], list[bool]] = {}
    for spec in specs:
        groups.setdefault((spec.dataset, spec.method), []).append(spec.digest not in unfinished)
    for (dataset, method), finished in groups.items():
        yield f"{dataset:<12} {method:<14} {sum(finished):>5} of {len(finished)}{'  complete' * all(finished)}"
    for spec in missing:
        failure = store.failure(spec)
        if failure is not None:
            yield f"failed: {names[spec.digest]}: {failure.error}"
    yield _summary(store, len(specs), missing, Timings(store.results()), jobs)


def _summary(store: Store, total: int, missing: Sequence[RunSpec], timings: Timings, jobs: int) -> str:
    failed = sum(store.failure(spec) is not None for spec in missing)
    line = f"{total} runs: {total - len(missing)} finished, {len(missing)} missing, {failed} of them failed"
    if not missing:
        return line
    seconds, unknown = timings.total(missing, jobs)
    if unknown == len(missing):
        return f"{line}; nothing is known of how long they take"
    return f"{line}; about {in_words(seconds)}" + (f", and {unknown} runs of unknown length" if unknown else "")
