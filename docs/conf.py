"""Sphinx settings."""

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


def setup(app) -> None:
    app.connect("autodoc-process-docstring", keep_backslashes, priority=100)
