"""A source model is trained once for the same rows and settings, whatever it was adapted to since."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import TINY, make_waves

from transpl import TransPL
from transpl.kept_sources import keep_source, kept_source

X, Y = make_waves(24, 0)
VALIDATION = make_waves(12, 1)
TARGET, _ = make_waves(16, 2, gain=1.5)
ROWS = {"with validation": (X, Y, *VALIDATION), "without": (X, Y, None, None)}
OTHER_ROWS = {
    "a sample differs": (X + 1e-6, Y, *VALIDATION),
    "a label differs": (X, np.roll(Y, 1), *VALIDATION),
    "labels of another type": (X, Y.astype(str), *VALIDATION),
    "no validation": (X, Y, None, None),
}


def model(**changes):
    return TransPL(**{**TINY, **changes})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    out = tmp_path_factory.mktemp("kept")
    rows = ROWS["with validation"]
    keep_source(model().fit(*rows), rows, out)
    return out


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("mode", ["finetune", "markov"])
def test_after_an_adaptation_the_source_model_is_as_it_was(tmp_path, rows, mode):
    fitted = model().fit(*rows)
    expected = fitted.predict_proba(TARGET)
    fitted.adapt(TARGET, mode=mode)
    adapted = fitted.predict_proba(TARGET)
    keep_source(fitted, rows, tmp_path)
    kept = kept_source(model(), rows, tmp_path)
    assert kept is not None
    assert kept.mode_ == "source"
    np.testing.assert_array_equal(kept.predict_proba(TARGET), expected)
    kept.adapt(TARGET, mode=mode)
    np.testing.assert_array_equal(kept.predict_proba(TARGET), adapted)


@pytest.mark.parametrize("rows", OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_other_rows_are_another_source(home, rows):
    assert kept_source(model(), rows, home) is None


def test_labels_in_any_kind_of_array_are_told_apart(tmp_path):
    """An array of objects holds addresses, which are not what counts."""
    names = np.array([f"class {k}" for k in Y], dtype=object)
    rows = (X, names, None, None)
    keep_source(model().fit(*rows), rows, tmp_path)
    again = np.array([f"class {k}" for k in Y], dtype=object)
    assert kept_source(model(), (X, again, None, None), tmp_path) is not None
    assert kept_source(model(), (X, np.roll(again, 1), None, None), tmp_path) is None


def test_other_settings_are_another_source_but_not_another_way_to_work(home):
    rows = ROWS["with validation"]
    assert kept_source(model(random_state=1), rows, home) is None
    assert kept_source(model(sigma=0.3), rows, home) is None
    kept = kept_source(model(n_threads=1, verbose=True), rows, home)
    assert (kept.n_threads, kept.verbose) == (1, True)


def test_what_is_missing_foreign_or_replaced_is_not_taken(home, tmp_path):
    rows = ROWS["with validation"]
    assert kept_source(model(), rows, tmp_path) is None
    keep_source(model().fit(*rows), rows, tmp_path)
    record = (tmp_path / "source.json").read_text()
    for text in ("", "[]", json.dumps({**json.loads(record), "model": "other"})):
        (tmp_path / "source.json").write_text(text)
        assert kept_source(model(), rows, tmp_path) is None
    (tmp_path / "source.json").write_text(record)
    assert kept_source(model(), rows, tmp_path) is not None
    model().fit(*make_waves(24, 5)).save(tmp_path)
    assert kept_source(model(), rows, tmp_path) is None
