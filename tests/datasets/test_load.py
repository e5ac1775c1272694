"""The front door: `load` and `names`."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpl import datasets
from transpl._utils.errors import InputError
from transpl.datasets.prepared import save_prepared
from transpl.datasets.recipes.watch import watch_available

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_synthetic_needs_nothing() -> None:
    assert datasets.load("synthetic").name == "synthetic"
    assert "synthetic" in datasets.names()


@pytest.mark.skipif(not watch_available(), reason='seglearn is not installed: pip install "transpl[watch]"')
def test_watch() -> None:
    assert "watch" in datasets.names()
    assert len(datasets.load("watch")) == 3605


def test_prepared_files_are_found_by_name(home: Path) -> None:
    save_prepared(datasets.make_shifted(n_train=6, n_test=4), home / "mine.npz")
    (home / ".half.npz.x.part.npz").touch()
    (home / "notes.txt").touch()
    assert datasets.names()[-1] == "mine"
    assert not any("half" in name or "notes" in name for name in datasets.names())
    assert datasets.load("mine").name == "mine"


def test_unknown_name_says_what_there_is_and_where_it_looked(home: Path) -> None:
    save_prepared(datasets.make_shifted(n_train=6, n_test=4), home / "mine.npz")
    with pytest.raises(InputError) as caught:
        datasets.load("ucihar")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("'synthetic'", "'mine'", "'ucihar'", str(home), "TRANSPL_DATA"):
        assert part in message


def test_a_path_is_not_a_name(home: Path) -> None:
    save_prepared(datasets.make_shifted(n_train=6, n_test=4), home.parent / "outside.npz")
    home.mkdir()
    with pytest.raises(InputError, match="expected one of"):
        datasets.load("../outside")


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared prepared data are not at {SHARED}")
def test_shared_data_just_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPL_DATA", str(SHARED))
    assert {"ucihar", "wisdm", "hhar", "ptb"} <= set(datasets.names())
    hhar = datasets.load("hhar")
    assert (hhar.name, hhar.pairs[0]) == ("hhar", (0, 6))
