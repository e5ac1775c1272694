"""Explanations: parts that add up, files, sentences, and the windows to explain."""

from __future__ import annotations

import json
import math
import re
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import CHANNELS, CLASSES, edit_saved, made_up

from transpl import Explanation
from transpl._utils.errors import UnreadableFile
from transpl.markov import TransitionCounts, confidence, windows_to_explain
from transpl.markov.explanation import equal_quotas, listed

PRIOR = np.array([0.2, 0.3, 0.5])
CASES = [
    {},
    {"ragged": True},
    {"smoothing": "additive"},
    {"length": "codes"},
    {"prior": PRIOR, "prior_temperature": 2.5},
    {"ragged": True, "length": "codes", "prior": PRIOR},
    {"absent": 1},
    {"weights": (1e-9, 1e-8, 1e-9, 1e-8)},
    {"weights": (0.4,)},
    {"shares": np.array([0.75, 0.0, 0.0, 0.25]), "absent": 1},
]


def softmax(scores):
    parts = [math.exp(score - max(scores)) for score in scores]
    return [part / sum(parts) for part in parts]


def by_loops(e, w):
    """Probabilities of one window from the stored numbers, in plain Python."""
    K = len(e.classes)
    prior = [0.0 if e.prior is None else math.log(e.prior[k]) / e.prior_temperature for k in range(K)]
    y = [0.0] * K
    for d, share in enumerate(e.shares.tolist()):
        s = [code for code in e.codes[w, d].tolist() if code >= 0]
        L = len(s) - 1 + (e.length == "codes")
        scores = [sum(float(e.log_probabilities[k, d, i, j]) for i, j in pairwise(s)) / L for k in range(K)]
        says = softmax([scores[k] + prior[k] for k in range(K)])
        y = [y[k] + share * says[k] for k in range(K)]
    return [p / sum(y) for p in y]


