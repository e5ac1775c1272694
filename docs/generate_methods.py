"""Write docs/methods.md: the introduction in methods_intro.md, then every registered method as it describes itself.

python docs/generate_methods.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transpl._utils.files import write_text
from transpl.methods.joint import JointSettings
from transpl.methods.method_settings import (
    PAPER,
    AdaptSettings,
    MethodSettings,
    Setting,
    SourceSettings,
    settings_table,
)
from transpl.methods.pseudo_labelling import PseudoLabelSettings
from transpl.methods.registry import FAMILIES, Entry, entries, names

HERE = Path(__file__).parent
PAGE, INTRODUCTION = HERE / "methods.md", HERE / "methods_intro.md"
_SHARED: dict[type[MethodSettings], str] = {
    MethodSettings: "every method",
    SourceSettings: "the source phase",
    AdaptSettings: "the target phase",
    JointSettings: "alignment",
    PseudoLabelSettings: "pseudo-labels",
}
_FAMILY_TITLES = {
    "reference": "References",
    "shallow": "Shallow classifiers",
    "alignment": "Methods that align domains",
    "pseudo-labels": "Methods that learn from pseudo-labels",
    "code classifier": "Classifiers of code sequences",
    "own": "Others",
}


def main() -> None:
    """Write the page."""
    write_text(PAGE, page())
    print(f"wrote {PAGE}")


def page() -> str:
    """The whole page as Markdown."""
    known = [entries()[name] for name in names()]
    first_with = {entry.method.Settings: entry.name for entry in reversed(known)}
    parts = [INTRODUCTION.read_text(encoding="utf-8").strip(), _overview(known)]
    for family in FAMILIES:
        members = [entry for entry in known if entry.family == family]
        if members:
            parts += [f"## {_FAMILY_TITLES[family]}", *(_section(entry, first_with) for entry in members)]
    return "\n\n".join([*parts, _shared_settings()]) + "\n"


def _overview(known: list[Entry]) -> str:
    rows = [[_link(entry.name), entry.family, entry.needs, entry.summary] for entry in known]
    return f"## All methods\n\n{_table(('name', 'family', 'needs', 'what it does'), rows)}"


def _section(entry: Entry, first_with: Mapping[type[MethodSettings], str]) -> str:
    settings = entry.method.Settings
    parts = [
        f"### {entry.name}",
        inspect.getdoc(entry.method) or "",
        f"Needs {entry.needs}." + ("" if entry.reference == "-" else f" {entry.reference}."),
    ]
    if first_with[settings] != entry.name:
        return "\n\n".join([*parts, f"Settings and presets of {_link(first_with[settings])}."])
    phases = [
        title for shared, title in _SHARED.items() if issubclass(settings, shared) and shared is not MethodSettings
    ]
    links = ", ".join(_link(title) for title in phases or [_SHARED[MethodSettings]])
    own = _own_settings(settings)
    parts.append(f"Settings of {links}" + ("; own ones and other defaults:" if own else "."))
    if own:
        parts.append(_settings(own))
    parts += [_preset(name, values) for name, values in settings.presets.items()]
    if settings.known_data:
        parts.append(_table(("known of the data set", "values"), _per_dataset(settings.known_data)))
    return "\n\n".join(parts)


def _own_settings(settings: type[MethodSettings]) -> list[Setting]:
    """Fields that no shared class above has, or whose default is another one than there."""
    above = [shared for shared in _SHARED if issubclass(settings, shared) and shared is not settings]
    defaults = {setting.name: setting.default for shared in above for setting in settings_table(shared)}
    nothing = object()
    return [setting for setting in settings_table(settings) if defaults.get(setting.name, nothing) != setting.default]


def _preset(name: str, per_dataset: Mapping[str, Mapping[str, Any]]) -> str:
    return _table((f'preset "{name}"', "values"), _per_dataset(per_dataset))


def _per_dataset(values: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    return [[dataset, f"`{_in_words(of_set)}`" if of_set else ""] for dataset, of_set in values.items()]


def _in_words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _shared_settings() -> str:
    parts = ["## Settings that methods share"]
    for shared, title in _SHARED.items():
        parts += [f"### {title.capitalize()}", _settings(_own_settings(shared))]
    return "\n\n".join([*parts, "### The paper's values", _preset("paper", PAPER)])


def _link(title: str) -> str:
    return f"[{title}](#{title.lower().replace(' ', '-')})"


def _settings(settings: Iterable[Setting]) -> str:
    rows = [[f"`{setting.name}`", f"`{setting.default!r}`", setting.help] for setting in settings]
    return _table(("setting", "default", "what"), rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
