"""Other projects' files: what they hold arrives unchanged, what they try to run does not."""

from __future__ import annotations

import _codecs
import os
import pickle
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.importers import PUBLISHED_NAMES, import_files
from transpl.datasets.pickles import read_pickle, read_torch

SHARED = Path(__file__).parents[3] / "shared" / "data"
CHANNELS, TIME = 3, 8
read_adatime, read_transpl = (partial(import_files, format=whose) for whose in ("adatime", "transpl"))


def windows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, CHANNELS, TIME)).astype(np.float32)


def adatime(folder: Path, domain: int, split: str, samples: Any, labels: Any) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{split}_{domain}.pt"
    torch.save({"samples": samples, "labels": labels}, path)
    return path


def transpl(folder: Path, domain: int, split: str, X: Any, y: Any, rows: Any = None, prefix: str = "USER") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{prefix}{domain:02d}_{split}X.pkl"
    path.write_bytes(pickle.dumps(X))
    table = {"GLOBAL_ID": np.arange(len(y)) if rows is None else rows, "y_true": np.asarray(y, float)}
    pd.DataFrame(table).to_csv(path.with_name(path.name.replace("X.pkl", "Y.csv")))
    return path


@pytest.fixture
def ada(tmp_path: Path) -> Path:
    """Two whole domains of (n, time, channels)."""
    for domain in (2, 10):
        for split, n in (("train", 5), ("test", 4)):
            samples = torch.from_numpy(windows(n, domain + n)).permute(0, 2, 1)
            adatime(tmp_path / "ada", domain, split, samples, torch.arange(n) % 3)
    return tmp_path / "ada"


@pytest.fixture
def authors(tmp_path: Path) -> Path:
    for domain in (2, 10):
        for split, n in (("train", 5), ("test", 4)):
            transpl(tmp_path / "authors", domain, split, windows(n, domain + n).swapaxes(1, 2), np.arange(n) % 3)
    return tmp_path / "authors"


def refused(read: Any, folder: Path, message: str, **options: Any) -> str:
    with pytest.raises(InputError, match=message) as caught:
        read(folder, "other", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["ada", "authors"])
def test_round_trip(request: pytest.FixtureRequest, kind: str) -> None:
    folder = request.getfixturevalue(kind)
    (folder / "readme.txt").write_text("other files are left alone")
    dataset = (read_adatime if kind == "ada" else read_transpl)(folder, "other")
    assert dataset.domains == (2, 10)
    assert dataset.class_names == ("0", "1", "2")
    assert dataset.channel_names == ("channel_0", "channel_1", "channel_2")
    assert dataset.pairs == ((2, 10), (10, 2))
    for domain in dataset.domains:
        part = dataset.domain(domain)
        np.testing.assert_array_equal(part.X_train, windows(5, domain + 5))
        np.testing.assert_array_equal(part.X_test, windows(4, domain + 4))
        np.testing.assert_array_equal(part.y_train, [0, 1, 2, 0, 1])
        np.testing.assert_array_equal(part.y_test, [0, 1, 2, 0])
    assert dataset.X.dtype == np.float32


def both_splits(folder: Path, samples: Any, labels: Any, domain: int = 0) -> Path:
    for split in ("train", "test"):
        adatime(folder, domain, split, samples, labels)
    return folder


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.dtype(">f4")])
@pytest.mark.parametrize("kind", ["array", "by columns", "tensor"])
def test_arrays_and_tensors_of_every_number(tmp_path: Path, dtype: Any, kind: str) -> None:
    X = np.arange(4 * CHANNELS * TIME).reshape(4, CHANNELS, TIME).astype(dtype)
    samples: Any = {"array": X, "by columns": np.asfortranarray(X)}.get(kind)
    if samples is None:
        samples = torch.from_numpy(X.astype(X.dtype.newbyteorder("=")))
    dataset = read_adatime(both_splits(tmp_path / "a", samples, np.arange(4.0)), "other")
    np.testing.assert_array_equal(dataset.domain(0).X_train, X.astype(np.float32))


