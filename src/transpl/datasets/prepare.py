"""Preparing a public data set: fetch the raw files, unpack, build, check the counts, write npz and card."""

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
from transpl._utils.hashing import hash_bytes, hash_file
from transpl._utils.locks import writing
from transpl._utils.progress import task
from transpl.datasets import BUILT_IN, RECIPES
from transpl.datasets.cards import Provenance, card_path, check_card, publish, read_card
from transpl.datasets.dataset import RULES, normalised
from transpl.datasets.prepared import prepared_path, save_prepared
from transpl.datasets.recipe import Built, Log, Recipe, RemoteFile

_SCRATCH = ".preparing-"
_ABANDONED = 24 * 3600.0  # seconds without a change after which a scratch folder is deleted
STORED_RULES = tuple(rule for rule in RULES if rule != "source_stats")  # a file has no source domain yet


def recipe_for(name: str) -> Recipe:
    """Return the recipe of a public data set."""
    if name not in RECIPES:
        expected = f"one of {', '.join(map(repr, RECIPES))}"
        advice = "For your own recordings use: transpl datasets make"
        raise invalid("name", expected=expected, got=repr(name), advice=advice)
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
    log: Log = lambda _: None,
) -> Path:
    """Prepare a public data set, unless it is prepared already with the same files and options.

    Parameters
    ----------
    name : {"ucihar", "wisdm", "hhar", "ptb"}
    source : Path, optional
        The downloaded archive, or a folder with the unpacked files. By default the archive is downloaded once into
        `home`/raw/`name`.
    home : Path, optional
        Where the result goes; by default the data folder ($TRANSPL_DATA).
    offline : bool
        Use earlier downloads only.
    options : mapping, optional
        Options of the recipe, as `transpl datasets list` shows them.
    normalise : {"none", "domain", "per_split"}
        Store the values scaled; see `normalised`.
    force : bool
        Prepare it again even if it exists, and replace a file that was made otherwise.
    log : callable
        Called with each line of progress.

    Returns
    -------
    Path
        The npz file; its card lies beside it.
    """
    recipe = recipe_for(name)
    check_choice("normalise", normalise, STORED_RULES)
    options = dict(options or {})
    if unknown := sorted(set(options) - set(recipe.options)):
        expected = f"an option of {name} ({', '.join(recipe.options) or 'none'})"
        raise invalid("options", expected=expected, got=", ".join(unknown), advice="See transpl datasets list.")
    npz = prepared_path(name, home)
    with writing(npz.parent, npz.name):
        return _prepare(recipe, npz, source, offline, options, normalise, force, log)


def _prepare(
    recipe: Recipe,
    npz: Path,
    source: Path | None,
    offline: bool,
    options: dict[str, Any],
    normalise: str,
    force: bool,
    log: Log,
) -> Path:
    name = recipe.name
    origin = None if source is None else _origin_of(source, recipe)
    if not force and _is_prepared(npz, recipe, options, normalise, origin, log):
        return npz
    with scratch_folder(npz.parent) as scratch:
        if source is None:
            source, origin = _download(recipe, npz.parent, offline, log)
            with _deleting_damaged_downloads(recipe, source):
                built = _build(recipe, source, scratch, options, log)
        else:
            built = _build(recipe, source, scratch, options, log)
        if normalise != "none" and built.scaled != "none":
            expected = f"'none', because the options scale the values already ({built.scaled})"
            advice = "Leave out --normalise, or the option that scales."
            raise invalid("normalise", expected=expected, got=repr(normalise), advice=advice)
        deviations = [f"Differs from what is published: {sentence}" for sentence in recipe.check(built.dataset)]
        for note in deviations:
            log(f"{name}: {note}")
        rule = built.rule or recipe.rule
        provenance = Provenance(
            made_by="prepare",
            title=recipe.title,
            rule=rule,
            default_rule="" if rule == recipe.rule else recipe.rule,
            origin=origin or [],
            options=options,
            notes=[*built.notes, *deviations],
            normalise=built.scaled if normalise == "none" else normalise,
            homepage=recipe.homepage,
            licence=recipe.licence,
            citation=recipe.citation,
        )
        store(npz, built._replace(dataset=normalised(built.dataset, normalise)), provenance, log)
    return npz


