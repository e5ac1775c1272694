"""Methods from outside the package: a file or module that registers them, imported in every process that needs them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from transpl._utils.errors import InputError, invalid
from transpl._utils.files import sha256

_SUFFIX = ".py"


def absolute(plugin: str) -> str:
    """The same plugin, whatever the working folder; a module's name stays as it is."""
    return str(Path(plugin).resolve()) if plugin.endswith(_SUFFIX) else plugin


def import_plugins(plugins: Iterable[str]) -> None:
    """Import each once: a path that ends in .py, or the name of an installed module."""
    for plugin in plugins:
        try:
            _import_file(Path(plugin)) if plugin.endswith(_SUFFIX) else importlib.import_module(plugin)
        except InputError:
            raise
        except Exception as error:  # it is somebody's code
            got = f"{plugin}: {type(error).__name__}: {error}"
            advice = "Give a file that ends in .py, or an installed module."
            raise invalid("import", expected="something that imports", got=got, advice=advice) from error


def plugin_versions(plugins: Iterable[str]) -> dict[str, str]:
    """What identifies the code of each: a file's hash, a module's version if it says one."""
    return {Path(plugin).name: _version(plugin) for plugin in plugins}


def _import_file(path: Path) -> None:
    path = path.resolve()
    name = f"transpl_plugin_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return
    found = spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    sys.modules[name] = module  # as dataclasses in it need
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _version(plugin: str) -> str:
    if plugin.endswith(_SUFFIX):
        return f"sha256 {sha256(plugin)}"
    return str(getattr(sys.modules.get(plugin), "__version__", "unknown"))
