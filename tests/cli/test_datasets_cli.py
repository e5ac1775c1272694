"""The commands about data, as a person types them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from transpl import cli, datasets
from transpl.datasets.cards import read_card
from transpl.datasets.dataset import Dataset
from transpl.datasets.prepared import save_prepared
from transpl.datasets.recipe import Built, Recipe, RemoteFile
from transpl.datasets.recipes.synthetic import make_shifted

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "home"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def typed(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["transpl", "datasets", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        said = capsys.readouterr()
        return int(caught.value.code or 0), said.out, said.err

    return typed


def build(folder: Path, log: Any, *, gain: float = 1.0) -> Built:
    made = make_shifted(n_train=6, n_test=4)
    return Built(replace(made, name="ptb", X=gain * made.X), {}, ("nothing was dropped.",))


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive, and a recipe for it in the place of ptb's."""
    module = ModuleType("transpl.datasets.recipes.ptb")
    module.RECIPE = Recipe(  # type: ignore[attr-defined]
        name="ptb",
        title="Beats [made]",
        homepage="https://example.org",
        licence="CC0",
        citation="Nobody 2020",
        files=(RemoteFile("raw.zip", ("https://example.invalid/raw.zip",)),),
        layout="any file",
        rule="drawn",
        build=build,
        check=lambda _: [],
        options={"gain": "how loud"},
    )
    monkeypatch.setitem(sys.modules, "transpl.datasets.recipes.ptb", module)
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        archive.writestr("any.txt", "any")
    return tmp_path / "raw.zip"


def test_list_says_what_is_ready_and_what_can_be_prepared(run: Any, raw: Path, home: Path) -> None:
    save_prepared(make_shifted(n_train=6, n_test=4), home / "mine.npz")
    (home / "broken.npz").write_bytes(b"no")
    for name in ("my data.npz", "[b]bold[b].npz", "ä.npz"):
        (home / name).write_bytes(b"no")
    code, out, _ = run("list")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line[:1].strip()}
    assert "ready" in lines["synthetic"]
    assert "to prepare" in lines["ptb"]
    assert "Beats [made]" in lines["ptb"]
    assert "--option gain" in out
    assert "30 windows of 3 channels" in lines["mine"]
    assert "damaged" in lines["broken"]
    assert "TRANSPL_DATA" in out
    assert all("bad name" in line for line in out.splitlines() if line.startswith(("my data", "[b]bold[b]", "ä")))
    assert "my data" in out


def test_list_shows_the_options_of_what_is_ready_too(run: Any, raw: Path, home: Path) -> None:
    run("prepare", "ptb", "--from", raw)
    out = run("list")[1]
    assert "ready" in next(line for line in out.splitlines() if line.startswith("ptb"))
    assert "--option gain" in out


def test_prepare_then_find_it_then_look_at_it(run: Any, raw: Path, home: Path, tmp_path: Path) -> None:
    code, out, err = run("prepare", "ptb", "--from", raw, "--option", "gain=2.5", "--normalise", "domain")
    assert (code, out.strip()) == (0, str(home / "ptb.npz"))
    assert "nothing was dropped" in err
    card = read_card(home / "ptb.npz")
    assert (card["options"], card["normalise"]) == ({"gain": 2.5}, "domain")
    assert "already prepared" in run("prepare", "ptb", "--from", raw, *OPTIONS)[2]
    assert "building" in run("prepare", "ptb", "--from", raw, *OPTIONS, "--force")[2]
    code, out, _ = run("info", "ptb", "--html", tmp_path / "ptb.html")
    assert code == 0
    for words in ("Beats [made]", "gain=2.5", "domain", "CC0", f"open {tmp_path / 'ptb.html'}"):
        assert words in out
    assert "<polyline" in (tmp_path / "ptb.html").read_text()
    assert len(datasets.load("ptb")) == 30


OPTIONS = ["--option", "gain=2.5", "--normalise", "domain"]


@pytest.mark.parametrize(
    "name",
    [
        "synthetic",
        pytest.param(
            "watch",
            marks=pytest.mark.skipif(
                "watch" not in datasets.names(), reason='seglearn is not installed: pip install "transpl[watch]"'
            ),
        ),
    ],
)
def test_info_of_what_is_built_in(run: Any, name: str) -> None:
    code, out, _ = run("info", name)
    assert code == 0
    assert "windows of" in out


