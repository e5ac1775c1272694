import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.training.rows import ordered_batches, shuffled_batches, window_rows
from transpl.windows import as_windows


@given(n=st.integers(1, 50), size=st.integers(1, 20), world=st.integers(1, 3), epoch=st.integers(0, 5))
@settings(deadline=None)
def test_every_row_occurs_once_an_epoch_and_ranks_share_evenly(n, size, world, epoch):
    ranks = [list(shuffled_batches(n, size, 7, epoch, rank, world)) for rank in range(world)]
    seen = torch.cat([index for batches in ranks for index in batches])
    assert set(seen.tolist()) == set(range(n))
    assert all(len({len(index) for index in step}) == 1 for step in zip(*ranks, strict=True))
    if world == 1:
        assert len(seen) == n


def test_order_depends_on_seed_and_epoch_only():
    first = torch.cat(list(shuffled_batches(40, 8, seed=1, epoch=3)))
    assert torch.equal(first, torch.cat(list(shuffled_batches(40, 8, seed=1, epoch=3))))
    assert not torch.equal(first, torch.cat(list(shuffled_batches(40, 8, seed=1, epoch=4))))
    assert not torch.equal(first, torch.cat(list(shuffled_batches(40, 8, seed=2, epoch=3))))


def test_ordered_batches_cover_everything():
    assert torch.cat(list(ordered_batches(10, 4))).tolist() == list(range(10))


def test_lengths_are_kept_only_where_they_matter():
    assert set(window_rows(as_windows(np.zeros((3, 1, 8))))) == {"x"}
    assert set(window_rows(as_windows([np.zeros((1, 8)), np.zeros((1, 6))]))) == {"x", "lengths"}
