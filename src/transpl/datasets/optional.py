"""Packages that only some data sets need: imported when they are used, named in one line when they are absent."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from transpl._utils.errors import InputError


def optional_package(name: str, who: str, purpose: str, install: str) -> Any:
    """Import the package `name`; its own warnings are not ours to show."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        problem = f"{purpose} needs {name}, which is not installed"
        raise InputError(f"{who}: {problem}. Install it with: pip install {install}") from None