@pytest.mark.parametrize("case", CASES)
def test_stored_numbers_give_the_probabilities(case):
    e = made_up(**case)
    np.testing.assert_allclose(e.probabilities, [by_loops(e, w) for w in range(len(e))], atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_parts_add_up(case):
    e = made_up(1, **case)
    np.testing.assert_allclose(e.votes.sum(axis=1), e.probabilities, atol=1e-12)
    np.testing.assert_allclose(e.probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(e.posteriors.sum(axis=2), 1, atol=1e-12)
    sums = e.transition_log_probabilities.sum(axis=2) / e.divisors[..., None]
    np.testing.assert_allclose(sums, e.log_likelihoods, atol=1e-12)


def test_labels_and_confidence_are_those_of_the_vote():
    e = made_up()
    assert e.labels.tolist() == [CLASSES[k] for k in e.probabilities.argmax(axis=1)]
    assert e.answer_labels.tolist() == [CLASSES[k] for k in e.answers.argmax(axis=1)]
    assert np.array_equal(e.confidence, e.probabilities.max(axis=1))
    assert np.array_equal(replace(e, confidence_rule="kl").confidence, confidence(e.probabilities, "kl"))


def test_a_class_without_source_rows_gets_probability_zero():
    assert (made_up(absent=1).probabilities[:, 1] == 0).all()


def test_order_of_classes_and_channels_changes_nothing_else():
    e = made_up(prior=PRIOR)
    c, d = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    turned = replace(
        e,
        classes=e.classes[c],
        channel_names=tuple(e.channel_names[i] for i in d),
        codes=e.codes[:, d],
        log_probabilities=e.log_probabilities[c][:, d],
        distances=e.distances[d],
        weights=e.weights[d],
        shares=e.shares[d],
        answers=e.answers[:, c],
        prior=e.prior[c],
        signals=e.signals[:, d],
    )
    np.testing.assert_allclose(turned.probabilities, e.probabilities[:, c], atol=1e-12)
    np.testing.assert_allclose(turned.posteriors, e.posteriors[:, d][..., c], atol=1e-12)
    assert [turned.sentence(w) for w in range(len(e))] == [e.sentence(w) for w in range(len(e))]
    one, other = e.top_evidence(3), turned.top_evidence(3)
    assert [t.channel for t in one.transitions_for] == [t.channel for t in other.transitions_for]
    assert [t.contribution for t in one.transitions_for] == pytest.approx(
        [t.contribution for t in other.transitions_for], abs=1e-12
    )


@pytest.mark.parametrize(
    ("rows", "kept"),
    [(3, [3]), (slice(2, 5), [2, 3, 4]), ([5, 1], [5, 1]), (np.arange(12) > 9, [10, 11]), (-1, [11]), (slice(0), [])],
)
def test_rows_are_chosen_whole(rows, kept):
    e = made_up()
    some, kept = e[rows], np.array(kept, int)
    assert len(some) == len(kept)
    assert some.windows.tolist() == (100 + kept).tolist()
    assert np.array_equal(some.codes, e.codes[kept])
    assert np.array_equal(some.signals, e.signals[kept])
    assert np.array_equal(some.nearest.rows, e.nearest.rows[kept])
    np.testing.assert_allclose(some.probabilities, e.probabilities[kept], rtol=1e-15)


def test_a_choice_may_lack_signals_and_neighbours():
    e = made_up(signals=None, nearest=None)[2]
    assert (e.signals, e.nearest) == (None, None)


@pytest.mark.parametrize("window", [12, -1, 1.5, True, "0"])
def test_a_window_that_is_not_there_is_refused(window):
    with refusal("window", r"0\.\.11"):
        made_up().sentence(window)


@pytest.mark.parametrize(
    "change",
    [
        {"answers": np.ones((12, 2))},
        {"distances": np.ones(3)},
        {"prior": np.ones(2)},
        {"signals": np.ones((12, 4))},
        {"log_probabilities": np.zeros((3, 4, 5, 4))},
        {"windows": np.arange(3)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change):
    with refusal(next(iter(change))):
        made_up(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "guess"},
        {"length": "long"},
        {"confidence_rule": "x"},
        {"prior_temperature": 0},
    ],
)
def test_settings_that_do_not_exist_are_refused(change):
    with refusal(next(iter(change))):
        made_up(**change)


def test_channel_names_are_kept_as_they_are():
    assert made_up(channel_names=list(CHANNELS)).channel_names == CHANNELS


# An explanation on disk: whole to the last bit, or refused


ARRAYS = ("codes", "log_probabilities", "distances", "weights", "shares", "answers", "windows")


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"ragged": True, "prior": np.array([0.1, 0.2, 0.7]), "prior_temperature": 1 / 3, "length": "codes"},
        {"signals": None, "nearest": None, "absent": 1, "mode": "markov", "confidence_rule": "kl"},
    ],
)
def test_everything_comes_back_to_the_last_bit(tmp_path, case):
    e = made_up(**case)
    e.save(tmp_path / "e.npz")
    again = Explanation.load(tmp_path / "e.npz")
    for name in (*ARRAYS, "probabilities", "posteriors", "labels"):
        assert np.array_equal(getattr(again, name), getattr(e, name)), name
        assert getattr(again, name).dtype == getattr(e, name).dtype, name
    for name in ("channel_names", "mode", "patch_length", "prior_temperature", "length", "confidence_rule"):
        assert getattr(again, name) == getattr(e, name)
    for name in ("prior", "signals"):
        one, other = getattr(again, name), getattr(e, name)
        assert one is other if other is None else np.array_equal(one, other)
    assert (again.nearest is None) == (e.nearest is None)
    if e.nearest is not None:
        assert all(np.array_equal(vars(again.nearest)[name], value) for name, value in vars(e.nearest).items())
    assert [again.sentence(w) for w in range(len(e))] == [e.sentence(w) for w in range(len(e))]


@pytest.mark.parametrize(
    "classes",
    [np.array([0, 1, 7]), np.array([0.5, 1, 2]), np.array(["a", "ä b", "c"], object), np.array(["a", "b\nc", "漢"])],
)
def test_labels_of_any_plain_type_survive(tmp_path, classes):
    e = made_up(classes=classes, nearest=None)
    e.save(tmp_path / "e.npz")
    again = Explanation.load(tmp_path / "e.npz")
    assert again.classes.tolist() == classes.tolist()
    assert again.classes.dtype == classes.dtype


