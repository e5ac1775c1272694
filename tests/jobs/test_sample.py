"""A few windows of a job, chosen, written and read back."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal

from transpl._utils.errors import UnreadableFile
from transpl.jobs.sample import FILE, MOST, load_sample, sample_of, save_sample


def test_at_most_so_many_windows_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(700, 2, 8)).astype(np.float32), rng.normal(size=(5, 2, 8))
    y = np.array(["walk", "run"] * 350)
    save_sample(sample_of(X, y, T, ("a", "b")), tmp_path)
    found = load_sample(tmp_path)
    assert len(found.source) == MOST
    assert (found.source_rows[0], found.source_rows[-1]) == (0, 699)
    np.testing.assert_array_equal(found.source.values, X[found.source_rows])
    assert found.source_labels.tolist() == y[found.source_rows].tolist()
    assert found.target.values.dtype == np.float32
    np.testing.assert_array_equal(found.target.values, T.astype(np.float32))
    assert found.target_rows.tolist() == [0, 1, 2, 3, 4]
    assert found.channel_names == ("a", "b")


def test_windows_of_unequal_length_keep_their_length(tmp_path):
    X = [np.ones((1, n)) for n in (4, 6, 5)]
    save_sample(sample_of(X, np.array([1, 2, 1]), X, ("a",)), tmp_path)
    found = load_sample(tmp_path)
    assert found.target.lengths.tolist() == [4, 6, 5]
    assert found.target.ragged
    assert found.source_labels.tolist() == ["1", "2", "1"]


def test_other_files_are_refused(tmp_path):
    with refusal(tmp_path / FILE, "no such file", UnreadableFile):
        load_sample(tmp_path)
    np.savez(tmp_path / FILE, format=np.array("transpl-sample-1"))
    with refusal(tmp_path / FILE, "not a sample", UnreadableFile):
        load_sample(tmp_path)
    np.savez(tmp_path / FILE, X=np.ones(3))
    with pytest.raises(UnreadableFile):
        load_sample(tmp_path)
