"""A source model is trained once for the same rows and settings, whatever it was adapted to since."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl._utils.errors import UnreadableFile
from transpl.jobs.kept_sources import WantedSource

X, Y = make_waves(24, 0)
VALIDATION = make_waves(12, 1)
TARGET, _ = make_waves(16, 2, gain=1.5)
ROWS = (X, Y, *VALIDATION)
OTHER_ROWS = {
    "a sample differs": (X + 1e-6, Y, *VALIDATION),
    "a label differs": (X, np.roll(Y, 1), *VALIDATION),
    "labels of another type": (X, Y.astype(str), *VALIDATION),
    "a validation label differs": (X, Y, VALIDATION[0], np.roll(VALIDATION[1], 1)),
    "no validation": (X, Y),
}


def wanted(*rows, **changes):
    return WantedSource(TransPL(**{**TINY, **changes}), *(rows or ROWS))


def keep(home, source, adapt=None):
    model = source.model.fit(*source.rows)
    if adapt:
        model.adapt(TARGET, mode=adapt)
    model.save(home)
    source.record(home)
    return model


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    out = tmp_path_factory.mktemp("kept")
    keep(out, wanted())
    return out


@pytest.mark.parametrize("rows", [ROWS, (X, Y)], ids=["with validation", "without"])
@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_after_an_adaptation_the_source_model_is_as_it_was(tmp_path, rows, mode):
    expected = wanted(*rows).model.fit(*rows).predict_proba(TARGET)
    adapted = keep(tmp_path, wanted(*rows), adapt=mode).predict_proba(TARGET)
    kept = wanted(*rows).kept_in(tmp_path)
    assert kept is not None
    assert kept.mode_ == "source"
    np.testing.assert_array_equal(kept.predict_proba(TARGET), expected)
    kept.adapt(TARGET, mode=mode)
    np.testing.assert_array_equal(kept.predict_proba(TARGET), adapted)


@pytest.mark.parametrize("rows", OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_other_rows_are_another_source(home, rows):
    assert wanted(*rows).kept_in(home) is None
    with refusal("source_from", "trained on other windows or labels"):
        wanted(*rows).demanded_from(home)


LABELS = {
    "text as objects": lambda: np.array([f"class {k}" for k in Y], dtype=object),
    "numpy numbers as objects": lambda: np.array([np.int64(10**k) for k in Y], dtype=object),
    "a series": lambda: pd.Series(Y),
    "a list": lambda: Y.tolist(),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_in_any_kind_of_array_are_told_apart(tmp_path, labels):
    """An array of objects holds addresses, which are not what counts."""
    keep(tmp_path, wanted(X, labels()))
    assert wanted(X, labels()).kept_in(tmp_path) is not None
    assert wanted(X, list(labels())[::-1]).kept_in(tmp_path) is None


def test_windows_of_unequal_length_are_a_source_too(tmp_path):
    ragged = [window[:, : 24 + 8 * (row % 2)] for row, window in enumerate(X)]
    keep(tmp_path, wanted(ragged, Y))
    assert wanted(list(ragged), Y).kept_in(tmp_path) is not None
    assert wanted([*ragged[:-1], X[-1][:, :16]], Y).kept_in(tmp_path) is None


def test_other_settings_of_the_source_phase_are_another_source(home):
    assert wanted(random_state=1).kept_in(home) is None
    with refusal("source_from", "trained with another n_coarse, source_lr."):
        wanted(n_coarse=5, source_lr=1e-4, sigma=0.3).demanded_from(home)
    assert wanted(random_state=np.int64(0), width=np.int64(TINY["width"])).kept_in(home) is not None


NOT_OF_THE_SOURCE = {
    "sigma": {"sigma": 0.05},
    "what is learnt from": {"top_ratio": 0.9, "adapt_lr": 1e-3, "warmup_steps": 2},
    "how labels are made": {"confidence": "kl", "smoothing": "additive"},
}


@pytest.mark.parametrize("changes", NOT_OF_THE_SOURCE.values(), ids=NOT_OF_THE_SOURCE)
@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_a_kept_source_adapts_as_a_new_one_with_these_settings_would(tmp_path, changes, mode):
    keep(tmp_path, wanted(sigma=0.3), adapt=mode)
    new = wanted(**changes).model.fit(*ROWS).adapt(TARGET, mode=mode)
    kept = wanted(**changes).demanded_from(tmp_path).adapt(TARGET, mode=mode)
    assert kept.get_params() == new.get_params()
    assert kept.own_mode == new.own_mode
    np.testing.assert_array_equal(kept.predict_proba(TARGET), new.predict_proba(TARGET))
    np.testing.assert_array_equal(kept.channel_weights_, new.channel_weights_)
    np.testing.assert_array_equal(kept.class_counts_.counts, new.class_counts_.counts)
    assert kept.history_ == new.history_


def test_a_record_of_before_which_names_all_parameters_still_holds(tmp_path):
    keep(tmp_path, wanted())
    path = tmp_path / "source.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "settings": TransPL(**TINY).get_params()}))
    assert wanted(sigma=0.3).kept_in(tmp_path) is not None
    assert wanted(source_lr=1e-4).kept_in(tmp_path) is None


def test_another_way_to_work_is_not(home, tmp_path):
    how = {"n_threads": 1, "verbose": True, "checkpoint_dir": tmp_path, "device": "cpu"}
    kept = wanted(**how).kept_in(home)
    assert {name: getattr(kept, name) for name in how} == how


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)], ids=["none", "generator"])
def test_what_chance_decides_is_trained_anew(tmp_path, seed):
    keep(tmp_path, wanted(random_state=0))
    keep(tmp_path, wanted(random_state=seed))
    assert wanted(random_state=0).kept_in(tmp_path) is None
    assert wanted(random_state=seed).kept_in(tmp_path) is None


def test_a_folder_of_a_job_or_of_a_model_is_given(home, tmp_path):
    keep(tmp_path / "model", wanted())
    for folder in (tmp_path, tmp_path / "model", home):
        assert wanted().demanded_from(folder).mode_ == "source"


def test_what_is_missing_foreign_or_replaced_is_not_taken(tmp_path):
    with refusal("source_from", "where there is no model"):
        wanted().demanded_from(tmp_path)
    keep(tmp_path, wanted())
    path = tmp_path / "source.json"
    record = json.loads(path.read_text())
    for change, words in (
        ([], "not of its model"),
        ({**record, "model": "other"}, "not of its model"),
        ({**record, "version": "0.0.0"}, "made by version 0.0.0"),
        ({**record, "settings": None}, "another set of settings"),
        ({**record, "settings": {}}, "trained with another .*patch_length, width"),
    ):
        path.write_text(json.dumps(change))
        assert wanted().kept_in(tmp_path) is None
        with refusal("source_from", words):
            wanted().demanded_from(tmp_path)
    path.write_text("half a li")
    assert wanted().kept_in(tmp_path) is None
    with pytest.raises(UnreadableFile, match=r"source\.json"):
        wanted().demanded_from(tmp_path)
    path.unlink()
    with refusal("source_from", "does not say what its source was"):
        wanted().demanded_from(tmp_path)
    path.write_text(json.dumps(record))
    assert wanted().kept_in(tmp_path) is not None
    TransPL(**TINY).fit(*make_waves(24, 5)).save(tmp_path)
    assert wanted().kept_in(tmp_path) is None


def test_a_source_model_that_is_there_is_not_written_again(tmp_path):
    home, source = tmp_path / "model", wanted()
    source.leave(source.model.fit(*source.rows), home)
    written = {path: path.stat().st_mtime_ns for path in home.iterdir()}
    wanted().leave(wanted().kept_in(home), home)
    assert {path: path.stat().st_mtime_ns for path in home.iterdir()} == written
    other = wanted(sigma=0.01)
    other.leave(other.kept_in(home), home)
    assert TransPL.load(home).sigma == 0.01
    assert wanted().kept_in(home) is not None, "its source is still said"
    (home / "model.json").write_text("{")
    other.leave(source.model, home)
    assert other.kept_in(home) is not None
