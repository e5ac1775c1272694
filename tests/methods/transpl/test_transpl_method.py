"""The method on arrays; the estimator's tests cover the rest."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL, markov
from transpl._utils.errors import InputError
from transpl.methods import Labelled, TargetInfo, TransPLMethod, TransPLSettings
from transpl.nn import Execution
from transpl.windows import as_windows

SETTINGS = TransPLSettings(**{name: value for name, value in TINY.items() if name not in ("device", "variant")})


def labelled(n, seed, **shift):
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 3)


@pytest.fixture
def method() -> TransPLMethod:
    made = TransPLMethod(SETTINGS, Execution(device="cpu"))
    made.fit_source(labelled(24, 0), labelled(12, 1))
    return made


TARGET = labelled(16, 2, gain=1.5).windows


def adapt(method, target, mode, info=None):
    method.adapt_mode = mode
    method.adapt(target, info)


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
    adapt(method, TARGET, "markov")
    before = method.pseudo_label(TARGET).probabilities
    turned = as_windows(TARGET.values[:, ::-1])
    method.state.class_counts = markov.TransitionCounts(method.state.class_counts.counts[:, ::-1])
    adapt(method, turned, "markov")
    assert np.allclose(method.pseudo_label(turned).probabilities, before, atol=1e-12)


def test_order_of_target_windows_does_not_change_the_markov_labels(method):
    order = np.random.default_rng(0).permutation(16)
    adapt(method, TARGET, "markov")
    before = method.pseudo_label(TARGET).probabilities
    adapt(method, TARGET[order], "markov")
    assert np.allclose(method.pseudo_label(TARGET[order]).probabilities, before[order], atol=1e-12)


# chunks


@pytest.fixture
def passes(method, monkeypatch):
    """How many windows each pass of the encoder saw; chunks are of three windows."""
    seen, codes = [], method.codes
    monkeypatch.setattr("transpl.methods.transpl.transpl_method.CHUNK", 3)
    monkeypatch.setattr(method, "codes", lambda windows: seen.append(len(windows)) or codes(windows))
    return seen


@pytest.mark.parametrize("adapted", [False, True])
def test_chunks_change_neither_counts_nor_labels(method, monkeypatch, adapted):
    found = []
    for size in (4096, 5):
        monkeypatch.setattr("transpl.methods.transpl.transpl_method.CHUNK", size)
        if adapted:
            adapt(method, TARGET, "markov")
            method.add_target(TARGET)
        found.append((method.state.target_counts, *method.pseudo_label(TARGET)))
    for whole, pieces in zip(*found, strict=True):
        assert whole == pieces if whole is None else np.array_equal(whole, pieces) or whole == pieces


def test_adapting_without_training_costs_one_pass_of_the_encoder_and_counts_nothing_else(method, passes, monkeypatch):
    monkeypatch.setattr(method, "vote", lambda *_: pytest.fail("no label is needed"))
    adapt(method, TARGET, "markov")
    assert passes == [3, 3, 3, 3, 3, 1]


def test_windows_that_are_themselves_the_target_are_encoded_once(method, passes):
    method.pseudo_label(TARGET)
    assert sum(passes) == 16


def test_fine_tuning_encodes_the_target_once(method, passes):
    method.adapt(TARGET)
    assert sum(passes) == 16


def test_channels_that_all_shifted_away_are_said_once(method, passes):
    method.settings = replace(SETTINGS, sigma=1e-3)
    adapt(method, TARGET, "markov")
    with pytest.warns(UserWarning, match="every channel has shifted away") as said:
        method.predict_proba(TARGET)
    assert len(said) == 1


def test_a_memory_mapped_target_is_adapted_to_like_an_array(method, tmp_path):
    np.save(tmp_path / "X.npy", TARGET.values.astype(np.float64))
    mapped = as_windows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    for mode in ("markov", "finetune"):
        found = []
        for target in (TARGET, mapped):
            adapt(method, target, mode)
            found.append(method.predict_proba(target))
        assert np.array_equal(*found)


def test_unfitted_method_says_so():
    with pytest.raises(InputError, match="not fitted"):
        TransPLMethod(SETTINGS, Execution(device="cpu")).pseudo_label(TARGET)


def test_settings_default_to_the_paper():
    assert TransPLSettings().network(6).patch_length == 8
    assert (TransPLSettings().source_loop().patience, TransPLSettings().adapt_loop().patience) == (2, 5)
    assert (TransPLSettings().source_loop().warmup_steps, TransPLSettings().adapt_loop().warmup_steps) == (0, 50)


# made of parameters, streamed to, saved


def params(**changes):
    return TransPL(**{**TINY, **changes}).plain_params(0)


def test_parameters_become_settings_and_execution():
    made = TransPLMethod.from_params(params(sigma=0.3, n_threads=2, checkpoint_dir="here", verbose=True))
    assert (made.settings.sigma, made.settings.smoothing, made.settings.random_state) == (0.3, "floor", 0)
    assert (made.execution.n_threads, str(made.execution.checkpoint_dir), made.execution.progress) == (2, "here", True)
    with refusal("sigma"):
        TransPLMethod.from_params(params(sigma=0))


def test_other_parameters_are_taken_unless_the_network_would_be_another(method):
    assert method.with_params(params(sigma=0.7)).settings.sigma == 0.7
    assert method.settings.sigma == 0.2
    with refusal("set_params", "Call fit again"):
        method.with_params(params(width=32))


def test_the_source_model_is_decided_by_its_own_settings_alone():
    of = {name: TransPLMethod.from_params(params(**{name: 0.4})).source_settings() for name in ("sigma", "dropout")}
    assert of["sigma"] == TransPLMethod.from_params(params()).source_settings() != of["dropout"]


def test_a_target_that_comes_in_parts_is_labelled_as_one_that_is_adapted_to(method):
    stream = method.new_target()
    parts = [stream.encode(part) for _, part in TARGET.chunks(5)]
    shape, dtype = stream.row(*TARGET.values.shape[1:])
    assert {part.shape[1:] for part in parts} == {shape}
    assert {part.dtype for part in parts} == {dtype}
    counts = stream.adapt(parts, len(TARGET))
    assert method.target_counts is None, "the model itself stays as it is"
    adapt(method, TARGET, "markov")
    assert counts == method.target_counts
    found = np.concatenate([stream.probabilities(part) for part in parts])
    assert np.array_equal(found, method.predict_proba(TARGET))


def test_what_is_unadapted_goes_its_own_way(method):
    before = method.fingerprint()
    other = method.unadapted()
    adapt(other, TARGET, "markov")
    assert (method.mode, other.mode) == ("source", "markov")
    assert method.fingerprint() == before == other.unadapted().fingerprint() != other.fingerprint()


@pytest.mark.parametrize("mode", ["markov", "finetune"])
def test_facts_and_arrays_are_all_that_was_learnt(method, mode):
    few = np.full(len(TARGET), -1)
    few[3] = 1
    adapt(method, TARGET, mode, TargetInfo(np.array([0.4, 0.6, 0.0]), few))
    again = TransPLMethod.from_params(params())
    again.restore(json.loads(json.dumps(method.facts())), method.arrays())
    assert again.fingerprint() == method.fingerprint()
    assert np.array_equal(again.predict_proba(TARGET), method.predict_proba(TARGET))
    assert again.class_counts == method.class_counts != again.source_counts
    assert (again.history, again.seconds, again.mode) == (method.history, method.seconds, mode)
    assert not again.holds_source_rows


def test_what_lacks_a_part_cannot_be_restored(method):
    arrays = method.arrays()
    del arrays["counts.class"]
    with refusal("counts.class"):
        TransPLMethod.from_params(params()).restore(method.facts(), arrays)
