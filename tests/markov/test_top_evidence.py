"""What is named as evidence is what decided."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import made_up


def test_transitions_are_named_in_the_order_of_their_part():
    e = made_up()
    found, parts = e.top_evidence(2, n=4), e.contributions(2)
    flat = np.sort(parts.transitions.ravel())
    assert [t.contribution for t in found.transitions_for] == flat[::-1][:4].tolist()
    assert [t.contribution for t in found.transitions_against] == flat[:4].tolist()
    assert found.margin == parts.margin
    assert (found.window, found.label, found.against) == (102, parts.label, parts.against)
    assert found.probability == pytest.approx(e.probabilities[2].max())


def test_a_transition_says_where_it_is_and_what_it_is():
    e = made_up()
    parts = e.contributions(2)
    for t in e.top_evidence(2).transitions_for:
        d = e.channel_names.index(t.channel)
        assert (t.from_code, t.to_code) == tuple(e.codes[2, d, t.position : t.position + 2])
        assert (t.first_step, t.last_step) == (8 * t.position, 8 * t.position + 15)
        assert t.contribution == parts.transitions[d, t.position]
        assert t.log_odds == parts.log_odds[d, t.position]


def test_channels_on_both_sides_add_up_to_the_margin():
    e = made_up()
    for window in range(len(e)):
        found = e.top_evidence(window)
        channels = (*found.channels_for, *found.channels_against)
        assert sum(channel.contribution for channel in channels) == pytest.approx(found.margin, abs=1e-12)
        assert all(channel.contribution > 0 for channel in found.channels_for)
        assert all(channel.contribution < 0 for channel in found.channels_against)
        for channel in channels:
            assert channel.contribution == pytest.approx(channel.share * (channel.for_label - channel.for_against))


def test_patches_behind_the_end_are_no_evidence():
    e = made_up(ragged=True)
    for window in range(len(e)):
        end = int((e.codes[window, 0] >= 0).sum())
        found = e.top_evidence(window, n=100)
        assert all(t.position < end - 1 for t in (*found.transitions_for, *found.transitions_against))


def test_tables_have_a_row_per_name_and_a_side():
    found = made_up().top_evidence(0, n=2)
    table, channels = found.table(), found.channel_table()
    assert table["side"].tolist() == ["for", "for", "against", "against"]
    assert table.columns.tolist() == [
        "side",
        "channel",
        "position",
        "first_step",
        "last_step",
        "from_code",
        "to_code",
        "log_odds",
        "contribution",
    ]
    assert channels["contribution"].sum() == pytest.approx(found.margin)
    assert len(channels) == 4


def test_an_empty_table_keeps_its_columns():
    table = made_up().top_evidence(0, n=0).table()
    assert len(table) == 0
    assert "log_odds" in table


def test_of_equal_parts_the_first_is_named_first():
    e = made_up(codes=np.zeros((12, 4, 5), np.int8), weights=(1.0, 1.0, 1.0, 1.0))
    table = np.tile(e.log_probabilities[:, :1], (1, 4, 1, 1))
    found = made_up(codes=e.codes, log_probabilities=table, weights=(1.0, 1.0, 1.0, 1.0)).top_evidence(0, n=5)
    named = [(t.channel, t.position) for t in found.transitions_for]
    assert named == [("acc_x", 0), ("acc_x", 1), ("acc_x", 2), ("acc_x", 3), ("acc_y", 0)]


def test_a_number_of_transitions_that_is_none_is_refused():
    with refusal("n"):
        made_up().top_evidence(0, n=-1)
