"""The council on tiny windows: what its answers are made of, what it keeps, and odd targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_waves, refusal
from scipy.special import log_softmax, softmax

from transpl.council import Council, CouncilAnswer, CouncilSettings
from transpl.council import council as council_module
from transpl.council.views import VIEWS
from transpl.council.witnesses import kernels, trees
from transpl.windows import UNKNOWN, Labelled, TargetInfo, Windows, as_windows

K = 3
QUICK = CouncilSettings(witnesses=("codes", "linear"))


def labelled(X: object, y: np.ndarray, n_classes: int = K) -> Labelled:
    return Labelled(as_windows(X), y, n_classes)


X, Y = make_waves(36, 0, n_classes=K)
SOURCE = labelled(X, Y)
T, TRUTH = make_waves(30, 1, n_classes=K, gain=1.3, offset=0.2)
TARGET = as_windows(T)
KNOWN = np.where(np.arange(30) < 4, (TRUTH + 1) % K, UNKNOWN)  # against all evidence
GROUPS = np.arange(30) // 3 * 7 - 20
IN_ORDER = np.argsort(TRUTH, kind="stable")
CASES = {
    "plain": TargetInfo(),
    "known": TargetInfo(few_labels=KNOWN),
    "groups": TargetInfo(groups=GROUPS),
    "smooth": TargetInfo(smooth=True),
    "recordings in order": TargetInfo(smooth=True, groups=GROUPS),
    "prior": TargetInfo(prior=np.array([0.6, 0.3, 0.1])),
    "everything": TargetInfo(prior=np.array([0.6, 0.4, 0.0]), few_labels=KNOWN, groups=GROUPS),
}


@pytest.fixture(scope="module", autouse=True)
def small_witnesses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "N_KERNELS", 100)
        patch.setattr(trees, "N_TREES", 20)
        yield


@pytest.fixture(scope="module")
def learnt() -> Council:
    return Council(QUICK).learn(SOURCE)


@pytest.fixture(scope="module")
def whole() -> Council:
    """All witnesses in all views."""
    return Council().learn(SOURCE)


def with_still_channel(values: np.ndarray, level: float = 7.0) -> Windows:
    return as_windows(np.where(np.arange(2)[:, None] == 1, level, values))


def same(one: CouncilAnswer, other: CouncilAnswer) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def sound(heard: CouncilAnswer, n: int, n_classes: int = K) -> None:
    S = heard.evidence.shape[1]
    assert heard.probabilities.shape == heard.rest.shape == (n, n_classes)
    assert heard.evidence.shape == heard.seat_answers.shape == (n, S, n_classes)
    assert heard.bias.shape == (n_classes,)
    assert all(np.isfinite(part).all() for part in heard)
    assert (heard.probabilities >= 0).all()
    assert np.allclose(heard.probabilities.sum(axis=1), 1, atol=1e-9)
    assert np.allclose(heard.seat_answers.sum(axis=2), 1, atol=1e-6)
    said = softmax(heard.evidence.sum(axis=1) + heard.bias + heard.rest, axis=1)
    assert np.allclose(said, heard.probabilities, atol=1e-9)


def right(heard: CouncilAnswer, truth: np.ndarray = TRUTH) -> float:
    return float((heard.probabilities.argmax(axis=1) == truth).mean())


def bytes_of(council: Council) -> Iterator[tuple[str, bytes]]:
    return ((name, array.tobytes()) for name, array in sorted(council.arrays().items()))


# answers and what they are made of


@pytest.mark.parametrize("case", CASES)
def test_explanations_add_up(learnt, case):
    council = learnt.unadapted()
    heard = council.adapt(SOURCE, TARGET, CASES[case])
    sound(heard, 30)
    certain = heard.probabilities.min(axis=1) < 1e-9  # log 0 has no sum
    added = log_softmax(heard.evidence.sum(axis=1) + heard.bias + heard.rest, axis=1)
    assert np.allclose(added[~certain], np.log(heard.probabilities[~certain]), atol=1e-9)


def test_nothing_but_the_seats_and_the_shares_speaks_for_a_window_alone(learnt):
    council = learnt.unadapted()
    assert np.allclose(council.adapt(None, TARGET).rest, 0, atol=1e-9)
    assert np.allclose(council.adapt(None, TARGET, TargetInfo(groups=np.arange(30))).rest, 0, atol=1e-9)
    rest = council.adapt(None, TARGET, TargetInfo(few_labels=KNOWN)).rest
    assert np.allclose(rest[KNOWN == UNKNOWN], 0, atol=1e-9)
    assert not np.allclose(rest[KNOWN != UNKNOWN], 0)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case].few_labels is None])
def test_the_target_is_heard_again_as_it_was_when_adapted_to(learnt, case):
    options = CASES[case]
    council = learnt.unadapted()
    heard = council.adapt(SOURCE, TARGET, options)
    again = council.predict(TARGET, replace(options, prior=None))
    assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(again, heard, strict=True))


def test_windows_may_be_heard_one_by_one(learnt):
    council = learnt.unadapted()
    council.adapt(SOURCE, TARGET)
    together = council.predict(TARGET)
    for i in (0, 17):
        alone = council.predict(TARGET[[i]])
        assert np.allclose(alone.probabilities[0], together.probabilities[i], atol=1e-6)
        assert np.allclose(alone.evidence[0], together.evidence[i], atol=1e-6)


def test_before_adapting_the_recorded_views_are_averaged(whole):
    council = whole.unadapted()
    heard = council.predict(TARGET)
    sound(heard, 30)
    recorded = [view == "recorded" for _, view in council.seat_names]
    assert np.allclose(
        heard.probabilities, softmax(np.log(heard.seat_answers[:, recorded]).mean(axis=1), axis=1), atol=1e-9
    )
    assert (heard.evidence[:, np.logical_not(recorded)] == 0).all()
    assert council.seat_accuracies() == []
    assert council.estimate is None
    assert right(council.predict(as_windows(X)), Y) > 0.9


def test_without_a_recorded_view_all_seats_answer_before_adapting():
    council = Council(CouncilSettings(witnesses=("linear",), views=("shape", "standardised"))).learn(SOURCE)
    heard = council.predict(TARGET)
    sound(heard, 30)
    assert np.allclose(heard.probabilities, softmax(np.log(heard.seat_answers).mean(axis=1), axis=1), atol=1e-9)


# what it is for


def test_all_witnesses_together_are_right_and_stand_for_it(whole):
    council = whole.unadapted()
    heard = council.adapt(SOURCE, TARGET)
    sound(heard, 30)
    assert right(heard) > 0.9
    standings = council.seat_accuracies()
    assert [(one.witness, one.view) for one in standings] == council.seat_names
    assert len(standings) == heard.evidence.shape[1] >= 4 * len(VIEWS)
    assert all(0 <= one.accuracy <= 1 for one in standings)
    assert any("relearned" in name for name, _ in council.seat_names)
    assert 0 < council.estimate.low <= council.estimate.accuracy <= council.estimate.high <= 1


def test_it_is_never_surer_than_it_believes_to_be_right(whole):
    council = whole.unadapted()
    confidence = council.adapt(SOURCE, TARGET).probabilities.max(axis=1).mean()
    assert confidence <= council.estimate.accuracy + 1e-6


@pytest.mark.parametrize(("gain", "offset"), [(4.0, 0.0), (0.25, 30.0)])
def test_a_target_with_another_gain_and_offset_is_answered_as_well(gain, offset):
    """Of a council that need not use the recorded view."""
    council = Council(CouncilSettings(witnesses=("codes", "linear"), views=("standardised", "shape"))).learn(SOURCE)
    untouched = right(council.adapt(SOURCE, TARGET))
    assert untouched > 0.8
    assert right(council.adapt(SOURCE, as_windows(gain * T + offset))) >= untouched - 0.04


def test_signals_and_columns_are_standardised_by_the_target_except_as_recorded(learnt):
    """Codes show the signals, statistics the columns."""
    council = learnt.unadapted()
    untouched = council.adapt(None, TARGET).seat_answers
    changed = council.adapt(None, as_windows(4 * T + 1)).seat_answers
    for at, (witness, view) in enumerate(council.seat_names[: len(council.seats)]):
        agrees = np.allclose(changed[:, at], untouched[:, at], atol=1e-3)
        assert agrees == (view == "standardised") or view == "shape", (witness, view)
        if witness == "linear":
            rows = council.rows(at, as_windows(4 * T + 1))
            assert (np.abs(rows.mean(axis=0)).max() < 0.01) == (view != "recorded")


def test_a_dead_channel_says_nothing(learnt):
    """Whatever it is stuck at."""
    council, other = learnt.unadapted(), learnt.unadapted()
    heard = council.adapt(SOURCE, with_still_channel(T, 0.5))
    assert [shift.kind for shift in council.shifts.shifts] == ["dead"]
    assert same(other.adapt(SOURCE, with_still_channel(T, -2.0)), heard)
    assert same(council.predict(with_still_channel(T, 0.5)), heard)
    assert same(council.predict(with_still_channel(T, -2.0)), heard)
    assert council.unadapted().shifts is None
    assert same(council.unadapted().predict(TARGET), learnt.predict(TARGET))
    assert same(council.adapt(SOURCE, TARGET), learnt.unadapted().adapt(SOURCE, TARGET))


def test_the_recorded_view_does_not_spoil_a_changed_target(whole):
    council = whole.unadapted()
    changed = as_windows(5 * T + 20)
    before = right(council.predict(changed))
    assert right(council.adapt(SOURCE, changed)) > max(before, 0.8)


def test_known_labels_are_obeyed_and_hearing_again_asks_nobody(learnt):
    council = learnt.unadapted()
    heard = council.adapt(None, TARGET, TargetInfo(few_labels=KNOWN))
    given = KNOWN != UNKNOWN
    assert np.array_equal(heard.probabilities[given], np.eye(K)[KNOWN[given]])
    assert not np.array_equal(council.predict(TARGET).probabilities[given], heard.probabilities[given])


@pytest.mark.parametrize("case", ["known", "groups", "prior"])
def test_all_that_is_known_of_the_target_changes_how_seats_are_judged(learnt, case):
    council = learnt.unadapted()
    council.adapt(None, TARGET)
    plain, accuracy = council.predict(TARGET).evidence, np.mean([one.accuracy for one in council.seat_accuracies()])
    council.adapt(None, TARGET, CASES[case])
    assert not np.allclose(council.predict(TARGET).evidence, plain, atol=1e-3)
    if case == "known":  # against all evidence
        assert np.mean([one.accuracy for one in council.seat_accuracies()]) < accuracy


def test_windows_of_a_recording_share_their_answer(learnt):
    council = learnt.unadapted()
    order = np.argsort(TRUTH, kind="stable")
    heard = council.adapt(None, TARGET[order], TargetInfo(groups=np.arange(30) // 5))
    p = heard.probabilities.reshape(6, 5, K)
    assert np.allclose(p, p[:, :1], atol=1e-12)
    assert right(heard, TRUTH[order]) >= right(council.adapt(None, TARGET[order])) - 0.04


def test_order_in_time_is_used(learnt):
    council = learnt.unadapted()
    plain = council.adapt(None, TARGET[IN_ORDER])
    smooth = council.adapt(None, TARGET[IN_ORDER], TargetInfo(smooth=True))
    changes = [np.count_nonzero(np.diff(h.probabilities.argmax(axis=1))) for h in (smooth, plain)]
    assert changes[0] <= changes[1]
    assert not np.allclose(smooth.rest, 0)


def test_recordings_in_order_do_not_reach_into_each_other(learnt):
    council = learnt.unadapted()
    recordings = np.arange(30) // 10
    heard = council.adapt(None, TARGET[IN_ORDER], TargetInfo(groups=recordings, smooth=True))
    alone = council.predict(TARGET[IN_ORDER[10:20]], TargetInfo(smooth=True))
    assert np.allclose(alone.probabilities, heard.probabilities[10:20], atol=1e-6)
    assert not np.allclose(
        council.predict(TARGET[IN_ORDER], TargetInfo(smooth=True)).probabilities, heard.probabilities
    )


def test_known_shares_are_the_bias(learnt):
    council = learnt.unadapted()
    prior = np.array([0.6, 0.3, 0.1])
    heard = council.adapt(None, TARGET, TargetInfo(prior=prior))
    odds = heard.bias[0] - heard.bias[1]
    assert odds > 0
    assert (heard.bias[1] - heard.bias[2]) / odds == pytest.approx(np.log(3) / np.log(2), abs=1e-3)
    council.adapt(None, TARGET)
    assert np.allclose(log_softmax(council.predict(TARGET, TargetInfo(prior=prior)).bias).argsort(), [2, 1, 0])


# the same each time


def test_the_same_seed_gives_the_same_bytes():
    def run() -> tuple[Council, CouncilAnswer]:
        settings = CouncilSettings(witnesses=("kernels", "trees"), random_state=3)
        council = Council(settings).learn(SOURCE)
        return council, council.adapt(SOURCE, TARGET)

    (one, heard), (other, again) = run(), run()
    assert same(heard, again)
    assert list(bytes_of(one)) == list(bytes_of(other))
    assert one.facts() == other.facts()


def test_adapting_starts_from_the_source_whatever_came_before(learnt):
    before = learnt.predict(TARGET)
    council = learnt.unadapted()
    first = council.adapt(SOURCE, TARGET)
    other = council.adapt(SOURCE, as_windows(3 * T[::-1][:20]), TargetInfo(few_labels=np.zeros(20, np.int64)))
    sound(other, 20)
    assert same(council.adapt(SOURCE, TARGET), first)
    assert same(council.unadapted().adapt(SOURCE, TARGET), first)
    assert same(council.unadapted().predict(TARGET), before)
    assert same(learnt.predict(TARGET), before)


def test_the_adapted_council_stays_when_the_unadapted_one_goes_on(learnt):
    council = learnt.unadapted()
    heard = council.adapt(SOURCE, TARGET)
    other = council.unadapted()
    other.adapt(None, as_windows(3 * T[:10]))
    assert same(council.predict(TARGET), heard)
    other.learn(labelled(9 * X[:12] + 5, Y[:12]))
    assert same(council.predict(TARGET), heard)
    assert same(council.unadapted().predict(TARGET), learnt.predict(TARGET))


def test_learning_again_forgets_source_and_target():
    council = Council(QUICK).learn(SOURCE)
    council.adapt(SOURCE, TARGET)
    half = labelled(X[::2], Y[::2])
    assert same(council.learn(half).predict(TARGET), Council(QUICK).learn(half).predict(TARGET))
    assert council.seat_accuracies() == []


def test_the_callers_arrays_stay_as_they_are(learnt):
    X_target, known, groups, prior = T.copy(), KNOWN.copy(), GROUPS.copy(), np.array([0.5, 0.5, 0.0])
    learnt.unadapted().adapt(SOURCE, Windows(X_target, np.full(30, 32)), TargetInfo(prior, known, groups, smooth=True))
    assert np.array_equal(X_target, T)
    assert np.array_equal(known, KNOWN)
    assert np.array_equal(groups, GROUPS)
    assert prior.tolist() == [0.5, 0.5, 0.0]


# saved and restored


@pytest.mark.parametrize("adapted", [False, True])
def test_all_that_was_learnt_survives_a_file(whole, adapted, tmp_path):
    council = whole.unadapted()
    if adapted:
        council.adapt(SOURCE, as_windows(np.where(np.arange(2)[:, None] == 1, 0, T)))  # a dead channel is undone
        assert council.shifts.shifts
    np.savez(tmp_path / "arrays.npz", **council.arrays())
    facts = json.loads(json.dumps(council.facts(), allow_nan=False))
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as saved:
        again = Council(council.settings).restore(facts, dict(saved))
    assert same(again.predict(TARGET), council.predict(TARGET))
    assert again.seat_names == council.seat_names
    assert again.seat_accuracies() == council.seat_accuracies()
    assert again.estimate == council.estimate
    assert again.facts() == council.facts()
    assert list(bytes_of(again)) == list(bytes_of(council))
    assert same(again.unadapted().adapt(SOURCE, TARGET), council.unadapted().adapt(SOURCE, TARGET))


def test_restoring_takes_the_place_of_what_was_there(learnt):
    fresh, used = Council(QUICK), learnt.unadapted()
    used.adapt(SOURCE, TARGET)
    for council in (fresh, used):
        council.restore(learnt.facts(), learnt.arrays())
        assert same(council.predict(TARGET), learnt.predict(TARGET))
        assert council.seat_accuracies() == []


# large targets


@pytest.mark.parametrize("case", ["plain", "groups", "recordings in order"])
def test_a_large_target_is_judged_by_an_even_sample(learnt, case, monkeypatch):
    monkeypatch.setattr(council_module, "MAX_WINDOWS", 10)
    options = CASES[case]
    council, small = learnt.unadapted(), learnt.unadapted()
    heard = council.adapt(None, TARGET, options)
    sound(heard, 30)
    assert same(council.predict(TARGET, options), heard)
    rows = np.linspace(0, 29, 10).astype(int)
    small.adapt(None, TARGET[rows], options.at(rows))
    if not options.smooth:  # neighbours in the sample are three windows apart, so fewer of them stay
        assert same(small.predict(TARGET, options), heard)


def test_known_windows_of_a_large_target_are_always_in_the_sample(learnt, monkeypatch):
    known = np.full(30, UNKNOWN)
    known[[1, 2, 3, 25]] = (TRUTH[[1, 2, 3, 25]] + 1) % K
    council, small = learnt.unadapted(), learnt.unadapted()
    with monkeypatch.context() as patch:
        patch.setattr(council_module, "MAX_WINDOWS", 4)
        heard = council.adapt(None, TARGET, TargetInfo(few_labels=known))
    sound(heard, 30)
    given = known != UNKNOWN
    assert np.array_equal(heard.probabilities[given], np.eye(K)[known[given]])
    rows = [0, 1, 2, 3, 9, 19, 25, 29]  # 0, 9, 19 and 29 are the even sample
    small.adapt(None, TARGET[rows], TargetInfo(few_labels=known[rows]))
    assert same(council.predict(TARGET), small.predict(TARGET))


def test_windows_come_from_a_memory_map(learnt, tmp_path):
    np.save(tmp_path / "T.npy", T)
    mapped = as_windows(np.load(tmp_path / "T.npy", mmap_mode="r"))
    assert same(learnt.unadapted().adapt(SOURCE, mapped), learnt.unadapted().adapt(SOURCE, TARGET))


# odd input


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("witnesses", ("codes", "nobody")),
        ("witnesses", ()),
        ("witnesses", ("codes", "codes")),
        ("witnesses", "codes"),
        ("views", ("recorded", "sideways")),
        ("views", ()),
        ("views", ("shape", "shape")),
        ("views", "shape"),
        ("random_state", -1),
        ("random_state", 0.5),
    ],
)
def test_settings_are_checked(setting, value):
    with refusal(setting):
        CouncilSettings(**{setting: value})


@pytest.mark.parametrize("smooth", [False, True])
def test_groups_of_another_length_are_refused(learnt, smooth):
    council = learnt.unadapted()
    with refusal("groups", "30"):
        council.adapt(None, TARGET, TargetInfo(groups=np.zeros(29, np.int64), smooth=smooth))
    with refusal("groups", "30"):
        council.predict(TARGET, TargetInfo(groups=np.zeros(31, np.int64), smooth=smooth))


def ragged(values: np.ndarray) -> Windows:
    return as_windows([window[:, : 32 - 5 * (i % 3)] for i, window in enumerate(values)])


ODD = {
    "one window": (as_windows(X), TARGET[:1]),
    "two windows": (as_windows(X), TARGET[:2]),
    "one class": (as_windows(X), TARGET[TRUTH == 1]),
    "all windows alike": (as_windows(X), as_windows(np.repeat(T[:1], 8, axis=0))),
    "all is zero": (as_windows(X), as_windows(np.zeros((8, 2, 32)))),
    "a channel that is still in the target": (as_windows(X), with_still_channel(T)),
    "a channel that is still in both": (with_still_channel(X), with_still_channel(T)),
    "two steps": (as_windows(X[:, :, :2]), as_windows(T[:, :, :2])),
    "one channel": (as_windows(X[:, :1]), as_windows(T[:, :1])),
    "unequal length": (ragged(X), ragged(T)),
    "a single shorter window": (as_windows(X), ragged(T[:2])),
    "far away": (as_windows(X), as_windows(1e9 * T + 1e12)),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_targets_get_sound_answers(case):
    """Without a warning, too: pytest makes errors of them."""
    source, target = ODD[case]
    n = len(target)
    council = Council(QUICK).learn(Labelled(source, Y, K))
    sound(council.predict(target), n)
    sound(council.adapt(Labelled(source, Y, K), target), n)
    sound(council.adapt(None, target, TargetInfo(groups=np.zeros(n, np.int64))), n)
    sound(council.adapt(None, target, TargetInfo(few_labels=np.full(n, 1), smooth=True)), n)
    json.dumps(council.facts(), allow_nan=False)


@pytest.mark.parametrize("case", ["one window", "two steps", "unequal length"])
def test_all_witnesses_bear_odd_targets(case):
    source, target = ODD[case]
    council = Council().learn(Labelled(source, Y, K))
    sound(council.adapt(Labelled(source, Y, K), target), len(target))


@pytest.mark.parametrize("kept", [[0, 2], [1]])
def test_a_class_without_source_windows_is_hardly_ever_the_answer(kept):
    rows = np.isin(Y, kept)
    source = labelled(X[rows], Y[rows])
    council = Council(CouncilSettings(witnesses=("codes", "kernels", "linear", "trees"))).learn(source)
    heard = council.adapt(source, as_windows(T[np.isin(TRUTH, kept)]))
    sound(heard, np.isin(TRUTH, kept).sum())
    assert np.isin(heard.probabilities.argmax(axis=1), kept).all()


def test_few_source_windows():
    source = labelled(X[:3], Y[:3])
    council = Council().learn(source)
    sound(council.adapt(source, TARGET), 30)
    assert json.dumps(council.facts(), allow_nan=False)


@pytest.mark.parametrize("witness", ["codes", "kernels", "linear", "trees"])
def test_a_single_seat_is_enough(witness):
    council = Council(CouncilSettings(witnesses=(witness,), views=("standardised",))).learn(SOURCE)
    heard = council.adapt(SOURCE, TARGET)
    sound(heard, 30)
    assert right(heard) > 0.7


# recordings, dead channels, targets that lack classes, failures


def test_a_known_label_is_that_of_its_whole_recording(learnt):
    known = np.full(30, UNKNOWN)
    known[[0, 3, 4, 5]] = 2, 1, 1, 0
    heard = learnt.unadapted().adapt(None, TARGET, TargetInfo(few_labels=known, groups=GROUPS))
    assert heard.probabilities[:6].argmax(axis=1).tolist() == [2, 2, 2, 1, 1, 1]
    assert (heard.probabilities[:6].max(axis=1) == 1).all()


def test_seats_learn_again_without_a_channel_that_is_dead_in_the_target(learnt):
    council, blank = learnt.unadapted(), with_still_channel(T)
    heard = council.adapt(SOURCE, blank)
    assert council.shifts is not None
    assert [shift.kind for shift in council.shifts.shifts] == ["dead"]
    without = Council(QUICK).learn(labelled(council.shifts.undo_source(X.astype(np.float32)), Y))
    other = without.adapt(None, as_windows(council.shifts.undo(blank.values)))
    assert np.array_equal(other.probabilities, heard.probabilities)
    again = Council(QUICK).restore(json.loads(json.dumps(council.facts())), council.arrays())
    assert same(again.predict(blank), council.predict(blank))
    assert same(again.unadapted().predict(TARGET), learnt.predict(TARGET))


def test_standardised_views_are_not_heard_where_they_make_the_target_less_likely():
    levels = X + 5 * Y[:, None, None]
    council = Council(QUICK).learn(labelled(levels, Y))
    heard = council.adapt(None, as_windows(levels[Y == 0]))  # its own mean is not that of all classes
    recorded = np.array([view == "recorded" for _, view in council.seat_names])
    assert recorded.sum() == len(QUICK.witnesses)
    assert (heard.evidence[:, ~recorded] == 0).all()
    assert (heard.probabilities.argmax(axis=1) == 0).all()


def test_a_call_that_fails_leaves_what_was(learnt):
    council = learnt.unadapted()
    council.adapt(SOURCE, TARGET)
    before = dict(bytes_of(council))
    with refusal("target", "channel"):
        council.adapt(SOURCE, as_windows(T[:, :1]))
    assert dict(bytes_of(council)) == before
