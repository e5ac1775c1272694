"""Methods from outside the package."""

from __future__ import annotations

import sys

import pytest
from conftest import refusal

from transpl.benchmark.plugins import import_plugins, plugin_versions, resolve_plugin
from transpl.methods import registry

METHOD = '''
from dataclasses import dataclass

from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import register
from transpl.methods.method_settings import SourceSettings

print("imported")


@dataclass(frozen=True)
class OwnSettings(SourceSettings):
    """strength : of it"""

    strength: float = 1.0


@register("mine", family="own", needs="source", reference="-")
class Mine(NoAdapt):
    """Mine."""

    Settings = OwnSettings
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    registry.names()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    for name in ("transpl_plugin_mine", "transpl_plugin_broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "mine.py").write_text(METHOD)
    yield tmp_path / "mine.py"
    sys.modules.pop("transpl_plugin_mine", None)


def test_a_file_registers_its_methods_and_is_run_once(plugin, capsys):
    import_plugins([str(plugin), str(plugin)])
    import_plugins([str(plugin)])
    assert registry.create("mine", strength=2.0).settings.strength == 2.0
    assert capsys.readouterr().out == "imported\n"


def test_another_file_of_the_same_name_is_run_too(plugin, tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.py").write_text(METHOD)
    import_plugins([str(plugin), str(tmp_path / "elsewhere" / "mine.py")])
    assert capsys.readouterr().out == "imported\nimported\n"


def test_a_module_is_imported_by_name(plugin, monkeypatch):
    monkeypatch.syspath_prepend(plugin.parent)
    import_plugins(["mine"])
    assert "mine" in registry.names()
    assert plugin_versions(["mine"]) == {"mine": "unknown"}
    sys.modules.pop("mine")


def test_the_hash_of_a_file_is_its_version(plugin):
    before = plugin_versions([str(plugin)])
    plugin.write_text(METHOD + "# changed\n")
    assert before.keys() == {"mine.py"}
    assert plugin_versions([str(plugin)]) != before


def test_paths_become_absolute_and_modules_stay(plugin, monkeypatch):
    monkeypatch.chdir(plugin.parent)
    assert [resolve_plugin("mine.py"), resolve_plugin("a.module")] == [str(plugin), "a.module"]


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "FileNotFoundError"), ("1 +", "SyntaxError"), ("raise OSError('no')", "OSError: no")]
)
def test_what_does_not_import_is_named(plugin, text, problem):
    broken = plugin.with_name("broken.py")
    if text is not None:
        broken.write_text(text)
    with refusal("import", rf"broken\.py: {problem}"):
        import_plugins([str(broken)])
    assert "transpl_plugin_broken" not in sys.modules


def test_a_module_that_is_not_installed_is_named():
    with refusal("import", "no_such_module: ModuleNotFoundError"):
        import_plugins(["no_such_module"])


def test_a_name_that_is_taken_is_refused(plugin):
    plugin.write_text(METHOD.replace('"mine", family', '"softmax", family'))
    with refusal("name", "'softmax'"):
        import_plugins([str(plugin)])
