"""One run of one method, as plain values that go to JSON and come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from transpl._utils.errors import invalid


@dataclass(frozen=True)
class Result:
    """What a method did on a pair of domains.

    settings : everything that decided the numbers
    test : scores on the target's test part
    pseudo_labels : scores on the target's train part of the labels that the method learnt from ("initial", and
    "final" where it labelled anew); for a method that learns from none, of those it gives once it has adapted
    seconds : "source" (training the source model, which methods share), "start" (what a method makes of it at once),
    "adapt", "predict"; or "label"
    epochs : how many, by phase
    risks : what each rule of selection thinks of the adapted classifier, lower is better (see `selection`)
    details : what else a method has to tell, such as codebook usage and channel weights, whether SHOT's guard held it
    back, and how right ATT is on the rows it learns from
    versions : of Python, this package and those that the numbers depend on
    fingerprint : hash of predictions, pseudo-labels and losses per epoch; equal for runs that agree to the last bit
    error : why there are no scores, or None
    """

    dataset: str
    pair: tuple[int, int]
    method: str
    seed: int
    settings: dict[str, Any]
    test: dict[str, float] = field(default_factory=dict)
    pseudo_labels: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    risks: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "pair": list(self.pair)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        known = {each.name for each in fields(cls)}
        if set(values) != known:
            got = f"a difference in {', '.join(sorted(set(values) ^ known))}"
            raise invalid("values", expected="the fields of a Result", got=got, advice="Run it anew.")
        source, target = values["pair"]
        return cls(**{**values, "pair": (source, target)})


def versions_of(results: Iterable[Result]) -> dict[str, tuple[str, ...]]:
    """The versions of each package that the runs were made with; several of one are to be said."""
    found: dict[str, set[str]] = {}
    for result in results:
        for name, version in result.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}
