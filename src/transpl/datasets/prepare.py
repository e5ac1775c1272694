"""A public data set from its raw files to the data folder: fetch, unpack, build, check, write npz and card."""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from transpl._utils.errors import InputError, UnreadableFile, check_choice, invalid, unreadable_file
from transpl._utils.files import naming
from transpl.datasets import BUILT_IN, RECIPES
from transpl.datasets.base import Dataset
from transpl.datasets.building import build_from
from transpl.datasets.cards import Provenance, card_path, check_card, publish, read_card
from transpl.datasets.normalise import RULES, normalised
from transpl.datasets.origins import archive_origin, folder_origin, is_published
from transpl.datasets.prepared import prepared_path, save_prepared
from transpl.datasets.recipe import Built, Recipe, Say

_SCRATCH = ".preparing-"
_ABANDONED = 24 * 3600.0  # seconds without a change
STORED_RULES = tuple(rule for rule in RULES if rule != "source_stats")  # which domain is the source is not known yet


def recipe_for(name: str) -> Recipe:
    """Return the recipe of a public data set."""
    if name not in RECIPES:
        known = ", ".join(repr(known) for known in RECIPES)
        advice = "For your own recordings use: transpl datasets make"
        raise invalid("name", expected=f"one of {known}", got=repr(name), advice=advice)
    recipe: Recipe = importlib.import_module(f"transpl.datasets.recipes.{name}").RECIPE
    return recipe


def prepare(
    name: str,
    *,
    source: Path | None = None,
    home: Path | None = None,
    offline: bool = False,
    options: Mapping[str, Any] | None = None,
    normalise: str = "none",
    force: bool = False,
    say: Say = lambda _: None,
) -> Path:
    """Prepare the public data set `name` and return its npz; what is there already is not made again.

    source : the archive, or a folder with the unpacked files; default: download it once into `home`/raw
    options : what the recipe takes (see `Recipe.options`)
    """
    recipe = recipe_for(name)
    check_choice("normalise", normalise, STORED_RULES)
    chosen = _checked_options(recipe, options or {})
    npz = prepared_path(name, home)
    origin = None if source is None else _origin_of(source, recipe)
    wanted = {"rule": recipe.rule, "options": chosen, "normalise": normalise, "origin": origin}
    if not force and _is_done(npz, wanted, say):
        say(f"{name}: already prepared, {npz}{_other_source(npz, recipe) if source is None else ''}")
        return npz
    with scratch_folder(npz.parent) as scratch:
        if source is None:
            raw, origin = _fetched(recipe, npz.parent, offline, say)
            with _discarding_damaged(recipe, raw):
                built = build_from(recipe, raw, scratch, chosen, say)
        else:
            built = build_from(recipe, source, scratch, chosen, say)
        _refuse_second_scaling(built, normalise)
        notes = [*built.notes, *_deviations(recipe, built.dataset, say)]
        store(
            npz,
            built._replace(dataset=normalised(built.dataset, normalise), notes=tuple(notes)),
            provenance_of(recipe, built, origin or [], chosen, normalise, notes),
            say,
        )
    return npz


def store(npz: Path, built: Built, provenance: Provenance, say: Say) -> None:
    """Write npz and card."""
    with scratch_folder(npz.parent) as scratch:
        save_prepared(built.dataset, scratch / npz.name, built.extras)
        publish(scratch / npz.name, npz, provenance)
    say(f"{npz.stem}: wrote {npz} and {card_path(npz).name}")


def provenance_of(
    recipe: Recipe,
    built: Built,
    origin: list[dict[str, Any]],
    options: dict[str, Any],
    normalise: str,
    notes: list[str],
) -> Provenance:
    """What the card of a public data set says beside its counts."""
    rule = built.rule or recipe.rule
    return Provenance(
        made_by="prepare",
        title=recipe.title,
        rule=rule,
        default_rule="" if rule == recipe.rule else recipe.rule,
        origin=origin,
        options=options,
        notes=notes,
        normalise=built.scaled if normalise == "none" else normalise,
        homepage=recipe.homepage,
        licence=recipe.licence,
        citation=recipe.citation,
    )


def refuse_to_replace(npz: Path, force: bool) -> None:
    """Raise if `npz` or the built-in name is taken and the user has not said that it may go."""
    if npz.stem in BUILT_IN:
        raise invalid("name", expected="a name that is not built in", got=repr(npz.stem), advice="Choose another name.")
    if npz.exists() and not force:
        raise unreadable_file(
            npz, problem="exists already", advice="Choose another name, or add --force to replace it."
        )


@contextmanager
def scratch_folder(home: Path) -> Iterator[Path]:
    """A hidden folder on the same disk that is gone afterwards; those that killed runs have left go first."""
    home.mkdir(parents=True, exist_ok=True)
    _sweep(home)
    with naming(home), tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=home) as folder:
        yield Path(folder)


def _sweep(home: Path) -> None:
    """Delete scratch folders in which nothing has been written for a day."""
    for folder in home.glob(f"{_SCRATCH}*"):
        if folder.is_dir() and not folder.is_symlink() and time.time() - _last_written(folder) > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)


