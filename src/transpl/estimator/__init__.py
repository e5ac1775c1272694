"""`TransPL` as a scikit-learn classifier, its parameters, and the folders that fitted models are saved in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transpl.estimator.parameters import MODES, VARIANTS, check_mode, help_of

if TYPE_CHECKING:
    from transpl.estimator.transpl import TransPL

__all__ = ["MODES", "VARIANTS", "TransPL", "check_mode", "help_of"]


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to load: not everybody who asks for the help text of a parameter needs it.
    if name == "TransPL":
        return import_module("transpl.estimator.transpl").TransPL
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
