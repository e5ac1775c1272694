"""Archives from outside: what is right comes out whole, what is wrong leaves nothing."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.unpack import MAX_DEPTH, MAX_PADDING, holds_archives, unpacked

Files = dict[str, bytes]
FILES: Files = {"a/x.txt": b"one\n" * 500, "a/b/y.txt": b"", "z.bin": bytes(range(256))}


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: Files, mode: str = "w", kind: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            add(archive, name, content)
    return buffer.getvalue()


def add(archive: tarfile.TarFile, name: str, content: bytes = b"", **fields: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    archive.addfile(info, io.BytesIO(content))


def tgz(files: Files) -> bytes:
    return tarred(files, "w:gz")


PACKERS: dict[str, Callable[[Files], bytes]] = {"zip": zipped, "tar": tarred, "tar.gz": tgz, "tgz": tgz}


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def contents(folder: Path) -> Files:
    """All files below `folder`, hidden ones too."""
    return {
        os.path.relpath(os.path.join(where, name), folder): Path(where, name).read_bytes()
        for where, _, names in os.walk(folder)
        for name in names
    }


def refused(tmp_path: Path, content: bytes, message: str = ".", name: str = "data.zip", **limits: int) -> str:
    """`content` is refused in one line, and nothing is there afterwards that was not before."""
    put(tmp_path / "in" / name, content)
    with pytest.raises(UnreadableFile, match=message) as caught:
        unpacked(tmp_path / "in" / name, tmp_path / "out", **limits)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert os.listdir(tmp_path) == ["in"]
    return str(caught.value)


@pytest.mark.parametrize("kind", PACKERS)
def test_what_is_in_it_comes_out(tmp_path: Path, kind: str) -> None:
    archive = put(tmp_path / f"data.{kind}", PACKERS[kind](FILES))
    assert unpacked(archive, tmp_path / "new" / "out") == tmp_path / "new" / "out"
    assert contents(tmp_path / "new") == {f"out/{name}": content for name, content in FILES.items()}


def test_the_name_does_not_decide_the_kind(tmp_path: Path) -> None:
    assert contents(unpacked(put(tmp_path / "data.zip", tgz(FILES)), tmp_path / "out")) == FILES


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_and_foreign_names(tmp_path: Path, kind: int) -> None:
    files = {"ü/Ω.txt": b"x", "d" * 60 + "/" + "n" * 90 + ".txt": b"y"}
    assert contents(unpacked(put(tmp_path / "a", tarred(files, kind=kind)), tmp_path / "tar")) == files
    assert contents(unpacked(put(tmp_path / "b", zipped(files)), tmp_path / "zip")) == files


def test_folders_dots_and_backslashes(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        add(archive, "./", type=tarfile.DIRTYPE)
        add(archive, "./empty", type=tarfile.DIRTYPE)
        add(archive, "./a\\b.txt", b"1")
    folder = unpacked(put(tmp_path / "a.tar", buffer.getvalue()), tmp_path / "out")
    assert (folder / "empty").is_dir()
    assert contents(folder) == {"a/b.txt": b"1"}


def test_what_comes_out_is_as_readable_as_any_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    folder = unpacked(put(tmp_path / "a.zip", zipped({"x": b""})), tmp_path / "out")
    assert folder.stat().st_mode == plain.stat().st_mode
    assert (folder / "x").stat().st_mode == put(plain / "x", b"").stat().st_mode


@pytest.mark.parametrize("inner", PACKERS)
@pytest.mark.parametrize("outer", PACKERS)
def test_archives_in_archives(tmp_path: Path, outer: str, inner: str) -> None:
    packed = PACKERS[outer]({f"The Data.{inner}": PACKERS[inner]({"The Data/x.txt": b"x"}), "readme": b"r"})
    folder = unpacked(put(tmp_path / "in", packed), tmp_path / "out")
    assert contents(folder) == {"The Data/The Data/x.txt": b"x", "readme": b"r"}


def test_two_nested_archives_of_one_name_both_come_out(tmp_path: Path) -> None:
    packed = zipped({"a.tar": tarred({"1": b"1"}), "a.zip": zipped({"2": b"2"})})
    assert contents(unpacked(put(tmp_path / "in", packed), tmp_path / "out")) == {"a/1": b"1", "a.zip/2": b"2"}


def test_an_archive_beside_its_folder_counts_as_unpacked(tmp_path: Path) -> None:
    files = {"a.zip": zipped({"x": b"other"}), "a/x": b"x", "__MACOSX/._b.zip": b"no zip", ".c.zip": b"no zip"}
    assert contents(unpacked(put(tmp_path / "in", zipped(files)), tmp_path / "out")) == files


def test_files_that_are_zips_by_the_way_stay(tmp_path: Path) -> None:
    files = {"x.npz": zipped({"X.npy": b""}), "x.xlsx": zipped({"sheet": b""})}
    assert contents(unpacked(put(tmp_path / "in", zipped(files)), tmp_path / "out")) == files


def nest(depth: int) -> bytes:
    content = zipped({"x": b"x"})
    for _ in range(depth):
        content = zipped({"a.zip": content})
    return content


def test_nesting_has_an_end(tmp_path: Path) -> None:
    deep = unpacked(put(tmp_path / "in" / "a", nest(MAX_DEPTH)), tmp_path / "out")
    assert contents(deep) == {"a/" * MAX_DEPTH + "x": b"x"}
    deep.rename(tmp_path / "in" / "done")
    refused(tmp_path, nest(MAX_DEPTH + 1), "more than 3 deep")


def test_a_damaged_nested_archive_is_named(tmp_path: Path) -> None:
    message = refused(tmp_path, zipped({"deep/in.zip": zipped(FILES)[:-30], "x": b""}), "damaged")
    assert "data.zip: deep/in.zip: damaged" in message
    refused(tmp_path, zipped({"in.zip": b"<html>not found</html>"}), "data.zip: in.zip: damaged")


BAD_NAMES = ["../x", "a/../../x", "/x", "..", "\\x", "..\\x", "C:\\x", "C:x", "c:/x", "a/C:/x", "//host/x"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_no_path_leaves_the_folder(tmp_path: Path, kind: str, name: str) -> None:
    refused(tmp_path, PACKERS[kind]({"good": b"", name: b"evil"}), "outside the folder")
    refused(tmp_path, zipped({"in.tar": PACKERS[kind]({"good": b"", name: b"evil"})}), "outside the folder")


@pytest.mark.parametrize(
    "type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_a_tar_makes_no_links_and_devices(tmp_path: Path, type_: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        add(archive, "good", b"")
        add(archive, "link", type=type_, linkname="/etc")
        add(archive, "link/passwd", b"evil")
    refused(tmp_path, buffer.getvalue(), "link or a device")


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_a_zip_makes_no_links_and_devices(tmp_path: Path, mode: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (mode | 0o777) << 16
        archive.writestr(info, "/etc")
    path = unpacked(put(tmp_path / "a.zip", buffer.getvalue()), tmp_path / "out") / "link"
    assert stat.S_ISREG(path.lstat().st_mode)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("link/passwd", "evil")
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "a.zip").unlink()
    refused(tmp_path, buffer.getvalue(), "damaged")


def test_a_file_where_a_folder_is(tmp_path: Path) -> None:
    for files in ({"a": b"1", "a/b": b"2"}, {"a/b": b"2", "a": b"1"}, {".": b"x"}):
        refused(tmp_path, zipped(files), "damaged")
        refused(tmp_path, tarred(files), "damaged")


def test_encrypted_archives(tmp_path: Path) -> None:
    content = bytearray(zipped({"x": b"secret"}, zipfile.ZIP_STORED))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    refused(tmp_path, bytes(content), "encrypted")


def test_unknown_compression(tmp_path: Path) -> None:
    content = bytearray(zipped({"x": b"x"}, zipfile.ZIP_STORED))
    content[8] = content[content.index(b"PK\x01\x02") + 10] = 97
    refused(tmp_path, bytes(content), "unknown kind")


@pytest.mark.parametrize("kind", PACKERS)
def test_every_truncation_is_noticed(tmp_path: Path, kind: str) -> None:
    whole = PACKERS[kind]({"x": b"x" * 700, "y": os.urandom(700)})
    last_needed = whole.rstrip(b"\0").__len__() if kind == "tar" else len(whole)
    for length in range(0, last_needed, 61):
        refused(tmp_path, whole[:length])


def test_a_damaged_header_is_not_the_end_of_a_tar(tmp_path: Path) -> None:
    """Python's reader stops there without a word."""
    content = bytearray(tarred({"x": b"1", "y": b"2", "z": b"3"}))
    content[1024 + 5] ^= 1
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert archive.getnames() == ["x"]
    refused(tmp_path, bytes(content), "damaged")