def test_make(run: Any, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for user in ("anna", "bob"):
        n = 400
        frame = {"t": np.arange(n) * 0.02, "ax": np.sin(np.arange(n)), "ay": 1.0, "skip": 2.0}
        frame["activity"] = np.where(np.arange(n) < 200, "sit", "walk")
        pd.DataFrame(frame).to_csv(folder / f"{user}.csv", index=False)
    words = ["make", folder, "--name", "mine", "--label-col", "activity", "--time-col", "t", "--window", 32]
    code, out, err = run(*words, "--channels", "ax, ay", "--split", "by_time")
    assert (code, out.strip()) == (0, str(home / "mine.npz"))
    assert "anna.csv: 400 rows" in err
    assert "left over" in err
    dataset = datasets.load("mine")
    assert dataset.channel_names == ("ax", "ay")
    assert dataset.class_names == ("sit", "walk")
    code, _, err = run(*words, "--split", "by_time")
    assert code == 2
    assert "--force" in err
    assert "anna" in run("info", "mine")[1]


def test_what_was_made_as_json(
    run: Any, raw: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 400
    activity = np.where(np.arange(n) % 200 < 100, "sit", "walk")
    pd.DataFrame({"ax": np.sin(np.arange(n)), "activity": activity}).to_csv(tmp_path / "anna.csv", index=False)
    made = make_shifted(n_train=6, n_test=4)
    monkeypatch.setattr("transpl.datasets.importers.import_files", lambda *_, **__: made)
    for name, words in (
        ("ptb", ["prepare", "ptb", "--from", raw]),
        ("mine", ["make", tmp_path / "anna.csv", "--name", "mine", "--label-col", "activity", "--window", 32]),
        ("har", ["import", tmp_path, "--format", "adatime", "--name", "har"]),
    ):
        code, out, _ = run(*words, "--json")
        assert code == 0
        npz = home / f"{name}.npz"
        assert json.loads(out) == {"file": str(npz), "card": read_card(npz)}


DOCUMENTED = re.findall(r"^\$ transpl datasets (make .*)$", (ROOT / "docs" / "datasets.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", DOCUMENTED)
def test_make_as_documented(
    run: Any, command: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recordings").mkdir()
    monkeypatch.chdir(tmp_path)
    for user in ("anna", "bob"):
        time = np.arange(2000) * 0.02
        frame = {"t": time, "ax": np.sin(time), "activity": np.repeat(["sit", "walk"], 1000)}
        pd.DataFrame(frame).to_csv(tmp_path / "recordings" / f"{user}.csv", index=False)
    code, out, err = run(*shlex.split(command))
    assert (code, out.strip()) == (0, str(home / "mine.npz"))
    assert "Split by_time was chosen" in err


def test_import(run: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "HAR").mkdir()
    (tmp_path / "HAR" / "train_1.pt").write_bytes(b"any")
    asked = []

    def reader(folder: Path, name: str, format: str, **choices: Any) -> Dataset:
        assert choices == {"like": None, "n_channels": None}
        asked.append((folder, name, format))
        return make_shifted(n_train=6, n_test=4)

    for whose in ("adatime", "transpl"):
        monkeypatch.setattr("transpl.datasets.importers.import_files", reader)
        code, out, _ = run("import", tmp_path / "HAR", "--format", whose, "--name", f"har-{whose}")
        assert (code, out.strip()) == (0, str(home / f"har-{whose}.npz"))
        assert asked[-1] == (tmp_path / "HAR", f"har-{whose}", whose)
        card = read_card(home / f"har-{whose}.npz")
        assert (card["made_by"], card["options"]) == ("import", {"format": whose})
        assert card["origin"][0]["name"] == "HAR/"
    code, _, err = run("import", tmp_path / "HAR", "--format", "adatime", "--name", "har-adatime")
    assert (code, "exists already" in err) == (2, True)


def test_import_of_real_files(run: Any, tmp_path: Path, home: Path) -> None:
    torch = pytest.importorskip("torch")
    from transpl.datasets.importers import PUBLISHED_NAMES

    (tmp_path / "HAR").mkdir()
    for path in (tmp_path / "HAR" / f"{split}_{domain}.pt" for split in ("train", "test") for domain in (2, 7, 11)):
        torch.save({"samples": torch.randn(6, 9, 9), "labels": [0, 1, 2, 3, 4, 5]}, path)
    words = ["import", tmp_path / "HAR", "--format", "adatime", "--name", "mine"]
    code, _, err = run(*words)
    assert (code, "--n-channels" in err) == (2, True)
    assert run(*words, "--like", "ucihar")[0] == 0
    dataset = datasets.load("mine")
    assert (dataset.class_names, dataset.channel_names) == PUBLISHED_NAMES["ucihar"]
    assert dataset.pairs == ((2, 11),)
    assert read_card(home / "mine.npz")["options"] == {"format": "adatime", "like": "ucihar"}
    assert run(*words, "--n-channels", 9, "--force")[0] == 0
    assert datasets.load("mine").class_names == ("0", "1", "2", "3", "4", "5")


def test_import_help_shows_which_files(run: Any) -> None:
    out = run("import", "--help")[1]
    assert "train_<id>.pt" in out
    assert "USER<id>_trainX.pkl" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prepare", "mnist"], "name: expected one of 'ucihar'"),
        (["prepare", "ptb", "--from", "absent.zip"], "absent.zip: no such file or folder"),
        (["prepare", "ptb", "--option", "gain"], "--option: expected name=value, got 'gain'"),
        (["prepare", "ptb", "--option", "pace=2"], "expected an option of ptb (gain), got pace"),
        (["prepare", "ptb", "--normalise", "zscore"], "normalise: expected one of"),
        (["prepare", "ptb", "--offline"], "raw.zip"),
        (["info", "ptb"], "transpl datasets prepare ptb"),
        (["info", "../secret"], "name: expected one of"),
        (["make", ".", "--name", "../x", "--label-col", "y"], "name: expected letters"),
        (["make", "absent", "--name", "x", "--label-col", "y"], "absent: not a folder and not a table"),
        (["make", ".", "--name", "watch", "--label-col", "y"], "name: expected a name that is not built in"),
    ],
)
def test_misuse_is_one_line(run: Any, raw: Path, words: list[str], message: str) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("error: ")
    assert message in err


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0.5", 0.5), ("True", True), ("true", True), ("s3,s3mini", "s3,s3mini"), ("('a', 'b')", ("a", "b"))],
)
def test_options_are_read_as_what_they_look_like(text: str, value: object) -> None:
    from transpl.cli.options import read_settings

    assert read_settings([f"key={text}"], "--option") == {"key": value}


def test_help_stays_light() -> None:
    code = (
        "import sys, transpl.cli.main; print(*({'numpy', 'pandas', 'torch', 'plotly', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
