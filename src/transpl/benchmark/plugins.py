"""Methods from outside the package: a file or module that registers them, imported in every process that needs it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from transpl._utils.errors import InputError, invalid
from transpl._utils.hashing import hash_file


def import_plugins(plugins: Iterable[str]) -> None:
    """Import each plugin once: a path that ends in .py, or the name of an installed module."""
    for plugin in plugins:
        try:
            _import_file(Path(plugin).resolve()) if _is_file(plugin) else importlib.import_module(plugin)
        except InputError:
            raise
        except Exception as error:  # the user's code may raise anything
            got = f"{plugin}: {type(error).__name__}: {error}"
            advice = "Give a file that ends in .py, or an installed module."
            raise invalid("import", expected="something that imports", got=got, advice=advice) from error


def resolve_plugin(plugin: str) -> str:
    """The same plugin for another working folder: an absolute path, or the module's name."""
    return str(Path(plugin).resolve()) if _is_file(plugin) else plugin


def plugin_versions(plugins: Iterable[str]) -> dict[str, str]:
    """What identifies the code of each plugin: a file's hash, or the version that a module states."""
    return {
        Path(plugin).name: f"sha256 {hash_file(plugin)}"
        if _is_file(plugin)
        else str(getattr(sys.modules.get(plugin), "__version__", "unknown"))
        for plugin in plugins
    }


def _is_file(plugin: str) -> bool:
    return plugin.endswith(".py")


def _import_file(path: Path) -> None:
    name = f"transpl_plugin_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in it look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
