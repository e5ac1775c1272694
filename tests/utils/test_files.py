"""Atomic writing, JSON and arrays."""

import io
import os
import re
import resource
import stat
import tokenize
import tracemalloc
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import refusal

from transpl._utils.errors import InputError, UnreadableFile
from transpl._utils.files import (
    map_npy,
    new_npy,
    npz_keys,
    read_json,
    read_npz,
    remove_leftovers,
    replacing,
    require_regular,
    third_party,
    write_json,
    write_rows,
    write_text,
)
from transpl.benchmark import source_store
from transpl.datasets.prepare import scratch_folder
from transpl.estimator import persistence
from transpl.methods.source_model import TrainedSource
from transpl.nn.loop import Checkpoint


class Interrupted(Exception):
    """Stands for whatever may go wrong in the middle of writing."""


@pytest.fixture
def umask():
    """Set the process's umask for one test."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def write_half_of(path, failure):
    with replacing(path) as part:
        part.write_text("half")
        raise failure


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


# replacing


def test_the_new_content_appears_under_the_final_name_and_nothing_else_is_left(tmp_path):
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert names_in(tmp_path) == ["a.txt"]


def test_an_existing_file_is_replaced(tmp_path):
    (tmp_path / "a.txt").write_text("old and longer")
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_the_old_content_stays_in_place_until_the_block_ends(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("new")
        assert (tmp_path / "a.txt").read_text() == "old"


def test_the_new_content_is_on_the_disk_before_it_takes_the_final_name(tmp_path, monkeypatch):
    """Else a power cut may leave an empty file in place of the old one."""
    steps, replace = [], os.replace

    def rename(part, final):
        steps.append(("renamed", os.stat(part).st_ino))
        replace(part, final)

    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append(("flushed", os.fstat(descriptor).st_ino)))
    monkeypatch.setattr(os, "replace", rename)
    write_text(tmp_path / "a.txt", "new")
    written = (tmp_path / "a.txt").stat().st_ino
    assert steps == [("flushed", written), ("renamed", written)]


@pytest.mark.parametrize("failure", [Interrupted, KeyboardInterrupt, SystemExit])
def test_a_failure_in_the_block_leaves_the_old_content_and_no_stray_file(tmp_path, failure):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(failure):
        write_half_of(tmp_path / "a.txt", failure)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_failure_in_the_block_leaves_no_file_where_there_was_none(tmp_path):
    with pytest.raises(Interrupted):
        write_half_of(tmp_path / "a.txt", Interrupted)
    assert names_in(tmp_path) == []


def test_a_failure_of_the_rename_leaves_no_stray_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_text(tmp_path / "folder", "new")
    assert names_in(tmp_path) == ["folder"]


def test_the_temporary_file_lies_beside_the_final_one_and_keeps_its_suffix(tmp_path):
    with replacing(tmp_path / "a.npz") as part:
        assert part.parent == tmp_path
        assert part.suffix == ".npz"
        assert part.name != "a.npz"


def test_missing_folders_are_made(tmp_path):
    write_text(tmp_path / "x" / "y" / "a.txt", "new")
    assert (tmp_path / "x" / "y" / "a.txt").read_text() == "new"


def test_two_writers_of_one_name_do_not_share_a_temporary_file(tmp_path):
    with replacing(tmp_path / "a.txt") as first, replacing(tmp_path / "a.txt") as second:
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a.txt").read_text() == "first"  # the outer block ends last
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_written_file_has_the_permissions_of_any_new_file(tmp_path, umask, mask, expected):
    umask(mask)
    write_text(tmp_path / "a.txt", "new")
    assert permissions(tmp_path / "a.txt") == expected


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_writing_leaves_the_umask_alone(tmp_path, umask):
    umask(0o027)
    write_text(tmp_path / "a.txt", "new")
    assert umask(0o027) == 0o027


# the name in an error


def test_an_error_of_the_disk_names_the_file_and_not_the_temporary_one(tmp_path):
    (tmp_path / "folder").mkdir()
    too_long = tmp_path / ("a" * 250)
    for path, problem in (tmp_path / "folder", "directory"), (too_long, "too long"):
        with pytest.raises(OSError, match=problem) as failure:
            write_text(path, "new")
        assert failure.value.filename == str(path)
    assert names_in(tmp_path) == ["folder"]


# a full disk


@contextmanager
def little_room():
    """No file may grow beyond 1 kB; only for a moment, for pytest writes files too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_that_names_the_file_and_the_old_content_stays(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(OSError, match="File too large") as caught, little_room():
        write_text(tmp_path / "a.txt", "x" * 5000)
    assert caught.value.filename == str(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_rows_that_find_no_room_name_their_file_too(tmp_path):
    new_npy(tmp_path / "a.npy", (2, 10), np.float32)
    with pytest.raises(OSError, match="File too large") as caught, little_room():
        write_rows(tmp_path / "a.npy", 0, np.zeros((200, 10), np.float32))
    assert caught.value.filename == str(tmp_path / "a.npy")
    with pytest.raises(OSError, match="File too large") as caught, little_room():
        new_npy(tmp_path / "b.npy", (200, 10), np.float32)
    assert caught.value.filename == str(tmp_path / "b.npy")


def test_a_scratch_folder_without_room_is_named_after_its_home(tmp_path):
    with pytest.raises(OSError, match="File too large") as caught, little_room(), scratch_folder(tmp_path) as scratch:
        (scratch / "windows").write_bytes(bytes(5000))
    assert caught.value.filename == str(tmp_path)
    assert names_in(tmp_path) == []


def test_weights_and_checkpoints_say_it_as_other_files_do(tmp_path):
    tensors = {"w": torch.zeros(1000)}
    with pytest.raises(OSError, match="File too large"), little_room():
        Checkpoint(tmp_path, "source", "0" * 16).save(tensors)
    with pytest.raises(OSError, match="File too large"), little_room():
        persistence._write_arrays(tmp_path, {"w": np.zeros(1000)})
    with pytest.raises(OSError, match="File too large"), little_room():
        source_store._write(TrainedSource(torch.nn.Linear(100, 100), {}, 0.0), tmp_path)
    assert names_in(tmp_path) == []


# what a killed writer leaves


@pytest.mark.parametrize("name", ["a.json", "a", "a.tar.gz"])
def test_the_temporary_file_of_a_killed_writer_is_removed(tmp_path, name):
    with replacing(tmp_path / name) as part:
        pass
    part.touch()
    remove_leftovers(tmp_path)
    assert names_in(tmp_path) == [name]


def test_files_of_other_people_are_no_leftovers(tmp_path):
    theirs = [".a.ABCD1234.part", ".mine.part", "a.abcd1234.part.json", "a.part.json"]
    for name in theirs:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "nowhere")
    assert names_in(tmp_path) == theirs


# links, devices and pipes. None of these is a device of the machine: a test that fails as root would replace it.


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.txt").write_text("old")
    (tmp_path / "near.txt").symlink_to("link.txt")
    (tmp_path / "link.txt").symlink_to("far/real.txt")
    write_text(tmp_path / "near.txt", "new")
    assert (tmp_path / "near.txt").is_symlink()
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "far" / "real.txt").read_text() == "new"
    assert names_in(tmp_path / "far") == ["real.txt"]