def test_the_reader_agrees_with_torch(tmp_path: Path) -> None:
    base = torch.arange(60.0).reshape(3, 4, 5)
    tensors = {
        "view": base[1:, ::2],
        "turned": base.permute(2, 0, 1),
        "shared": base,
        "empty": torch.empty(0, 3),
        "single": torch.tensor(7),
        "yes": torch.tensor([True, False]),
        "grad": torch.ones(2, requires_grad=True),
        **{str(dtype): base.to(dtype) for dtype in (torch.half, torch.double, torch.int8, torch.uint8, torch.int16)},
    }
    torch.save(tensors, tmp_path / "x.pt")
    found, expected = read_torch(tmp_path / "x.pt"), torch.load(tmp_path / "x.pt", weights_only=True)
    assert list(found) == list(expected)
    for key, tensor in expected.items():
        assert str(found[key].dtype) == str(tensor.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(found[key], tensor.detach().numpy())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickles_of_every_protocol(tmp_path: Path, protocol: int, order: Any) -> None:
    X = np.asarray(windows(3), order=order, dtype=np.float64)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(X, protocol))
    np.testing.assert_array_equal(read_pickle(tmp_path / "x.pkl"), X)
    (tmp_path / "empty.pkl").write_bytes(pickle.dumps(X[:0], protocol))
    assert read_pickle(tmp_path / "empty.pkl").shape == (0, CHANNELS, TIME)
    old = pickle.dumps(X, 2).replace(b"numpy._core.", b"numpy.core.")
    (tmp_path / "old.pkl").write_bytes(old)
    np.testing.assert_array_equal(read_pickle(tmp_path / "old.pkl"), X)


def test_n_channels_decides_and_otherwise_the_shorter_axis(tmp_path: Path) -> None:
    X = windows(4)
    folder = both_splits(tmp_path / "a", X, np.zeros(4))
    both_splits(folder, X.swapaxes(1, 2), np.zeros(4), domain=1)  # a mixture
    for options in ({}, {"n_channels": CHANNELS}):
        dataset = read_adatime(folder, "other", **options)
        np.testing.assert_array_equal(dataset.domain(0).X_train, dataset.domain(1).X_train)
        np.testing.assert_array_equal(dataset.domain(0).X_train, X)
    assert read_adatime(folder, "other", n_channels=TIME).X.shape[1:] == (TIME, CHANNELS)
    refused(read_adatime, folder, "no axis of 4 channels", n_channels=4)
    refused(read_adatime, folder, "n_channels: expected", n_channels=0)
    square = both_splits(tmp_path / "b", windows(4)[..., :CHANNELS], np.zeros(4))
    refused(read_adatime, square, "Give n_channels")
    np.testing.assert_array_equal(
        read_adatime(square, "other", n_channels=CHANNELS).domain(0).X_train, windows(4)[..., :CHANNELS]
    )


def test_one_channel_may_have_no_axis(tmp_path: Path) -> None:
    X = windows(4)[:, 0]
    dataset = read_adatime(both_splits(tmp_path / "a", X, np.zeros((4, 1))), "other")
    np.testing.assert_array_equal(dataset.domain(0).X_test, X[:, None])
    for split in ("train", "test"):
        transpl(tmp_path / "b", 0, split, X, np.zeros(4), prefix="DOMAIN")
    np.testing.assert_array_equal(read_transpl(tmp_path / "b", "other").domain(0).X_test, X[:, None])


def test_names_may_be_given(ada: Path) -> None:
    dataset = read_adatime(ada, "other", class_names=["a", "b", "c", "d"], channel_names=["x", "y", "z"])
    assert (dataset.class_names, dataset.channel_names) == (("a", "b", "c", "d"), ("x", "y", "z"))
    refused(read_adatime, ada, r"label 2 is not a class index in 0\.\.1", class_names=["a", "b"])
    refused(read_adatime, ada, "no axis of 2 channels", channel_names=["a", "b"])


