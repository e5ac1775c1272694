"""The options of TransPL that go beyond the paper, one by one and together."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import TINY, make_waves
from scipy.special import log_softmax
from vote_by_hand import likelihoods_by_hand, sharpness_on_a_grid

from transpl.errors import InputError
from transpl.markov import TransitionCounts
from transpl.methods import Labelled, TransPLMethod, TransPLSettings
from transpl.methods.aligned_copies import Alignment
from transpl.methods.moments import Moments
from transpl.methods.refinement import counted_to_classes
from transpl.methods.registry import entry
from transpl.methods.transpl_settings import PLUS
from transpl.methods.vote import calibrated
from transpl.network import ChannelHead
from transpl.network.inference import class_probabilities
from transpl.training import Execution
from transpl.windows import as_windows

PAPER = TransPLSettings(**{name: value for name, value in TINY.items() if name != "device"})
ALL = replace(PAPER, **PLUS)
NEEDS_ROUNDS = ("refine_share", "temper")


def labelled(n, seed, **shift):
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 2)


TARGET = labelled(16, 2, gain=1.5).windows


@pytest.fixture(scope="module")
def fitted():
    made = TransPLMethod(PAPER, Execution(device="cpu"))
    made.fit_source(labelled(24, 0), labelled(12, 1))
    return made


@pytest.fixture
def method(fitted):
    made = TransPLMethod(ALL, Execution(device="cpu"))
    made.start_from(fitted.source)
    return made


def with_changes(method, **changes):
    method.settings = replace(method.settings, **changes)
    return method


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("copies", [False, True])
def test_the_vote_is_a_calibrated_product_of_codes_and_classifier(method, calibrate, copies):
    """Probabilities, likelihoods and sharpness by hand; views are witnesses of equal weight."""
    with_changes(method, refine_rounds=0, channel_alignment=False, calibrate=calibrate, aligned_copies=copies)
    state, network = method.state, method.state.source_network
    labels = state.held_out.labels.copy()
    labels[:2] = 1 - labels[:2]  # of windows that are all told apart any great sharpness would do
    state.held_out = state.held_out._replace(labels=labels)
    counts, (codes, opinions, _) = state.class_counts.counts, state.held_out
    log_p = np.log((counts + 0.1) / (counts.sum(axis=-1, keepdims=True) + 4 * 0.1))
    a = b = 1.0
    if calibrate:
        a = sharpness_on_a_grid(likelihoods_by_hand(codes, log_p), labels, 2 * 7)
        b = sharpness_on_a_grid(np.log(opinions), labels, 1.0)
    views = [TARGET]
    if copies:
        source = Moments.of_windows(labelled(24, 0).windows)
        views.append(Alignment.between(source, Moments.of_windows(TARGET)).copies(TARGET))
    chains = [likelihoods_by_hand(method.codes(view), log_p) for view in views]
    heads = [np.log(class_probabilities(network, view)) for view in views]
    chain, head = log_softmax(a * np.mean(chains, axis=0), axis=1), log_softmax(b * np.mean(heads, axis=0), axis=1)
    y = np.exp(log_softmax((chain + head) / 2, axis=1))
    assert method.pseudo_label(TARGET).probabilities == pytest.approx(y, abs=1e-4 if calibrate else 1e-9)


def test_neither_witness_is_sharper_than_it_may_be(method):
    """Held-out windows that are all told apart would make both as sharp as the bounds allow."""
    log_p = np.log(method.state.class_counts.probabilities("pseudocount"))
    a, b = calibrated(method.settings, log_p, method.state.held_out)
    n_channels, n_transitions = 2, 7
    assert 0 < a <= n_channels * n_transitions
    assert 0 < b <= 1


def test_without_calibration_and_classifier_nothing_is_set(method):
    log_p = np.log(method.state.class_counts.probabilities("pseudocount"))
    assert calibrated(PAPER, log_p, None) == (1.0, None)
    assert calibrated(replace(PAPER, classifier_evidence=True), log_p, None) == (1.0, 1.0)


@pytest.mark.parametrize(
    "changes",
    [{name: value} for name, value in PLUS.items() if getattr(PAPER, name) != value and name not in NEEDS_ROUNDS],
    ids=lambda changes: next(iter(changes)),
)
def test_every_option_works_alone(fitted, changes):
    method = TransPLMethod(replace(PAPER, **changes), Execution(device="cpu"))
    method.start_from(fitted.source)
    method.adapt(TARGET, mode="finetune" if "learning" in changes else "markov")
    y = method.predict_proba(TARGET)
    assert y.sum(axis=1) == pytest.approx(np.ones(16))
    plain = TransPLMethod(PAPER, Execution(device="cpu"))
    plain.start_from(fitted.source)
    plain.adapt(TARGET, mode="markov")
    assert not np.array_equal(y, plain.predict_proba(TARGET))


def test_refinement_counts_the_target_to_the_labels_it_got(method):
    with_changes(method, refine_rounds=1, refine_share=1.0)
    first = with_changes(method, refine_rounds=0).pseudo_label(TARGET).labels
    with_changes(method, refine_rounds=1).adapt(TARGET)
    counted = TransitionCounts.from_codes(method.coded(TARGET).codes, 4, first, 2).counts
    weight = method.state.refined_counts.counts.sum() / counted.sum()
    assert np.array_equal(method.state.refined_counts.counts, counted * int(weight))
    assert weight == round(10 * method.state.source_counts.counts.sum() / counted.sum())


def test_recorded_channels_and_aligned_copies_follow_the_target_each_alone(method):
    """As if there were only the ones, or only the others."""
    method.adapt(TARGET)
    both, (_, copies) = method.state.refined_counts, method.state.seen(TARGET)
    with_changes(method, aligned_copies=False).adapt(TARGET)
    assert both.of_channels(slice(0, 2)) == method.state.refined_counts
    method.adapt(copies)
    assert both.of_channels(slice(2, 4)) == method.state.refined_counts


def test_copies_that_the_source_finds_less_likely_do_not_vote(method, monkeypatch):
    monkeypatch.setattr(TransPLMethod, "keeps_copies", lambda self, chunks: False)
    method.adapt(TARGET)
    assert method.state.alignment is None
    without, labels = method.predict_proba(TARGET), method.one_shot_labels(TARGET).probabilities
    with_changes(method, aligned_copies=False).adapt(TARGET)
    np.testing.assert_array_equal(method.predict_proba(TARGET), without)
    np.testing.assert_array_equal(method.one_shot_labels(TARGET).probabilities, labels)


def test_a_target_of_one_class_is_not_stretched_to_all():
    """The calm class alone has another covariance than both classes of the source, without any shift."""

    def calm_and_lively(n, seed):
        X, y = make_waves(n, seed)
        return Labelled(as_windows(X * np.where(y == 0, 0.2, 2.0)[:, None, None]), y, 2)

    method = TransPLMethod(replace(ALL, max_epochs=6), Execution(device="cpu"))
    method.fit_source(calm_and_lively(40, 0), calm_and_lively(20, 1))
    target = calm_and_lively(40, 2)
    calm = target.windows[target.y == 0]
    method.adapt(calm)
    assert method.state.alignment is None
    assert (method.predict_proba(calm).argmax(axis=1) == 0).all()


def test_aligned_copies_undo_a_linear_change_of_the_target(method):
    """Turned and scaled channels get codes that are nothing like the source's; those of the copies are again."""
    X, _ = make_waves(40, 0)
    turned = as_windows(np.einsum("cd,ndt->nct", [[0.0, 3.0], [-3.0, 0.0]], X) + 1)
    with_changes(method, refine_rounds=0).adapt(turned)
    recorded, copies = (
        method.state.target_counts.of_channels(slice(0, 2)),
        method.state.target_counts.of_channels(slice(2, 4)),
    )
    assert method.channel_distances(copies).max() < method.channel_distances(recorded).min()