def _last_written(folder: Path) -> float:
    """Return when something in `folder` last changed; unpacked files count from when they were written."""
    times = [0.0]
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # another run has just moved or deleted it
            times.append(path.lstat().st_mtime)
    return max(times)


def _checked_options(recipe: Recipe, options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - set(recipe.options))
    if unknown:
        known = ", ".join(recipe.options) or "none"
        expected = f"an option of {recipe.name} ({known})"
        raise invalid("options", expected=expected, got=", ".join(unknown), advice="See transpl datasets list.")
    return dict(options)


def _origin_of(source: Path, recipe: Recipe) -> list[dict[str, Any]]:
    if source.is_dir():
        return [folder_origin(source)]
    if source.is_file():
        return [archive_origin(source, recipe.files)]
    raise unreadable_file(source, problem="no such file or folder", advice=f"Expected: {recipe.layout}")


def _is_done(npz: Path, wanted: Mapping[str, Any], say: Say) -> bool:
    """Say whether `npz` is what would be made; a file that is not ours to replace is refused."""
    if not npz.exists():
        return False
    if not card_path(npz).is_file():
        raise unreadable_file(npz, problem="has no card, so it was not made here", advice="Add --force to replace it.")
    try:
        card = read_card(npz)
        check_card(npz, card)
    except InputError as error:
        say(f"{npz.stem}: preparing it again. {error}")
        return False
    if card["made_by"] != "prepare":
        problem = f"was made by transpl datasets {card['made_by']}"
        raise unreadable_file(npz, problem=problem, advice="Add --force to replace it.")
    differs = _differences(card, wanted)
    if differs:
        say(f"{npz.stem}: preparing it again, because of another {', '.join(differs)}")
    return not differs


def _differences(card: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Name what is not as wanted; an origin of None means that any source will do."""
    from transpl import __version__

    rule = card.get("default_rule") or card["rule"]
    found = {"rule": rule, "options": card["options"], "normalise": _asked_for(card["normalise"])}
    differs = [key for key in ("rule", "options", "normalise") if found[key] != _as_json(wanted[key])]
    if card["transpl_version"] != __version__:
        differs.append("version of transpl")
    if wanted["origin"] is not None and _hashes(card["origin"]) != _hashes(wanted["origin"]):
        differs.append("source")
    return differs


def _hashes(origin: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [file.get("sha256") for file in origin]


def _other_source(npz: Path, recipe: Recipe) -> str:
    """Say what a prepared file was made from, if not from the published files."""
    origin = read_card(npz)["origin"]
    if is_published(origin, recipe.files):
        return ""
    return f" (made from {', '.join(str(file.get('name')) for file in origin)}; --force makes it from a download)"


def _asked_for(recorded: str) -> str:
    """Which `normalise` leads to what a card records: another name than ours is a scaling by the recipe's options."""
    return recorded if recorded in STORED_RULES else "none"


def _as_json(value: Any) -> Any:
    """Return the value as it comes back from a card: tuples are lists there."""
    return json.loads(json.dumps(value, default=str))


def _fetched(recipe: Recipe, home: Path, offline: bool, say: Say) -> tuple[Path, list[dict[str, Any]]]:
    """Return the downloaded archive, or the folder of several, and what they are."""
    from transpl.datasets.fetch import fetch

    folder = home / "raw" / recipe.name
    paths = [fetch(file, folder, offline=offline, progress=True, say=say) for file in recipe.files]
    return (paths[0] if len(paths) == 1 else folder), [archive_origin(path, recipe.files) for path in paths]


@contextmanager
def _discarding_damaged(recipe: Recipe, raw: Path) -> Iterator[None]:
    """Delete downloads that prove damaged, unless a published hash speaks for them: the next run gets them anew."""
    from transpl.datasets.fetch import discard
    from transpl.datasets.unpack import DamagedArchive

    try:
        yield
    except DamagedArchive as error:
        folder = raw if raw.is_dir() else raw.parent
        unproven = [folder / choice.name for file in recipe.files for choice in file.choices if choice.sha256 is None]
        gone = [str(each) for path in unproven if raw in (path, folder) for each in discard(path)]
        if not gone:
            raise
        raise UnreadableFile(
            f"{error} The download was deleted, so it will be fetched again: {', '.join(gone)}"
        ) from None


def _refuse_second_scaling(built: Built, normalise: str) -> None:
    if normalise != "none" and built.scaled != "none":
        expected = f"'none', because the options scale the values already ({built.scaled})"
        advice = "Leave out --normalise, or the option that scales."
        raise invalid("normalise", expected=expected, got=repr(normalise), advice=advice)


def _deviations(recipe: Recipe, dataset: Dataset, say: Say) -> list[str]:
    deviations = [f"Differs from what is published: {sentence}" for sentence in recipe.check(dataset)]
    for sentence in deviations:
        say(f"{recipe.name}: {sentence}")
    return deviations
