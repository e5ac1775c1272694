"""Sphinx settings."""

from transpl import __version__

project = "transpl"
author = "The TransPL developers"
copyright = "2026, The TransPL developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "none"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"transpl {release}"
suppress_warnings = ["myst.header"]
