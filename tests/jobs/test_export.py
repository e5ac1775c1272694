"""Exports answer as the model does, from numpy alone and from one ONNX file."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl.council.shifts import ShiftSearch
from transpl.council.shifts.shift import Shift
from transpl.jobs import export
from transpl.jobs.numpy_predictor import Predictor, _erf
from transpl.windows import as_windows

CLASSES = np.array(["run", "sit", "walk"])
SHIFTS = {
    "turn": Shift.turn(((1, 0, 2), (1, -1, 1)), [(0, 1, 2)], 3),
    "swap": Shift.swap(0, 2, 3),
    "unit": Shift("unit", factors=(9.80665, 1.0, 1000.0)),
    "dead": Shift("dead", dead=(1,), fill=(0.25,)),
}


def target(n: int, seed: int, **how) -> np.ndarray:
    return make_waves(n, seed, n_classes=3, channels=3, gain=1.5, offset=0.3, **how)[0]


def council(**params) -> TransPL:
    X, y = make_waves(60, 0, n_classes=3, channels=3)
    return TransPL(**params).fit(X, CLASSES[y])


@pytest.fixture(scope="module")
def adapted() -> TransPL:
    return council().adapt(target(50, 1))


@pytest.fixture(scope="module", params=["source", "finetune", "markov"])
def paper(request) -> TransPL:
    X, y = make_waves(60, 0, n_classes=3, channels=3)
    model = TransPL(**{**TINY, "max_epochs": 2}).fit(X, CLASSES[y])
    return model if request.param == "source" else model.adapt(target(50, 1), mode=request.param)


def with_shifts(model: TransPL, *shifts: Shift) -> TransPL:
    """The model, as if its target had these shifts."""
    found = TransPL.__new__(TransPL)
    found.__dict__.update(model.__dict__)
    found.method_ = model.method_.with_params(model.plain_params(0))
    found.method_.council.shifts = ShiftSearch(shifts, (), 0.0)
    return found


def assert_same(model: TransPL, answer, X: np.ndarray, tolerance: float, within: float = 1.0) -> None:
    expected, found = model.predict_proba(X), answer(X)
    apart = np.abs(found - expected).max(axis=1)
    assert found.shape == expected.shape
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() >= 0.99
    assert (apart <= tolerance).mean() >= within


def onnx_answer(path):
    session = pytest.importorskip("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda X: session.run(["probabilities"], {"windows": np.asarray(X, np.float32)})[0]


def test_numpy_answers_as_the_council_to_the_last_digits(adapted, tmp_path):
    check = export.export_numpy(adapted, tmp_path, X=target(50, 1))
    assert (check.windows, check.within, check.same_labels) == (50, 50, 50)
    model, X = Predictor(tmp_path), target(40, 2)
    assert_same(adapted, model.predict_proba, X, 1e-12)
    assert np.array_equal(model.predict(X), adapted.predict(X))


def test_numpy_answers_before_adaptation(tmp_path):
    model = council(views=("standardised", "recorded"))
    export.export_numpy(model, tmp_path)
    assert_same(model, Predictor(tmp_path).predict_proba, target(40, 2), 1e-12)


def test_numpy_takes_windows_of_unequal_length(adapted, tmp_path):
    export.export_numpy(adapted, tmp_path)
    some = [x[:, : 20 + i % 3] for i, x in enumerate(target(30, 2))]
    assert np.abs(Predictor(tmp_path).predict_proba(some) - adapted.predict_proba(some)).max() < 1e-9


def test_many_channels_and_classes_without_windows(tmp_path):
    X, y = make_waves(60, 0, n_classes=3, channels=17)  # more pairs of channels than are used
    model = TransPL(witnesses=("linear", "trees", "codes")).fit(X, y).adapt(X[:30])
    export.export_numpy(model, tmp_path)
    assert_same(model, Predictor(tmp_path).predict_proba, X, 1e-12)


@pytest.mark.parametrize("kinds", [*([kind] for kind in SHIFTS), list(SHIFTS)], ids="-".join)
def test_shifts_are_undone(adapted, tmp_path, kinds):
    pytest.importorskip("onnx")
    model, X = with_shifts(adapted, *(SHIFTS[kind] for kind in kinds)), target(40, 2)
    export.export_numpy(model, tmp_path / "numpy")
    assert_same(model, Predictor(tmp_path / "numpy").predict_proba, X, 1e-12)
    export.export_onnx(model, tmp_path / "model.onnx", window=32, X=X)
    assert_same(model, onnx_answer(tmp_path / "model.onnx"), X, 1e-6, 0.9)


@pytest.mark.parametrize("rate", [0.5, 1.5])
def test_another_sampling_rate_is_undone_for_the_length_that_was_named(adapted, tmp_path, rate):
    model, X = with_shifts(adapted, Shift("pace", rate=rate)), target(60, 2)
    with refusal("window", "--window"):
        export.export_numpy(model, tmp_path)
    export.export_numpy(model, tmp_path, window=32)
    predictor = Predictor(tmp_path)
    assert_same(model, predictor.predict_proba, X, 1e-6, 0.9)
    with pytest.raises(ValueError, match="exactly 32"):
        predictor.predict(target(4, 2, length=40))


def test_numpy_answers_as_the_papers_network(paper, tmp_path):
    check = export.export_numpy(paper, tmp_path)
    assert check.within == check.windows
    model, X = Predictor(tmp_path), target(40, 2)
    assert_same(paper, model.predict_proba, X, 1e-6)
    assert np.array_equal(model.predict(X), paper.predict(X))


@pytest.mark.parametrize("prior", [None, {"run": 0.7, "sit": 0.3, "walk": 0.0}], ids=["no prior", "prior"])
def test_markov_mode_keeps_its_prior(tmp_path, prior):
    pytest.importorskip("onnx")
    X, y = make_waves(60, 0, n_classes=3, channels=3)
    settings = {**TINY, "max_epochs": 1, "length": "codes", "smoothing": "additive", "prior_temperature": 2.0}
    model = TransPL(**settings).fit(X, CLASSES[y]).adapt(target(50, 1), prior, "markov")
    export.export_numpy(model, tmp_path)
    assert_same(model, Predictor(tmp_path).predict_proba, target(40, 2), 1e-6)
    export.export_onnx(model, tmp_path / "model.onnx", window=32)
    assert_same(model, onnx_answer(tmp_path / "model.onnx"), target(40, 2), 1e-6)


def test_the_predictor_needs_numpy_alone(adapted, tmp_path):
    export.export_numpy(adapted, tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"predict.py", "model.json", "weights.npz"}
    X = target(12, 3)
    np.save(tmp_path / "windows.npy", X)
    only_numpy = (
        "import sys, runpy; sys.argv = ['predict.py', 'windows.npy'];"
        "runpy.run_path('model/predict.py', None, '__main__');"
        "found = {name.partition('.')[0] for name in sys.modules};"
        "sys.exit(bool(found & {'transpl', 'scipy', 'sklearn', 'pandas', 'torch'}))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", only_numpy], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["label"] for row in rows] == adapted.predict(X).tolist()
    p = np.array([[float(row[f"p_{name}"]) for name in CLASSES] for row in rows])
    assert np.abs(p - adapted.predict_proba(X)).max() < 1e-12
    assert np.array_equal([float(row["confidence"]) for row in rows], p.max(axis=1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((2, 2, 32)), "3 channels"),
        (np.zeros((2, 3, 4)), "at least"),
        (np.full((2, 3, 32), np.nan), "finite"),
        (np.full((2, 3, 32), 1e30), "moderate"),
        (np.zeros((0, 3, 32)), "at least one"),
    ],
)
def test_the_predictor_refuses_other_windows(adapted, tmp_path, wrong, message):
    export.export_numpy(adapted, tmp_path)
    with pytest.raises(ValueError, match=message):
        Predictor(tmp_path).predict(wrong)


def test_erf_of_the_predictor():
    from scipy.special import erf

    x = np.linspace(-8, 8, 100_001)
    assert np.abs(_erf(x) - erf(x)).max() < 1e-11


def test_onnx_answers_as_the_council(adapted, tmp_path):
    pytest.importorskip("onnx")
    path, X = tmp_path / "model.onnx", target(60, 2)
    check = export.export_onnx(adapted, path, window=32, X=X)
    assert check.same_labels == check.windows == 60
    assert_same(adapted, onnx_answer(path), X, 1e-6, 0.95)
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    (labels,) = session.run(["labels"], {"windows": X[:7]})  # any number of windows
    assert labels.tolist() == adapted.predict(X[:7]).tolist()


def test_onnx_answers_before_adaptation_and_without_some_classes(tmp_path):
    pytest.importorskip("onnx")
    model, X = council(witnesses=("linear", "kernels")), target(40, 2)
    export.export_onnx(model, tmp_path / "model.onnx", window=32, X=X)
    assert_same(model, onnx_answer(tmp_path / "model.onnx"), X, 1e-6)


def test_onnx_answers_as_the_papers_network(paper, tmp_path):
    pytest.importorskip("onnx")
    path, X = tmp_path / "model.onnx", target(40, 2)
    check = export.export_onnx(paper, path, window=32)
    assert check.within == check.windows
    assert_same(paper, onnx_answer(path), X, 1e-6)


@pytest.mark.parametrize("kind", [np.int64, np.float64], ids=["whole numbers", "numbers"])
def test_labels_that_are_numbers_stay_numbers(tmp_path, kind):
    pytest.importorskip("onnx")
    X, y = make_waves(40, 0)
    model = TransPL(witnesses=("linear",)).fit(X, y.astype(kind) + 3).adapt(X)
    export.export_onnx(model, tmp_path / "model.onnx", window=32)
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "model.onnx")
    (labels,) = session.run(["labels"], {"windows": X})
    assert labels.dtype == kind
    assert np.array_equal(labels, model.predict(X))


def test_what_cannot_be_exported_is_said(adapted, tmp_path):
    pytest.importorskip("onnx")
    X, y = make_waves(20, 0)
    with refusal("export", "'conv'"):
        export.exported_model(TransPL(witnesses=("linear", "conv"), views=("recorded",)).fit(X, y))
    with refusal("window", "length"):
        export.export_onnx(adapted, tmp_path / "model.onnx")
    with refusal("window", "16 or more"):
        export.export_onnx(adapted, tmp_path / "model.onnx", window=2)
    (tmp_path / "file").touch()
    with refusal("out", "a folder"):
        export.export_numpy(adapted, tmp_path / "file")
    assert not (tmp_path / "model.onnx").exists()


def test_an_export_that_answers_otherwise_is_an_error(adapted, tmp_path, monkeypatch):
    frozen = export.exported_model(adapted)
    frozen.arrays["votes.bias"] = frozen.arrays["votes.bias"] + [3.0, 0.0, 0.0]
    monkeypatch.setattr(export, "exported_model", lambda *_: frozen)
    with pytest.raises(RuntimeError, match="does not answer as the model does"):
        export.export_numpy(adapted, tmp_path / "out", X=target(50, 1))
    assert not (tmp_path / "out").exists()


def test_a_saved_model_is_exported_like_the_one_it_was_saved_from(adapted, tmp_path):
    adapted.save(tmp_path / "saved")
    one, other = export.exported_model(adapted), export.exported_model(TransPL.load(tmp_path / "saved"))
    assert json.dumps(one.about) == json.dumps(other.about)
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        assert np.array_equal(array, other.arrays[name]), name


def test_random_windows_look_like_the_source(adapted):
    X = export._random_windows(adapted, 32)
    assert X.values.shape == (export.CHECKED, 3, 32)
    assert as_windows(X) is not None