def test_entries_that_got_lost_in_a_zip(tmp_path: Path) -> None:
    """A wrong length of a comment hides all later entries from Python's reader."""
    content = bytearray(zipped({"x": b"1", "y": b"2", "z": b"3"}))
    content[content.index(b"PK\x01\x02") + 33] = 1
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["x"]
    refused(tmp_path, bytes(content), "1 entries of 3")


def test_a_zip_within_something_else_is_not_the_archive(tmp_path: Path) -> None:
    refused(tmp_path, b"PK" + tarred({"k": zipped({"x": b""}, zipfile.ZIP_STORED)})[2:-1], "does not begin")


def test_a_zip_with_a_comment(tmp_path: Path) -> None:
    buffer = io.BytesIO(zipped(FILES))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"from the host" * 1000
    assert contents(unpacked(put(tmp_path / "in", buffer.getvalue()), tmp_path / "out")) == FILES


def test_a_checksum_after_the_end_is_compared(tmp_path: Path) -> None:
    content = bytearray(tgz(FILES))
    content[-8] ^= 1
    refused(tmp_path, bytes(content), "CRC")


def test_what_is_no_archive_or_empty(tmp_path: Path) -> None:
    for content in (b"", b"PK", b"\x1f\x8b", b"<html>404</html>", gzip.compress(b"hi")):
        refused(tmp_path, content)
    for content in (zipped({}), bytes(10240), tgz({})):
        refused(tmp_path, content, "nothing is in it")


