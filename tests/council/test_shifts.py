"""Shifts of sensors: put on, found without labels, told and taken off again."""

import json

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.council.shifts import KINDS, TURNS, Shift, find_shift, find_triads, is_rotation_rate
from transpl.council.shifts.search import dead_channels, unit_factors
from transpl.council.shifts.spectra import ClassModels, FeatureLayout

MODEST = settings(deadline=None, max_examples=40)
NAMES = ("acc_x", "acc_y", "acc_z")
XYZ = ((0, 1, 2),)


def carried(seed, n=90, length=64, gain=1.0):
    """Three activities of a device that feels gravity: held upright, tilted and shaken, lying and swung.

    Each axis follows the one before by a sixth of a beat, as in a swing that is no straight line.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    time = np.arange(length)
    gravity = np.array([[0.2, 0.9, 0.3], [0.6, 0.7, -0.2], [0.1, 0.3, 0.95]])[y]
    lag = np.arange(3)[:, None] / 6
    beat = np.sin(2 * np.pi * (time / 12 + rng.random((n, 1, 1)) - lag))
    swing = np.array([[0.05, 0.02, 0.03], [0.8, 0.2, 0.1], [0.1, 0.5, 0.2]])[y]
    X = gravity[..., None] + gain * swing[..., None] * (beat + 0.4 * beat**2)
    return (X + rng.normal(0, 0.05, X.shape)).astype(np.float32), y


SOURCE, Y = carried(0)
TARGET, _ = carried(1, gain=1.1)


def found(target, **options):
    return find_shift(SOURCE, Y, target, **{"channel_names": NAMES, **options})


# turns, triads


def test_there_are_24_different_proper_turns_and_the_first_does_nothing():
    assert len(set(TURNS)) == 24
    assert TURNS[0] == ((0, 1, 2), (1, 1, 1))
    for order, signs in TURNS:
        matrix = np.zeros((3, 3))
        matrix[range(3), order] = signs
        assert np.linalg.det(matrix) == pytest.approx(1)


@pytest.mark.parametrize(
    ("names", "triads"),
    [
        (("ax", "ay", "az", "wx", "wy", "wz"), ((0, 1, 2), (3, 4, 5))),
        (("accX", "accY", "accZ"), ((0, 1, 2),)),
        (("body_acc_x", "body_acc_y", "body_acc_z", "ecg"), ((0, 1, 2),)),
        (("body_gyro_z", "body_gyro_x", "body_gyro_y"), ((1, 2, 0),)),
        (("x", "y", "z"), ((0, 1, 2),)),
        (("ecg", "acc_x", "acc_y"), ()),
    ],
)
def test_names_show_triads(names, triads):
    assert find_triads(None, names, len(names)) == triads


def test_triads_can_be_given_by_name_or_number():
    assert find_triads([("b", 0, "c")], ("a", "b", "c"), 3) == ((1, 0, 2),)
    assert find_triads(None, None, 3) == ()


@pytest.mark.parametrize("triads", [[("acc_x", "acc_y", "up")], [(0, 1)], [(0, 1, 3)], [(0, 1, 1)], ["xyz"]])
def test_a_wrong_triad_is_refused(triads):
    with refusal("triads"):
        find_triads(triads, NAMES, 3)


def test_a_gyroscope_is_known_by_its_name():
    assert is_rotation_rate((0, 1, 2), ("wx", "wy", "wz"))
    assert is_rotation_rate((0, 1, 2), ("body_gyro_x", "body_gyro_y", "body_gyro_z"))
    assert not is_rotation_rate((0, 1, 2), NAMES)
    assert not is_rotation_rate((0, 1, 2), None)


# one shift: put on, taken off, told, stored


def test_a_quarter_turn_by_hand():
    # about z: x shows -y, y shows x.
    shift = Shift.turn(((1, 0, 2), (-1, 1, 1)), XYZ, 3)
    assert shift.cause(np.array([[[1.0], [2.0], [3.0]]])).tolist() == [[[-2.0], [1.0], [3.0]]]
    assert shift.sentence(NAMES) == "The device sits turned by 90 degrees about z: undone."


shapes = st.integers(3, 7)


@st.composite
def geometric_shifts(draw):
    D = draw(shapes)
    kind = draw(st.sampled_from(["turn", "flip", "swap"]))
    if kind == "turn":
        channels = draw(st.permutations(range(D)))
        return Shift.turn(draw(st.sampled_from(TURNS)), [tuple(channels[:3])], D)
    if kind == "flip":
        return Shift.flip([draw(st.integers(0, D - 1))], D)
    first, second = draw(st.permutations(range(D)))[:2]
    return Shift.swap(first, second, D)


@MODEST
@given(geometric_shifts())
def test_undoing_what_was_caused_gives_the_same_numbers(shift):
    X = np.random.default_rng(0).normal(size=(2, len(shift.order), 5)).astype(np.float32)
    np.testing.assert_array_equal(shift.undo(shift.cause(X)), X)
    np.testing.assert_array_equal(shift.cause(shift.undo(X)), X)


@MODEST
@given(
    geometric_shifts()
    | st.builds(Shift, kind=st.just("unit"), factors=st.tuples(st.floats(0.001, 1000)))
    | st.builds(Shift, kind=st.just("pace"), rate=st.sampled_from([0.5, 2 / 3, 2.0]))
    | st.builds(lambda d, v: Shift("dead", dead=(d,), fill=(v,)), st.integers(0, 5), st.floats(-9, 9))
)
def test_a_shift_survives_json(shift):
    assert Shift.from_json(json.loads(json.dumps(shift.to_json()))) == shift
    assert "\n" not in shift.sentence([f"c{d}" for d in range(8)][: len(shift.order) or len(shift.factors) or 8])


def test_undoing_a_pace_keeps_the_shape_and_restores_the_beat():
    slow = np.sin(2 * np.pi * np.arange(64) / 16)[None, None].astype(np.float32)
    fast = np.sin(2 * np.pi * np.arange(64) / 8)[None, None].astype(np.float32)
    for shift, suffered, beat in ((Shift("pace", rate=2.0), slow, 1 / 8), (Shift("pace", rate=0.5), fast, 1 / 16)):
        undone = shift.undo(suffered)
        assert undone.shape == suffered.shape
        spectrum = np.abs(np.fft.rfft(undone[0, 0] - undone.mean()))
        assert np.fft.rfftfreq(64)[spectrum.argmax()] == pytest.approx(beat)


def test_sentences_name_channels():
    assert Shift.flip([1], 3).sentence(NAMES) == "The sign of acc_y is reversed: undone."
    assert Shift.swap(0, 2, 3).sentence(NAMES) == "acc_x and acc_z are swapped: undone."
    assert Shift("dead", dead=(1,), fill=(0.0,)).sentence(NAMES) == "acc_y shows nothing in the target: left out."
    assert "9.81 times" in Shift("unit", factors=(9.81, 1.0, 1.0)).sentence(NAMES)
    assert Shift().sentence() == "No shift that could be undone was found."


def test_senseless_shifts_are_refused():
    with refusal("kind"):
        Shift("bent")
    with refusal("order, signs"):
        Shift("swap", order=(0, 0), signs=(1, 1))
    with refusal("signs"):
        Shift("flip", order=(0,), signs=(2,))
    with refusal("rate"):
        Shift("pace", rate=0.0)
    with refusal("fill"):
        Shift("dead", dead=(0,))
    with refusal("data"):
        Shift.from_json({"kind": "flip"})
    with refusal("values"):
        Shift.flip([0], 3).undo(np.zeros((1, 2, 8)))


# the search


def test_nothing_is_found_where_nothing_happened():
    result = found(TARGET)
    assert result.shifts == ()
    assert result.sentences(NAMES) == ("No shift that could be undone was found.",)
    np.testing.assert_array_equal(result.undo(TARGET), TARGET)


@pytest.mark.parametrize("turn", TURNS[1:])
def test_every_turn_of_the_cube_is_found_and_undone(turn):
    result = found(Shift.turn(turn, XYZ, 3).cause(TARGET))
    assert [shift.kind for shift in result.shifts] == ["turn"]
    np.testing.assert_array_equal(result.undo(Shift.turn(turn, XYZ, 3).cause(TARGET)), TARGET)


def test_a_reversed_axis_and_swapped_axes_are_found():
    for shift in (Shift.flip([1], 3), Shift.swap(0, 1, 3)):
        (undone,) = found(shift.cause(TARGET)).shifts
        assert (undone.order, undone.signs) == (shift.order, shift.signs)


def test_a_mirror_is_found_with_the_signs_that_a_gyroscope_would_show():
    # the other wrist, mirrored in x: acceleration changes the sign of x, a rotation those of y and z.
    names = (*NAMES, "gyro_x", "gyro_y", "gyro_z")
    both = (np.concatenate([X, np.roll(X, 1, axis=1) - 0.3], axis=1) for X in (SOURCE, TARGET))
    source, target = both
    mirror = Shift.flip([0, 4, 5], 6, kind="mirror")
    assert find_shift(source, Y, mirror.cause(target), channel_names=names).shifts == (mirror,)
    assert find_shift(source, Y, target, channel_names=names).shifts == ()


def test_without_triads_single_channels_are_searched():
    result = found(Shift.flip([1], 3).cause(TARGET), channel_names=None)
    assert result.shifts == (Shift.flip([1], 3),)


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_another_pace_is_found(rate):
    shift = Shift("pace", rate=rate)
    long, _ = carried(2, length=128)
    assert shift in found(shift.cause(long)[..., :64]).shifts


def test_a_unit_and_a_turn_are_found_together():
    turn = Shift.turn(TURNS[-1], XYZ, 3)
    result = found(9.80665 * turn.cause(TARGET))
    assert [shift.kind for shift in result.shifts] == ["unit", "turn"]
    np.testing.assert_allclose(result.undo(9.80665 * turn.cause(TARGET)), TARGET, rtol=1e-5)


def test_a_dead_channel_is_left_out_on_both_sides():
    broken = TARGET.copy()
    broken[:, 2] = -0.25
    result = found(broken)
    assert [shift.kind for shift in result.shifts] == ["dead"]
    assert result.shifts[0].dead == (2,)
    blank, blank_source = result.undo(broken), result.undo_source(SOURCE)
    assert len(np.unique(blank[:, 2])) == 1
    assert np.unique(blank_source[:, 2]) == np.unique(blank[:, 2])
    np.testing.assert_array_equal(blank[:, :2], TARGET[:, :2])


def test_a_channel_that_the_source_never_had_is_not_called_dead():
    silent = SOURCE.copy()
    silent[:, 0] = 0
    assert dead_channels(silent, silent) == Shift()


def test_a_person_who_only_rests_has_neither_a_dead_channel_nor_another_unit():
    rests = TARGET[np.arange(len(TARGET)) % 3 == 0]
    assert dead_channels(SOURCE, rests) == Shift()
    assert unit_factors(SOURCE, rests, XYZ) == Shift()


def test_only_allowed_kinds_are_undone_and_the_rest_is_reported():
    turned = Shift.turn(TURNS[5], XYZ, 3).cause(TARGET)
    for allow in ("none", "unit", ("flip", "pace")):
        result = found(turned, allow=allow)
        assert "turn" not in [shift.kind for shift in result.shifts]
        assert any(candidate.clear for candidate in result.candidates if candidate.shift.kind == "turn")


def test_the_same_seed_gives_the_same_answer_and_it_can_be_stored():
    first, again = found(TARGET), found(TARGET)
    assert first == again
    stored = json.loads(json.dumps(first.to_json()))
    assert len(stored["candidates"]) == len(first.candidates) == 23 + 3 + 3 + 6


def test_bad_input_is_refused():
    with refusal("allow"):
        found(TARGET, allow="bend")
    with refusal("target", "channel"):
        found(TARGET[:, :2])
    with refusal("y"):
        find_shift(SOURCE, Y[:5], TARGET)
    with refusal("triads"):
        found(TARGET, triads=[("acc_x", "acc_y", "up")])


# whatever comes, the search says something or nothing


def nothing(result, values):
    undone = result.undo(values)
    assert result.shifts == ()
    np.testing.assert_array_equal(undone, values)
    json.dumps(result.to_json(), allow_nan=False)


def test_nothing_is_searched_in_windows_that_are_ragged_or_too_short():
    ragged = [TARGET[0], TARGET[1][:, :40]]
    for result in (
        found(ragged),
        find_shift(ragged, [0, 1], TARGET, channel_names=NAMES),
        found(TARGET[..., :15]),
    ):
        assert result.candidates == ()
        assert result.sentences(NAMES) == ("No shift that could be undone was found.",)
        nothing(result, TARGET)
    nothing(found(TARGET[..., :15]), TARGET[..., :15])


def test_one_target_window_decides_nothing():
    nothing(found(TARGET[:1]), TARGET[:1])
    nothing(found(Shift.turn(TURNS[3], XYZ, 3).cause(TARGET[:1])), TARGET[:1])


def test_a_source_of_one_class_or_one_window_is_searched():
    nothing(find_shift(SOURCE[Y == 1], Y[Y == 1], TARGET[Y == 1], channel_names=NAMES), TARGET)
    json.dumps(find_shift(SOURCE[:1], Y[:1], TARGET, channel_names=NAMES).to_json(), allow_nan=False)


@pytest.mark.parametrize("constant", ["source", "target", "both"])
@pytest.mark.parametrize("channels", [[1], [0, 1, 2]])
def test_constant_channels_do_no_harm(constant, channels):
    source, target = SOURCE.copy(), TARGET.copy()
    if constant != "target":
        source[:, channels] = 0
    if constant != "source":
        target[:, channels] = 3
    result = find_shift(source, Y, target, channel_names=NAMES)
    assert {shift.kind for shift in result.shifts} <= {"dead"}
    assert np.isfinite(result.undo(target)).all()
    json.dumps(result.to_json(), allow_nan=False)


def test_half_precision_and_short_windows_are_searched():
    turned = Shift.turn(TURNS[7], XYZ, 3).cause(TARGET)
    result = find_shift(SOURCE.astype(np.float16), Y, turned.astype(np.float16), channel_names=NAMES)
    assert [shift.kind for shift in result.shifts] == ["turn"]
    find_shift(SOURCE[..., :16], Y, TARGET[..., :16], channel_names=NAMES)


@pytest.mark.parametrize("n_channels", [1, 2, 50])
def test_any_number_of_channels_is_searched(n_channels):
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(2, 30, n_channels, 32)).astype(np.float32)
    nothing(find_shift(source, np.arange(30) % 2, target), target)


def test_the_caller_s_arrays_stay_as_they_are():
    source, target = SOURCE.copy(), 9.80665 * Shift.flip([0], 3).cause(TARGET)
    kept = target.copy()
    find_shift(source, Y, target, channel_names=NAMES)
    np.testing.assert_array_equal(source, SOURCE)
    np.testing.assert_array_equal(target, kept)


# the evidence


@MODEST
@given(st.permutations(range(4)), st.lists(st.sampled_from([1, -1]), min_size=4, max_size=4), st.integers(8, 40))
def test_features_of_moved_channels_are_the_moved_features(order, signs, length):
    X = np.random.default_rng(length).normal(size=(5, 4, length))
    layout = FeatureLayout.of(4, length)
    columns, sign = layout.moved(order, signs)
    moved = layout.features(X[:, order] * np.array(signs)[:, None])
    np.testing.assert_allclose(moved, layout.features(X)[:, columns] * sign, atol=1e-9)


def test_a_moved_model_scores_as_one_learnt_from_moved_windows():
    groups, shift = ((0, 1, 2),), Shift.turn(TURNS[12], XYZ, 3)
    layout = FeatureLayout.of(3, 64)
    f, seen = layout.features(SOURCE), layout.features(TARGET)
    moved = ClassModels.fit(layout, f, Y, groups).scores(seen, [((0, 1, 2), (1, 1, 1)), (shift.order, shift.signs)])
    learnt = ClassModels.fit(layout, layout.features(shift.cause(SOURCE)), Y, groups)
    np.testing.assert_allclose(moved[1], learnt.scores(seen, [((0, 1, 2), (1, 1, 1))])[0], rtol=1e-6)


def test_kinds_are_what_a_shift_may_be():
    assert [Shift(kind).kind for kind in KINDS if kind != "turn"] == [kind for kind in KINDS if kind != "turn"]