def test_published_sets_get_their_names_and_pairs(tmp_path: Path) -> None:
    for domain in range(9):
        both_splits(tmp_path / "hhar", windows(6), np.arange(6), domain)
    dataset = read_adatime(tmp_path / "hhar", "hhar")
    assert dataset.class_names == ("bike", "sit", "stairsdown", "stairsup", "stand", "walk")
    assert len(dataset.pairs) == 10
    with pytest.raises(InputError, match="another name"):
        read_adatime(both_splits(tmp_path / "part", windows(6), np.arange(6)), "hhar")
    with pytest.raises(UnreadableFile, match="no axis of 9 channels"):
        read_adatime(tmp_path / "hhar", "ucihar")


def test_like_gives_names_and_the_pairs_that_are_there(tmp_path: Path) -> None:
    for domain in (0, 2, 6, 7):
        both_splits(tmp_path / "part", windows(6), [0, 1.0, 2, 3, 4, 5], domain)
    dataset = read_adatime(tmp_path / "part", "mine", like="hhar")
    assert (dataset.class_names, dataset.channel_names) == PUBLISHED_NAMES["hhar"]
    assert dataset.pairs == ((0, 6), (2, 7), (0, 2))
    alone = both_splits(tmp_path / "alone", windows(6), np.arange(6), 3)
    both_splits(alone, windows(6), np.arange(6), 4)
    assert read_adatime(alone, "mine", like="hhar").pairs == ((3, 4), (4, 3))
    refused(read_adatime, alone, "no axis of 9 channels", like="ucihar")
    refused(read_adatime, alone, "like: expected one of 'ucihar'", like="mnist")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared copies of the real data are not here")
@pytest.mark.parametrize("name", PUBLISHED_NAMES)
def test_published_names_are_those_of_the_real_data(name: str) -> None:
    with np.load(SHARED / f"{name}.npz") as real:
        assert PUBLISHED_NAMES[name] == (tuple(real["class_names"]), tuple(real["channel_names"]))


def test_a_split_may_be_empty(ada: Path, authors: Path) -> None:
    adatime(ada, 10, "test", windows(0), np.zeros(0))
    transpl(authors, 10, "test", windows(0).swapaxes(1, 2), [])
    for dataset in (read_adatime(ada, "other"), read_transpl(authors, "other")):
        assert dataset.domain(10).X_test.shape == (0, CHANNELS, TIME)
        assert len(dataset) == 14


def test_labels_follow_their_row(tmp_path: Path) -> None:
    for split in ("train", "test"):
        transpl(tmp_path / "a", 1, split, windows(4).swapaxes(1, 2), [3, 2, 1, 0], rows=[3, 2, 1, 0])
    np.testing.assert_array_equal(read_transpl(tmp_path / "a", "other").domain(1).y_train, [0, 1, 2, 3])


def test_a_missing_partner_is_named(ada: Path, authors: Path, tmp_path: Path) -> None:
    (ada / "test_10.pt").unlink()
    assert "train_10.pt" in refused(read_adatime, ada, r"its partner test_10\.pt is missing")
    (authors / "USER02_testY.csv").unlink()
    refused(read_transpl, authors, r"USER02_testY\.csv: no such file")
    (authors / "USER02_trainX.pkl").unlink()
    refused(read_transpl, authors, r"its partner USER02_trainX\.pkl is missing")
    for read in (read_adatime, read_transpl):
        refused(read, tmp_path, "no folder with")
        refused(read, tmp_path / "absent", "no folder with")


def test_one_domain_in_two_files(authors: Path) -> None:
    transpl(authors, 2, "train", windows(3), np.zeros(3), prefix="DOMAIN")
    refused(read_transpl, authors, "DOMAIN02_trainX")


