"""Words of the command line that several commands understand alike."""

from __future__ import annotations

import ast
from typing import Any

from transpl.errors import wrong


def split_setting(text: str, option: str) -> tuple[str, str]:
    """Read name=value; `option` is what to complain about."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise wrong(option, expected="name=value", got=repr(text), advice="As max_epochs=40.")
    return name, value


def setting_value(text: str) -> Any:
    """A number, true, false, None or a list as Python writes it; anything else is a text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