@pytest.mark.parametrize("kind", PACKERS)
def test_limits(tmp_path: Path, kind: str) -> None:
    files = {"x": bytes(3000), "y": bytes(2000), "z": b""}
    packed = PACKERS[kind](files)
    folder = unpacked(put(tmp_path / "in" / "a", packed), tmp_path / "in" / "out", max_bytes=5000, max_files=3)
    assert contents(folder) == files
    refused(tmp_path, packed, "more bytes", max_bytes=4999)
    refused(tmp_path, packed, "more files", max_files=2)
    refused(tmp_path, zipped({"in.zip": packed}), "more bytes", max_bytes=4999 + len(packed))
    refused(tmp_path, zipped({"in.zip": packed}), "more files", max_files=3)


def test_a_header_that_lies_about_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb says that it is small; not more than the limit may ever be on the disk."""
    bomb = bytearray(zipped({"x": bytes(30_000_000)}))
    struct.pack_into("<I", bomb, 22, 10)
    struct.pack_into("<I", bomb, bomb.index(b"PK\x01\x02") + 24, 10)
    refused(tmp_path, bytes(bomb))
    for reader in (zipfile.ZipFile, tarfile.TarFile):
        monkeypatch.setattr(reader, "extract", lambda *_, **__: pytest.fail("written"))
    for honest in (zipped({"x": bytes(30_000_000)}), tgz({"x": bytes(30_000_000)})):
        refused(tmp_path, honest, "more bytes", max_bytes=2_000_000)


def test_a_tar_bomb_in_the_long_name(tmp_path: Path) -> None:
    refused(tmp_path, gzip.compress(tarred({"n" * (2 << 20): b""}, kind=tarfile.GNU_FORMAT)), "damaged")


def test_a_tar_that_goes_on_after_its_end(tmp_path: Path) -> None:
    refused(tmp_path, gzip.compress(tarred({"x": b""}) + bytes(MAX_PADDING + 1), 1), "long after its end")


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    archive = put(tmp_path / "a.zip", zipped(FILES))
    for place in (put(tmp_path / "file", b"1"), put(tmp_path / "full" / "x", b"1").parent):
        with pytest.raises(InputError, match="new or empty folder"):
            unpacked(archive, place)
    assert contents(tmp_path / "full") == {"x": b"1"}
    (tmp_path / "empty").mkdir()
    assert contents(unpacked(archive, tmp_path / "empty")) == FILES
    with pytest.raises(UnreadableFile, match="cannot be written"):
        unpacked(archive, tmp_path / "file" / "out")
    with pytest.raises(UnreadableFile, match="no such file"):
        unpacked(tmp_path / "absent.zip", tmp_path / "out")


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_what_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException
) -> None:
    archive = put(tmp_path / "in" / "a.zip", zipped(FILES))
    extract, calls = zipfile.ZipFile.extract, []

    def failing(*arguments: Any) -> str:
        calls.append(arguments)
        if len(calls) == 3:
            raise trouble
        return extract(*arguments)

    monkeypatch.setattr(zipfile.ZipFile, "extract", failing)
    with pytest.raises((KeyboardInterrupt, UnreadableFile)) as caught:
        unpacked(archive, tmp_path / "out")
    assert isinstance(trouble, KeyboardInterrupt) or "No space left" in str(caught.value)
    assert os.listdir(tmp_path) == ["in"]


def test_archives_in_a_folder_are_found(tmp_path: Path) -> None:
    folder = put(tmp_path / "mine" / "x.txt", b"x").parent
    put(folder / "done.zip", b"")
    put(folder / "done" / "y", b"")
    assert not holds_archives(folder)
    put(folder / "deep" / "a.tgz", b"")
    assert holds_archives(folder)
    with pytest.raises(UnreadableFile, match="no such file"):
        unpacked(tmp_path / "absent", tmp_path / "other")


@pytest.mark.parametrize("can_link", [True, False])
def test_a_users_folder_with_archives_is_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_link: bool
) -> None:
    def no_links(*arguments: object) -> None:
        raise OSError("a privilege is needed")

    if not can_link:
        monkeypatch.setattr(os, "symlink", no_links)
    files = {
        "sub/in.zip": zipped({"deep.tgz": tgz({"x": b"x"})}),
        "sub/plain.txt": b"p",
        "done.zip": b"was unpacked",
        "done/y": b"y",
        ".half.zip": b"half a down",
    }
    for name, content in files.items():
        put(tmp_path / "mine" / name, content)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "sub").chmod(0o555)
    folder = unpacked(Path("mine"), Path("scratch"))
    assert (folder / "sub").stat().st_mode & 0o200
    (tmp_path / "mine" / "sub").chmod(0o755)
    expected = {"sub/in/deep/x": b"x", "sub/plain.txt": b"p", "done.zip": b"was unpacked", "done/y": b"y"}
    assert contents(folder) == expected
    assert {path.name for path in folder.rglob("*") if path.is_file()} >= {"x", "plain.txt"}
    assert contents(tmp_path / "mine") == files


def test_a_users_folder_with_a_bad_archive(tmp_path: Path) -> None:
    put(tmp_path / "mine" / "in.zip", zipped({"../x": b""}))
    with pytest.raises(UnreadableFile, match=r"in\.zip.*outside"):
        unpacked(tmp_path / "mine", tmp_path / "scratch")
    assert contents(tmp_path) == {"mine/in.zip": zipped({"../x": b""})}


Change = tuple[str, float, bytes]
KINDS = ("flip", "write", "cut", "insert", "delete")
change = st.tuples(st.sampled_from(KINDS), st.floats(0, 1), st.binary(min_size=1, max_size=8))
changes = st.lists(change, min_size=1, max_size=4)


def changed(content: bytes, how: list[Change]) -> bytes:
    for kind, where, some in how:
        i = min(int(where * len(content)), max(len(content) - 1, 0))
        after = {
            "flip": bytes([content[i] ^ (some[0] or 1)]) + content[i + 1 :] if content else b"",
            "write": some + content[i + len(some) :],
            "cut": b"",
            "insert": some + content[i:],
            "delete": content[i + len(some) :],
        }
        content = content[:i] + after[kind]
    return content


SMALL: Files = {"a/x.txt": b"one\n" * 20, "in.zip": zipped({"y.bin": bytes(range(200))}), "z": b"z"}
RIGHT = {"a/x.txt": SMALL["a/x.txt"], "in/y.bin": bytes(range(200)), "z": b"z"}


CHECKED = {"zip": zipped(SMALL), "tar.gz": tgz(SMALL)}
UNCHECKED = {"gnu": tarred(SMALL, kind=tarfile.GNU_FORMAT), "pax": tarred(SMALL, kind=tarfile.PAX_FORMAT)}


def right_or_refused(content: bytes) -> Files | None:
    """Return what comes out, None for a clear error; anything else fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").write_bytes(content)
        found, message = None, ""
        try:
            found = contents(unpacked(folder / "data", folder / "out", max_bytes=1 << 20))
        except InputError as error:
            message = str(error)
        assert "\n" not in message
        assert sorted(os.listdir(folder)) == (["data"] if found is None else ["data", "out"])
        return found


def test_unchanged_they_are_right() -> None:
    assert all(right_or_refused(content) == RIGHT for content in (CHECKED | UNCHECKED).values())


@given(kind=st.sampled_from(sorted(CHECKED)), how=changes)
def test_changed_archives_with_checksums_give_the_right_files_or_an_error(kind: str, how: list[Change]) -> None:
    assert right_or_refused(changed(CHECKED[kind], how)) in (None, RIGHT)


@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(sorted(UNCHECKED)), how=changes)
def test_changed_tars_give_all_files_or_an_error(kind: str, how: list[Change]) -> None:
    """A tar has no checksum over what is in its files, only over its headers."""
    found = right_or_refused(changed(UNCHECKED[kind], how))
    assert found is None or set(found) == set(RIGHT)


@settings(max_examples=100, deadline=None)
@given(start=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08\x00"]), rest=st.binary(max_size=1200))
def test_noise_is_refused(start: bytes, rest: bytes) -> None:
    assert right_or_refused(start + rest) is None
