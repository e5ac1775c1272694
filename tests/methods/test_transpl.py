"""The method on arrays; the estimator's tests cover the rest."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import TINY, make_waves

from transpl import markov
from transpl.errors import InputError
from transpl.methods import Labelled, Method, TransPLMethod, TransPLSettings
from transpl.training import Execution
from transpl.windows import as_windows

SETTINGS = TransPLSettings(**{name: value for name, value in TINY.items() if name != "device"})


def labelled(n, seed, **shift):
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y)


@pytest.fixture
def method() -> Method:
    made = TransPLMethod(SETTINGS, Execution(device="cpu"))
    made.fit_source(labelled(24, 0), labelled(12, 1), n_classes=3)
    return made


TARGET = labelled(16, 2, gain=1.5).windows


def test_pseudo_labels_are_the_papers_equations_on_the_networks_codes(method):
    codes = method.codes(TARGET)
    counts = markov.TransitionCounts.from_codes(codes, 4)
    distances = markov.channel_distances(
        method.state.class_counts.pooled(), counts, markov.transport_cost(method.codebook)
    )
    y = markov.label_probabilities(
        markov.log_likelihoods(codes, method.state.class_counts), markov.channel_weights(distances, 0.2)
    )
    found = method.pseudo_label(TARGET)
    assert np.array_equal(found.probabilities, y)
    assert np.array_equal(found.labels, y.argmax(axis=1))


def test_a_class_without_source_rows_gets_probability_zero(method):
    """Three classes are declared, two occur."""
    assert (method.pseudo_label(TARGET).probabilities[:, 2] == 0).all()
    assert np.isfinite(method.pseudo_label(TARGET, np.array([0.2, 0.2, 0.6])).probabilities).all()


def test_counts_cover_every_source_row(method):
    assert method.state.class_counts.counts.sum(axis=(2, 3)).tolist() == [[84, 84], [84, 84], [0, 0]]


def test_identical_target_gives_distance_zero_and_weight_one(method):
    counts = method.state.class_counts.pooled()
    assert method.channel_distances(counts).tolist() == [0.0, 0.0]
    assert method.channel_weights(counts).tolist() == [1.0, 1.0]


def test_channel_order_does_not_change_the_markov_labels(method):
    method.adapt(TARGET, mode="markov")
    before = method.pseudo_label(TARGET).probabilities
    turned = as_windows(TARGET.values[:, ::-1])
    method.state.class_counts = markov.TransitionCounts(method.state.class_counts.counts[:, ::-1])
    method.adapt(turned, mode="markov")
    assert np.allclose(method.pseudo_label(turned).probabilities, before, atol=1e-12)


def test_order_of_target_windows_does_not_change_the_markov_labels(method):
    order = np.random.default_rng(0).permutation(16)
    method.adapt(TARGET, mode="markov")
    before = method.pseudo_label(TARGET).probabilities
    method.adapt(TARGET[order], mode="markov")
    assert np.allclose(method.pseudo_label(TARGET[order]).probabilities, before[order], atol=1e-12)


def test_unfitted_method_says_so():
    with pytest.raises(InputError, match="not fitted"):
        TransPLMethod(SETTINGS, Execution(device="cpu")).pseudo_label(TARGET)


def test_settings_default_to_the_paper():
    assert TransPLSettings().network(6).patch_length == 8
    assert (TransPLSettings().source_loop().patience, TransPLSettings().adapt_loop().patience) == (2, 5)
    assert (TransPLSettings().source_loop().warmup_steps, TransPLSettings().adapt_loop().warmup_steps) == (0, 50)
