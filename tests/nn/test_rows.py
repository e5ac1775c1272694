from fractions import Fraction

import numpy as np
import torch
from conftest import make_waves
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.nn.rows import (
    Paired,
    epoch_batches,
    floor_share,
    labelled_rows,
    map_parts,
    n_batches,
    ordered_batches,
    parts,
    shuffled_batches,
    split_domains,
    window_rows,
)
from transpl.windows import Labelled, as_windows


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


def numbered(n: int) -> dict:
    return {"x": torch.arange(n), "y": -torch.arange(n)}


@given(n_source=st.integers(1, 40), n_target=st.integers(1, 40), size=st.integers(1, 12))
@settings(deadline=None)
def test_paired_batches_pass_over_the_longer_and_start_the_shorter_again(n_source, n_target, size):
    data = Paired(numbered(n_source), numbered(n_target))
    batches = [split_domains(batch) for batch in epoch_batches(data, size, seed=3, epoch=2)]
    assert len(batches) == n_batches(data, size) == -(-max(n_source, n_target) // size)
    assert all(torch.equal(rows["y"], -rows["x"]) for batch in batches for rows in batch)
    for n, domain in ((n_source, 0), (n_target, 1)):
        seen = torch.cat([batch[domain]["x"] for batch in batches]).tolist()
        assert sorted(seen[:n]) == list(range(n)), "one whole pass before the next"
        assert all(len(batch[domain]["x"]) >= 1 for batch in batches)


def test_the_sources_first_pass_is_that_of_training_on_it_alone():
    alone = [batch["x"].tolist() for batch in epoch_batches(numbered(20), 8, seed=5, epoch=1)]
    paired = Paired(numbered(20), numbered(50))
    side_by_side = [split_domains(batch).source["x"].tolist() for batch in epoch_batches(paired, 8, seed=5, epoch=1)]
    assert side_by_side[:3] == alone
    assert side_by_side[3:6] != alone, "a second pass has an order of its own"


def test_parts_of_data_and_what_is_done_to_each():
    paired = Paired(numbered(2), numbered(3))
    assert parts(paired) == [paired.source, paired.target]
    assert [rows["x"].tolist() for rows in parts(map_parts(lambda tensor: tensor + 1, paired))] == [[1, 2], [1, 2, 3]]
    assert map_parts(lambda tensor: tensor + 1, numbered(2))["x"].tolist() == [1, 2]


def test_labelled_windows_become_rows():
    X, y = make_waves(6, 0)
    rows = labelled_rows(Labelled(as_windows(X), y, 2))
    assert rows.keys() == {"x", "y"}
    assert torch.equal(rows["x"], torch.from_numpy(X))
    assert rows["y"].tolist() == y.tolist()
    shorter = labelled_rows(Labelled(as_windows([X[0], X[1][:, :8]]), y[:2], 2))
    assert shorter["lengths"].tolist() == [32, 8]


def test_a_share_counts_as_the_decimal_number_that_is_written():
    assert int(0.7 * 90) == 62
    assert floor_share(0.7, 90) == 63
    assert [floor_share(1.0, n) for n in (0, 1, 7, 10**9)] == [0, 1, 7, 10**9]
    assert all(floor_share(share, n) == int(share * n) for share in (0.0, 0.2, 0.5) for n in range(2000))


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 10**9))
def test_a_share_that_is_a_fraction_is_exact(part, whole, n):
    part = min(part, whole)
    assert floor_share(part / whole, n) == Fraction(part, whole) * n // 1
