"""TransPL as a scikit-learn classifier."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from transpl import PseudoLabels, TransPL
from transpl.markov import TransitionCounts

# A window needs two patches. scikit-learn's checks bring tables of a few columns: one channel, one step a patch.
FOR_TABLES = TransPL(
    **{**TINY, "patch_length": 1, "max_epochs": 10, "source_lr": 1e-2, "dropout": 0.0, "source_patience": 10}
)
# None is expected to fail. What 3-D input cannot satisfy is met by reading a table as windows of one channel.
CANNOT_HOLD: dict[str, str] = {}


@parametrize_with_checks([FOR_TABLES], expected_failed_checks=lambda estimator: CANNOT_HOLD)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.fixture(scope="module")
def source():
    X, y = make_waves(40, seed=0, n_classes=3)
    return X, np.array(["run", "sit", "walk"])[y]


@pytest.fixture(scope="module")
def target():
    X, y = make_waves(30, seed=1, n_classes=3, gain=1.5, offset=0.3)
    return X, np.array(["run", "sit", "walk"])[y]


@pytest.fixture(scope="module")
def fitted(source):
    return TransPL(**TINY).fit(*source)


@pytest.fixture
def model(fitted):
    """A fitted model that a test may adapt: its own copy."""
    import copy

    return copy.deepcopy(fitted)


def test_clone_keeps_parameters_and_forgets_the_fit(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert is_classifier(copy)


def test_whole_path_with_text_labels(model, source, target):
    assert model.classes_.tolist() == ["run", "sit", "walk"]
    assert model.mode_ == "source"
    model.adapt(target[0])
    assert model.mode_ == "finetune"
    assert set(model.predict(target[0])) <= set(model.classes_)
    p = model.predict_proba(target[0])
    assert p.shape == (30, 3)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.array_equal(model.predict(target[0]), model.classes_[p.argmax(axis=1)])
    assert {"source", "adapt"} == set(model.history_)


def test_fitted_attributes_of_the_design(model, target):
    model.adapt(target[0], mode="markov")
    assert model.codebook_.shape == (4, 16)
    assert model.class_counts_.counts.shape == (3, 2, 4, 4)
    assert model.source_counts_ == model.class_counts_.pooled()
    assert model.target_counts_.counts.shape == (2, 4, 4)
    assert model.target_counts_.counts.sum() == 30 * 2 * 7
    assert model.channel_distances_.shape == model.channel_weights_.shape == (2,)
    assert np.allclose(model.channel_weights_, np.exp(-((model.channel_distances_ / model.sigma) ** 2)))
    assert model.codebook_usage_["coarse"].counts.sum() == model.codebook_usage_["fine"].counts.sum()


def test_attributes_of_the_target_wait_for_it(fitted):
    for name in ("target_counts_", "channel_distances_", "channel_weights_"):
        assert not hasattr(fitted, name)
    assert not hasattr(TransPL(), "codebook_")


def test_unfitted_model_says_so():
    for call in ("predict", "predict_proba", "adapt", "partial_adapt", "pseudo_label", "explain"):
        with pytest.raises(NotFittedError):
            getattr(TransPL(), call)(np.zeros((2, 1, 16)))


def test_markov_mode_predicts_the_pseudo_labels(model, target):
    model.adapt(target[0], mode="markov")
    labels = model.pseudo_label(target[0])
    assert isinstance(labels, PseudoLabels)
    assert np.array_equal(model.predict(target[0]), labels.labels)
    assert np.array_equal(labels.confidence, labels.probabilities.max(axis=1))
    assert "adapt" not in model.history_


def test_labels_before_adaptation_are_those_of_adaptation(model, target):
    before = model.pseudo_label(target[0])
    after = model.adapt(target[0]).pseudo_label(target[0])
    assert np.array_equal(before.probabilities, after.probabilities)


def test_adapting_twice_starts_from_the_source_again(model, target):
    once = model.adapt(target[0]).predict_proba(target[0])
    model.adapt(target[0][:10] + 1)
    assert np.array_equal(model.adapt(target[0]).predict_proba(target[0]), once)


def test_batches_in_any_order_count_like_the_whole(model, target):
    whole = TransitionCounts(model.adapt(target[0], mode="markov").target_counts_.counts)
    p = model.predict_proba(target[0])
    model.method_.state.target_counts, model.method_.state.mode = None, "source"
    for rows in (slice(20, 30), slice(0, 7), slice(7, 20)):
        model.partial_adapt(target[0][rows])
    assert model.mode_ == "markov"
    assert model.target_counts_ == whole
    assert np.array_equal(model.predict_proba(target[0]), p)


def test_partial_adapt_only_adds_counts(model, target):
    model.adapt(target[0])
    before = model.predict_proba(target[0])
    counts = model.target_counts_
    model.partial_adapt(target[0][:5])
    assert model.target_counts_ == counts + TransitionCounts.from_codes(model.method_.codes(_windows(target[0][:5])), 4)
    assert np.array_equal(model.predict_proba(target[0]), before)


def _windows(X):
    from transpl.windows import as_windows

    return as_windows(X)


def test_sample_domain_does_both_phases_and_ignores_target_labels(source, target):
    X = np.concatenate([source[0], target[0]])
    domain = np.r_[np.full(40, 1), np.full(30, -2)]
    two_steps = TransPL(**TINY).fit(*source).adapt(target[0])
    for hidden in (target[1], np.full(30, "poison"), np.full(30, "run")):
        model = TransPL(**TINY).fit(X, np.concatenate([source[1], hidden]), sample_domain=domain)
        assert model.classes_.tolist() == ["run", "sit", "walk"]
        assert np.array_equal(model.predict_proba(target[0]), two_steps.predict_proba(target[0]))


def test_masked_target_labels_of_other_types_work(source, target):
    X = np.concatenate([source[0], target[0]])
    y = np.r_[np.unique(source[1], return_inverse=True)[1].astype(float), np.full(30, np.nan)]
    model = TransPL(**TINY).fit(X, y, sample_domain=np.r_[np.zeros(40, int), np.full(30, -1)])
    assert model.classes_.tolist() == [0.0, 1.0, 2.0]


def test_validation_rows_can_be_given(source, target):
    model = TransPL(**TINY).fit(*source, X_val=source[0][:12], y_val=source[1][:12])
    assert model.class_counts_.counts.sum() == 40 * 2 * 7


def test_without_validation_rows_a_stratified_share_is_held_out(fitted):
    per_class = fitted.class_counts_.counts.sum(axis=(1, 2, 3)) / (2 * 7)
    assert per_class.tolist() == [10, 9, 9]  # 70 % of 14, 13, 13


def test_class_absent_in_the_target_works(model, target):
    X, y = target[0][target[1] != "sit"], target[1][target[1] != "sit"]
    model.adapt(X)
    assert model.predict_proba(X).shape == (len(y), 3)


def test_one_target_window_works(model, target):
    assert model.adapt(target[0][:1]).predict(target[0]).shape == (30,)


def test_prior_by_name_and_by_position_agree_and_rule_out_classes(model, target):
    by_name = model.pseudo_label(target[0], prior={"run": 0.5, "walk": 0.5})
    by_position = model.pseudo_label(target[0], prior=[0.5, 0.0, 0.5])
    assert np.array_equal(by_name.probabilities, by_position.probabilities)
    assert "sit" not in by_name.labels
    model.adapt(target[0], prior={"run": 1.0}, mode="markov")
    assert set(model.predict(target[0])) == {"run"}


def test_callers_arrays_are_unchanged(source, target):
    arrays = [source[0].copy(), source[1].copy(), target[0].copy(), np.array([0.2, 0.3, 0.5])]
    twins = [array.copy() for array in arrays]
    model = TransPL(**TINY).fit(arrays[0], arrays[1])
    model.adapt(arrays[2], prior=arrays[3])
    model.predict_proba(arrays[2])
    model.partial_adapt(arrays[2])
    model.pseudo_label(arrays[2], prior=arrays[3])
    assert all(np.array_equal(a, b) for a, b in zip(arrays, twins, strict=True))


def test_read_only_and_non_contiguous_input_works(fitted, target):
    X = np.asfortranarray(target[0])
    X.setflags(write=False)
    assert np.array_equal(fitted.predict(X), fitted.predict(target[0]))


def test_same_seed_same_numbers(source, target):
    a, b = (TransPL(**TINY).fit(*source).adapt(target[0]).predict_proba(target[0]) for _ in range(2))
    assert np.array_equal(a, b)
    other = TransPL(**{**TINY, "random_state": 1}).fit(*source).adapt(target[0]).predict_proba(target[0])
    assert not np.array_equal(a, other)


def test_class_names_do_not_change_the_numbers(source, target):
    """Renaming classes so that their order turns round permutes the columns of the Markov posterior."""
    renamed = np.array([{"run": "c", "sit": "b", "walk": "a"}[label] for label in source[1]])
    validation = {"X_val": source[0]}
    a = TransPL(**TINY).fit(*source, **validation, y_val=source[1])
    b = TransPL(**TINY).fit(source[0], renamed, **validation, y_val=renamed)
    b.method_.state.source_network = a.method_.state.source_network
    b.method_.state.class_counts = TransitionCounts(a.class_counts_.counts[::-1])
    assert np.allclose(a.pseudo_label(target[0]).probabilities, b.pseudo_label(target[0]).probabilities[:, ::-1])


def test_windows_of_unequal_length(source):
    X = [window[:, : 20 + 4 * (i % 4)] for i, window in enumerate(source[0])]
    model = TransPL(**TINY).fit(X, source[1])
    model.adapt([window[:, :24] for window in X])
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba([window]) for window in X])
    assert np.allclose(together, alone, atol=1e-5)


def test_a_tail_that_fills_no_patch_is_said_once(source):
    with pytest.warns(
        UserWarning, match=r"X: the last time steps of a window \(up to 2\) fill no patch of 4"
    ) as caught:
        model = TransPL(**TINY).fit(source[0][:, :, :30], source[1])
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=r"X_target: .*\(up to 3\)"):
        model.adapt([window[:, :27] for window in source[0]], mode="markov")


def test_single_codebook(source, target):
    model = TransPL(**{**TINY, "n_fine": 0}).fit(*source).adapt(target[0])
    assert set(model.codebook_usage_) == {"coarse"}


def test_all_switches_run(source, target):
    switches = {
        "smoothing": "additive",
        "length": "codes",
        "confidence": "kl",
        "channel_alignment": False,
        "residual": "raw",
        "cls_trainable": True,
        "adapt_stopping": "labels",
    }
    model = TransPL(**TINY, **switches).fit(*source).adapt(target[0], mode="markov")
    assert model.channel_weights_.tolist() == [1.0, 1.0]
    assert model.score(*target) > 0


def test_pipeline_and_cross_validation(source):
    pipeline = make_pipeline(FunctionTransformer(lambda X: X * 2), TransPL(**TINY))
    assert len(cross_val_score(pipeline, *source, cv=2)) == 2
    search = GridSearchCV(TransPL(**TINY), {"n_coarse": [3, 4]}, cv=2).fit(*source)
    assert search.best_params_["n_coarse"] in (3, 4)


def test_learns_an_easy_problem():
    X, y = make_waves(120, seed=0)
    model = TransPL(**{**TINY, "max_epochs": 40, "source_lr": 3e-3, "dropout": 0.1}).fit(X, y)
    X_new, y_new = make_waves(60, seed=9)
    assert model.score(X_new, y_new) > 0.9
    assert (model.pseudo_label(X_new).labels == y_new).mean() > 0.9


def test_interrupted_fit_and_adapt_resume(source, target, tmp_path):
    saving = {**TINY, "checkpoint_dir": tmp_path}
    first = TransPL(**saving).fit(*source).adapt(target[0])
    again = TransPL(**saving).fit(*source).adapt(target[0])
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["adapt", "source"]
    assert np.array_equal(first.predict_proba(target[0]), again.predict_proba(target[0]))


def test_adaptation_that_is_cut_off_resumes_bit_for_bit(source, target, tmp_path, monkeypatch):
    from transpl.nn.objectives import AdaptationObjective

    straight = TransPL(**TINY).fit(*source).adapt(target[0])
    forward, calls = AdaptationObjective.forward, []

    def cut_off(self, batch):
        calls.append(1)
        if len(calls) > 6:  # in the third epoch: a checkpoint exists, the next is not due
            raise KeyboardInterrupt
        return forward(self, batch)

    monkeypatch.setattr(AdaptationObjective, "forward", cut_off)
    model = TransPL(**TINY, checkpoint_dir=tmp_path).fit(*source)
    with pytest.raises(KeyboardInterrupt):
        model.adapt(target[0])
    assert model.mode_ == "source"
    monkeypatch.setattr(AdaptationObjective, "forward", forward)
    model.adapt(target[0])
    assert model.history_ == straight.history_
    assert np.array_equal(model.predict_proba(target[0]), straight.predict_proba(target[0]))


@pytest.fixture(scope="module")
def checkpoints(source, target, tmp_path_factory):
    """A folder with the checkpoints of the usual settings."""
    folder = tmp_path_factory.mktemp("checkpoints")
    TransPL(**TINY, checkpoint_dir=folder).fit(*source).adapt(target[0])
    return folder


@pytest.mark.parametrize(
    "change",
    [{"top_ratio": 0.1}, {"dropout": 0.0}, {"commitment": 1.0}, {"adapt_lr": 1e-2}, {"weight_decay": 0.5}],
    ids=str,
)
def test_a_checkpoint_never_serves_other_settings(source, target, checkpoints, change):
    fresh = TransPL(**{**TINY, **change}).fit(*source).adapt(target[0])
    beside = TransPL(**{**TINY, **change}, checkpoint_dir=checkpoints).fit(*source).adapt(target[0])
    assert np.array_equal(fresh.predict_proba(target[0]), beside.predict_proba(target[0]))


def test_one_checkpoint_folder_serves_many_fits(source, target, tmp_path):
    model = TransPL(**TINY, checkpoint_dir=tmp_path)
    assert len(cross_val_score(model, *source, cv=2)) == 2
    model.fit(*source).adapt(target[0]).adapt(target[0][:10])


def test_a_refused_or_failed_fit_leaves_the_model_as_it_was(model, source, target):
    before = model.predict(target[0])
    other = np.where(source[1] == "run", "x", "y")
    with pytest.raises(ValueError, match="both or neither"):
        model.fit(source[0], other, X_val=source[0])
    with pytest.raises(RuntimeError, match="not a number"):
        model.set_params(source_lr=1e30).fit(source[0], other)
    model.set_params(source_lr=5e-4)
    assert np.array_equal(model.predict(target[0]), before)
    unfitted = TransPL(**TINY)
    with pytest.raises(ValueError, match="y: expected 40 labels"):
        unfitted.fit(source[0], source[1][:-1])
    with pytest.raises(NotFittedError):
        unfitted.predict(target[0])


def test_a_failed_adaptation_leaves_the_last_one(model, target):
    before = model.adapt(target[0]).predict_proba(target[0])
    with pytest.raises(RuntimeError, match="not a number"):
        model.set_params(adapt_lr=1e30).adapt(target[0] + 1)
    model.set_params(adapt_lr=5e-4)
    assert model.mode_ == "finetune"
    assert np.array_equal(model.predict_proba(target[0]), before)


def test_parameters_set_after_fit_wait_for_the_next_adaptation(model, target, tmp_path):
    p = model.adapt(target[0], mode="markov").predict_proba(target[0])
    weights = model.channel_weights_
    model.set_params(sigma=0.1)
    assert np.array_equal(model.predict_proba(target[0]), p)
    assert np.array_equal(model.channel_weights_, weights)
    model.save(tmp_path)
    assert (model.sigma, model.fitted_params_["sigma"], TransPL.load(tmp_path).sigma) == (0.1, 0.2, 0.2)
    assert np.array_equal(TransPL.load(tmp_path).predict_proba(target[0]), p)
    for adapt in (lambda: model.adapt(target[0], mode="markov"), lambda: model.partial_adapt(target[0])):
        adapt()
        assert np.allclose(model.channel_weights_, np.exp(-((model.channel_distances_ / model.sigma) ** 2)))
        model.set_params(sigma=0.3)
    assert not np.array_equal(model.predict_proba(target[0]), p)


def test_parameters_of_the_source_model_wait_for_the_next_fit(model, source, target):
    p = model.predict_proba(target[0])
    model.set_params(n_coarse=5)
    assert np.array_equal(model.predict_proba(target[0]), p)
    for call in (model.adapt, model.partial_adapt, lambda X: model.unadapted()):
        with pytest.raises(ValueError, match="Call fit again"):
            call(target[0])
    assert np.array_equal(model.predict_proba(target[0]), p)
    model.fit(*source).adapt(target[0], mode="markov")
    assert len(model.codebook_) == 5


def test_an_unadapted_copy_leaves_the_model_as_it_is(model, target):
    before = model.predict_proba(target[0])
    adapted = model.adapt(target[0]).predict_proba(target[0])
    alone = model.set_params(sigma=0.3).unadapted()
    assert (alone.mode_, alone.fitted_params_["sigma"]) == ("source", 0.3)
    assert np.array_equal(alone.predict_proba(target[0]), before)
    assert (model.mode_, model.fitted_params_["sigma"]) == ("finetune", 0.2)
    assert np.array_equal(model.predict_proba(target[0]), adapted)


def test_a_model_of_another_device_can_be_used_here(model, target, tmp_path):
    model.save(tmp_path)
    there = TransPL.load(tmp_path).set_params(device="cuda:0")
    there.set_params(device="cpu")
    assert np.array_equal(there.predict(target[0]), model.predict(target[0]))


def test_adapting_without_gradient_forgets_the_history_of_fine_tuning(model, target):
    model.adapt(target[0])
    model.adapt(target[0], mode="markov")
    assert set(model.history_) == {"source"}
    assert "adapt" not in model.seconds_


def test_numbers_from_a_parameter_grid_can_be_saved(source, target, tmp_path):
    model = TransPL(**{**TINY, "n_coarse": np.int64(4), "sigma": np.float32(0.25)}).fit(*source)
    model.save(tmp_path)
    assert TransPL.load(tmp_path).n_coarse == 4


def test_whole_numbers_in_an_array_of_objects_are_labels(source):
    y = np.unique(source[1], return_inverse=True)[1].astype(object)
    y[-5:] = None
    model = TransPL(**TINY).fit(source[0], y, sample_domain=np.r_[np.zeros(35, int), np.full(5, -1)])
    assert model.classes_.tolist() == [0, 1, 2]


def test_a_callers_default_dtype_does_not_matter(source, target):
    import torch

    expected = TransPL(**TINY).fit(*source).predict_proba(target[0])
    torch.set_default_dtype(torch.float64)
    try:
        model = TransPL(**TINY).fit([window[:, : 24 + 4 * (i % 3)] for i, window in enumerate(source[0])], source[1])
        model.adapt(target[0])
        same = TransPL(**TINY).fit(*source)
        assert {parameter.dtype for parameter in same.method_.state.source_network.parameters()} == {torch.float32}
        assert same.predict_proba(target[0]).shape == expected.shape
    finally:
        torch.set_default_dtype(torch.float32)


def test_too_few_windows_to_hold_any_out_is_said(source):
    with pytest.warns(UserWarning, match="validated on itself"):
        TransPL(**TINY).fit(source[0][:3], source[1][:3])


def test_history_shows_how_the_codebook_is_used(fitted):
    assert all(1 <= record["coarse_perplexity"] <= 4 for record in fitted.history_["source"])


@pytest.mark.slow
def test_several_devices_fit_and_adapt(source, target):
    model = TransPL(**TINY, devices=2).fit(*source).adapt(target[0])
    assert model.mode_ == "finetune"
    assert np.isfinite(model.predict_proba(target[0])).all()


def test_memory_mapped_windows_give_what_the_array_gives(source, target, tmp_path):
    found = []
    for name, values in (("X", source[0]), ("T", target[0])):
        np.save(tmp_path / f"{name}.npy", values.astype(np.float64))
    X, T = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XT")
    for S, S_val, Z in ((source[0], source[0], target[0]), (X, X, T)):
        model = TransPL(**TINY).fit(S, source[1], S_val, source[1]).adapt(Z)
        found.append((model.predict_proba(Z), *model.pseudo_label(Z)[1:], model.target_counts_.counts))
    for array, mapped in zip(*found, strict=True):
        assert np.array_equal(array, mapped)


@pytest.mark.parametrize("fitted_on", ["windows", "table"])
def test_windows_of_one_channel_are_understood_in_both_forms(fitted_on):
    X, y = make_waves(24, seed=0, channels=1)
    model = TransPL(**{**TINY, "max_epochs": 1}).fit(X if fitted_on == "windows" else X[:, 0], y)
    assert np.array_equal(model.predict(X[:, 0]), model.predict(X))


def test_a_table_is_refused_by_a_model_of_two_channels(model, target):
    with pytest.raises(ValueError, match=r"^X: expected 2 channel\(s\), as in fit, got 1\."):
        model.predict(target[0][:, 0])


# explanations


def test_explanations_have_the_models_classes_and_names(model, target):
    X = target[0]
    e = model.explain(X)
    assert e.classes.tolist() == ["run", "sit", "walk"]
    assert e.channel_names == ("channel_0", "channel_1")
    np.testing.assert_allclose(e.probabilities, model.pseudo_label(X).probabilities, atol=1e-12)
    model.adapt(X, prior={"run": 0.5, "sit": 0.5}, mode="markov")
    e = model.explain(X[:5], {"sit": 0.2, "walk": 0.8}, channel_names=["ax", "ay"], nearest=1)
    assert e.channel_names == ("ax", "ay")
    assert e.nearest.rows.shape == (5, 1)
    found = model.pseudo_label(X[:5], {"sit": 0.2, "walk": 0.8})
    np.testing.assert_allclose(e.probabilities, found.probabilities, atol=1e-12)
    assert np.array_equal(e.labels, found.labels)
    with pytest.raises(ValueError, match=r"^channel_names: expected 2 names, got 1\."):
        model.explain(X, channel_names=["ax"])
    with pytest.raises(ValueError, match=r"^channel_names: expected 2 names, got 'ax'\."):
        model.explain(X, channel_names="ax")


def test_nearest_windows_are_rows_of_fit(fitted, source):
    """Also where a part of them was held out, or belongs to the target."""
    X, y = source
    e = fitted.explain(X)
    trained = np.unique(fitted.explain(X, nearest=40).nearest.rows)
    assert len(trained) == 28
    assert np.array_equal(e.nearest.labels, y[e.nearest.rows])
    assert (e.nearest.distances[trained, 0] == 0).all()
    both = TransPL(**{**TINY, "max_epochs": 1}).fit(X, y, sample_domain=np.where(np.arange(40) < 20, -1, 1))
    rows = both.explain(X, nearest=40).nearest.rows
    assert rows.min() >= 20
    assert np.array_equal(both.explain(X).nearest.labels, y[both.explain(X).nearest.rows])


def test_what_shifted_waits_for_a_target(model, target):
    with pytest.raises(AttributeError, match=r"^shift_report: .*Call adapt or partial_adapt first\.$"):
        model.shift_report()
    model.partial_adapt(target[0])
    report = model.shift_report(channel_names=["ax", "ay"])
    assert report.channel_names == ("ax", "ay")
    assert np.array_equal(report.distances, model.channel_distances_)
    assert report.target_shares is None
    shares = model.shift_report(X=target[0]).target_shares
    np.testing.assert_allclose(shares, model.pseudo_label(target[0]).probabilities.mean(axis=0))


@pytest.mark.parametrize("mode", ["markov", "finetune"])
def test_few_labels_move_the_answers_are_saved_with_them_and_explained(model, target, tmp_path, mode):
    X, _ = target
    before = model.adapt(X, mode=mode).predict_proba(X)
    assert np.array_equal(model.adapt(X, mode=mode, few_labels=[None] * len(X)).predict_proba(X), before)
    model.adapt(X, mode=mode, few_labels={0: "sit", 5: "run"})
    assert not np.array_equal(model.predict_proba(X), before)
    assert model.class_counts_.counts.sum() > model.source_counts_.counts.sum()
    model.save(tmp_path)
    again = TransPL.load(tmp_path)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(again.pseudo_label(X).probabilities, model.pseudo_label(X).probabilities)
    assert (again.class_counts_, again.source_counts_) == (model.class_counts_, model.source_counts_)
    assert again.method_.fingerprint() == model.method_.fingerprint()
    assert np.allclose(model.explain(X).probabilities, model.pseudo_label(X).probabilities, atol=1e-12)
    model.adapt(X, mode="markov")
    assert model.class_counts_.pooled() == model.source_counts_


def test_enough_labels_overrule_the_source():
    """In the target the classes have changed places: without labels nearly all is wrong."""
    X, y = make_waves(60, seed=0)
    model = TransPL(**{**TINY, "max_epochs": 20, "source_lr": 5e-3}).fit(X, y)
    new, other = make_waves(60, seed=1)
    truth = 1 - other
    without = (model.adapt(new, mode="markov").predict(new) == truth).mean()
    model.adapt(new, mode="markov", few_labels={row: truth[row] for row in range(40)})
    assert without < 0.3
    assert (model.predict(new) == truth)[40:].mean() > 0.7


def test_a_fitted_model_stays_of_its_variant(model, target):
    before = model.predict(target[0])
    model.set_params(variant="plus")
    assert np.array_equal(model.predict(target[0]), before)
    with refusal("variant", "'paper', as in fit, got 'plus'"):
        model.adapt(target[0])
