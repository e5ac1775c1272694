"""Preparing a public set, with a recipe of our own: what is made, what is not made twice, what a crash leaves."""

from __future__ import annotations

import os
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import refusal

from transpl._utils.errors import InputError, UnreadableFile
from transpl._utils.files import read_npz
from transpl._utils.hashing import hash_file
from transpl.datasets import cards, load, prepared
from transpl.datasets.cards import card_path, check_card, read_card
from transpl.datasets.dataset import Dataset
from transpl.datasets.prepare import is_published, prepare, recipe_for, refuse_to_replace
from transpl.datasets.prepared import load_prepared, save_prepared
from transpl.datasets.recipe import Built, Recipe, RemoteFile, only_file
from transpl.datasets.recipes.synthetic import make_shifted


def build(folder: Path, log: Any, *, gain: float = 1.0) -> Built:
    """Every domain has one number in the raw file."""
    numbers = np.loadtxt(only_file(folder, "numbers.txt"))
    domain = np.repeat(np.arange(len(numbers)), 4)
    X = gain * numbers[domain][:, None, None] + np.arange(len(domain))[:, None, None] + np.arange(8.0)
    dataset = Dataset(
        name="wisdm",
        X=X,
        y=np.arange(len(domain)) % 2,
        domain_ids=domain,
        split=np.arange(len(domain)) // 2 % 2,
        class_names=("sit", "walk"),
        channel_names=("x",),
        pairs=((0, 1),),
    )
    return Built(dataset, {"group": np.arange(len(domain)) // 2}, ("1 line was empty.",))


def check(dataset: Dataset) -> list[str]:
    return [] if len(dataset.domains) == 2 else [f"{len(dataset.domains)} domains instead of 2"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "raw.zip"
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("inside/numbers.txt", "10\n20\n")
    return path


@pytest.fixture
def recipe(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Takes the place of wisdm's."""
    made = Recipe(
        name="wisdm",
        title="Numbers",
        homepage="https://example.org",
        licence="CC0",
        citation="Nobody 2020",
        files=(RemoteFile("raw.zip", ("https://example.invalid/raw.zip",), hash_file(archive)),),
        layout="numbers.txt",
        rule="four windows per number",
        build=build,
        check=check,
        options={"gain": "what numbers are multiplied with"},
    )
    use(monkeypatch, made)
    return made


def use(monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    module = ModuleType("transpl.datasets.recipes.wisdm")
    module.RECIPE = recipe  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transpl.datasets.recipes.wisdm", module)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


class Ear:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        assert "\n" not in line
        self.lines.append(line)

    def heard(self, words: str) -> bool:
        return any(words in line for line in self.lines)


def stamp(path: Path) -> tuple[int, bytes]:
    return path.stat().st_mtime_ns, path.read_bytes()


def test_from_an_archive(recipe: Recipe, archive: Path, home: Path) -> None:
    ear = Ear()
    npz = prepare("wisdm", source=archive, log=ear)
    assert npz == home / "wisdm.npz"
    dataset = load("wisdm")
    np.testing.assert_array_equal(dataset.X[0, 0], 10 + np.arange(8.0))
    assert dataset.pairs == ((0, 1),)
    np.testing.assert_array_equal(read_npz(npz, ["group"])["group"], [0, 0, 1, 1, 2, 2, 3, 3])
    card = read_card(npz)
    check_card(npz, card)
    assert card["origin"] == [{"name": "raw.zip", "sha256": hash_file(archive), "urls": [*recipe.files[0].urls]}]
    assert card["notes"] == ["1 line was empty."]
    assert (card["made_by"], card["rule"], card["licence"]) == ("prepare", recipe.rule, "CC0")
    for words in ("unpacking", "building", "1 line was empty.", "8 windows of 2 domains", "wrote"):
        assert ear.heard(words)
    assert sorted(path.name for path in home.iterdir()) == ["wisdm.json", "wisdm.npz"]


def test_from_an_unpacked_folder(recipe: Recipe, tmp_path: Path, home: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "numbers.txt").write_text("10\n20\n")
    ear = Ear()
    npz = prepare("wisdm", source=tmp_path / "raw", log=ear)
    prepare("wisdm", source=tmp_path / "raw", log=ear)
    assert ear.heard("already prepared")
    assert read_card(npz)["origin"][0]["name"] == "raw/"
    (tmp_path / "raw" / "numbers.txt").write_text("10\n21\n")
    prepare("wisdm", source=tmp_path / "raw", log=ear)
    assert ear.heard("because of another source")
    assert load_prepared(npz).X.max() == 21 + 7 + 7


@pytest.fixture
def mixed(tmp_path: Path, archive: Path) -> Path:
    """The unpacked files, the archive they are from, and an archive that is none."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "numbers.txt").write_text("10\n21\n")
    (folder / "raw.zip").write_bytes(archive.read_bytes())
    (folder / "holidays.zip").write_bytes(b"<html>")
    return folder


def test_archives_in_a_folder_are_left_alone_if_its_files_will_do(recipe: Recipe, mixed: Path, home: Path) -> None:
    ear = Ear()
    assert load_prepared(prepare("wisdm", source=mixed, log=ear)).X.max() == 21 + 7 + 7
    assert not ear.heard("unpacking")


def test_archives_in_a_folder_are_unpacked_if_its_files_will_not_do(recipe: Recipe, mixed: Path, home: Path) -> None:
    (mixed / "numbers.txt").unlink()
    with pytest.raises(UnreadableFile, match=r"no numbers.txt in it.*holidays\.zip: damaged") as caught:
        prepare("wisdm", source=mixed)
    assert ".preparing-" not in str(caught.value)
    (mixed / "holidays.zip").unlink()
    assert load_prepared(prepare("wisdm", source=mixed)).X.max() == 20 + 7 + 7


@pytest.mark.parametrize("in_folder", [True, False])
def test_messages_name_what_the_user_gave(recipe: Recipe, tmp_path: Path, home: Path, in_folder: bool) -> None:
    source = tmp_path / "other" / "other.zip"
    source.parent.mkdir()
    with zipfile.ZipFile(source, "w") as stream:
        stream.writestr("other.txt", "")
    given = source.parent if in_folder else source
    with pytest.raises(UnreadableFile, match=f"^{given}: no numbers.txt in it") as caught:
        prepare("wisdm", source=given)
    assert ".preparing-" not in str(caught.value)
    assert str(caught.value).count("numbers.txt") == 1


def test_what_is_there_is_not_made_again(recipe: Recipe, archive: Path, home: Path) -> None:
    npz = prepare("wisdm", source=archive)
    before = stamp(npz)
    ear = Ear()
    assert prepare("wisdm", source=archive, log=ear) == npz
    assert ear.lines == [f"wisdm: already prepared, {npz}"]
    assert prepare("wisdm", offline=True) == npz  # the archive was the published one
    assert stamp(npz) == before
    prepare("wisdm", source=archive, force=True)
    assert stamp(npz)[0] != before[0]
    assert stamp(npz)[1] == before[1]


def test_without_a_source_any_sound_file_will_do(recipe: Recipe, tmp_path: Path, home: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "numbers.txt").write_text("10\n21\n")
    npz = prepare("wisdm", source=tmp_path / "mine")
    before = stamp(npz)
    ear = Ear()
    for offline in (True, False):
        assert prepare("wisdm", offline=offline, log=ear) == npz
    assert stamp(npz) == before
    assert ear.heard(f"already prepared, {npz} (made from mine/")
    with pytest.raises(InputError, match=r"raw\.zip"):
        prepare("wisdm", offline=True, options={"gain": 2.0})
    with pytest.raises(InputError, match=r"raw\.zip"):
        prepare("wisdm", offline=True, force=True)
    assert stamp(npz) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"options": {"gain": 2.0}}, "another options"), ({"normalise": "per_split"}, "another normalise")],
)
def test_other_choices_make_it_again(
    recipe: Recipe, archive: Path, home: Path, changes: dict[str, Any], words: str
) -> None:
    npz = prepare("wisdm", source=archive)
    before = npz.read_bytes()
    ear = Ear()
    prepare("wisdm", source=archive, log=ear, **changes)
    assert ear.heard(words)
    assert npz.read_bytes() != before
    assert [read_card(npz)[key] for key in changes] == list(changes.values())
    assert prepare("wisdm", source=archive, log=ear, **changes) == npz
    assert ear.heard("already prepared")


def test_another_version_or_rule_makes_it_again(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("wisdm", source=archive)
    use(monkeypatch, replace(recipe, rule="another"))
    ear = Ear()
    prepare("wisdm", source=archive, log=ear)
    monkeypatch.setattr("transpl.__version__", "99")
    prepare("wisdm", source=archive, log=ear)
    assert ear.heard("another rule")
    assert ear.heard("another version of transpl")


def test_the_card_has_the_rule_of_the_options_used(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_and_tell(folder: Path, log: Any, *, gain: float = 1.0) -> Built:
        return build(folder, log, gain=gain)._replace(rule=f"four windows per number, times {gain:g}")

    told = replace(recipe, build=build_and_tell, rule="four windows per number, times 1")
    use(monkeypatch, told)
    ear = Ear()
    for gain in (1.0, 2.0):
        npz = prepare("wisdm", source=archive, options={"gain": gain}, log=ear)
        assert read_card(npz)["rule"] == f"four windows per number, times {gain:g}"
        ear.lines.clear()
        prepare("wisdm", source=archive, options={"gain": gain}, log=ear)
        assert ear.lines == [f"wisdm: already prepared, {npz}"]
    use(monkeypatch, replace(told, rule="another"))
    prepare("wisdm", source=archive, options={"gain": 2.0}, log=ear)
    assert ear.heard("because of another rule")


def test_normalised_when_asked(recipe: Recipe, archive: Path, home: Path) -> None:
    dataset = load_prepared(prepare("wisdm", source=archive, normalise="domain"))
    train = dataset.domain(0).X_train
    assert abs(train.mean()) < 1e-5
    with pytest.raises(InputError, match="normalise: expected one of"):
        prepare("wisdm", source=archive, normalise="source_stats")


def test_deviations_from_the_published_counts_are_said_and_kept(recipe: Recipe, tmp_path: Path, home: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "numbers.txt").write_text("10\n20\n30\n")
    ear = Ear()
    npz = prepare("wisdm", source=tmp_path / "raw", log=ear)
    sentence = "Differs from what is published: 3 domains instead of 2"
    assert ear.heard(sentence)
    assert sentence in read_card(npz)["notes"]


def test_downloads_lie_beside_the_prepared_files(recipe: Recipe, archive: Path, home: Path) -> None:
    raw = home / "raw" / "wisdm"
    raw.mkdir(parents=True)
    (raw / "raw.zip").write_bytes(archive.read_bytes())
    npz = prepare("wisdm", offline=True)
    assert read_card(npz)["origin"][0]["urls"] == [*recipe.files[0].urls]
    assert (raw / "raw.zip").is_file()


@pytest.mark.parametrize("published", [True, False])
def test_a_damaged_download_is_deleted_if_nobody_vouches_for_it(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    raw = home / "raw" / "wisdm"
    raw.mkdir(parents=True)
    damaged = bytearray(archive.read_bytes())
    damaged[damaged.index(b"10\n20")] ^= 1
    (raw / "raw.zip").write_bytes(damaged)
    file = replace(recipe.files[0], sha256=hash_file(raw / "raw.zip") if published else None)
    use(monkeypatch, replace(recipe, files=(file,)))
    with pytest.raises(UnreadableFile, match="damaged") as caught:
        prepare("wisdm", offline=True)
    assert (raw / "raw.zip").exists() == published
    assert not (raw / "raw.zip.sha256").exists()
    assert all(str(raw / name) in str(caught.value) for name in ("raw.zip", "raw.zip.sha256")[: 1 if published else 2])


def test_an_alternative_file_counts_as_published(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = replace(recipe.files[0], name="inner.zip", urls=("https://example.invalid/inner.zip",))
    use(monkeypatch, replace(recipe, files=(replace(recipe.files[0], sha256="0" * 64, instead=(inner,)),)))
    (home / "raw" / "wisdm").mkdir(parents=True)
    (home / "raw" / "wisdm" / "inner.zip").write_bytes(archive.read_bytes())
    card = read_card(prepare("wisdm", offline=True))
    assert card["origin"] == [{"name": "inner.zip", "sha256": hash_file(archive), "urls": [*inner.urls]}]
    assert is_published(card["origin"], recipe_for("wisdm").files)
    assert not is_published([{"name": "inner.zip", "sha256": "1" * 64}], recipe_for("wisdm").files)
    ear = Ear()
    prepare("wisdm", offline=True, log=ear)
    assert ear.heard("already prepared")


def test_offline_without_the_file(recipe: Recipe, home: Path) -> None:
    with pytest.raises(InputError, match=r"raw\.zip"):
        prepare("wisdm", offline=True)
    assert not [path for path in home.rglob("*") if path.suffix in (".npz", ".json")]


def test_a_crash_never_leaves_a_card_of_another_file(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npz = prepare("wisdm", source=archive)

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    before = stamp(npz), stamp(card_path(npz))
    for step in ("numpy.savez_compressed", "transpl.datasets.cards.make_card"):
        with monkeypatch.context() as patch:
            patch.setattr(step, crash)
            with pytest.raises(KeyboardInterrupt):
                prepare("wisdm", source=archive, options={"gain": 3.0})
        assert (stamp(npz), stamp(card_path(npz))) == before
        assert sorted(path.name for path in home.iterdir()) == ["wisdm.json", "wisdm.npz"]
    with monkeypatch.context() as patch:
        patch.setattr("transpl.datasets.cards.write_json", crash)
        with pytest.raises(KeyboardInterrupt):
            prepare("wisdm", source=archive, options={"gain": 3.0})
    assert npz.is_file()
    assert not card_path(npz).exists()
    assert sorted(path.name for path in home.iterdir()) == ["wisdm.npz"]
    with pytest.raises(UnreadableFile, match="has no card"):
        prepare("wisdm", source=archive)
    prepare("wisdm", source=archive, force=True)
    check_card(npz, read_card(npz))


def test_what_a_killed_run_left_is_swept_after_a_day(recipe: Recipe, archive: Path, home: Path) -> None:
    two_days_ago = time.time() - 48 * 3600
    for name in (".preparing-dead", ".preparing-busy", ".preparing-new"):
        (home / name / "unpacked").mkdir(parents=True)
        (home / name / "unpacked" / "x").write_text("x")
    (home / ".preparing-dead" / "unpacked" / "archive").symlink_to(archive)
    (home / ".preparing-link").symlink_to(home / ".preparing-dead")
    for path in (home / ".preparing-dead").rglob("*"):
        os.utime(path, (two_days_ago, two_days_ago), follow_symlinks=False)
    for name in (".preparing-dead", ".preparing-busy", ".preparing-busy/unpacked"):
        os.utime(home / name, (two_days_ago, two_days_ago))
    prepare("wisdm", source=archive)
    left = sorted(path.name for path in home.iterdir())
    assert left == [".preparing-busy", ".preparing-link", ".preparing-new", "wisdm.json", "wisdm.npz"]
    assert archive.is_file()


def test_a_failing_build_leaves_what_was_there(
    recipe: Recipe, archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npz = prepare("wisdm", source=archive)
    before = stamp(npz), stamp(card_path(npz))
    with pytest.raises(TypeError):
        prepare("wisdm", source=archive, options={"gain": "much"}, force=True)
    assert (stamp(npz), stamp(card_path(npz))) == before
    assert sorted(path.name for path in home.iterdir()) == ["wisdm.json", "wisdm.npz"]


def test_a_damaged_file_is_made_again(recipe: Recipe, archive: Path, home: Path) -> None:
    npz = prepare("wisdm", source=archive)
    whole = npz.read_bytes()
    npz.write_bytes(whole[:-10])
    ear = Ear()
    prepare("wisdm", source=archive, log=ear)
    assert ear.heard("preparing it again")
    assert npz.read_bytes() == whole


def test_files_of_others_are_not_replaced(recipe: Recipe, archive: Path, home: Path) -> None:
    save_prepared(make_shifted(n_train=6, n_test=4), home / "wisdm.npz")
    with pytest.raises(UnreadableFile, match="has no card"):
        prepare("wisdm", source=archive)
    npz = home / "wisdm.npz"
    cards.publish(npz, npz, cards.Provenance("make", "Mine", "rule", [], {}))
    with pytest.raises(UnreadableFile, match="was made by transpl datasets make"):
        prepare("wisdm", source=archive)
    prepare("wisdm", source=archive, force=True)
    with pytest.raises(UnreadableFile, match="exists already"):
        refuse_to_replace(home / "wisdm.npz", force=False)
    with pytest.raises(InputError, match="not built in"):
        refuse_to_replace(home / "watch.npz", force=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnist"}, "name: expected one of 'ucihar', 'wisdm', 'hhar', 'ptb', got 'mnist'"),
        ({"options": {"speed": 1}}, r"options: expected an option of wisdm \(gain\), got speed"),
        ({"source": Path("absent.zip")}, "absent.zip: no such file or folder. Expected: numbers.txt"),
    ],
)
def test_misuse(recipe: Recipe, home: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        prepare(**{"name": "wisdm", **arguments})
    assert "\n" not in str(caught.value)
    assert not home.exists()


def test_extras_must_fit(tmp_path: Path) -> None:
    dataset = make_shifted(n_train=6, n_test=4)
    for extras in ({"y": dataset.y}, {"group": dataset.y[:-1]}, {"group": np.array([None] * len(dataset))}):
        with pytest.raises(InputError, match="extras"):
            save_prepared(dataset, tmp_path / "made.npz", extras)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../up", ".hidden", "a/b", "", "x" * 101, "sp ace"])
def test_a_name_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(InputError, match="name: expected"):
        prepared.prepared_path(name)


@pytest.mark.parametrize("name", ["ucihar", "wisdm", "hhar", "ptb"])
def test_real_recipes_say_what_they_are(name: str) -> None:
    recipe = recipe_for(name)
    assert recipe.name == name
    for words in (recipe.title, recipe.licence, recipe.citation, recipe.layout, recipe.rule):
        assert words
        assert "\n" not in words
    assert recipe.files
    assert all(file.urls for file in recipe.files)


def test_another_one_that_prepares_the_same_set_is_told_so(recipe: Recipe, archive: Path, tmp_path: Path) -> None:
    def another(folder: Path, log: Any) -> Built:
        with ThreadPoolExecutor() as threads:
            threads.submit(prepare, "wisdm", source=archive, home=tmp_path / "home").result()
        raise AssertionError

    use(pytest.MonkeyPatch(), replace(recipe, build=another))
    with refusal("out", "wisdm.npz, held by process"):
        prepare("wisdm", source=archive, home=tmp_path / "home")


def test_a_scratch_folder_from_the_future_disturbs_nobody(recipe: Recipe, archive: Path, tmp_path: Path) -> None:
    """The clock was moved backwards while another run is at work: its folder stays."""
    other = tmp_path / "home" / ".preparing-other"
    other.mkdir(parents=True)
    os.utime(other, (time.time() + 1e7,) * 2)
    assert prepare("wisdm", source=archive, home=tmp_path / "home").exists()
    assert other.is_dir()
