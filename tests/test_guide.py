"""What the guide shows works: its code is executed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY, make_waves

from transpl import TransPL
from transpl.council import load_explanation

GUIDE = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")


def blocks_of(title: str) -> list[str]:
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.M | re.S).group(1)
    return re.findall(r"^```python\n(.*?)^```", section, flags=re.M | re.S)


@pytest.mark.parametrize(
    ("variant", "sentence"), [("plus", r"^\d, [01]\.\d\d: .* witness"), ("paper", r"^\d, 0\.\d\d: .* of the vote")]
)
def test_why_this_label(variant, sentence, monkeypatch, tmp_path, capsys):
    X, y = make_waves(30, 0, channels=3, n_classes=3)
    X_target, _ = make_waves(20, 1, channels=3, n_classes=3, gain=1.5)
    settings = {"variant": "plus"} if variant == "plus" else {**TINY, "max_epochs": 1, "variant": variant}
    names = {"model": TransPL(**settings).fit(X, y).adapt(X_target), "X_target": X_target}
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks_of("Why this label")[0], "guide.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(sentence, printed)
    for word in ("contribution", "distance", "row_share"):
        assert word in printed
    again = load_explanation("explanation.npz")
    assert again.sentence(0) == names["explanation"].sentence(0)


def test_options(capsys):
    X, y = make_waves(30, 0, channels=6, n_classes=3)
    X_target, _ = make_waves(20, 1, channels=6, n_classes=3, gain=1.5)
    classes = np.array(["run", "sit", "walk"])
    names = {"X": X, "y": classes[y], "X_target": X_target, "patient": np.arange(20) % 3}
    for code in blocks_of("Options"):
        exec(compile(code, "guide.md", "exec"), names)
    nothing_undone, *_, best, second = capsys.readouterr().out.splitlines()
    assert nothing_undone == "()"
    assert best.split()[0] in ("linear", "trees", "relearned")
    assert float(best.split()[-1]) >= float(second.split()[-1])


def test_links_within_the_guide_lead_somewhere():
    titles = re.findall(r"^#+ (.+)$", GUIDE, flags=re.M)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    for page in ("README.md", "docs/guide.md", "docs/council.md", "docs/scale.md"):
        text = (Path(__file__).parents[1] / page).read_text(encoding="utf-8")
        assert set(re.findall(r"guide\.md#([^)]+)\)", text)) <= anchors
    assert set(re.findall(r"\]\(#([^)]+)\)", GUIDE)) <= anchors
