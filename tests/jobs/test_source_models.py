"""A source model is trained once for the same rows and settings, whatever it was adapted to since."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl._utils.errors import UnreadableFile
from transpl.jobs.source_models import describe_model, load_source, save_source, source_model_cache

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


class Wanted:
    """A source, and the cache of its model in any folder."""

    def __init__(self, *rows, **changes):
        self.rows, self.model = rows or ROWS, TransPL(**{**TINY, **changes})

    def cache(self, home):
        return source_model_cache(home, self.model, *self.rows)

    def find(self, home):
        return self.cache(home).find()

    def load(self, folder):
        return load_source(self.cache(folder / "elsewhere"), folder)


def keep(home, source, adapt=None):
    model = source.model.fit(*source.rows)
    if adapt:
        model.adapt(TARGET, mode=adapt)
    model.save(home)
    describe_model(source.cache(home), home)
    return model


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    out = tmp_path_factory.mktemp("kept")
    keep(out, Wanted())
    return out


@pytest.mark.parametrize("rows", [ROWS, (X, Y)], ids=["with validation", "without"])
@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_after_an_adaptation_the_source_model_is_as_it_was(tmp_path, rows, mode):
    expected = Wanted(*rows).model.fit(*rows).predict_proba(TARGET)
    adapted = keep(tmp_path, Wanted(*rows), adapt=mode).predict_proba(TARGET)
    kept = Wanted(*rows).find(tmp_path)
    assert kept is not None
    assert kept.mode_ == "source"
    np.testing.assert_array_equal(kept.predict_proba(TARGET), expected)
    kept.adapt(TARGET, mode=mode)
    np.testing.assert_array_equal(kept.predict_proba(TARGET), adapted)


@pytest.mark.parametrize("rows", OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_other_rows_are_another_source(home, rows):
    assert Wanted(*rows).find(home) is None
    with refusal("source_from", "differs in rows"):
        Wanted(*rows).load(home)


LABELS = {
    "text as objects": lambda: np.array([f"class {k}" for k in Y], dtype=object),
    "numpy numbers as objects": lambda: np.array([np.int64(10**k) for k in Y], dtype=object),
    "a series": lambda: pd.Series(Y),
    "a list": lambda: Y.tolist(),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_in_any_kind_of_array_are_told_apart(tmp_path, labels):
    """An array of objects holds addresses, which are not what counts."""
    keep(tmp_path, Wanted(X, labels()))
    assert Wanted(X, labels()).find(tmp_path) is not None
    assert Wanted(X, list(labels())[::-1]).find(tmp_path) is None


def test_windows_of_unequal_length_are_a_source_too(tmp_path):
    ragged = [window[:, : 24 + 8 * (row % 2)] for row, window in enumerate(X)]
    keep(tmp_path, Wanted(ragged, Y))
    assert Wanted(list(ragged), Y).find(tmp_path) is not None
    assert Wanted([*ragged[:-1], X[-1][:, :16]], Y).find(tmp_path) is None


def test_other_settings_of_the_source_phase_are_another_source(home):
    assert Wanted(random_state=1).find(home) is None
    with refusal("source_from", "differs in n_coarse, source_lr"):
        Wanted(n_coarse=5, source_lr=1e-4, sigma=0.3).load(home)
    assert Wanted(random_state=np.int64(0), width=np.int64(TINY["width"])).find(home) is not None


NOT_OF_THE_SOURCE = {
    "sigma": {"sigma": 0.05},
    "what is learnt from": {"top_ratio": 0.9, "adapt_lr": 1e-3, "warmup_steps": 2},
    "how labels are made": {"confidence": "kl", "smoothing": "additive"},
}


@pytest.mark.parametrize("changes", NOT_OF_THE_SOURCE.values(), ids=NOT_OF_THE_SOURCE)
@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_a_kept_source_adapts_as_a_new_one_with_these_settings_would(tmp_path, changes, mode):
    keep(tmp_path, Wanted(sigma=0.3), adapt=mode)
    new = Wanted(**changes).model.fit(*ROWS).adapt(TARGET, mode=mode)
    kept = Wanted(**changes).load(tmp_path).adapt(TARGET, mode=mode)
    assert kept.get_params() == new.get_params()
    assert kept.default_mode == new.default_mode
    np.testing.assert_array_equal(kept.predict_proba(TARGET), new.predict_proba(TARGET))
    np.testing.assert_array_equal(kept.channel_weights_, new.channel_weights_)
    np.testing.assert_array_equal(kept.class_counts_.counts, new.class_counts_.counts)
    assert kept.history_ == new.history_


def test_a_record_that_names_other_parameters_besides_still_holds(tmp_path):
    keep(tmp_path, Wanted())
    path = tmp_path / "source.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "settings": {**TransPL(**TINY).get_params(), **record["settings"]}}))
    assert Wanted(sigma=0.3).find(tmp_path) is not None
    assert Wanted(source_lr=1e-4).find(tmp_path) is None


def test_another_way_to_work_is_not(home, tmp_path):
    how = {"n_threads": 1, "verbose": True, "checkpoint_dir": tmp_path, "device": "cpu"}
    kept = Wanted(**how).find(home)
    assert {name: getattr(kept, name) for name in how} == how


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)], ids=["none", "generator"])
def test_what_chance_decides_is_trained_anew(tmp_path, seed):
    keep(tmp_path, Wanted(random_state=0))
    keep(tmp_path, Wanted(random_state=seed))
    assert Wanted(random_state=0).find(tmp_path) is None
    assert Wanted(random_state=seed).find(tmp_path) is None


def test_a_folder_of_a_job_or_of_a_model_is_given(home, tmp_path):
    keep(tmp_path / "model", Wanted())
    for folder in (tmp_path, tmp_path / "model", home):
        assert Wanted().load(folder).mode_ == "source"


def test_what_is_missing_foreign_or_replaced_is_not_taken(tmp_path):
    with refusal("source_from", "no source model"):
        Wanted().load(tmp_path)
    keep(tmp_path, Wanted())
    path = tmp_path / "source.json"
    record = json.loads(path.read_text())
    for change, words in (
        ({**record, "model": "other"}, "does not describe its model"),
        ({**record, "version": "0.0.0"}, "differs in version"),
        ({**record, "settings": None}, "differs in .*patch_length"),
        ({**record, "settings": {}}, "differs in .*patch_length"),
    ):
        path.write_text(json.dumps(change))
        assert Wanted().find(tmp_path) is None
        with refusal("source_from", words):
            Wanted().load(tmp_path)
    for damaged in ("half a li", "[]"):
        path.write_text(damaged)
        with pytest.warns(UserWarning, match=r"source\.json"):
            assert Wanted().find(tmp_path) is None
        with pytest.raises(UnreadableFile, match=r"source\.json"):
            Wanted().load(tmp_path)
    path.unlink()
    with refusal("source_from", "no source model"):
        Wanted().load(tmp_path)
    path.write_text(json.dumps(record))
    assert Wanted().find(tmp_path) is not None
    TransPL(**TINY).fit(*make_waves(24, 5)).save(tmp_path)
    assert Wanted().find(tmp_path) is None


def test_a_source_model_that_is_there_is_not_written_again(tmp_path):
    home, source = tmp_path / "model", Wanted()
    save_source(source.cache(home), source.model.fit(*source.rows))
    written = {path: path.stat().st_mtime_ns for path in home.iterdir()}
    save_source(Wanted().cache(home), Wanted().find(home))
    assert {path: path.stat().st_mtime_ns for path in home.iterdir()} == written
    other = Wanted(sigma=0.01)
    save_source(other.cache(home), other.find(home))
    assert TransPL.load(home).sigma == 0.01
    assert Wanted().find(home) is not None
    (home / "model.json").write_text("{")
    with pytest.warns(UserWarning, match=r"model\.json"):
        save_source(other.cache(home), source.model)
    assert other.find(home) is not None


def test_a_source_model_is_built_once_and_read_from_the_folder(tmp_path):
    source, trained = Wanted(), []

    def train():
        trained.append(1)
        return source.model.fit(*source.rows)

    built = [source.cache(tmp_path / "model").build(train, tmp_path / "lock") for _ in range(2)]
    assert len(trained) == 1
    np.testing.assert_array_equal(built[0].predict_proba(TARGET), built[1].predict_proba(TARGET))
