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
