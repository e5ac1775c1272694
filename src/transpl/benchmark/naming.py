"""Names of runs for people to read: short, and no two alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transpl.benchmark.spec import RunSpec


def distinct_names(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Digest -> name; runs that would share a name are told apart by what they differ in."""
    alike: dict[str, dict[str, RunSpec]] = {}
    for spec in specs:
        alike.setdefault(str(spec), {})[spec.digest] = spec
    return {
        digest: name + _difference(spec, list(group.values()))
        for name, group in alike.items()
        for digest, spec in group.items()
    }


def _difference(spec: RunSpec, group: Sequence[RunSpec]) -> str:
    settings = "".join(
        f" {name}={value}"
        for name, value in spec.settings.items()
        if any(other.settings.get(name) != value for other in group)
    )
    return settings + (f" data={spec.data}" if any(other.data != spec.data for other in group) else "")