def test_a_link_to_nothing_yet_stays_too(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "new")
    assert os.read(reader, 99) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names_in(tmp_path) == ["pipe"]


def test_a_terminal_is_written_to(tmp_path):
    screen, terminal = os.openpty()
    os.set_blocking(screen, False)
    (tmp_path / "terminal").symlink_to(os.ttyname(terminal))
    write_text(tmp_path / "terminal", "new")
    assert os.read(screen, 99) == b"new"
    assert (tmp_path / "terminal").is_symlink()
    os.close(screen)
    os.close(terminal)


def test_an_open_file_of_ours_is_written_on_where_it_is(tmp_path):
    """As /dev/stdout, where the shell appends to a log."""
    (tmp_path / "log").write_text("before\n")
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_APPEND)
    (tmp_path / "stdout").symlink_to(f"/dev/fd/{log}")
    write_text(tmp_path / "stdout", "new\n")
    os.close(log)
    assert (tmp_path / "log").read_text() == "before\nnew\n"
    assert (tmp_path / "stdout").is_symlink()


def test_nothing_of_a_failed_block_reaches_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(Interrupted):
        write_half_of(tmp_path / "pipe", Interrupted)
    assert os.read(reader, 99) == b""
    os.close(reader)


# text and JSON


def test_text_is_written_as_utf_8(tmp_path):
    write_text(tmp_path / "a.txt", "Gänge → 2 µV")
    assert (tmp_path / "a.txt").read_bytes() == "Gänge → 2 µV".encode()


