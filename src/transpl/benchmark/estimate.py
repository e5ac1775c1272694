"""How long runs will take, judged by how long such runs took."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from statistics import median

from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec, short_digest
from transpl.methods.registry import entries

_OWN_STAGES = ("start", "adapt", "label", "predict")


class Timings:
    """Seconds of finished runs, and of the source models they started from."""

    def __init__(self, finished: Iterable[tuple[RunSpec, Result]]) -> None:
        self._runs: dict[Hashable, list[float]] = {}
        self._sources: dict[str, list[float]] = {}
        for spec, result in finished:
            own = sum(result.seconds.get(stage, 0.0) for stage in _OWN_STAGES)
            for kind in _kinds(spec):
                self._runs.setdefault(kind, []).append(own)
            if result.seconds.get("source"):
                self._sources.setdefault(spec.dataset, []).append(result.seconds["source"])

    def seconds(self, spec: RunSpec) -> float | None:
        """The median of such runs, without the source model; None if there was none yet."""
        return next((median(self._runs[kind]) for kind in _kinds(spec) if kind in self._runs), None)

    def total(self, specs: Sequence[RunSpec], jobs: int) -> tuple[float, int]:
        """Seconds for all runs on `jobs` workers with their source models, and how many runs it could not judge."""
        judged = [self.seconds(spec) for spec in specs]
        models = {(spec.dataset, spec.source, spec.seed) for spec in specs if _starts_from_source(spec)}
        sources = sum(median(self._sources[name]) for name, _, _ in models if name in self._sources)
        known = [seconds for seconds in judged if seconds is not None]
        return (sum(known) + sources) / jobs, len(judged) - len(known)


def in_words(seconds: float) -> str:
    """As 45 s, 12 min or 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _starts_from_source(spec: RunSpec) -> bool:
    known = entries().get(spec.method)
    return known is None or known.method.starts_from_source


def _kinds(spec: RunSpec) -> tuple[Hashable, ...]:
    """Runs that are alike: first those with the same settings, then those of the method with any."""
    method = (spec.dataset, spec.method, spec.goal)
    return (*method, short_digest(dict(spec.settings))), method