def store(npz: Path, built: Built, provenance: Provenance, log: Log) -> None:
    """Write npz and card."""
    with scratch_folder(npz.parent) as scratch:
        save_prepared(built.dataset, scratch / npz.name, built.extras)
        publish(scratch / npz.name, npz, provenance)
    log(f"{npz.stem}: wrote {npz} and {card_path(npz).name}")


def refuse_built_in(npz: Path) -> None:
    """Raise if `npz` has the name of a built-in data set."""
    if npz.stem in BUILT_IN:
        raise invalid("name", expected="a name that is not built in", got=repr(npz.stem), advice="Choose another name.")


def refuse_to_replace(npz: Path, force: bool) -> None:
    """Raise if the name is built in, or if `npz` exists and `force` is not given."""
    refuse_built_in(npz)
    if npz.exists() and not force:
        advice = "Choose another name, or add --force to replace it."
        raise unreadable_file(npz, problem="exists already", advice=advice)


@contextmanager
def scratch_folder(home: Path) -> Iterator[Path]:
    """Yield a temporary folder in `home`; first delete those that killed runs left more than a day ago."""
    home.mkdir(parents=True, exist_ok=True)
    for folder in home.glob(f"{_SCRATCH}*"):
        if folder.is_dir() and not folder.is_symlink() and time.time() - _last_change(folder) > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
    with naming(home), tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=home) as name:
        yield Path(name)


def _last_change(folder: Path) -> float:
    times = [0.0]
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # another run has just moved or deleted it
            times.append(path.lstat().st_mtime)
    return max(times)


def archive_origin(path: Path, published: Sequence[RemoteFile] = ()) -> dict[str, Any]:
    """Describe a raw file for the card; a published file, found by hash or name, with its addresses."""
    found = hash_file(path)
    choices = [choice for file in published for choice in file.choices]
    by_hash = [choice for choice in choices if choice.sha256 == found]
    by_name = [choice for choice in choices if choice.sha256 is None and choice.name == path.name]
    for file in by_hash + by_name:
        return {"name": file.name, "sha256": found, "urls": list(file.urls)}
    return {"name": path.name, "sha256": found, "urls": []}