def test_no_window_at_all_survives(tmp_path):
    made_up()[:0].save(tmp_path / "e.npz")
    again = Explanation.load(tmp_path / "e.npz")
    assert len(again) == 0
    assert again.nearest.labels.shape == (0, 3)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "e.npz"
    made_up().save(path)
    before = path.read_bytes()

    def crash(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", crash)
    with pytest.raises(OSError, match="disk full"):
        made_up(1).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["e.npz"]


def edited(path, **change):
    """Save an explanation with other fields than it had."""
    made_up().save(path)
    edit_saved(path, change)


@pytest.mark.parametrize(
    "change",
    [
        {"codes": None},
        {"codes": np.zeros((2, 4, 9), np.int8)},
        {"codes": np.full((12, 4, 9), 5, np.int8)},
        {"answers": np.zeros((12, 4))},
        {"log_probabilities": np.zeros(())},
        {"nearest_rows": np.zeros((2, 3), int)},
        {"nearest_rows": None},
        {"format": "transpl-explanation-2"},
        {"mode": "guess"},
        {"mode": ["finetune"]},
        {"prior_temperature": "hot"},
        {"channel_names": ["x"]},
        {"channel_names": 4},
        {"classes": {"dtype": "nonsense", "values": []}},
        {"nearest_labels": [["sit"]]},
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, change):
    edited(tmp_path / "e.npz", **change)
    with refusal(tmp_path / "e.npz", "Write it with Explanation.save", UnreadableFile) as caught:
        Explanation.load(tmp_path / "e.npz")
    assert "\n" not in str(caught.value)


def test_foreign_files_are_refused_in_one_line(tmp_path):
    made_up().save(tmp_path / "whole.npz")
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "pickled.npz", about=np.array([{}], object))
    np.savez(tmp_path / "other.npz", X=np.zeros(3))
    np.savez(tmp_path / "about.npz", about=np.frombuffer(b"[1, 2]", np.uint8))
    TransitionCounts.empty(2, 3).save(tmp_path / "counts.npz")
    for name in ("half", "text", "pickled", "other", "about", "counts", "absent"):
        with refusal(tmp_path / f"{name}.npz", error=UnreadableFile) as caught:
            Explanation.load(tmp_path / f"{name}.npz")
        assert "\n" not in str(caught.value)


def test_nothing_in_the_file_is_a_pickle(tmp_path):
    made_up(classes=np.array(["a", "b", "c"], object), nearest=None).save(tmp_path / "e.npz")
    with zipfile.ZipFile(tmp_path / "e.npz") as archive:
        assert all(b"|O" not in archive.read(name)[:128] for name in archive.namelist())


OLDER = {"vote": "mean", "sharpness": 1.0, "classifier_sharpness": None, "temper": 1.0}


def with_settings_of_older_versions(path, **change):
    made_up().save(path)
    arrays = dict(np.load(path))
    about = json.loads(arrays.pop("about").tobytes()) | OLDER | change
    np.savez(path, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    return path


def test_a_file_of_an_older_version_is_read_if_its_vote_is_this_one(tmp_path):
    again = Explanation.load(with_settings_of_older_versions(tmp_path / "e.npz"))
    assert np.array_equal(again.probabilities, made_up().probabilities)
    for change in ({"vote": "product"}, {"classifier_sharpness": 1.0}, {"temper": 0.5}):
        with refusal(tmp_path / "e.npz", "of a vote that this version does not have", UnreadableFile):
            Explanation.load(with_settings_of_older_versions(tmp_path / "e.npz", **change))


# Sentences: true, and in good English


def said(weights, votes, *, answers=None, mode="finetune"):
    """A window whose channels give its classes these probabilities."""
    votes = np.array(votes, float)
    D = len(weights)
    table = np.log(np.broadcast_to(votes.T[:, :, None, None], (3, D, 5, 5)))
    e = made_up(
        n=1,
        weights=weights,
        log_probabilities=np.ascontiguousarray(table),
        answers=np.array([[0.6, 0.2, 0.2] if answers is None else answers]),
        mode=mode,
        channel_names=("total_acc_x", "total_acc_y", "body_acc_z", "body_gyro_z", *"abcdef")[:D],
    )
    return e.sentence(0)


SIT, FLAT, STAND = [0.8, 0.1, 0.1], [0.34, 0.33, 0.33], [0.1, 0.8, 0.1]


def test_the_example_of_the_documentation():
    assert said((1.0, 0.9, 0.12), [SIT, SIT, STAND]) == (
        "sit, 0.76: channel total_acc_x carried 52 % of the vote; body_acc_z was set aside, weight 0.12."
    )


def test_several_channels_that_carry_the_vote_are_joined():
    assert said((1.0, 1.0, 1.0, 0.12), [SIT, SIT, FLAT, STAND]) == (
        "sit, 0.63: channels total_acc_x and total_acc_y carried 82 % of the vote; "
        "body_gyro_z was set aside, weight 0.12."
    )


def test_at_most_three_channels_are_named():
    votes = [[0.5 + i / 100, 0.25, 0.25] for i in range(10)]
    text = said((1.0,) * 10, np.array(votes) / np.sum(votes, axis=1, keepdims=True))
    assert re.search(r": channels f, e and d carried 31 % of the vote\.$", text)


def test_channels_that_carried_alike():
    assert said((1.0,) * 4, [SIT] * 4) == "sit, 0.80: all 4 channels carried about the same part of the vote."
    assert said((0.7, 0.7), [SIT] * 2) == "sit, 0.80: both channels carried about the same part of the vote."


def test_a_single_channel():
    assert said((0.4,), [SIT]) == "sit, 0.80: its one channel, total_acc_x, carried the whole vote."


def test_several_channels_set_aside():
    assert said((1.0, 0.12, 0.001), [SIT, STAND, STAND]).endswith(
        "; body_acc_z and total_acc_y were set aside, weights below 0.01 and 0.12."
    )
    many = said((1.0, *[0.1, 0.2, 0.05, 0.03] * 2), [SIT, *[STAND] * 8])
    assert many.endswith("; 8 channels were set aside, weights 0.03 to 0.20.")
    equal = said((1.0, *[1e-9] * 5), [SIT, *[STAND] * 5])
    assert equal.endswith("; 5 channels were set aside, weights below 0.01.")


def test_channels_that_all_shifted_away():
    assert said((1e-9, 1e-8), [SIT, SIT]) == (
        "sit, 0.80: both channels carried about the same part of the vote; "
        "every channel has shifted away, so all count alike."
    )


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("finetune", "The fine-tuned network answers walk, 0.70."),
        ("source", "The source network, which is not adapted, answers walk, 0.70."),
        ("markov", "With the class proportions given to adapt the answer is walk, 0.70."),
    ],
)
def test_another_answer_is_told(mode, words):
    text = said((1.0,), [SIT], answers=[0.2, 0.1, 0.7], mode=mode)
    assert text == f"sit, 0.80: its one channel, total_acc_x, carried the whole vote. {words}"