@pytest.mark.parametrize(
    ("samples", "labels", "message"),
    [
        (windows(4)[:, :2], np.zeros(4), "2 channels of 8 steps, but train_2.pt has 3 of 8"),
        (windows(4)[..., :5], np.zeros(4), "3 channels of 5 steps"),
        (np.where(windows(4) > 1, np.nan, windows(4)), np.zeros(4), "entries are not finite"),
        (windows(4).astype(np.float64) * 1e300, np.zeros(4), "entries are not finite"),
        (windows(4), np.zeros(3), r"labels are float64 of shape \(3,\)"),
        (windows(4), np.array([0, 1, -1, 0]), "the label -1 is not a class index"),
        (windows(4), np.array([0, 1, 0.5, 0]), "the label 0.5 is not a class index"),
        (windows(4), np.array([0, 1, np.nan, 0]), "the label nan is not a class index"),
        (windows(4), np.array([0, 1, 1e12, 0]), "is not a class index"),
        (windows(4), np.array(list("abcd")), "labels are <U1"),
        (windows(4), [0, 1, 0], r"shape \(3,\)"),
        (windows(4), [0, 1, 0, "1"], "labels are object"),
        (windows(4), [[0, 1], 0, 1], "labels are object"),
        (windows(4), [0, 1, 0, True], "labels are object"),
        (windows(4), [0, 1, 0, 1 << 70], "labels are object"),
        (windows(4)[0, 0], np.zeros(8), "two or three axes"),
        (windows(4)[:, :0], np.zeros(4), "windows without entries"),
        (windows(4).tolist(), np.zeros(4), "not an array"),
        (windows(4).astype(object), np.zeros(4), "not an array"),
    ],
)
def test_adatime_files_that_cannot_be_used(ada: Path, samples: Any, labels: Any, message: str) -> None:
    path = adatime(ada, 10, "test", samples, labels)
    assert str(path) in refused(read_adatime, ada, message)