def test_a_model_without_moments_cannot_align(method):
    method.state.source_moments = None
    with pytest.raises(InputError, match=r"^aligned_copies: .* saved without moments of its source"):
        method.adapt(TARGET)


def test_refinement_ends_when_nothing_changes_any_more(method, monkeypatch):
    with_changes(method, refine_rounds=1000, refine_share=1.0)
    rounds = []

    def counted(*about):
        rounds.append(about)
        return counted_to_classes(*about)

    monkeypatch.setattr("transpl.methods.refinement.counted_to_classes", counted)
    method.adapt(TARGET)
    assert len(rounds) < 50
    labels = method.pseudo_label(TARGET).labels
    found = TransitionCounts.from_codes(method.coded(TARGET).codes, 4, labels, 2).counts
    weight = method.state.refined_counts.counts.sum() // found.sum()
    assert np.array_equal(method.state.refined_counts.counts, found * weight)  # a fixed point


def test_confidence_is_what_is_left_of_the_labels(method):
    """Labels of the unrefined vote, and confidences without tempering, from runs of their own."""
    first = with_changes(method, refine_rounds=0, temper=False).pseudo_label(TARGET).labels
    sure = with_changes(method, refine_rounds=ALL.refine_rounds).pseudo_label(TARGET)
    method = with_changes(method, temper=True)
    found = method.pseudo_label(TARGET)
    assert np.array_equal(found.labels, sure.labels)
    kept = ((first == sure.labels).sum() + 1) / (16 + 2)
    assert sure.confidence.mean() > kept
    assert found.confidence.mean() == pytest.approx(kept, abs=1e-9)
    method.adapt(TARGET)
    assert method.state.temper < 1
    assert method.state.unadapted().temper == 1


