"""Files of windows that are labelled piece by piece: the same labels, whatever interrupts them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl._utils.errors import InputError
from transpl.jobs import stream as streaming
from transpl.jobs.stream import label_windows
from transpl.markov import TransitionCounts

N, CHUNK = 200, 64  # four chunks, the last of them short
X, _ = make_waves(N, seed=5, gain=1.5)


@pytest.fixture(scope="module")
def model():
    return TransPL(**TINY, sigma=1.0).fit(*make_waves(40, seed=0))


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "windows.npy", X)
    return tmp_path / "windows.npy"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def twin(model, **params):
    """A model with the same source phase that can be adapted without changing the shared one."""
    other = TransPL(**{**TINY, "sigma": 1.0, **params})
    return other.fit(*make_waves(40, seed=0))


class Killed(Exception):
    pass


def stop_after(monkeypatch, n_writes):
    """Let the run die at its (n_writes + 1)-th write of rows."""
    write, calls = streaming.write_rows, []

    def write_rows(*args):
        if len(calls) == n_writes:
            raise Killed
        calls.append(args)
        write(*args)

    monkeypatch.setattr(streaming, "write_rows", write_rows)


# the labels


def test_labels_are_those_of_predict(model, file, tmp_path):
    found = label_windows(model, file, tmp_path / "out", chunk=CHUNK)
    assert np.array_equal(found.classes[found.labels], model.predict(X))
    assert np.array_equal(found.probabilities, model.predict_proba(X).astype(np.float32))
    assert found.windows_per_class().tolist() == [(found.labels == k).sum() for k in (0, 1)]
    assert json.loads((tmp_path / "out" / "classes.json").read_text()) == [0, 1]
    assert (found.labels.dtype, found.probabilities.dtype) == (np.int32, np.float32)


def test_labels_of_a_new_domain_are_those_after_adapt(model, file, tmp_path):
    found = label_windows(model, file, tmp_path / "out", adapt=True, chunk=CHUNK)
    assert model.mode_ == "source", "the model itself stays as it is"
    adapted = twin(model).adapt(X, mode="markov")
    assert np.array_equal(found.probabilities, adapted.predict_proba(X).astype(np.float32))
    assert np.array_equal(found.classes[found.labels], adapted.predict(X))
    assert TransitionCounts.load(tmp_path / "out" / "target_counts.npz") == adapted.target_counts_
    codes = np.load(tmp_path / "out" / "codes.npy")
    assert codes.dtype == np.int8
    assert np.array_equal(codes, adapted.method_.codes(adapted._seen_windows(X, "X")))


def test_an_adapted_model_labels_by_its_own_target(file, tmp_path, model):
    adapted = twin(model).adapt(make_waves(30, seed=1)[0], mode="markov")
    found = label_windows(adapted, file, tmp_path / "out", chunk=CHUNK)
    assert np.array_equal(found.probabilities, adapted.predict_proba(X).astype(np.float32))


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("chunk", [1, 32, 100, 10_000])
def test_the_chunk_does_not_change_a_byte(model, file, tmp_path, chunk, adapt):
    label_windows(model, file, tmp_path / "a", adapt=adapt, chunk=CHUNK)
    label_windows(model, file, tmp_path / "b", adapt=adapt, chunk=chunk)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ">f4", "int16"])
def test_arrays_and_maps_of_any_type_are_labelled_alike(model, tmp_path, dtype, adapt):
    values = (10 * X).round().astype(dtype)
    np.save(tmp_path / "windows.npy", values)
    forms = [values, np.load(tmp_path / "windows.npy", mmap_mode="r"), str(tmp_path / "windows.npy")]
    found = [label_windows(model, form, tmp_path / str(i), adapt=adapt, chunk=CHUNK) for i, form in enumerate(forms)]
    for other in found[1:]:
        assert np.array_equal(found[0].probabilities, other.probabilities)


def test_windows_of_one_channel_may_be_a_table(tmp_path):
    Z, y = make_waves(40, seed=0, channels=1)
    model = TransPL(**TINY).fit(Z[:, 0], y)
    found = label_windows(model, Z[:, 0], tmp_path / "out")
    assert np.array_equal(found.classes[found.labels], model.predict(Z[:, 0]))


# interruption


@pytest.mark.parametrize("n_writes", range(12))
def test_a_run_that_died_goes_on_and_ends_with_the_same_bytes(model, file, tmp_path, monkeypatch, n_writes):
    label_windows(model, file, tmp_path / "whole", adapt=True, chunk=CHUNK)
    stop_after(monkeypatch, n_writes)
    with pytest.raises(Killed):
        label_windows(model, file, tmp_path / "broken", adapt=True, chunk=CHUNK)
    assert not (tmp_path / "broken" / "labels.npy").exists(), "a name without .part is a promise"
    monkeypatch.undo()
    label_windows(model, file, tmp_path / "broken", adapt=True, chunk=CHUNK)
    assert contents(tmp_path / "whole") == contents(tmp_path / "broken")


@pytest.mark.parametrize("year", [1990, 2100])
def test_a_clock_that_was_moved_meanwhile_changes_no_byte(model, file, tmp_path, monkeypatch, year):
    label_windows(model, file, tmp_path / "whole", chunk=CHUNK)
    stop_after(monkeypatch, 2)
    with pytest.raises(Killed):
        label_windows(model, file, tmp_path / "broken", chunk=CHUNK)
    monkeypatch.undo()
    for path in (tmp_path / "broken").rglob("*"):
        os.utime(path, times=((year - 1970) * 31_556_952,) * 2)
    label_windows(model, file, tmp_path / "broken", chunk=CHUNK)
    assert contents(tmp_path / "whole") == contents(tmp_path / "broken")


def test_going_on_encodes_nothing_twice(model, file, tmp_path, monkeypatch):
    stop_after(monkeypatch, 2)
    with pytest.raises(Killed):
        label_windows(model, file, tmp_path / "out", adapt=True, chunk=CHUNK)
    monkeypatch.undo()
    method, encoded = model.fitted_method(), []
    codes = method.codes
    monkeypatch.setattr(method, "codes", lambda windows: encoded.append(len(windows)) or codes(windows))
    label_windows(model, file, tmp_path / "out", adapt=True, chunk=CHUNK)
    assert sum(encoded) == N - 2 * CHUNK


def test_a_run_that_died_before_its_last_word_goes_on(model, file, tmp_path, monkeypatch):
    label_windows(model, file, tmp_path / "whole", adapt=True)
    monkeypatch.setattr(
        streaming._Run, "finish", lambda run: os.replace(run.folder / "labels.npy.part", run.folder / "labels.npy")
    )
    with pytest.raises(InputError, match="no such file"):
        label_windows(model, file, tmp_path / "out", adapt=True)
    monkeypatch.undo()
    label_windows(model, file, tmp_path / "out", adapt=True)
    assert contents(tmp_path / "whole") == contents(tmp_path / "out")


def test_a_finished_folder_is_only_read(model, file, tmp_path, monkeypatch):
    first = label_windows(model, file, tmp_path / "out")
    before = contents(tmp_path / "out")
    stop_after(monkeypatch, 0)
    again = label_windows(model, file, tmp_path / "out")
    assert np.array_equal(first.labels, again.labels)
    assert contents(tmp_path / "out") == before


KILLED = """
import os, signal, sys
from transpl import TransPL
from transpl.jobs import stream as streaming
write, calls = streaming.write_rows, []
def write_rows(*args):
    calls.append(args)
    if len(calls) == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    write(*args)
