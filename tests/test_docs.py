"""The pages of the documentation point at code that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
INCLUDED = re.findall(r"\{literalinclude\} (\S+)\n:pyobject: (\S+)", (DOCS / "paper.md").read_text(encoding="utf-8"))


def test_the_paper_page_shows_code():
    assert len(INCLUDED) > 10


@pytest.mark.parametrize(("path", "name"), INCLUDED)
def test_code_that_the_paper_page_includes_exists(path, name):
    body = ast.parse((DOCS / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"{path} has no {name}"
        body = found[0].body