def test_parts_are_those_of_the_label():
    e = made_up(3)
    for window in range(len(e)):
        k = e.probabilities[window].argmax()
        parts = e.votes[window, :, k] / e.votes[window, :, k].sum()
        label, p, names, percent = re.match(
            r"(\w+), (\d\.\d\d): channels? ([\w, ]+?) carried (\d+) %", e.sentence(window)
        ).groups()
        chosen = [CHANNELS.index(name) for name in re.split(", | and ", names)]
        assert label == CLASSES[k]
        assert float(p) == round(e.probabilities[window, k], 2)
        assert int(percent) == round(100 * parts[chosen].sum())
        assert set(chosen) == set(np.argsort(-parts)[: len(chosen)])


def test_lists_of_words():
    assert [listed(list("abc")[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


# Which windows are shown


def test_a_few_are_all_shown():
    assert windows_to_explain(np.full((400, 2), 0.5)).tolist() == list(range(400))


def test_half_are_the_least_confident_and_the_rest_are_spread():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6, 0.6, 0.6], 3000)
    chosen = windows_to_explain(p, 60)
    assert len(chosen) == len(set(chosen.tolist())) == 60
    assert (np.diff(chosen) > 0).all()
    doubtful = np.argsort(p.max(axis=1))[:30]
    assert set(doubtful) <= set(chosen)
    rest = np.setdiff1d(chosen, doubtful)
    assert np.bincount(p[rest].argmax(axis=1)).tolist() == [10, 10, 10]
    others = np.setdiff1d(np.arange(3000), doubtful)
    for k in range(3):
        mine = p[others[p[others].argmax(axis=1) == k]].max(axis=1)
        shown = np.sort(p[rest[p[rest].argmax(axis=1) == k]].max(axis=1))
        assert shown[0] == mine.min()
        assert shown[-1] == mine.max()


def test_the_choice_depends_on_nothing_but_the_numbers():
    p = np.random.default_rng(1).dirichlet([1, 1], 500)
    assert np.array_equal(windows_to_explain(p, 50), windows_to_explain(p.copy(), 50))


def test_a_rare_class_is_shown_whole_and_its_room_is_used():
    p = np.tile([0.9, 0.1], (1000, 1))
    p[::400] = [0.02, 0.98]
    chosen = windows_to_explain(p, 100)
    assert len(chosen) == 100
    assert {0, 400, 800} <= set(chosen.tolist())


@pytest.mark.parametrize(
    ("sizes", "total", "quotas"),
    [([9, 9, 9], 6, [2, 2, 2]), ([9, 9, 9], 7, [3, 2, 2]), ([1, 9, 0], 6, [1, 5, 0]), ([1, 1], 5, [1, 1])],
)
def testequal_quotas_are_as_equal_as_sizes_allow(sizes, total, quotas):
    assert equal_quotas(np.array(sizes), total).tolist() == quotas