def test_json_survives_a_round_trip(tmp_path):
    value = {"name": "Größe", "list": [1, 2.5, None, True], "nested": {"empty": {}}}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


def test_json_is_written_to_be_read_by_people(tmp_path):
    write_json(tmp_path / "a.json", {"name": "Größe"})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "name": "Größe"\n}\n'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_json_without_a_standard_form_is_refused_and_the_old_file_stays(tmp_path, number):
    write_json(tmp_path / "a.json", {"score": 1.0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"score": number})
    assert read_json(tmp_path / "a.json") == {"score": 1.0}
    assert names_in(tmp_path) == ["a.json"]


def test_a_missing_json_file_is_reported_in_one_line(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(UnreadableFile, match=rf"\A{re.escape(str(path))}: no such file\. .*\Z"):
        read_json(path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{\n  "a": 1,\n  "b"', id="truncated"),
        pytest.param(b"hello\nworld\n", id="text"),
        pytest.param(b"\xff\xfe\x00\n\x80", id="binary"),
        pytest.param(b'{"a": 1}\n{"a": 2}\n', id="two-values"),
        pytest.param(b"[" * 100_000, id="deeply-nested"),
    ],
)
def test_a_damaged_json_file_is_reported_in_one_line(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=rf"\A{re.escape(str(path))}: not readable as JSON .*\Z"):
        read_json(path)


def test_a_folder_in_place_of_a_json_file_is_reported_in_one_line(tmp_path):
    with pytest.raises(UnreadableFile, match=rf"\A{re.escape(str(tmp_path))}: .*\Z"):
        read_json(tmp_path)


# npz files


def test_the_arrays_of_an_npz_are_read_all_or_those_that_are_asked_for(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(3), y=np.array(["b"]))
    assert {key: array.tolist() for key, array in read_npz(path).items()} == {"x": [0, 1, 2], "y": ["b"]}
    assert read_npz(path, ["x", "unknown"]).keys() == {"x"}


def test_pickled_objects_in_an_npz_are_refused_where_they_are_asked_for(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], object), y=np.ones(3))
    with refusal(path, "x contains pickled objects, which could run code", UnreadableFile):
        read_npz(path)
    assert read_npz(path, ["y"]).keys() == {"y"}


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    with refusal(tmp_path / "none.npz", "no such file", UnreadableFile):
        read_npz(tmp_path / "none.npz")
    np.save(tmp_path / "single.npy", np.ones(3))
    with refusal(tmp_path / "single.npy", "a single array, not an npz", UnreadableFile):
        read_npz(tmp_path / "single.npy")
    (tmp_path / "text.npz").write_text("hello\nworld\n")
    with refusal(tmp_path / "text.npz", "not an npz", UnreadableFile):
        read_npz(tmp_path / "text.npz")
    (tmp_path / "half.npz").write_bytes(b"PK\x03\x04")
    with refusal(tmp_path / "half.npz", "not an npz, or damaged", UnreadableFile):
        read_npz(tmp_path / "half.npz")


