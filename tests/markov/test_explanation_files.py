"""An explanation on disk: whole to the last bit, or refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import made_up

from transpl import Explanation
from transpl._utils.errors import UnreadableFile
from transpl.markov import TransitionCounts

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
    arrays = dict(np.load(path))
    about = json.loads(arrays["about"].tobytes())
    for name, value in change.items():
        (arrays if isinstance(value, np.ndarray | None) else about)[name] = value
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


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