streaming.write_rows = write_rows
streaming.label_windows(TransPL.load(sys.argv[1]), sys.argv[2], sys.argv[3], adapt=True, chunk=64)
"""


@pytest.mark.slow  # runs that die in this process are above
def test_a_killed_process_goes_on_and_ends_with_the_same_bytes(model, file, tmp_path):
    model.save(tmp_path / "model")
    words = [sys.executable, "-c", KILLED, tmp_path / "model", file, tmp_path / "broken"]
    done = subprocess.run(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert json.loads((tmp_path / "broken" / "progress.json").read_text())["encoded"] == N
    for folder in ("whole", "broken"):
        label_windows(TransPL.load(tmp_path / "model"), file, tmp_path / folder, adapt=True, chunk=CHUNK)
    assert contents(tmp_path / "whole") == contents(tmp_path / "broken")


def test_a_missing_value_far_inside_is_named_before_anything_is_labelled(model, file, tmp_path):
    broken = X.copy()
    broken[150, 1, 3] = np.nan
    np.save(file, broken)
    with refusal("windows.npy[128:192]", "1 NaN value"):
        label_windows(model, file, tmp_path / "out", chunk=CHUNK)
    assert not (tmp_path / "out").exists()


# refusals


def test_a_folder_of_something_else_is_refused(model, file, tmp_path):
    label_windows(model, file, tmp_path / "out")
    before = contents(tmp_path / "out")
    other = X.copy()
    other[77, 1, 3] += 1  # a single value
    for wrong_call in (
        lambda: label_windows(model, other, tmp_path / "out"),
        lambda: label_windows(model, X[:-1], tmp_path / "out"),
        lambda: label_windows(model, X.astype(np.float64), tmp_path / "out"),
        lambda: label_windows(model, file, tmp_path / "out", adapt=True),
        lambda: label_windows(twin(model, random_state=1), file, tmp_path / "out"),
        lambda: label_windows(twin(model, sigma=0.5), file, tmp_path / "out"),
        lambda: label_windows(twin(model).adapt(X, mode="markov"), file, tmp_path / "out"),
    ):
        with refusal("out", "a folder of this model and these windows"):
            wrong_call()
    assert contents(tmp_path / "out") == before


def half_written(path):
    np.save(path, X)
    path.write_bytes(path.read_bytes()[: X.nbytes // 2])


def saved(values):
    return lambda path: np.save(path, values)


FILES = {
    "absent": (lambda path: None, "no such file"),
    "half-written": (half_written, "not a .npy file, or damaged"),
    "empty": (lambda path: path.write_bytes(b""), "not a .npy file, or damaged"),
    "text": (lambda path: path.write_text("ax,ay\n1,2\n"), "not a .npy file, or damaged"),
    "a folder": (lambda path: path.mkdir(), "a folder, not a file"),
    "pickled": (saved(np.array([{}, 1], dtype=object)), "not a .npy file, or damaged"),
    "an npz": (lambda path: np.savez(path.open("wb"), X=X), "several arrays"),
    "four axes": (saved(X[None]), r"expected an array \(n, channels, time\), got shape"),
    "one axis": (saved(X[0, 0]), r"expected an array \(n, channels, time\), got shape"),
    "a number": (saved(1.0), r"expected an array \(n, channels, time\), got shape"),
    "no window": (saved(X[:0]), "expected at least one window"),
    "other channels": (saved(X[:, :1]), r"expected 2 channel\(s\), as in fit, got 1"),
    "too short": (saved(X[:, :, :6]), "expected windows of at least 8"),
    "NaN": (saved(X * np.nan), "expected finite numbers"),
    "fill values": (saved(X * 0 + 9.97e36), "expected values of moderate size"),
    "too large": (saved(X.astype(np.float64) + 1e300), "finite numbers that fit float32"),
    "text array": (saved(np.full((3, 2, 32), "a")), "expected numbers"),
    "complex": (saved(X * 1j), "Complex data not supported"),
}


@pytest.mark.parametrize("name", ["day.csv", "day.parquet", "day.npz"])
def test_recordings_are_sent_to_the_command_that_reads_them(model, tmp_path, name):
    (tmp_path / name).write_text("ax,ay\n1,2\n")
    with pytest.raises(InputError, match="transpl predict"):
        label_windows(model, tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out" / "progress.json").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("write", "message"), FILES.values(), ids=FILES.keys())
def test_files_that_hold_no_windows_are_refused_and_leave_nothing(model, tmp_path, write, message):
    write(tmp_path / "odd.npy")
    with pytest.raises(InputError, match=rf"odd\.npy(\[0:\d+\])?: .*{message}") as caught:
        label_windows(model, tmp_path / "odd.npy", tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


CALLS = {
    "X is a list": (lambda model, out: label_windows(model, [X[0]], out), "X: expected an array or the path"),
    "chunk is zero": (lambda model, out: label_windows(model, X, out, chunk=0), "chunk: expected a whole number"),
    "out is a file": (lambda model, out: label_windows(model, X, out.parent / "taken"), "out: expected a folder, got"),
    "out has results": (lambda model, out: label_windows(model, X, out.parent / "old"), "out: expected a folder with"),
    "out is foreign": (lambda model, out: label_windows(model, X, out.parent / "odd"), "progress.json: not written by"),
}


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS.keys())
def test_wrong_calls(monkeypatch, model, tmp_path, call, message):
    monkeypatch.delattr(streaming._WindowFile, "digest")  # they are refused before the windows are read
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "labels.npy").write_text("mine")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "progress.json").write_text('{"colour": "red"}')
    with pytest.raises(InputError, match=message):
        call(model, tmp_path / "out")
    assert (tmp_path / "old" / "labels.npy").read_text() == "mine"


def test_a_result_that_was_damaged_meanwhile_is_refused(model, file, tmp_path, monkeypatch):
    stop_after(monkeypatch, 3)
    with pytest.raises(Killed):
        label_windows(model, file, tmp_path / "out", chunk=CHUNK)
    monkeypatch.undo()
    np.save(tmp_path / "odd.npy", X[:5, 0, 0])
    os.replace(tmp_path / "odd.npy", tmp_path / "out" / "labels.npy.part")
    with refusal(tmp_path / "out" / "labels.npy.part", "expected int32 of shape"):
        label_windows(model, file, tmp_path / "out", chunk=CHUNK)


PROGRESS = {"encoded": [1.5, "x", None, -1, N + 1], "labelled": [True, [], -1, N + 1], "finished": ["yes", 1]}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in PROGRESS.items() for value in values])
def test_progress_that_cannot_be_is_refused(model, file, tmp_path, monkeypatch, key, value):
    stop_after(monkeypatch, 3)
    with pytest.raises(Killed):
        label_windows(model, file, tmp_path / "out", chunk=CHUNK)
    path = tmp_path / "out" / "progress.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with refusal(path):
        label_windows(model, file, tmp_path / "out", chunk=CHUNK)


def test_finished_labels_that_were_damaged_are_refused(model, file, tmp_path):
    out = tmp_path / "out"
    labels = label_windows(model, file, out).labels.copy()
    for odd in (labels.astype(np.float64), labels[:-1]):
        np.save(out / "labels.npy", odd)
        with refusal(out / "labels.npy", "expected int32 of shape"):
            label_windows(model, file, out)
    for value in (-1, 10**9):
        labels[3] = value
        np.save(out / "labels.npy", labels)
        with refusal(out / "labels.npy"):
            label_windows(model, file, out).windows_per_class()


def test_a_folder_that_was_deleted_under_a_run_is_left_to_whoever_begins_it_afresh(model, file, tmp_path, monkeypatch):
    """The first run would say that the second one's rows are done."""
    reference, out = label_windows(model, file, tmp_path / "reference", chunk=CHUNK), tmp_path / "out"
    write, calls = streaming.write_rows, []

    def write_rows(*args):
        calls.append(args)
        write(*args)
        if len(calls) == 3:
            shutil.rmtree(out)
            with ThreadPoolExecutor(1) as other, pytest.raises(Killed):
                other.submit(label_windows, model, file, out, chunk=CHUNK).result()
        elif len(calls) == 5:  # the second run
            raise Killed

    monkeypatch.setattr(streaming, "write_rows", write_rows)
    with refusal("out", "deleted meanwhile"):
        label_windows(model, file, out, chunk=CHUNK)
    label_windows(model, file, out, chunk=CHUNK)
    assert contents(out) == contents(reference.folder)
