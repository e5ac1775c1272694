"""Several methods, one after the other, on the same pair of domains and from the same source models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from transpl._utils.errors import check_choice, invalid
from transpl.benchmark.pair import Evaluator, Pair, split_pair
from transpl.benchmark.result import Result
from transpl.benchmark.run import run_method
from transpl.datasets import Dataset
from transpl.methods import Method, SourceModel
from transpl.methods.registry import entries, entry
from transpl.methods.settings import MethodSettings, SourceSettings
from transpl.nn import Execution


def compare(
    dataset: Dataset,
    pair: tuple[int, int],
    methods: Sequence[str],
    seed: int = 0,
    execution: Execution | None = None,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> Iterator[Result]:
    """Run methods by name on a (source, target) pair; each result is there as soon as its method is done.

    A source model is trained once for all methods whose source settings agree. A method that fails gives a result with
    its `error`, and the others go on; what is wrong with the arguments is said before anything runs.

    preset, changes : see `settings_of`
    """
    settings = settings_of(methods, dataset.name, seed, preset, changes)
    seen, evaluator = split_pair(dataset, *pair)
    bench = _Bench(seen, evaluator, Execution() if execution is None else execution)
    blank = {
        name: Result(dataset.name, (int(pair[0]), int(pair[1])), name, seed, asdict(chosen))
        for name, chosen in settings.items()
    }
    return (bench.filled(blank[name], chosen) for name, chosen in settings.items())


def settings_of(
    methods: Sequence[str],
    dataset: str,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> dict[str, MethodSettings]:
    """The settings with which `compare` runs each method.

    preset : "paper", or a preset such as "adatime" for the methods that have it; the others take the paper's values
    changes : settings by name, for those of the methods that have them; a name that none of them has is refused
    """
    changed = dict(changes or {})
    _check_preset(preset)
    check_changes(methods, changed)
    settings = {}
    for name in methods:
        Settings = entry(name).method.Settings
        own = {setting: value for setting, value in changed.items() if setting in setting_names(name)}
        settings[name] = Settings.for_dataset(
            dataset, preset if preset in Settings.presets else "paper", **own, random_state=seed
        )
    return settings


def setting_names(method: str) -> set[str]:
    """The settings that a method has."""
    return {each.name for each in fields(entry(method).method.Settings)}


def check_known(argument: str, settings: Iterable[str], methods: Iterable[str]) -> None:
    """Raise if none of these methods has such a setting; some of them may lack it."""
    chosen = list(dict.fromkeys(methods))
    unknown = sorted(set(settings) - {name for method in chosen for name in setting_names(method)})
    if unknown:
        expected = f"settings of {', '.join(chosen)}"
        raise invalid(argument, expected=expected, got=", ".join(unknown), advice="See `transpl methods NAME`.")


def check_changes(methods: Iterable[str], changes: Mapping[str, Any]) -> None:
    """Raise if none of these methods has such a setting, or if it is the seed, which is no setting of a comparison."""
    check_known("changes", changes, methods)
    if "random_state" in changes:
        raise invalid("changes", expected="no random_state", got=changes["random_state"], advice="Pass it as seed.")


def _check_preset(preset: str) -> None:
    """Raise if no registered method has such a preset; the chosen ones need not have it."""
    known = {name for found in entries().values() for name in found.method.Settings.presets}
    check_choice("preset", preset, ("paper", *sorted(known)))


@dataclass
class _Bench:
    """A pair, and the source models that its methods share."""

    pair: Pair
    evaluator: Evaluator
    execution: Execution
    models: dict[SourceSettings, SourceModel] = field(default_factory=dict)

    def filled(self, blank: Result, settings: MethodSettings) -> Result:
        """The result with its scores, or with the error that prevented them."""
        try:
            method = entry(blank.method).method(settings, self.execution)
            return run_method(blank, method, self._source_for(method), self.pair, self.evaluator).result
        except Exception as error:  # whatever a method raises, the others go on
            return replace(blank, error=" ".join(f"{type(error).__name__}: {error}".split()))

    def _source_for(self, method: Method) -> SourceModel:
        settings = method.settings.source()
        if method.uses_target_labels:
            return SourceModel(*self.evaluator.labelled_rows(method, method.seed), settings, self.execution)
        if settings not in self.models:
            self.models[settings] = SourceModel(self.pair.source, self.pair.validation, settings, self.execution)
        return self.models[settings]