def test_without_torch_the_extra_is_named(ada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    refused(read_adatime, ada, r'torch, which is not installed.*"transpl\[deep\]"')


def test_a_torch_whose_safe_loading_is_not_safe_is_refused(ada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    refused(read_adatime, ada, r"torch: expected.*2\.5\.1.*pip install")


def test_an_unknown_format_is_refused(ada: Path) -> None:
    with pytest.raises(InputError, match="format: expected one of 'adatime', 'transpl'"):
        import_files(ada, "other", "matlab")


def test_adatime_files_of_another_kind(ada: Path) -> None:
    path = ada / "test_10.pt"
    for content in (torch.ones(3), {"samples": torch.ones(3)}, [1, 2]):
        torch.save(content, path)
        refused(read_adatime, ada, "samples and labels")
    torch.save({"samples": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    refused(read_adatime, ada, "damaged or of another kind")
    torch.save({"samples": torch.ones(3, dtype=torch.bfloat16), "labels": 0}, path)
    refused(read_adatime, ada, "BFloat16")
    torch.save({"samples": torch.ones(1).expand(1000), "labels": 0}, path)
    refused(read_adatime, ada, "larger than its bytes")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("GLOBAL_ID,y\n0,0\n", "no column y_true"),
        ("a,b\n0,0\n", "no column GLOBAL_ID and y_true"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n", "GLOBAL_ID"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n2,0\n", "GLOBAL_ID"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n4,0\n", "GLOBAL_ID"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n,0\n", "GLOBAL_ID"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n3,walk\n", "the label nan"),
        ("GLOBAL_ID,y_true\n0,0\n1,0\n2,0\n3,-1\n", r"the label -1\.0"),
        ("", "empty"),
    ],
)
def test_tables_that_cannot_be_used(authors: Path, table: str, message: str) -> None:
    (authors / "USER10_testY.csv").write_text(table)
    assert "USER10_testY.csv" in refused(read_transpl, authors, message)


class Call:
    """Pickles as a call of `function`, then a state for what it returns."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


_reconstruct: Any = np.empty(0).__reduce__()[0]


def forged_array(dtype: Any, content: Any, shape: Any = (2,)) -> Call:
    return Call(_reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, content))


FORGED = {
    # each of these lets numpy itself follow 0x4141414141414141 as a pointer, or make room for 8 TB
    "flags": forged_array(Call(np.dtype, "O", False, True, state=(3, "|", None, None, None, -1, -1, 0)), b"A" * 16),
    "fields": forged_array(
        Call(np.dtype, "V8", False, True, state=(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)), b"A" * 16
    ),
    "number fields": forged_array(
        Call(np.dtype, "f8", False, True, state=(3, "<", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)), b"A" * 16
    ),
    "class": Call(np.ndarray, (2,), np.dtype("O"), b"A" * 16),
    "room": Call(np.ndarray, (1 << 40,), np.dtype("f8")),
    "shape": forged_array(np.dtype("f8"), b"A" * 16, (1 << 40,)),
    "negative": forged_array(np.dtype("f8"), b"A" * 16, (-2, -1)),
    "text": forged_array(np.dtype("f8"), "A" * 16),
    "codec": Call(_codecs.encode, "uryyb", "rot13"),
    "function": Call(_codecs.encode, Call(print, "x"), "latin1"),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_forged_arrays_are_refused(tmp_path: Path, forged: Any, kind: str) -> None:
    if kind == "torch" and forged is FORGED["codec"]:
        pytest.skip("torch admits encoding text")
    path = tmp_path / "x"
    torch.save({"samples": forged}, path) if kind == "torch" else path.write_bytes(pickle.dumps(forged))
    with pytest.raises(UnreadableFile) as caught:
        (read_torch if kind == "torch" else read_pickle)(path)
    assert "\n" not in str(caught.value)


def test_a_pickle_cannot_alter_the_reader(tmp_path: Path) -> None:
    """`BUILD` on a function sets its attributes, for this file and all later ones."""
    bad = b"c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__X\x05\x00\x00\x00rot13\x85stb."
    good = pickle.dumps(np.arange(3), 2)
    (tmp_path / "bad.pkl").write_bytes(bad)
    (tmp_path / "good.pkl").write_bytes(good)
    with pytest.raises(UnreadableFile, match="the state of a function"):
        read_pickle(tmp_path / "bad.pkl")
    np.testing.assert_array_equal(read_pickle(tmp_path / "good.pkl"), [0, 1, 2])


def test_a_pickle_cannot_ask_for_much_room(tmp_path: Path) -> None:
    for content in (b"\x80\x04Nr\xff\xff\xff\xff.", b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"."):
        (tmp_path / "x.pkl").write_bytes(content)
        with pytest.raises(UnreadableFile):
            read_pickle(tmp_path / "x.pkl")


@pytest.mark.parametrize("kind", ["adatime", "transpl"])
@pytest.mark.parametrize("call", [os.mkdir, eval, torch.load])
def test_malicious_files_are_refused_and_not_run(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, call: Any
) -> None:
    trace = tmp_path / "ran"
    bomb = Call(call, f"__import__('os').mkdir({str(trace)!r})" if call is eval else str(trace))
    if kind == "adatime":
        read, folder = read_adatime, request.getfixturevalue("ada")
        path = adatime(folder, 2, "train", bomb, torch.zeros(3))
    else:
        read, folder = read_transpl, request.getfixturevalue("authors")
        path = transpl(folder, 2, "train", bomb, np.zeros(3))
    assert str(path) in refused(read, folder, call.__name__)
    assert not trace.exists()
    if kind == "transpl" and call is os.mkdir:  # the bomb is a real one
        pickle.loads(path.read_bytes())
        assert trace.exists()


def forge_tensor(path: Path, **changes: Any) -> None:
    """Write a file whose pickle says of a tensor of ten entries what `changes` says."""
    fields = {"offset": 0, "size": (10,), "stride": (1,), "length": 10, "key": "0", "kind": "storage", **changes}

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if obj is torch.FloatStorage:
                return None
            return (fields["kind"], torch.FloatStorage, fields["key"], "cpu", fields["length"]) if obj == "S" else None

    with zipfile.ZipFile(path, "w", fields.get("method", zipfile.ZIP_STORED)) as archive:
        with archive.open("a/data.pkl", "w") as stream:
            rebuild: Any = torch._utils._rebuild_tensor_v2
            Pickler(stream, 2).dump(Call(rebuild, "S", fields["offset"], fields["size"], fields["stride"], False, None))
        archive.writestr("a/data/0", np.arange(10, dtype="<f4").tobytes())
        archive.writestr("a/version", "3\n")


def test_forged_tensors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    forge_tensor(path, size=(2, 5), stride=(5, 1))
    np.testing.assert_array_equal(read_torch(path), np.arange(10).reshape(2, 5))
    for change in (
        {"offset": 1},
        {"offset": -1},
        {"offset": 1 << 70},
        {"stride": (2,)},
        {"stride": (-1,)},
        {"stride": (0, 0)},
        {"size": (11,)},
        {"size": (-1,)},
        {"size": (1 << 40,), "stride": (0,)},
        {"size": 10},
        {"size": (2.5,)},
        {"length": 11},
        {"key": "1"},
        {"key": "../data.pkl"},
        {"kind": "module"},
        {"method": zipfile.ZIP_DEFLATED},
    ):
        forge_tensor(path, **change)
        with pytest.raises(UnreadableFile) as caught:
            read_torch(path)
        assert "\n" not in str(caught.value)


def pack(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The files of a small data set in each layout; AdaTime's also with numpy arrays in it."""
    folder = tmp_path_factory.mktemp("whole")
    for split in ("train", "test"):
        adatime(folder / "tensors", 1, split, torch.from_numpy(windows(3)), torch.arange(3))
        adatime(folder / "arrays", 1, split, windows(3), np.arange(3.0))
        transpl(folder / "authors", 1, split, windows(3), np.arange(3))
    return {kind: pack(folder / kind) for kind in ("tensors", "arrays", "authors")}


change = st.tuples(
    st.sampled_from(["flip", "write", "cut", "delete"]), st.floats(0, 1), st.binary(min_size=1, max_size=6)
)


def changed(content: bytes, how: tuple[str, float, bytes]) -> bytes:
    kind, where, some = how
    i = min(int(where * len(content)), max(len(content) - 1, 0))
    rest = {"flip": bytes([content[i] ^ (some[0] or 1)]) + content[i + 1 :] if content else b""}
    rest |= {"write": some + content[i + len(some) :], "cut": b"", "delete": content[i + len(some) :]}
    return content[:i] + rest[kind]


@settings(max_examples=250, deadline=None)
@given(
    kind=st.sampled_from(["tensors", "arrays", "authors"]), which=st.integers(0, 3), how=st.lists(change, min_size=1)
)
def test_changed_files_give_a_sound_data_set_or_an_error(
    whole: dict[str, dict[str, bytes]], kind: str, which: int, how: list[tuple[str, float, bytes]]
) -> None:
    files = dict(whole[kind])
    name = sorted(files)[which % len(files)]
    for one in how:
        files[name] = changed(files[name], one)
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            Path(folder, file).write_bytes(content)
        message = ""
        try:
            dataset = (read_transpl if kind == "authors" else read_adatime)(folder, "other")
        except InputError as error:
            message = str(error)
        else:  # a checksum guards AdaTime's numbers; TransPL's have none
            assert np.isfinite(dataset.X).all()
            assert kind == "authors" or np.array_equal(dataset.X, np.concatenate([windows(3)] * 2))
    assert "\n" not in message
    assert folder in message or not message


@settings(max_examples=200, deadline=None)
@given(how=st.lists(change, min_size=1, max_size=3), protocol=st.integers(0, 5), torch_like=st.booleans())
def test_changed_pickles_raise_nothing_else(
    how: list[tuple[str, float, bytes]], protocol: int, torch_like: bool
) -> None:
    """Behind the checksum: the pickle inside AdaTime's zip, and bare ones."""
    content = pickle.dumps({"samples": windows(1), "labels": [np.arange(3), "x", 1.5]}, protocol)
    for one in how:
        content = changed(content, one)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        if torch_like:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a/data.pkl", content)
        message = ""
        try:
            (read_torch if torch_like else read_pickle)(path)
        except UnreadableFile as error:
            message = str(error)
    assert "\n" not in message
