"""The sample of a target that arrives in batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transpl.council import target_sample
from transpl.council.target_sample import TargetSample
from transpl.windows import as_windows

RNG = np.random.default_rng(0)
MANY = [RNG.normal(size=(2, 3 + i % 4)).astype(np.float32) for i in range(40)]
MANY += MANY[:5]  # some windows come twice


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(target_sample, "MAX_WINDOWS", 12)


def sampled(batches):
    first = TargetSample.of(as_windows([MANY[i] for i in batches[0]]))
    for batch in batches[1:]:
        first = first.with_more(as_windows([MANY[i] for i in batch]))
    return first


@given(st.permutations(range(len(MANY))), st.sets(st.integers(1, len(MANY) - 1), max_size=6))
def test_neither_order_nor_batches_matter(order, cuts):
    batches = [part.tolist() for part in np.split(np.array(order), sorted(cuts))]
    whole, parts = TargetSample.of(as_windows(MANY)), sampled(batches)
    assert len(parts.windows) == 12
    assert np.array_equal(whole.windows.values, parts.windows.values)
    assert np.array_equal(whole.windows.lengths, parts.windows.lengths)


def test_a_batch_of_any_size_is_gone_through_in_chunks(monkeypatch):
    whole = TargetSample.of(as_windows(MANY))
    monkeypatch.setattr(target_sample, "CHUNK", 7)
    assert TargetSample.of(as_windows(MANY)).digests == whole.digests


def test_a_few_windows_are_all_kept_and_survive_a_file():
    found = TargetSample.of(as_windows(MANY[:5]))
    assert sorted(found.windows.lengths.tolist()) == sorted(window.shape[1] for window in MANY[:5])
    again = TargetSample.restored(found.arrays())
    assert again.digests == found.digests
    assert np.array_equal(again.windows.values, found.windows.values)


def test_it_is_a_fair_sample(monkeypatch):
    monkeypatch.setattr(target_sample, "MAX_WINDOWS", 1000)
    X = np.random.default_rng(1).normal(size=(4000, 1, 4)).astype(np.float32)
    kept = TargetSample.of(as_windows(X)).windows.values
    assert abs(kept.mean() - X.mean()) < 4 / np.sqrt(kept.size)
    later = np.isin(kept[:, 0, 0], X[2000:, 0, 0]).mean()
    assert 0.4 < later < 0.6
