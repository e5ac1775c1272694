"""TransPL with variant="plus": the council behind the estimator."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from conftest import make_waves, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from transpl import PseudoLabels, TransPL
from transpl._utils.errors import InputError
from transpl.council import CouncilExplanation
from transpl.markov import TransitionCounts, transport_cost

# Two witnesses in two views are a whole council, and quick.
QUICK = {"witnesses": ("codes", "linear"), "views": ("recorded", "standardised"), "patch_length": 4}
NAMES = np.array(["run", "sit", "walk"])


# scikit-learn's checks bring tables of a few columns, and of two classes or more: all witnesses must cope.
@parametrize_with_checks([TransPL(witnesses=("codes", "linear"))], expected_failed_checks=lambda estimator: {})
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks([TransPL(witnesses=("codes", "trees"))], expected_failed_checks=lambda estimator: {})
def test_scikit_learns_own_checks_with_trees(estimator, check):
    test_scikit_learns_own_checks(estimator, check)


@pytest.fixture(scope="module")
def source():
    X, y = make_waves(40, seed=0, n_classes=3)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def target():
    X, y = make_waves(30, seed=1, n_classes=3, gain=1.5, offset=0.3)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def fitted(source):
    return TransPL(**QUICK).fit(*source)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


# the life of a model


def test_it_is_the_default_and_needs_no_setting(source, target):
    model = TransPL().fit(*source)
    assert (model.variant, model.mode_, model.default_mode) == ("plus", "source", "markov")
    model.adapt(target[0])
    assert model.mode_ == "markov"
    assert model.score(*target) > 0.8
    assert {each.view for each in model.witnesses_} == {"recorded", "standardised", "shape"}


def test_whole_path_with_text_labels(model, target):
    p = model.adapt(target[0]).predict_proba(target[0])
    assert p.shape == (30, 3)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.array_equal(model.predict(target[0]), model.classes_[p.argmax(axis=1)])
    found = model.pseudo_label(target[0])
    assert isinstance(found, PseudoLabels)
    assert np.array_equal(found.labels, model.predict(target[0]))
    assert model.history_ == {}
    assert set(model.seconds_) == {"source", "adapt"}


def test_what_is_known_of_the_target(model, target):
    for name in ("estimated_accuracy_", "shifts_", "witnesses_", "target_counts_", "channel_distances_"):
        assert not hasattr(model, name)
        assert not hasattr(TransPL(), name)
    model.adapt(target[0])
    accuracy, low, high = model.estimated_accuracy_
    assert 0 <= low <= accuracy <= high <= 1
    assert isinstance(model.shifts_, tuple)
    seats = {(each.witness, each.view) for each in model.witnesses_}
    assert seats >= {(witness, view) for witness in QUICK["witnesses"] for view in QUICK["views"]}
    accuracies = [each.accuracy for each in model.witnesses_]
    assert accuracies == sorted(accuracies, reverse=True)


def test_codes_tell_what_shifted(model, target):
    model.adapt(target[0])
    n_codes = len(model.codebook_)
    assert model.codebook_.shape == (8, 4)
    assert model.class_counts_.counts.shape == (3, 2, n_codes, n_codes)
    assert model.source_counts_ == model.class_counts_.pooled()
    assert model.source_counts_.counts.sum() == 40 * 2 * 7, "no source window is held out"
    assert model.target_counts_.counts.sum() == 30 * 2 * 7
    assert np.allclose(model.channel_weights_, np.exp(-((model.channel_distances_ / model.sigma) ** 2)))
    assert np.allclose(model.method_._coded.cost(), transport_cost(model.codebook_))
    report = model.shift_report(channel_names=["ax", "ay"])
    assert np.array_equal(report.distances, model.channel_distances_)
    np.testing.assert_allclose(report.target_shares, model.predict_proba(target[0]).mean(axis=0), atol=0.05)
    assert model.drift(make_waves(60, seed=5, n_classes=3, offset=2.0)[0]).drifted
    assert not model.drift(make_waves(30, seed=5, n_classes=3)[0]).drifted


def test_adapting_twice_starts_from_the_source_again(model, target):
    once = model.adapt(target[0]).predict_proba(target[0])
    model.adapt(target[0][:10] + 1)
    assert np.array_equal(model.adapt(target[0]).predict_proba(target[0]), once)


def test_same_seed_same_numbers(source, target):
    a, b = (TransPL(**QUICK).fit(*source).adapt(target[0]).predict_proba(target[0]) for _ in range(2))
    assert np.array_equal(a, b)


def test_sample_domain_does_both_phases_and_ignores_target_labels(fitted, source, target):
    X, domain = np.concatenate([source[0], target[0]]), np.r_[np.full(40, 1), np.full(30, -2)]
    expected = copy.deepcopy(fitted).adapt(target[0]).predict_proba(target[0])
    for hidden in (target[1], np.full(30, "poison")):
        model = TransPL(**QUICK).fit(X, np.concatenate([source[1], hidden]), sample_domain=domain)
        assert model.classes_.tolist() == NAMES.tolist()
        assert np.array_equal(model.predict_proba(target[0]), expected)
    assert model.explain(target[0]).nearest.rows.max() < 40


def test_callers_arrays_are_unchanged(source, target):
    arrays = [source[0].copy(), source[1].copy(), target[0].copy(), np.array([0.2, 0.3, 0.5]), np.arange(30) // 5]
    twins = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    model = TransPL(**QUICK).fit(arrays[0], arrays[1], arrays[0], arrays[1])
    model.adapt(arrays[2], prior=arrays[3], groups=arrays[4], smooth=True)
    model.predict_proba(arrays[2], groups=arrays[4])
    model.partial_adapt(arrays[2])
    model.explain(arrays[2])
    model.drift(arrays[2])
    assert all(np.array_equal(a, b) for a, b in zip(arrays, twins, strict=True))


def test_validation_rows_are_not_needed(fitted, source, target):
    model = TransPL(**QUICK).fit(*source, X_val=source[0][:6], y_val=source[1][:6])
    assert np.array_equal(model.predict_proba(target[0]), fitted.predict_proba(target[0]))


def test_clone_and_search_over_parameters(fitted, source):
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "classes_")
    search = GridSearchCV(TransPL(**QUICK), {"witnesses": [("codes",), ("linear",)]}, cv=2).fit(*source)
    assert search.best_params_["witnesses"] in (("codes",), ("linear",))


def test_parameters_set_after_fit_wait_for_the_next_adaptation(model, target):
    p, weights = model.adapt(target[0]).predict_proba(target[0]), model.channel_weights_
    for change in ({"sigma": 0.1, "undo": "none"}, {"n_coarse": 5}, {"views": ("recorded",)}, {"variant": "paper"}):
        changed = copy.deepcopy(model).set_params(**change, n_threads=1)
        assert np.array_equal(changed.predict_proba(target[0]), p)
        assert np.array_equal(changed.channel_weights_, weights)
    model.set_params(sigma=0.1, undo="none").adapt(target[0])
    assert np.allclose(model.channel_weights_, np.exp(-((model.channel_distances_ / 0.1) ** 2)))
    for change in ({"n_coarse": 5}, {"witnesses": ("codes",)}, {"views": None}, {"patch_length": 5}):
        with refusal("set_params", f"{next(iter(change))} as in fit"):
            copy.deepcopy(model).set_params(**change).adapt(target[0])
    with refusal("variant", "'plus', as in fit, got 'paper'"):
        model.set_params(variant="paper").adapt(target[0])


def test_memory_mapped_and_ragged_windows(fitted, source, target, tmp_path):
    np.save(tmp_path / "T.npy", target[0].astype(np.float64))
    mapped = np.load(tmp_path / "T.npy", mmap_mode="r")
    one, other = (copy.deepcopy(fitted).adapt(T) for T in (target[0], mapped))
    assert np.array_equal(one.predict_proba(target[0]), other.predict_proba(mapped))
    X = [window[:, : 20 + 4 * (i % 4)] for i, window in enumerate(source[0])]
    ragged = TransPL(**QUICK).fit(X, source[1]).adapt([window[:, :24] for window in target[0]])
    alone = np.concatenate([ragged.predict_proba([window]) for window in X])
    assert np.allclose(ragged.predict_proba(X), alone, atol=1e-5)
    assert np.isnan(ragged.explain(X).signals[0, 0, -1])


# partial_adapt


@settings(max_examples=8)
@given(st.permutations(range(30)), st.sets(st.integers(1, 29), max_size=3))
def test_batches_in_any_order_give_the_same_model(fitted, target, order, cuts):
    whole, parts = copy.deepcopy(fitted).partial_adapt(target[0]), copy.deepcopy(fitted)
    for rows in np.split(np.array(order), sorted(cuts)):
        parts.partial_adapt(target[0][rows])
    assert parts.mode_ == "markov"
    assert parts.target_counts_ == whole.target_counts_
    assert np.array_equal(parts.predict_proba(target[0]), whole.predict_proba(target[0]))
    assert parts.method_.fingerprint() == whole.method_.fingerprint()


def test_more_windows_come_to_those_of_adapt(model, target):
    once = copy.deepcopy(model).partial_adapt(target[0])
    model.adapt(target[0][:20]).partial_adapt(target[0][20:])
    assert model.target_counts_ == once.target_counts_
    assert np.array_equal(model.predict_proba(target[0]), once.predict_proba(target[0]))


def test_a_running_target_goes_on_after_a_file(model, target, tmp_path):
    model.set_params(undo="none")
    whole = copy.deepcopy(model).partial_adapt(target[0])
    model.partial_adapt(target[0][:12]).save(tmp_path)
    again = TransPL.load(tmp_path).partial_adapt(target[0][12:])
    assert again.target_counts_ == whole.target_counts_
    assert np.array_equal(again.predict_proba(target[0]), whole.predict_proba(target[0]))


def test_a_saved_model_of_adapt_does_not_hold_its_windows_and_says_so(model, target, tmp_path):
    model.set_params(undo="none").adapt(target[0][:20]).save(tmp_path)
    again, counts = TransPL.load(tmp_path), model.target_counts_
    with pytest.warns(UserWarning, match=r"^partial_adapt: .*judged on the new ones alone"):
        again.partial_adapt(target[0][20:])
    more = copy.deepcopy(model).partial_adapt(target[0][20:])
    assert again.target_counts_ == more.target_counts_ != counts


# priors, labels, groups and order


def test_a_prior_by_name_and_by_position_agree_and_rule_out_classes(model, target):
    model.adapt(target[0])
    by_name = model.pseudo_label(target[0], prior={"run": 0.5, "walk": 0.5})
    by_position = model.pseudo_label(target[0], prior=[0.5, 0.0, 0.5])
    assert np.array_equal(by_name.probabilities, by_position.probabilities)
    model.adapt(target[0], prior={"run": 1.0})
    assert set(model.predict(target[0])) == {"run"}


def test_labels_of_a_person_are_used(source):
    """In the target two classes have changed places: without labels nearly all is wrong."""
    X, y = make_waves(60, seed=0)
    new, other = make_waves(60, seed=1)
    model, truth = TransPL(**QUICK).fit(X, y), 1 - other
    without = (model.adapt(new).predict(new) == truth).mean()
    model.adapt(new, few_labels={row: truth[row] for row in range(40)})
    assert without < 0.3
    assert (model.predict(new) == truth)[40:].mean() > 0.7


def test_windows_of_a_group_have_one_label(model, target):
    groups = np.array(["a", "b", "c"])[np.unique(target[1], return_inverse=True)[1]]
    model.adapt(target[0], groups=groups)
    found = model.predict(target[0], groups=groups)
    assert all(len(set(found[groups == name])) == 1 for name in "abc")
    by_number = model.predict_proba(target[0], groups=np.unique(groups, return_inverse=True)[1])
    assert np.array_equal(by_number, model.predict_proba(target[0], groups=list(groups)))


def test_order_in_time_carries_over_a_doubtful_window(source):
    X, y = make_waves(60, seed=2, n_classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order] + np.random.default_rng(0).normal(0, 0.7, X.shape), NAMES[y[order]]
    model = TransPL(**QUICK).fit(*source).adapt(X, smooth=True)
    alone, together = ((model.predict(X, smooth=smooth) == y).mean() for smooth in (False, True))
    assert 0.5 < alone <= together


# explanations and files


def test_explanations_add_up_to_the_answer(model, target):
    X = target[0]
    before = model.explain(X)
    assert isinstance(before, CouncilExplanation)
    np.testing.assert_allclose(before.probabilities, model.pseudo_label(X).probabilities, atol=1e-12)
    np.testing.assert_array_equal(before.answers, model.predict_proba(X))
    model.adapt(X, prior={"run": 0.4, "sit": 0.3, "walk": 0.3})
    e = model.explain(X[:5], {"sit": 0.2, "walk": 0.8}, channel_names=["ax", "ay"], nearest=1)
    assert e.channel_names == ("ax", "ay")
    assert e.nearest.rows.shape == (5, 1)
    found = model.pseudo_label(X[:5], {"sit": 0.2, "walk": 0.8})
    np.testing.assert_allclose(e.probabilities, found.probabilities, atol=1e-12)
    named = copy.deepcopy(model).set_params(channel_names=["ax", "ay"])
    assert named.explain(X[:2]).channel_names == ("ax", "ay")
    parts = e.linear_parts(0, "walk", "run")
    assert parts is not None
    seat = e.seats.index(("linear", e.linear_view))
    p = e.seat_answers[0, seat]
    log_odds = np.log(p[2] / p[0])
    assert float(parts.features.sum() + parts.bias) == pytest.approx(log_odds, abs=1e-3)
    assert e.sentence(0)


@pytest.mark.parametrize("state", ["source", "adapted", "partial"])
def test_round_trip_gives_the_same_numbers(model, target, tmp_path, state):
    X = target[0]
    if state == "adapted":
        model.adapt(X, prior=[0.3, 0.3, 0.4], few_labels={0: "sit"})
    elif state == "partial":
        model.partial_adapt(X)
    model.save(tmp_path)
    again = TransPL.load(tmp_path)
    assert again.mode_ == model.mode_
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.method_.fingerprint() == model.method_.fingerprint()
    assert again.class_counts_ == model.class_counts_
    assert np.array_equal(again.codebook_, model.codebook_)
    assert again.seconds_ == model.seconds_
    if state == "source":
        assert not hasattr(again, "estimated_accuracy_")
        return
    one, other = model.explain(X), again.explain(X)
    assert np.array_equal(one.evidence, other.evidence)
    assert np.array_equal(one.nearest.rows, other.nearest.rows)
    assert np.array_equal(again.pseudo_label(X).probabilities, model.pseudo_label(X).probabilities)
    assert again.shift_report().as_dict() == model.shift_report().as_dict()
    assert (again.estimated_accuracy_, again.shifts_) == (model.estimated_accuracy_, model.shifts_)
    assert again.witnesses_ == model.witnesses_


def test_a_loaded_model_finds_no_shifts_without_its_source_and_says_so(fitted, source, target, tmp_path):
    fitted.save(tmp_path)
    again = TransPL.load(tmp_path)
    with pytest.warns(UserWarning, match=r"^adapt: a loaded model does not hold its source rows") as caught:
        again.adapt(target[0])
    assert len(caught) == 1
    again.adapt(target[0], X_source=source[0], y_source=source[1])
    straight = copy.deepcopy(fitted).adapt(target[0])
    assert np.array_equal(again.predict_proba(target[0]), straight.predict_proba(target[0]))


def test_settings_of_every_kind_survive_a_file(source, target, tmp_path):
    settings = {"undo": ("unit",), "triads": ((0, 1, 2),), "channel_names": ("ax", "ay", "az"), "views": ["shape"]}
    X, y = make_waves(24, seed=0, channels=3)
    model = TransPL(**{**QUICK, **settings}).fit(X, y).adapt(X)
    model.save(tmp_path)
    again = TransPL.load(tmp_path)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.triads == [[0, 1, 2]]
    assert again.method_.settings == model.method_.settings
    assert again.method_.codebook_settings == model.method_.codebook_settings


def test_the_fingerprint_is_that_of_what_decides_an_answer(model, target):
    found = {model.method_.fingerprint()}
    assert copy.deepcopy(model).set_params(n_threads=1).fitted_method().fingerprint() in found
    for change in ({}, {"prior": [0.2, 0.3, 0.5]}, {"few_labels": {0: "sit", 1: "run"}}):
        found.add(copy.deepcopy(model).adapt(target[0], **change).method_.fingerprint())
    found.add(copy.deepcopy(model).set_params(sigma=0.3).unadapted().method_.fingerprint())
    assert len(found) == 5


# bad input, and input that is only strange

X, Y = make_waves(20, seed=0)
NAN = X.copy()
NAN[3, 0, 5] = np.nan


def new(**change):
    return TransPL(**{**QUICK, **change})


WRONG_FIT = {
    "triad of strangers": (lambda: new(triads=[("ax", "ay", "az")]).fit(X, Y), "triads"),
    "triad of two": (lambda: new(triads=[(0, 1)]).fit(X, Y), "triads"),
    "triad as text": (lambda: new(triads="ax ay az").fit(X, Y), "triads"),
    "channel beyond the last": (lambda: new(triads=[(0, 1, 2)]).fit(X, Y), "triads"),
    "too many channel names": (lambda: new(channel_names=["a", "b", "c"]).fit(X, Y), "channel_names"),
    "channel names as text": (lambda: new(channel_names="ab").fit(X, Y), "channel_names"),
    "unknown witness": (lambda: new(witnesses=("oracle",)).fit(X, Y), "witnesses"),
    "witness as text": (lambda: new(witnesses="codes").fit(X, Y), "witnesses"),
    "no witness": (lambda: new(witnesses=()).fit(X, Y), "witnesses"),
    "unknown view": (lambda: new(views=("upside down",)).fit(X, Y), "views"),
    "unknown kind of shift": (lambda: new(undo="time").fit(X, Y), "undo"),
    "unknown kinds of shift": (lambda: new(undo=("turn", "time")).fit(X, Y), "undo"),
    "undo is a number": (lambda: new(undo=3).fit(X, Y), "undo"),
    "patch_length is zero": (lambda: new(patch_length=0).fit(X, Y), "patch_length"),
    "n_coarse is one": (lambda: new(n_coarse=1).fit(X, Y), "n_coarse"),
    "sigma is zero": (lambda: new(sigma=0).fit(X, Y), "sigma"),
    "smoothing is unknown": (lambda: new(smoothing="none").fit(X, Y), "smoothing"),
    "epsilon is above one": (lambda: new(smoothing="floor", epsilon=2.0).fit(X, Y), "epsilon"),
    "no threads": (lambda: new(n_threads=0).fit(X, Y), "n_threads"),
    "seed is negative": (lambda: new(random_state=-1).fit(X, Y), "random_state"),
    "one step": (lambda: new().fit(X[:, :, :1], Y), "X"),
    "NaN": (lambda: new().fit(NAN, Y), "X"),
    "one class": (lambda: new().fit(X, np.zeros(20, int)), "y"),
}
WRONG_LATER = {
    "groups too short": (lambda m: m.adapt(X, groups=[0, 1]), "groups"),
    "groups missing": (lambda m: m.adapt(X, groups=[None, *"ab" * 9, "a"]), "groups"),
    "groups as text": (lambda m: m.adapt(X, groups="recording"), "groups"),
    "groups of predict": (lambda m: m.predict(X, groups=np.zeros((20, 2))), "groups"),
    "smooth is a word": (lambda m: m.adapt(X, smooth="yes"), "smooth"),
    "fine-tuning": (lambda m: m.adapt(X, mode="finetune"), "mode"),
    "mode is unknown": (lambda m: m.adapt(X, mode="tune"), "mode"),
    "NaN": (lambda m: m.adapt(NAN), "X_target"),
    "other channels": (lambda m: m.predict(X[:, :1]), "X"),
    "too short": (lambda m: m.predict(X[:, :, :4]), "X"),
    "prior is too long": (lambda m: m.adapt(X, prior=[0.2, 0.3, 0.5]), "prior"),
    "labels of strangers": (lambda m: m.adapt(X, few_labels={0: "swim"}), "few_labels"),
    "y_source alone": (lambda m: m.adapt(X, y_source=Y), "X_source"),
}


@pytest.fixture(scope="module")
def of_two():
    return TransPL(**QUICK).fit(X, Y)


@pytest.mark.parametrize(("call", "argument"), WRONG_FIT.values(), ids=WRONG_FIT)
def test_wrong_calls_of_fit(call, argument):
    with refusal(argument, error=InputError) as caught:
        call()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("call", "argument"), WRONG_LATER.values(), ids=WRONG_LATER)
def test_wrong_calls_after_fit(of_two, call, argument):
    model = copy.deepcopy(of_two)
    before = model.predict_proba(X)
    with refusal(argument, error=InputError):
        call(model)
    assert np.array_equal(model.predict_proba(X), before), "a refused call must leave the model as it was"


def test_unfitted_model_says_so():
    for call in ("predict", "predict_proba", "adapt", "partial_adapt", "pseudo_label", "explain"):
        with pytest.raises(NotFittedError):
            getattr(TransPL(), call)(np.zeros((2, 1, 16)))


def test_the_papers_variant_labels_every_window_by_itself():
    pytest.importorskip("torch")
    model = TransPL(variant="paper", patch_length=4, width=16, n_layers=1, max_epochs=1, device="cpu").fit(X, Y)
    for order in ({"groups": np.zeros(20)}, {"smooth": True}):
        for call in (model.adapt, model.predict):
            with refusal(next(iter(order)), "variant='plus'"):
                call(X, **order)
    assert not hasattr(model.adapt(X, mode="markov"), "estimated_accuracy_")


@pytest.fixture(scope="module")
def strange():
    """A council of all witnesses."""
    return TransPL().fit(X, Y)


@pytest.mark.parametrize(
    "T",
    [
        X[:1],
        X[:2],
        X[Y == 0],
        np.zeros_like(X),
        np.concatenate([X[:, :1], np.full_like(X[:, :1], 3.0)], axis=1),
        X * 1e6,
        X * 1e-6,
        np.repeat(X[:1], 9, axis=0),
        [window[:, : 20 + i % 5] for i, window in enumerate(X)],
    ],
    ids=["one", "two", "one class", "still", "one still channel", "huge", "tiny", "all alike", "ragged"],
)
def test_strange_targets_get_sound_answers(strange, T):
    model = copy.deepcopy(strange).adapt(T)
    p = model.predict_proba(T)
    assert p.shape == (len(T), 2)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1)
    accuracy, low, high = model.estimated_accuracy_
    assert 0 <= low <= accuracy <= high <= 1
    assert model.explain(T).sentence(0)
    assert np.isfinite(model.shift_report().distances).all()


@pytest.mark.parametrize("channel", [0.0, 5.0])
def test_a_still_channel_in_the_source(channel):
    still = X.copy()
    still[:, 1] = channel
    model = TransPL().fit(still, Y).adapt(still)
    assert model.score(still, Y) > 0.9
    assert model.adapt(X).predict(X).shape == (20,)
    assert np.isfinite(model.channel_distances_).all()


def test_windows_of_two_steps(source):
    model = TransPL().fit(X[:, :, :2], Y).adapt(X[:, :, 2:4])
    assert model.predict(X[:, :, 4:6]).shape == (20,)


def test_tables_of_one_channel():
    Z, y = make_waves(24, seed=0, channels=1)
    model = TransPL(**QUICK).fit(Z[:, 0], y).adapt(Z[:, 0])
    assert np.array_equal(model.predict(Z), model.predict(Z[:, 0]))


def test_counts_are_of_all_windows_whatever_the_sample(model, target, monkeypatch):
    monkeypatch.setattr("transpl.council.target_sample.MAX_WINDOWS", 8)
    model.partial_adapt(target[0])
    assert len(model.method_._target.sample.windows) == 8
    codes = model.method_._coded.encode(model._seen_windows(target[0], "X"))
    assert model.target_counts_ == TransitionCounts.from_codes(codes, len(model.codebook_))
