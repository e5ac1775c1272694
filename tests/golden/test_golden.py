"""What a tiny job leaves behind stays what it was. `tiny_job.py write` accepts a change that is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden.tiny_job import GOLDEN, PARTS

HASHES = ("predictions.csv sha256", "weights sha256")  # rounding differs from one kind of CPU to the next


@pytest.mark.parametrize("part", PARTS)
def test_outputs_equal_the_golden_ones(part):
    compare(PARTS[part](), json.loads(GOLDEN.read_text())[part], part)


def compare(now: Any, golden: Any, place: str) -> None:
    if isinstance(golden, dict):
        assert sorted(now) == sorted(golden), place
        for name in golden.keys() - set(HASHES):
            compare(now[name], golden[name], f"{place}, {name}")
    elif isinstance(golden, list):
        assert len(now) == len(golden), place
        for i, (one, other) in enumerate(zip(now, golden, strict=True)):
            compare(one, other, f"{place}, {i}")
    elif isinstance(golden, float):
        assert now == pytest.approx(golden, abs=1e-4, rel=1e-3, nan_ok=True), place
    else:
        assert now == golden, place
