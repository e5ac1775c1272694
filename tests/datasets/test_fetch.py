"""Downloads from a real server that misbehaves in every way it can: the right bytes, or none under the final name."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import struct
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pooch
import pytest

from transpl._utils.errors import UnreadableFile
from transpl.datasets import fetch
from transpl.datasets.recipe import RemoteFile

CONTENT = bytes(range(256)) * 2000
HASH = hashlib.sha256(CONTENT).hexdigest()
PAGE = b"<!DOCTYPE html><title>Down for maintenance</title>"


def zipped(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.txt", text)
    return buffer.getvalue()


OLD, NEW = zipped("old"), zipped("new")


class Host(ThreadingHTTPServer):
    """Answers each path as its plan says, one entry per request; the last entry holds for all further ones."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.plans: dict[str, list[Any]] = {}
        self.asked: list[str] = []

    def url(self, path: str, *plan: Any) -> str:
        self.plans[path] = list(plan)
        return f"http://127.0.0.1:{self.server_port}{path}"


class Answer(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        plan = self.server.plans[self.path]
        self.server.asked.append(self.path)
        step = plan.pop(0) if len(plan) > 1 else plan[0]
        {int: self.status, bytes: self.whole, str: self.misbehave, tuple: self.redirect}[type(step)](step)

    def status(self, code: int) -> None:
        self.send_error(code)

    def whole(self, content: bytes) -> None:
        self.begin(len(content))
        self.wfile.write(content)

    def redirect(self, step: tuple[str]) -> None:
        self.send_response(302)
        self.send_header("Location", step[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def misbehave(self, how: str) -> None:
        if how == "encoded":
            self.begin(len(CONTENT), encoding="x-gzip")
            self.wfile.write(CONTENT)
            return
        if how == "senseless length":
            self.begin("many")
            return
        self.begin(None if how == "cut without length" else len(CONTENT))
        self.wfile.write(CONTENT[: len(CONTENT) // 2])
        if how == "dropped":  # a reset instead of an orderly end
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        if how == "silent":
            threading.Event().wait(2)

    def begin(self, length: object, encoding: str | None = None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()

    def finish(self) -> None:
        with suppress(OSError, ValueError):  # we closed it ourselves
            super().finish()

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetch, "PAUSE", 0)
    server = Host()
    server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def remote(*urls: str, sha256: str | None = HASH) -> RemoteFile:
    return RemoteFile("data.zip", urls, sha256)


def files(folder: Path) -> list[str]:
    """Everything in the folder, hidden leftovers too."""
    return sorted(os.listdir(folder)) if folder.exists() else []


def refused(file: RemoteFile, folder: Path, message: str, **options: Any) -> str:
    with pytest.raises(UnreadableFile, match=message) as caught:
        fetch.fetch(file, folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_fetched_once(host: Host, tmp_path: Path) -> None:
    said: list[str] = []
    file, folder = remote(host.url("/a", CONTENT)), tmp_path / "new" / "downloads"
    path = fetch.fetch(file, folder, log=said.append)
    assert path == folder / "data.zip"
    assert path.read_bytes() == CONTENT
    assert fetch.fetch(file, folder) == fetch.fetch(file, folder, offline=True) == path
    assert host.asked == ["/a"]
    assert files(folder) == ["data.zip"]
    assert said == [f"Downloading data.zip from {file.urls[0]}"]


def test_hashes_in_capital_letters_hold(host: Host, tmp_path: Path) -> None:
    fetch.fetch(remote(host.url("/a", CONTENT), sha256=HASH.upper()), tmp_path)


@pytest.mark.parametrize(
    "trouble", ["dropped", "cut", "cut without length", "senseless length", CONTENT[:-1], b"", CONTENT + b"x", 503, 429]
)
def test_trouble_that_passes_costs_a_try(host: Host, tmp_path: Path, trouble: Any) -> None:
    said: list[str] = []
    path = fetch.fetch(remote(host.url("/a", trouble, trouble, CONTENT)), tmp_path, log=said.append)
    assert path.read_bytes() == CONTENT
    assert host.asked == ["/a"] * 3
    assert sum("trying again" in line for line in said) == 2
    assert files(tmp_path) == ["data.zip"]


@pytest.mark.parametrize(
    "trouble", ["dropped", "cut", "cut without length", "senseless length", CONTENT[:-1], b"", b"x" * 999, 500, 404]
)
def test_trouble_that_stays_leaves_no_file(host: Host, tmp_path: Path, trouble: Any) -> None:
    file = remote(host.url("/a", trouble))
    message = refused(file, tmp_path, "could not be downloaded")
    assert str(tmp_path / "data.zip") in message
    assert HASH in message
    assert file.urls[0] in message
    assert files(tmp_path) == []
    assert len(host.asked) == (1 if trouble == 404 else fetch.TRIES)


@pytest.mark.parametrize("trouble", ["dropped", "cut", "senseless length"])
def test_a_cut_transfer_is_noticed_without_a_published_hash(host: Host, tmp_path: Path, trouble: str) -> None:
    refused(remote(host.url("/a", trouble), sha256=None), tmp_path, "could not be downloaded")
    assert files(tmp_path) == []


def test_silence_ends(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    assert fetch.fetch(remote(host.url("/a", "silent", CONTENT)), tmp_path).read_bytes() == CONTENT


def test_mirrors_are_tried_in_turn(host: Host, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9/a"
    urls = [host.url("/gone", 404), nobody, host.url("/wrong", b"wrong"), host.url("/c", CONTENT), host.url("/d", 500)]
    assert fetch.fetch(remote(*urls), tmp_path).read_bytes() == CONTENT
    assert host.asked == ["/gone", *["/wrong"] * fetch.TRIES, "/c"]


def test_when_all_fail_each_address_and_reason_is_named(host: Host, tmp_path: Path) -> None:
    urls = [host.url("/gone", 404), host.url("/ill", 503), "http://127.0.0.1:9/a", "gopher://x/y", "http://[/"]
    message = refused(remote(*urls), tmp_path, "404.*503.*and put it at")
    assert all(url in message for url in urls)
    refused(remote(), tmp_path, "no address is known")


def test_redirects_are_followed_but_not_round_and_round(host: Host, tmp_path: Path) -> None:
    there = host.url("/there", CONTENT)
    assert fetch.fetch(remote(host.url("/here", (there,))), tmp_path).read_bytes() == CONTENT
    (tmp_path / "data.zip").unlink()
    refused(remote(host.url("/round", ("/round",))), tmp_path, "redirects")
    refused(remote(host.url("/lost", ("/gone",)), host.url("/gone", 404)), tmp_path, "404")
    assert files(tmp_path) == []


def test_bytes_are_kept_as_sent(host: Host, tmp_path: Path) -> None:
    """Some hosts announce a .tar.gz as gzip-encoded, which clients then decompress."""
    assert fetch.fetch(remote(host.url("/a", "encoded")), tmp_path).read_bytes() == CONTENT
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w:gz").close()
    packed = RemoteFile("x.tar.gz", (host.url("/x", buffer.getvalue()),))
    assert fetch.fetch(packed, tmp_path).read_bytes() == buffer.getvalue()


def test_wrong_bytes_on_disk_are_replaced(host: Host, tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "data.zip").write_bytes(b"wrong")
    path = fetch.fetch(remote(host.url("/a", CONTENT)), tmp_path, log=said.append)
    assert path.read_bytes() == CONTENT
    assert "other bytes" in said[0]


def test_wrong_bytes_on_disk_are_refused_and_kept_if_nothing_better_comes(host: Host, tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(b"wrong")
    refused(remote(host.url("/a", CONTENT)), tmp_path, "wrong bytes", offline=True)
    assert host.asked == []
    refused(remote(host.url("/a", 404)), tmp_path, "404")
    assert (tmp_path / "data.zip").read_bytes() == b"wrong"


def test_offline_says_what_to_put_where(host: Host, tmp_path: Path) -> None:
    file = remote(host.url("/a", CONTENT), "http://mirror.example/a")
    message = refused(file, tmp_path, "is not there", offline=True)
    for part in ("data.zip", HASH, *file.urls, str(tmp_path / "data.zip")):
        assert part in message
    assert "unknown" in refused(remote(*file.urls, sha256=None), tmp_path, "is not there", offline=True)
    (tmp_path / "data.zip").write_bytes(CONTENT)
    assert fetch.fetch(file, tmp_path, offline=True).read_bytes() == CONTENT
    assert host.asked == []


def test_the_first_hash_is_recorded_and_holds(host: Host, tmp_path: Path) -> None:
    file = remote(host.url("/a", OLD, NEW), sha256=None)
    path = fetch.fetch(file, tmp_path)
    record = tmp_path / "data.zip.sha256"
    assert record.read_text() == f"{hashlib.sha256(OLD).hexdigest()}  data.zip\n"
    changed = zipped("changed")
    path.write_bytes(changed)
    assert "delete" in refused(file, tmp_path, "wrong bytes", offline=True)
    message = refused(file, tmp_path, "could not be downloaded")  # the host has another version now
    assert str(record) in message
    assert path.read_bytes() == changed
    record.unlink()
    path.unlink()
    assert fetch.fetch(file, tmp_path).read_bytes() == NEW
    assert record.read_text().startswith(hashlib.sha256(NEW).hexdigest())


@pytest.mark.parametrize("name", ["data.zip", "data.tar", "data.tar.gz", "data.tgz"])
def test_a_page_is_not_taken_for_an_archive_without_a_hash(host: Host, tmp_path: Path, name: str) -> None:
    file = RemoteFile(name, (host.url("/a", PAGE),))
    assert "DOCTYPE" in refused(file, tmp_path, "not the archive that data")
    assert len(host.asked) == fetch.TRIES
    assert files(tmp_path) == []


def test_a_zip_that_is_cut_is_noticed_without_hash_and_length(host: Host, tmp_path: Path) -> None:
    assert fetch.fetch(remote(host.url("/a", OLD[:-10], PAGE, OLD), sha256=None), tmp_path).read_bytes() == OLD


def test_a_page_recorded_by_an_older_version_is_replaced(host: Host, tmp_path: Path) -> None:
    file, path = remote(host.url("/a", OLD), sha256=None), tmp_path / "data.zip"
    for offline in (True, False):
        path.write_bytes(PAGE)
        (tmp_path / "data.zip.sha256").write_text(f"{hashlib.sha256(PAGE).hexdigest()}  data.zip\n")
        if offline:
            refused(file, tmp_path, "wrong bytes", offline=True)
    assert fetch.fetch(file, tmp_path).read_bytes() == OLD
    assert fetch.fetch(file, tmp_path, offline=True) == path


def with_alternative(first: str, second: str) -> RemoteFile:
    inner = RemoteFile("inner.zip", (second,), hashlib.sha256(NEW).hexdigest())
    return RemoteFile("data.zip", (first,), hashlib.sha256(OLD).hexdigest(), instead=(inner,))


def test_an_alternative_has_its_own_name_and_hash(host: Host, tmp_path: Path) -> None:
    file = with_alternative(host.url("/a", 404), host.url("/b", NEW))
    path = fetch.fetch(file, tmp_path)
    assert (path.name, path.read_bytes()) == ("inner.zip", NEW)
    assert fetch.fetch(file, tmp_path) == fetch.fetch(file, tmp_path, offline=True) == path
    assert host.asked == ["/a", "/b"]
    (tmp_path / "data.zip").write_bytes(OLD)
    assert fetch.fetch(file, tmp_path, offline=True).name == "data.zip"


def test_an_alternative_is_named_when_all_fails(host: Host, tmp_path: Path) -> None:
    file = with_alternative(host.url("/a", 404), host.url("/b", OLD))
    for offline in (True, False):
        message = refused(file, tmp_path, "or get inner.zip", offline=offline)
        for choice in file.choices:
            assert all(str(part) in message for part in (choice.sha256, choice.urls[0], tmp_path / choice.name))
    assert files(tmp_path) == []


def test_a_file_put_there_by_hand_is_recorded_too(tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(OLD)
    fetch.fetch(remote(sha256=None), tmp_path, offline=True)
    assert (tmp_path / "data.zip.sha256").read_text().startswith(hashlib.sha256(OLD).hexdigest())


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"abc", b"g" * 64])
def test_a_damaged_record_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.zip").write_bytes(CONTENT)
    (tmp_path / "data.zip.sha256").write_bytes(content)
    refused(remote(sha256=None), tmp_path, "not a SHA-256. Delete it", offline=True)


def test_a_folder_that_cannot_be_used(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(remote(host.url("/a", CONTENT)), tmp_path / "file", "cannot be")
    (tmp_path / "data.zip").mkdir()
    refused(remote(host.url("/a", CONTENT)), tmp_path, "cannot be read")


def test_a_full_disk_is_not_the_hosts_fault(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    refused(remote(host.url("/a", CONTENT)), tmp_path, "cannot be written .*No space left")
    assert files(tmp_path) == []


def test_an_interrupt_leaves_nothing(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download = pooch.HTTPDownloader.__call__

    def interrupted(self: Any, url: str, part: str, *arguments: Any) -> None:
        download(self, url, part, *arguments)
        assert Path(part).stat().st_size == len(CONTENT)
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(remote(host.url("/a", CONTENT)), tmp_path)
    assert files(tmp_path) == []


def test_nothing_is_drawn_where_nobody_looks(host: Host, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fetch.fetch(remote(host.url("/a", "cut", CONTENT)), tmp_path, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_bar_is_drawn_on_a_terminal(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Console = fetch.Console
    monkeypatch.setattr(fetch, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True, width=120))
    fetch.fetch(remote(host.url("/a", "cut", CONTENT)), tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "data.zip" in err
    assert "512.0/512.0 kB" in err
