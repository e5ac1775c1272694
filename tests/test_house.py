"""The tree is what docs/design.md says: eleven packages, and every module and public class has a name of its own."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "transpl"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_top_level_names_are_those_of_the_design():
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", design, flags=re.M)
    found = {path.stem for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "__init__.py", "py.typed")}
    assert len(named) == 11
    assert found == {*named, "_utils"}


def test_no_two_modules_have_the_same_name():
    names = Counter(path.stem for path in MODULES if not path.stem.startswith("__"))
    assert [name for name, n in names.items() if n > 1] == []


def test_no_two_public_classes_have_the_same_name():
    classes = Counter(
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in classes.items() if n > 1] == []


def test_no_package_exports_the_name_of_a_module_in_it():
    """Importing the module would put it in the place of what is exported."""
    for path in PACKAGE.rglob("__init__.py"):
        exported = {
            name.value
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
            for name in node.value.elts
        }
        modules = {each.stem for each in path.parent.glob("*.py")}
        assert not exported & modules - {"main"}, path  # `main` is imported at once