def packed(path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_arrays_that_nobody_asked_for_are_not_unpacked(tmp_path):
    path = packed(tmp_path / "a.npz", {"x.npy": npy(np.arange(3)), "zeros.npy": bytes(1 << 23)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    assert read_npz(path, ["x"])["x"].tolist() == [0, 1, 2]
    assert npz_keys(path) == ["x", "zeros"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 100000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<U99999999', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': [], 'fortran_order': False, 'shape': (-1,), }",  # numpy.load(mmap_mode="r") ends the process
        "{'descr': '|S0', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3",  # tokenize.TokenError
        "{" * 300,
        "'''",
        "1" * 6000,
        "\0",
    ],
)
def test_headers_that_lie_or_make_no_sense_are_refused(tmp_path, header):
    content = npy(np.ones(3))
    lying = content[:8] + len(header).to_bytes(2, "little") + header.encode() + content[-24:]
    path = packed(tmp_path / "a.npz", {"x.npy": lying})
    with refusal(path, "not an npz, or damaged", UnreadableFile):
        read_npz(path)
    (tmp_path / "a.npy").write_bytes(lying)
    with refusal(tmp_path / "a.npy", "not a .npy file, or damaged", UnreadableFile):
        map_npy(tmp_path / "a.npy")


def test_an_array_that_its_bytes_cannot_hold_is_refused_before_memory_is_taken(tmp_path):
    size = 1 << 31
    header = npy(np.empty(0)).replace(b"(0,), }" + b" " * 10, b"(%d,), }" % (size // 8) + b" " * 2)
    path = packed(tmp_path / "a.npz", {"x.npy": header}, zipfile.ZIP_DEFLATED)
    honest, lying = len(header).to_bytes(4, "little"), (len(header) + size).to_bytes(4, "little")
    content = path.read_bytes()
    assert content.count(honest) == 2
    path.write_bytes(content.replace(honest, lying))
    with refusal(path, "not an npz, or damaged .*cannot hold", UnreadableFile):
        read_npz(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_members_are_refused(tmp_path, compression):
    path = packed(tmp_path / "a.npz", {"x.npy": npy(np.arange(40) ** 3)}, compression)
    sound = path.read_bytes()
    for place in range(40, len(sound) - 80, 13):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 255]) + sound[place + 1 :])
        with pytest.raises(UnreadableFile):
            read_npz(path)


def test_two_arrays_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
        archive.writestr("x.npy", npy(np.ones(3)))
        archive.writestr("x.npy", npy(np.zeros(3)))
    with refusal(path, "x.npy twice", UnreadableFile):
        read_npz(path)


# errors of libraries


@pytest.mark.parametrize(
    "error",
    [KeyError("pandas"), tokenize.TokenError("EOF"), RuntimeError("two\nlines"), RecursionError(), zlib.error("x")],
)
def test_whatever_a_library_raises_becomes_one_line(tmp_path, error):
    path = tmp_path / "a.csv"
    path.touch()
    with refusal(path, "not readable", UnreadableFile), third_party(path, "not readable", "Write it again."):
        raise error


def test_too_little_memory_is_named_as_such(tmp_path):
    (tmp_path / "a").touch()
    with refusal(tmp_path / "a", "more memory", UnreadableFile), third_party(tmp_path / "a", "damaged", "-"):
        raise MemoryError


@pytest.mark.parametrize("error", [InputError("x: y"), ImportError("no pyarrow"), KeyboardInterrupt(), SystemExit(3)])
def test_errors_that_are_not_about_the_file_pass(tmp_path, error):
    (tmp_path / "a").touch()
    with pytest.raises(type(error)) as caught, third_party(tmp_path / "a", "damaged", "-"):
        raise error
    assert caught.value is error


# regular files only


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("read", [read_json, read_npz, npz_keys, map_npy, require_regular])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with refusal(tmp_path / "pipe", "a pipe or a device", UnreadableFile):
        read(tmp_path / "pipe")


def test_only_regular_files_are_read(tmp_path):
    for path, problem in (
        (tmp_path, "a folder"),
        (tmp_path / "absent", "no such file"),
        (tmp_path / "a\0b", "no such file"),
        (Path(os.devnull), "a pipe or a device"),
    ):
        with pytest.raises(UnreadableFile, match=problem):
            require_regular(path)
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    require_regular(tmp_path / "link")


# .npy files in parts


def test_rows_written_in_any_order_make_the_file_that_numpy_saves(tmp_path):
    values = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    np.save(tmp_path / "whole.npy", values)
    new_npy(tmp_path / "parts.npy", values.shape, np.float32)
    for first in (6, 0, 3):
        write_rows(tmp_path / "parts.npy", first, values[first : first + 3].astype(np.float64))
    write_rows(tmp_path / "parts.npy", 9, values[9:])
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_rows_not_written_yet_are_zero(tmp_path):
    new_npy(tmp_path / "a.npy", (3,), np.int32)
    write_rows(tmp_path / "a.npy", 1, np.array([7]))
    assert map_npy(tmp_path / "a.npy").tolist() == [0, 7, 0]


def test_rows_are_on_the_disk_when_they_are_written(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda _: flushed.append(map_npy(tmp_path / "a.npy").tolist()))
    new_npy(tmp_path / "a.npy", (3,), np.int32)
    write_rows(tmp_path / "a.npy", 1, np.array([7]))
    assert flushed == [[0, 7, 0]]


def test_a_mapped_file_cannot_be_written_to(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        map_npy(tmp_path / "a.npy")[0] = 2


def test_a_file_that_is_no_array_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    with pytest.raises(UnreadableFile, match="no such file"):
        map_npy(path)
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(UnreadableFile, match="damaged"):
        map_npy(path)
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with refusal(tmp_path / "a.npz", "several arrays, not one", UnreadableFile):
        map_npy(tmp_path / "a.npz")
