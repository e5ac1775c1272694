"""docs/methods.md: up to date, complete, and its code runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from transpl.methods.method_settings import settings_table
from transpl.methods.registry import entry, names

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_methods", ROOT / "docs" / "generate_methods.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_methods_say(generator):
    assert generator.page() == PAGE, "run `python docs/generate_methods.py` and commit docs/methods.md"


@pytest.mark.parametrize("name", names())
def test_every_method_has_a_section(name):
    assert f"\n### {name}\n" in PAGE
    assert entry(name).summary in PAGE


@pytest.mark.parametrize("name", names())
def test_every_setting_is_explained(name):
    unexplained = [setting.name for setting in settings_table(entry(name).method.Settings) if not setting.help]
    assert not unexplained


def test_links_within_the_page_lead_somewhere():
    anchors = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", PAGE, flags=re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S))
def test_python_blocks_run(code, capsys):
    """As printed, but for one epoch."""
    for printed in ("max_epochs=60", '"max_epochs": 60'):
        code = code.replace(printed, printed.replace("60", "1"))
    assert "60" not in code
    exec(compile(code, "methods.md", "exec"), {"__name__": "methods"})
    scores = r" +[01]\.\d+ +[01]\.\d+\n"
    table = rf"no-adapt{scores}features-linear{scores}KNeighborsClassifier{scores}"
    assert re.search(rf"\A(accuracy 0\.\d+\n|[^\n]*accuracy[^\n]*\nmethod[^\n]*\n{table})\Z", capsys.readouterr().out)
