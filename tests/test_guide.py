"""What the guide shows works: its code is executed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import TINY, make_waves

from transpl import TransPL
from transpl.explanation import load_explanation

GUIDE = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")


def block_of(title: str) -> str:
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.M | re.S).group(1)
    return re.search(r"^```python\n(.*?)^```", section, flags=re.M | re.S).group(1)


@pytest.mark.parametrize(
    ("variant", "sentence"), [("plus", r"^\d, [01]\.\d\d: .* witness"), ("paper", r"^\d, 0\.\d\d: .* of the vote")]
)
def test_why_this_label(variant, sentence, monkeypatch, tmp_path, capsys):
    X, y = make_waves(30, 0, channels=3, n_classes=3)
    X_target, _ = make_waves(20, 1, channels=3, n_classes=3, gain=1.5)
    settings = {**TINY, "max_epochs": 1, "variant": variant}
    names = {"model": TransPL(**settings).fit(X, y).adapt(X_target), "X_target": X_target}
    monkeypatch.chdir(tmp_path)
    exec(compile(block_of("Why this label"), "guide.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(sentence, printed)
    for word in ("contribution", "distance", "row_share"):
        assert word in printed
    again = load_explanation("explanation.npz")
    assert again.sentence(0) == names["explanation"].sentence(0)
