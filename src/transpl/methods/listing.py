"""The list of methods without importing them, which would load torch: read from their source files.

A method is registered by `@register(name, family=..., needs=..., reference=...)` with texts; so the decorators say all
that a list shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from transpl.methods.registry import in_order

_PACKAGE = "transpl.methods"


class ListedMethod(NamedTuple):
    """What a list shows of a registered method."""

    name: str
    family: str
    needs: str
    reference: str


def listed_methods() -> tuple[ListedMethod, ...]:
    """The registered methods of this package, in the order of `registry.names`."""
    found = {each.name: each for each in _Reader().methods()}
    return tuple(found[name] for name in in_order(found))


class _Reader:
    """Reads the modules in the order in which importing all of them would run them."""

    def __init__(self) -> None:
        self._root = Path(__file__).parent
        self._seen: set[Path] = set()

    def methods(self) -> Iterator[ListedMethod]:
        for path in sorted(self._root.rglob("*.py"), key=_import_order):
            yield from self._of(path)

    def _of(self, path: Path) -> Iterator[ListedMethod]:
        if path in self._seen or not path.is_file():
            return
        self._seen.add(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_PACKAGE}."):
                yield from self._of(self._path_of(str(node.module)))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                texts |= _constant(node.targets[0].id, node.value)
            elif isinstance(node, ast.ClassDef):
                yield from _registered(node, texts)

    def _path_of(self, module: str) -> Path:
        return self._root.joinpath(*module.removeprefix(f"{_PACKAGE}.").split(".")).with_suffix(".py")


def _import_order(path: Path) -> tuple[str, ...]:
    """As pkgutil walks a package: a folder counts by its name."""
    return path.with_suffix("").parts


def _constant(name: str, value: ast.expr) -> dict[str, str]:
    return {name: value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else {}


def _registered(node: ast.ClassDef, texts: dict[str, str]) -> Iterator[ListedMethod]:
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "register":
            values: dict[str, Any] = {str(each.arg): _text(each.value, texts) for each in call.keywords}
            yield ListedMethod(_text(call.args[0], texts), **values)


def _text(node: ast.expr, texts: dict[str, str]) -> str:
    """The value of a text, of a constant of the module, or of an f-string of such."""
    if isinstance(node, ast.Name):
        return texts[node.id]
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each, texts) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, texts)
    return str(ast.literal_eval(node))
