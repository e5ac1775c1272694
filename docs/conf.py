"""Sphinx settings."""

import re

from transpl import __version__

project = "transpl"
author = "The TransPL developers"
copyright = "2026, The TransPL developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "none"
exclude_patterns = ["_build", "*_intro.md"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"transpl {release}"
suppress_warnings = ["myst.header"]


def keep_backslashes(app, what, name, obj, options, lines) -> None:
    """Equations in docstrings are plain text: show their backslashes."""
    lines[:] = [line.replace("\\", "\\\\") for line in lines]


def list_names(app, what, name, obj, options, lines) -> None:
    """Lines "name : what it is", continued by indented ones, become a list."""
    listed, inside = [], False
    for line in lines:
        item = re.fullmatch(r"(\w+(?:, \w+)*) : (.+)", line)
        goes_on = inside and line.startswith("    ")
        if not goes_on and inside != bool(item):
            listed.append("")
        inside = bool(item) or goes_on
        listed.append(f"- ``{item[1]}``: {item[2]}" if item else f"  {line.strip()}" if goes_on else line)
    lines[:] = listed


def setup(app) -> None:
    app.connect("autodoc-process-docstring", keep_backslashes, priority=100)
    app.connect("autodoc-process-docstring", list_names, priority=900)  # behind napoleon, which has sections of its own
