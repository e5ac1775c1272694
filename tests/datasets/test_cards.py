"""Cards: what they say is in the file, they belong to it, and they can be read in a terminal and a browser."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from transpl import __version__
from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.card_page import render, write_card_page
from transpl.datasets.cards import (
    Provenance,
    card_or_contents,
    card_path,
    check_card,
    contents,
    make_card,
    publish,
    read_card,
)
from transpl.datasets.catalogue import card_text, shared_cells
from transpl.datasets.dataset import Dataset
from transpl.datasets.prepared import save_prepared
from transpl.datasets.recipes.synthetic import make_shifted

ORIGIN = {"name": "raw.zip", "sha256": "ab" * 32, "urls": ["https://example.org/raw.zip"]}
PROVENANCE = Provenance(
    made_by="prepare",
    title="Made <data>",
    rule="drawn",
    origin=[ORIGIN],
    options={"seed": 0},
    notes=["3 rows were dropped."],
    homepage="https://example.org",
    licence="CC BY 4.0",
    citation="Nobody 2020",
)


def made() -> Dataset:
    return make_shifted(n_train=6, n_test=4, length=8)


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    save_prepared(made(), tmp_path / "made.npz")
    return tmp_path / "made.npz"


def test_a_card_says_what_is_in_the_file(npz: Path) -> None:
    dataset = made()
    card = publish(npz, npz, PROVENANCE)
    assert read_card(npz) == card == json.loads(card_path(npz).read_text())
    check_card(npz, card)
    assert (card["windows"], card["length"], card["channels"]) == (30, 8, list(dataset.channel_names))
    assert (card["transpl_version"], card["licence"], card["origin"]) == (__version__, "CC BY 4.0", [ORIGIN])
    for domain, parts in card["counts"].items():
        for part, split in (("train", 0), ("test", 1)):
            for k, name in enumerate(dataset.class_names):
                rows = (dataset.domain_ids == int(domain)) & (dataset.split == split) & (dataset.y == k)
                assert parts[part][name] == rows.sum()


def test_another_npz_is_noticed(npz: Path) -> None:
    card = publish(npz, npz, PROVENANCE)
    save_prepared(make_shifted(n_train=6, n_test=4, length=8, seed=1), npz)
    with pytest.raises(UnreadableFile, match="its card"):
        check_card(npz, card)
    with pytest.raises(UnreadableFile, match="its card"):
        card_or_contents(npz)
    npz.unlink()
    with pytest.raises(UnreadableFile, match="no such file"):
        check_card(npz, card)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"counts": {"0": 3}},
        {"counts": {"0": {"train": {}, "test": {}}}},
        {"counts": {"0": {"train": [], "test": []}}},
        {"origin": "raw.zip"},
        {"npz_sha256": None},
        {"classes": [["a"], "b"]},
        {"channels": [1, 2, 3]},
        {"notes": [None]},
        {"origin": ["raw.zip"]},
        {"origin": [{"name": "raw.zip", "urls": 5}]},
        {"domain_names": {"0": ["ann"]}},
    ],
)
def test_a_card_that_is_not_sound_is_refused(npz: Path, change: dict[str, Any]) -> None:
    card = make_card(npz, PROVENANCE)
    card_path(npz).write_text(json.dumps({**card, **change}))
    with pytest.raises(UnreadableFile, match="card") as caught:
        read_card(npz)
    assert "\n" not in str(caught.value)
    card_path(npz).write_text("[1, 2")
    with pytest.raises(UnreadableFile, match="not readable as JSON"):
        read_card(npz)


def test_without_a_card_the_file_speaks_for_itself(npz: Path) -> None:
    card = card_or_contents(npz)
    assert card["counts"] == contents(npz)["counts"]
    assert "card" in card["notes"][0]
    assert "30 windows of 3 channels x 8 samples" in shown(card)


def test_files_that_are_not_prepared(tmp_path: Path) -> None:
    np.savez(tmp_path / "part.npz", X=np.zeros((2, 1, 4)))
    with pytest.raises(UnreadableFile, match="no y, domain"):
        contents(tmp_path / "part.npz")
    good = {"y": [0], "domain": [1], "split": [0], "class_names": ["a"], "channel_names": ["x"]}
    np.savez(tmp_path / "windowless.npz", **good)
    with pytest.raises(UnreadableFile, match="no readable X"):
        contents(tmp_path / "windowless.npz")
    np.savez(tmp_path / "odd.npz", X=np.zeros((1, 1, 4)), **{**good, "y": [-1]})
    with pytest.raises(InputError, match=r"odd\.npz"):
        contents(tmp_path / "odd.npz")


def shown(card: dict[str, Any], **options: Any) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100, **options).print(card_text(card))
    return stream.getvalue()


def test_the_table_is_read_without_colour(npz: Path) -> None:
    text = shown(make_card(npz, PROVENANCE))
    for words in ("Made <data>", "CC BY 4.0", "raw.zip (SHA-256 abababababab...)", "3 rows were dropped.", "class_2"):
        assert words in text
    bars = re.findall(r"[ABC]{40}", text)
    assert len(bars) == 3
    assert all(re.fullmatch(r"A+B+C+", bar) for bar in bars)
    assert "\x1b[" not in text
    assert "\x1b[" in shown(make_card(npz, PROVENANCE), force_terminal=True, color_system="truecolor")


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30), st.integers(30, 60))
def test_cells_are_shared_out_and_no_class_is_lost(counts: list[int], width: int) -> None:
    cells = shared_cells(counts, width)
    assert sum(cells) == (width if sum(counts) else 0)
    assert all((cell > 0) == (count > 0) for cell, count in zip(cells, counts, strict=True))


class Balance(HTMLParser):
    """Checks that every element is closed, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "link", "img")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_small_whole_and_escaped(npz: Path, tmp_path: Path) -> None:
    card = make_card(npz, PROVENANCE)
    write_card_page(card, made(), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    reader = Balance()
    reader.feed(page)
    assert reader.open == []
    for words in ("Made <data>", "What windows look like", "CC BY 4.0", "3 rows were dropped.", ORIGIN["urls"][0]):
        assert words in reader.text
    assert page.count("<polyline") == 3 * 3 * 3  # classes x domains x channels
    assert len(page) < 100_000
    assert "prefers-color-scheme: dark" in page


def test_the_page_of_a_large_set_shows_a_few_windows() -> None:
    rng = np.random.default_rng(0)
    n = 400
    dataset = Dataset(
        name="large",
        X=rng.normal(size=(n, 12, 500)),
        y=np.arange(n) % 20,
        domain_ids=np.arange(n) // 20,
        split=np.arange(n) % 2,
        class_names=tuple(f"k{k}" for k in range(20)),
        channel_names=tuple(f"c{c}" for c in range(12)),
    )
    card = {**BARE, "classes": list(dataset.class_names), "channels": list(dataset.channel_names)}
    page = render(card, dataset)
    assert page.count("<polyline") <= 6 * 12 * 9
    assert "6 of 20 domains are shown. 12 of 20 classes are shown. 9 of 12 channels are shown." in page
    assert len(page) < 1_500_000


BARE: dict[str, Any] = {
    "name": "large",
    "windows": 400,
    "length": 500,
    "counts": {},
    "domain_names": {},
    "origin": [],
    "options": {},
    "notes": [],
    **dict.fromkeys(
        ("title", "rule", "normalise", "homepage", "licence", "citation", "made_by", "transpl_version", "npz_sha256"),
        "",
    ),
}


def test_a_class_that_a_domain_lacks(tmp_path: Path) -> None:
    dataset = Dataset(
        name="lacking",
        X=np.zeros((4, 1, 5)),
        y=np.array([0, 1, 0, 0]),
        domain_ids=np.array([0, 0, 1, 1]),
        split=np.array([0, 1, 0, 1]),
        class_names=("sit", "walk"),
        channel_names=("x",),
    )
    save_prepared(dataset, tmp_path / "lacking.npz")
    card = card_or_contents(tmp_path / "lacking.npz")
    assert "none" in render(card, dataset)
    assert "A" * 40 in shown(card)


@pytest.mark.parametrize(
    "change",
    [
        {"y": np.array([0, 1, 9])},
        {"y": np.array([0.0, 1.0, 1.0])},
        {"y": np.array([0, 1, 1], np.uint64)},  # sound
        {"domain": np.array(["a", "b", "c"])},
        {"split": np.array([[0], [1], [0]])},
        {"domain_names": np.array(["ann"])},
        {"X": np.zeros((3, 4))},
    ],
)
def test_contents_of_odd_arrays_are_refused_in_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    arrays = {
        "X": np.zeros((3, 1, 4)),
        "y": np.array([0, 1, 1]),
        "domain": np.array([0, 1, 1]),
        "split": np.array([0, 0, 1]),
        "class_names": np.array(["a", "b"]),
        "channel_names": np.array(["x"]),
    }
    np.savez(tmp_path / "own.npz", **{**arrays, **change})
    if "y" in change and change["y"].dtype == np.uint64:
        assert contents(tmp_path / "own.npz")["counts"]["1"] == {"train": {"a": 0, "b": 1}, "test": {"a": 0, "b": 1}}
        return
    with pytest.raises(UnreadableFile) as caught:
        contents(tmp_path / "own.npz")
    assert str(caught.value).startswith(str(tmp_path / "own.npz"))
    assert "\n" not in str(caught.value)