def test_labels_before_and_after_adapting_are_the_same(method):
    before = method.pseudo_label(TARGET).probabilities
    assert np.array_equal(method.one_shot_labels(TARGET).probabilities, before)
    method.adapt(TARGET)
    assert np.array_equal(method.pseudo_label(TARGET).probabilities, before)
    assert np.array_equal(method.predict_proba(TARGET), before) == (method.state.mode == "markov")


def test_order_of_target_windows_does_not_matter(method):
    order = np.random.default_rng(0).permutation(16)
    before = method.pseudo_label(TARGET).probabilities
    assert method.pseudo_label(TARGET[order]).probabilities == pytest.approx(before[order], abs=1e-6)


def test_what_a_person_said_is_counted_to_its_class(method):
    with_changes(method, refine_rounds=3, refine_share=1.0)
    method.adapt(TARGET, mode="markov")
    said = np.full(16, -1)
    said[:4] = 1 - method.pseudo_label(TARGET).labels[:4]
    method.adapt(TARGET, mode="markov", few_labels=said)
    codes = method.codes(TARGET)
    labels = np.where(said >= 0, said, method.pseudo_label(TARGET).labels)
    found = TransitionCounts.from_codes(codes, 4, labels, 2).counts
    refined = method.state.refined_counts.counts
    rows = refined.sum(axis=(1, 2, 3)) / found.sum(axis=(1, 2, 3))
    assert rows[0] == rows[1] == refined.sum() // found.sum()


def test_the_fine_tuned_network_keeps_the_source_network_and_learns_the_vote(method):
    method.adapt(TARGET, mode="finetune")
    adapted = method.state.adapted_network
    assert isinstance(adapted, ChannelHead)
    assert adapted.network is method.state.source_network
    learnt, vote = method.predict_proba(TARGET).argmax(axis=1), method.pseudo_label(TARGET).labels
    assert (learnt == vote).mean() >= 0.9
    assert method.features(TARGET).shape == (16, 2 * ALL.width)


def test_the_methods_by_name_have_one_setting_for_all_data_sets():
    for dataset in ("ucihar", "wisdm", "hhar", "ptb", "mine"):
        settings = entry("transpl-plus").settings(dataset)
        assert {name: getattr(settings, name) for name in PLUS} == PLUS
        assert (settings.sigma, settings.prior_temperature) == (0.2, 1.0)
    assert entry("transpl-plus").settings("wisdm").width == 128  # the source model is the paper's
    assert entry("transpl-plus").settings("wisdm", sigma=0.3).sigma == 0.3
    assert {field.name for field in fields(entry("transpl-plus").method.Settings)} == {f.name for f in fields(PAPER)}


def test_how_the_methods_adapt_unless_told_otherwise():
    modes = {name: entry(name).method.default_mode for name in ("transpl", "transpl-markov", "transpl-plus")}
    assert modes == {"transpl": "finetune", "transpl-markov": "markov", "transpl-plus": "markov"}
    assert entry("transpl-plus-ws").method.prior == "needed"
