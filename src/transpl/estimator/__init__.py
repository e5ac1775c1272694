"""`TransPL` as a scikit-learn classifier, its parameters, and the folders that fitted models are saved in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transpl._utils.lazy import lazy_names
from transpl.estimator.parameters import MODES, VARIANTS, check_mode, help_of

if TYPE_CHECKING:
    from transpl.estimator.transpl import TransPL

__all__ = ["MODES", "VARIANTS", "TransPL", "check_mode", "help_of"]

# scikit-learn takes a second to load; help texts of parameters do without it.
__getattr__ = lazy_names(__name__, {"transpl": ("TransPL",)})
