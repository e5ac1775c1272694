"""What the method says of its labels gives those labels again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from conftest import TINY, make_waves

from transpl.methods import Labelled, TargetInfo, TransPLMethod, TransPLSettings
from transpl.methods.transpl.paper_explanations import explain
from transpl.nn import Execution
from transpl.windows import as_windows

SETTINGS = TransPLSettings(
    **{name: value for name, value in TINY.items() if name not in ("device", "variant")}, sigma=0.1
)
CLASSES = np.array(["run", "sit", "swim"])  # nobody swims in the source
NAMES = ("acc", "gyro")
X, _ = make_waves(16, 2, gain=1.5)
TARGET = as_windows(X)
SHORTER = as_windows([window[:, : 32 - 4 * (i % 5) - i % 3] for i, window in enumerate(X)])


def adapt(method, mode="markov", prior=None):
    method.adapt_mode = mode
    method.adapt(TARGET, TargetInfo(prior=prior))


def labelled(n, seed):
    waves, y = make_waves(n, seed)
    return Labelled(as_windows(waves), y, 3)


@pytest.fixture(scope="module")
def fitted() -> TransPLMethod:
    made = TransPLMethod(replace(SETTINGS, max_epochs=2), Execution(device="cpu"))
    made.fit_source(labelled(24, 0), labelled(12, 1))
    return made


@pytest.fixture
def method(fitted):
    """A method that a test may adapt and set otherwise."""
    made = TransPLMethod(fitted.settings, fitted.execution)
    made.state = replace(fitted.state)
    made.remember_source(*fitted.source_rows())
    return made


PRIORS = (None, np.array([0.7, 0.2, 0.1]), np.array([1.0, 0.0, 1.0]))


@pytest.mark.parametrize("target", [TARGET, SHORTER], ids=["equal", "shorter"])
@pytest.mark.parametrize("adapted", [False, True])
def test_parts_give_the_probabilities_of_pseudo_label(method, target, adapted):
    if adapted:
        adapt(method, prior=np.array([0.5, 0.4, 0.1]))
    plain = method.settings
    for smoothing, length, alignment, prior in product(
        ("floor", "additive"), ("transitions", "codes"), (True, False), PRIORS
    ):
        method.settings = replace(
            plain, smoothing=smoothing, length=length, channel_alignment=alignment, prior_temperature=1.7
        )
        e, found = explain(method, target, CLASSES, NAMES, prior), method.pseudo_label(target, prior)
        assert np.array_equal(e.probabilities, found.probabilities)
        np.testing.assert_allclose(e.votes.sum(axis=1), found.probabilities, rtol=0, atol=1e-12)
        assert np.array_equal(e.labels, CLASSES[found.labels])
        np.testing.assert_allclose(e.confidence, found.confidence, atol=1e-12)


def test_channels_that_all_shifted_away_count_alike_and_are_warned_of_once(method):
    method.settings = replace(method.settings, sigma=1e-6)
    adapt(method)
    with pytest.warns(UserWarning, match="every channel has shifted away") as said:
        e = explain(method, TARGET, CLASSES, NAMES)
    assert len(said) == 1
    assert e.shares.tolist() == [0.5, 0.5]
    assert (e.weights < 1e-6).all()
    with pytest.warns(UserWarning, match="every channel has shifted away"):
        np.testing.assert_allclose(e.probabilities, method.pseudo_label(TARGET).probabilities, atol=1e-12)
    assert "every channel has shifted away, so all count alike" in e.sentence(0)


@pytest.mark.parametrize("mode", ["source", "markov", "finetune"])
def test_answers_are_those_of_predict_proba(method, mode):
    if mode != "source":
        adapt(method, mode, np.array([0.5, 0.4, 0.1]))
    e = explain(method, TARGET, CLASSES, NAMES, np.array([0.1, 0.8, 0.1]))
    assert e.mode == mode
    np.testing.assert_allclose(e.answers, method.predict_proba(TARGET), atol=1e-12)


def test_weights_and_distances_are_those_of_the_target(method):
    adapt(method)
    e = explain(method, TARGET[:4], CLASSES, NAMES)
    counts = method.state.target_counts
    assert np.array_equal(e.distances, method.channel_distances(counts))
    assert np.array_equal(e.weights, method.channel_weights(counts))
    assert e.shares.sum() == pytest.approx(1)


def test_signals_end_where_the_window_does(method):
    e = explain(method, SHORTER, CLASSES, NAMES)
    assert np.array_equal(np.isfinite(e.signals[:, 0]).sum(axis=1), SHORTER.lengths)
    assert np.array_equal(explain(method, TARGET, CLASSES, NAMES).signals, X)


def test_nearest_windows_are_of_the_source(method):
    source, _ = method.source_rows()
    e = explain(method, source.windows, CLASSES, NAMES, nearest=2)
    assert (e.nearest.distances[:, 0] == 0).all()
    codes = method.codes(source.windows)
    assert all(np.array_equal(codes[row], codes[i]) for i, row in enumerate(e.nearest.rows[:, 0]))
    assert np.array_equal(e.nearest.labels, CLASSES[source.y[e.nearest.rows]])
    assert explain(method, TARGET, CLASSES, NAMES, nearest=0).nearest is None


def test_explaining_changes_nothing(method):
    adapt(method, prior=np.array([0.5, 0.4, 0.1]))
    before = method.predict_proba(TARGET)
    e = explain(method, TARGET, CLASSES, NAMES)
    e.prior[:] = 0
    e.log_probabilities[:] = 0
    assert np.array_equal(method.predict_proba(TARGET), before)


def test_what_shifted_is_what_the_method_weighs_by(method):
    adapt(method)
    report, counts = method.shift_report(CLASSES, NAMES), method.state.target_counts
    np.testing.assert_allclose(report.distances, method.channel_distances(counts), atol=1e-15)
    np.testing.assert_allclose(report.weights, method.channel_weights(counts), atol=1e-15)
    assert report.source_shares.tolist() == [0.5, 0.5, 0.0]
    assert report.target_shares is None
    method.settings = replace(method.settings, channel_alignment=False)
    assert method.shift_report(CLASSES, NAMES).weights.tolist() == [1.0, 1.0]


def test_a_shift_between_smoothed_counts(method):
    method.settings = replace(method.settings, smoothing="pseudocount")
    adapt(method)
    report = method.shift_report(CLASSES, NAMES)
    np.testing.assert_allclose(report.distances, method.channel_distances(method.state.target_counts), atol=1e-15)
    p, q = (
        counts.probabilities("pseudocount")
        for counts in (method.state.class_counts.pooled(), method.state.target_counts)
    )
    assert (report.row_distances[(p != q).any(axis=-1)] > 0).all()
    assert len(report.transitions()) > 0


def test_class_proportions_of_the_target_are_the_mean_vote_of_the_windows_that_were_labelled(method):
    method.adapt(TARGET)
    expected = method.pseudo_label(TARGET).probabilities.mean(axis=0)
    np.testing.assert_allclose(method.shift_report(CLASSES, NAMES).target_shares, expected, atol=1e-12)
    method.add_target(TARGET)
    assert method.shift_report(CLASSES, NAMES).target_shares is None


def test_a_model_of_old_has_no_neighbours_and_takes_class_shares_from_its_counts(method):
    method.state.source_codes = None
    adapt(method)
    assert explain(method, TARGET, CLASSES, NAMES).nearest is None
    assert method.shift_report(CLASSES, NAMES).source_shares.tolist() == [0.5, 0.5, 0.0]
