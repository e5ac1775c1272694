"""The small CNN on the council: adapted where the view is, and kept with everything else."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_source import TARGET, source_model, waves

from transpl.council import Council, CouncilSettings
from transpl.methods import network_witnesses

SETTINGS = CouncilSettings(witnesses=("conv", "linear"), views=("recorded", "standardised"))


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(network_witnesses, "EPOCHS", 5)
    return source_model().source


def test_statistics_are_the_targets_but_for_the_recorded_view(source):
    council = Council(SETTINGS).learn(source)
    council.adapt(source, TARGET)
    adapted = {seat.view: seat.adapted is not seat.witness for seat in council.seats if seat.name == "conv"}
    assert adapted == {"recorded": False, "standardised": True}


def test_a_council_with_it_comes_back_as_it_was(source):
    council = Council(SETTINGS).learn(source)
    before = council.predict(TARGET).probabilities
    council.adapt(source, TARGET)
    test = waves(8, 5, gain=1.5, offset=0.3).windows
    again = Council(SETTINGS).restore(council.facts(), council.arrays())
    assert np.array_equal(again.predict(test).probabilities, council.predict(test).probabilities)
    assert np.array_equal(again.unadapted().predict(TARGET).probabilities, before)
    assert np.array_equal(council.unadapted().predict(TARGET).probabilities, before)


def test_adapting_twice_is_adapting_to_the_last_target(source):
    council, once = Council(SETTINGS).learn(source), Council(SETTINGS).learn(source)
    council.adapt(source, waves(12, 7, gain=4.0).windows)
    council.adapt(source, TARGET)
    once.adapt(source, TARGET)
    assert np.array_equal(council.predict(TARGET).probabilities, once.predict(TARGET).probabilities)
