"""Raw files of a recipe to windows: from a folder with plain files, or from archives that are unpacked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.recipe import Built, Recipe, Say


def build_from(recipe: Recipe, raw: Path, scratch: Path, options: dict[str, Any], say: Say) -> Built:
    """Build from `raw`; archives in a folder are unpacked only if its plain files will not do."""
    from transpl.datasets.unpack import holds_archives

    if not raw.is_dir():
        built = _built_unpacked(recipe, raw, scratch, options, say)
    elif not holds_archives(raw):
        built = _built_plain(recipe, raw, options, say)
    else:
        built = _built_either_way(recipe, raw, scratch, options, say)
    for note in built.notes:
        say(f"{recipe.name}: {note}")
    say(f"{recipe.name}: {len(built.dataset):,} windows of {len(built.dataset.domains)} domains")
    return built


def _built_plain(recipe: Recipe, folder: Path, options: dict[str, Any], say: Say) -> Built:
    say(f"{recipe.name}: building windows")
    return recipe.build(folder, say, **options)


def _built_unpacked(recipe: Recipe, raw: Path, scratch: Path, options: dict[str, Any], say: Say) -> Built:
    """Unpack, then build; messages name `raw` and not the scratch folder, which will be gone."""
    from transpl.datasets.unpack import unpacked

    say(f"{recipe.name}: unpacking {raw}")
    folder = unpacked(raw, scratch)
    try:
        return _built_plain(recipe, folder, options, say)
    except InputError as error:
        raise type(error)(str(error).replace(str(folder), str(raw))) from None


def _built_either_way(recipe: Recipe, folder: Path, scratch: Path, options: dict[str, Any], say: Say) -> Built:
    try:
        return _built_plain(recipe, folder, options, say)
    except UnreadableFile as error:
        plain = str(error)
    say(f"{recipe.name}: not from the plain files ({plain})")
    try:
        return _built_unpacked(recipe, folder, scratch, options, say)
    except UnreadableFile as error:
        if str(error) == plain:
            raise
        raise type(error)(f"{plain} Nor could it be built from the archives in it: {error}") from None
