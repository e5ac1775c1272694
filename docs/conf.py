"""Sphinx settings."""

import transpl

project = "transpl"
author = "The TransPL developers"
copyright = "2026, The TransPL developers"
release = transpl.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = [
    "_build",
    "*_intro.md",
    "*_notes.md",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.json",
    "gallery/*.zip",
]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"transpl {release}"
suppress_warnings = ["myst.header"]

autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}