def folder_origin(folder: Path) -> dict[str, Any]:
    """Describe a folder for the card, with one hash over the names and contents of all its files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hash_file(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    return {"name": f"{folder.resolve().name}/", "sha256": hash_bytes(lines), "urls": []}


def is_published(origin: Sequence[Mapping[str, Any]], published: Sequence[RemoteFile]) -> bool:
    """Tell whether the raw files of a card are the published ones, as far as their hashes are known."""
    hashes = {str(file.get("name")): file.get("sha256") for file in origin}
    return len(hashes) == len(published) and all(
        any(choice.name in hashes and choice.sha256 in (None, hashes[choice.name]) for choice in file.choices)
        for file in published
    )


def _origin_of(source: Path, recipe: Recipe) -> list[dict[str, Any]]:
    if source.is_dir():
        return [folder_origin(source)]
    if source.is_file():
        return [archive_origin(source, recipe.files)]
    raise unreadable_file(source, problem="no such file or folder", advice=f"Expected: {recipe.layout}")


def _is_prepared(
    npz: Path, recipe: Recipe, options: dict[str, Any], normalise: str, origin: list[dict[str, Any]] | None, log: Log
) -> bool:
    """Tell whether `npz` is already what would be prepared; an origin of None accepts any source."""
    from transpl import __version__

    if not npz.exists():
        return False
    if not card_path(npz).is_file():
        raise unreadable_file(npz, problem="has no card, so it was not made here", advice="Add --force to replace it.")
    try:
        card = read_card(npz)
        check_card(npz, card)
    except InputError as error:
        log(f"{npz.stem}: preparing it again. {error}")
        return False
    if card["made_by"] != "prepare":
        problem = f"was made by transpl datasets {card['made_by']}"
        raise unreadable_file(npz, problem=problem, advice="Add --force to replace it.")

    def hashes(files: list[dict[str, Any]]) -> list[Any]:
        return [file.get("sha256") for file in files]

    # A normalisation with another name than ours was made by the recipe's options.
    stored = card["normalise"] if card["normalise"] in STORED_RULES else "none"
    as_read_back = json.loads(json.dumps(options, default=str))
    changed = {
        "rule": (card.get("default_rule") or card["rule"]) != recipe.rule,
        "options": card["options"] != as_read_back,
        "normalise": stored != normalise,
        "version of transpl": card["transpl_version"] != __version__,
        "source": origin is not None and hashes(card["origin"]) != hashes(origin),
    }
    if any(changed.values()):
        log(f"{npz.stem}: preparing it again, because of another {', '.join(k for k, yes in changed.items() if yes)}")
        return False
    made_from = ""
    if origin is None and not is_published(card["origin"], recipe.files):
        files = ", ".join(str(file.get("name")) for file in card["origin"])
        made_from = f" (made from {files}; --force makes it from a download)"
    log(f"{npz.stem}: already prepared, {npz}{made_from}")
    return True


def _build(recipe: Recipe, raw: Path, scratch: Path, options: dict[str, Any], log: Log) -> Built:
    with task(f"building {recipe.name}", None):
        built = _build_windows(recipe, raw, scratch, options, log)
    for note in built.notes:
        log(f"{recipe.name}: {note}")
    log(f"{recipe.name}: {len(built.dataset):,} windows of {len(built.dataset.domains)} domains")
    return built


def _build_windows(recipe: Recipe, raw: Path, scratch: Path, options: dict[str, Any], log: Log) -> Built:
    """Build from `raw`; archives in a folder are unpacked only if its plain files do not suffice."""
    from transpl.datasets.unpack import holds_archives, unpacked

    plain_problem = ""
    if raw.is_dir():
        log(f"{recipe.name}: building windows")
        try:
            return recipe.build(raw, log, **options)
        except UnreadableFile as error:
            if not holds_archives(raw):
                raise
            plain_problem = str(error)
        log(f"{recipe.name}: the plain files do not suffice ({plain_problem})")
    log(f"{recipe.name}: unpacking {raw}")
    folder = scratch / "unpacked"
    try:
        unpacked(raw, folder)
        log(f"{recipe.name}: building windows")
        return recipe.build(folder, log, **options)
    except InputError as error:
        problem = str(error).replace(str(folder), str(raw))  # the scratch folder will be gone
        if plain_problem and problem != plain_problem:
            problem = f"{plain_problem} Nor could it be built from the archives in it: {problem}"
        raise type(error)(problem) from None


def _download(recipe: Recipe, home: Path, offline: bool, log: Log) -> tuple[Path, list[dict[str, Any]]]:
    """Return the downloaded archive, or the folder if there are several, and their origin."""
    from transpl.datasets.fetch import fetch

    folder = home / "raw" / recipe.name
    paths = [fetch(file, folder, offline=offline, progress=True, log=log) for file in recipe.files]
    return (paths[0] if len(paths) == 1 else folder), [archive_origin(path, recipe.files) for path in paths]


@contextmanager
def _deleting_damaged_downloads(recipe: Recipe, raw: Path) -> Iterator[None]:
    """Delete downloads that turn out damaged, unless a published hash says that they are right."""
    from transpl.datasets.fetch import discard
    from transpl.datasets.unpack import DamagedArchive

    try:
        yield
    except DamagedArchive as error:
        folder = raw if raw.is_dir() else raw.parent
        unproven = [folder / choice.name for file in recipe.files for choice in file.choices if choice.sha256 is None]
        deleted = [str(each) for path in unproven if raw in (path, folder) for each in discard(path)]
        if not deleted:
            raise
        problem = f"{error} The download was deleted, so it will be fetched again: {', '.join(deleted)}"
        raise UnreadableFile(problem) from None
