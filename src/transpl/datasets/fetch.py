"""Downloading one published file: checked against its hash, from one of several addresses, all of it or nothing.

A file that is there already with the right bytes is used without a network. Where no hash is published, the hash of
the first download is written beside the file (`<name>.sha256`) and checked from then on. Such a first download must
have the announced length and be the kind of archive its name says, because hosts sometimes answer with a web page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from transpl._utils.errors import InputError, UnreadableFile, unreadable_file
from transpl._utils.files import replacing, write_text
from transpl._utils.hashing import hash_file
from transpl._utils.progress import PlainLines, is_silent
from transpl.datasets.recipe import Log, RemoteFile
from transpl.datasets.unpack import is_archive_as_named

TRIES = 3  # per address
PAUSE = 1.0  # seconds before the second try, doubled before each further one
TIMEOUT = 30.0  # seconds without a byte
_TRY_AGAIN = (408, 425, 429)  # the only answers below 500 that may change


class _Failed(Exception):
    """A download failed; `final` means that trying this address again is useless."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def fetch(
    file: RemoteFile, folder: Path, *, offline: bool = False, progress: bool = False, log: Log = lambda _: None
) -> Path:
    """Return the path of `file` in `folder`; download it first if it is missing or wrong.

    Parameters
    ----------
    file : RemoteFile
    folder : Path
    offline : bool
        Never use the network; a missing file is an error that says what to put where.
    progress : bool
        Draw a bar on stderr if that is a terminal.
    log : callable
        Called with each line of progress.
    """
    folder = Path(folder)
    for choice in file.choices:
        if _is_usable(choice, folder / choice.name, log):
            return folder / choice.name
    if offline:
        problem = "has the wrong bytes" if (folder / file.name).exists() else "is not there"
        raise _get_it_by_hand(file, folder, problem)
    failures: list[str] = []
    for choice in file.choices:
        for url in choice.urls:
            log(f"Downloading {choice.name} from {url}")
            try:
                _download(url, choice, folder / choice.name, progress=progress, log=log)
                return folder / choice.name
            except _Failed as error:
                failures.append(f"{url}: {error}")
                log(f"{url} did not give the file: {error}")
    problem = f"could not be downloaded ({'; '.join(failures) or 'no address is known'})"
    raise _get_it_by_hand(file, folder, problem)


def discard(path: Path) -> list[Path]:
    """Delete a download and the record of its hash; return the deleted files."""
    present = [each for each in (path, _record_of(path)) if each.exists()]
    for each in present:
        each.unlink()
    return present


def _is_usable(file: RemoteFile, path: Path, log: Log) -> bool:
    """Tell whether `path` has the right bytes; where no hash is known, any archive of the right kind will do."""
    expected = _expected_hash(file, path)
    try:
        found = hash_file(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unreadable_file(path, problem=f"cannot be read ({error.strerror})", advice="Move it away.") from None
    if file.sha256 is None and not is_archive_as_named(path, file.name):
        log(f"{path} is not the archive that its name says: it is not used.")
        if expected == found:  # its hash should never have been recorded
            with suppress(OSError):
                _record_of(path).unlink()
        return False
    if expected not in (None, found):
        log(f"{path} has other bytes than it should (SHA-256 {found[:12]}...): it is not used.")
        return False
    _record(file, path, found)
    return True


def _download(url: str, file: RemoteFile, path: Path, *, progress: bool, log: Log) -> None:
    """Download the file to `path`, with several tries; raise `_Failed` if `url` does not give the right bytes."""
    for attempt in range(TRIES):
        try:
            with replacing(path) as part:
                _transfer(url, part, title=path.name, progress=progress)
                found = _check_download(part, file, _expected_hash(file, path))
            _record(file, path, found)
            return
        except InputError:
            raise
        except (_Failed, OSError, ValueError) as error:
            failure = error if isinstance(error, _Failed) else _explain(path, error)
        if failure.final or attempt == TRIES - 1:
            raise failure
        log(f"{url}: {failure}; trying again")
        time.sleep(PAUSE * 2**attempt)


def _transfer(url: str, part: Path, *, title: str, progress: bool) -> None:
    """Write what `url` sends to `part`."""
    answers: list[Any] = []

    def keep_encoded(response: Any, **_: Any) -> None:
        """Stop requests from decompressing a .tar.gz that the host declares as gzip-encoded."""
        answers.append(response)
        response.raw.headers.pop("Content-Encoding", None)

    options = {"headers": {"Accept-Encoding": "identity"}, "hooks": {"response": keep_encoded}, "timeout": TIMEOUT}
    try:
        with _progress_bar(title, shown=progress) as bar:
            pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, **options)(url, str(part), None)
        announced = answers[-1].headers.get("Content-Length")
        if announced is not None and int(announced) != (size := part.stat().st_size):
            raise _Failed(f"sent {size} of {announced} bytes")
    finally:
        for answer in answers:
            answer.close()  # pooch leaves the connection of a failed transfer open


def _check_download(part: Path, file: RemoteFile, expected: str | None) -> str:
    """Return the hash of a download; raise if it is not the right file."""
    found, size = hash_file(part), part.stat().st_size
    if file.sha256 is None and not is_archive_as_named(part, file.name):
        with open(part, "rb") as stream:
            start = stream.read(20)
        raise _Failed(f"sent {size} bytes that are not the archive that {file.name} should be (they begin {start!r})")
    if expected not in (None, found):
        raise _Failed(f"sent {size} bytes with SHA-256 {found}, not {expected}")
    return found


def _explain(path: Path, error: OSError | ValueError) -> _Failed:
    """Turn an error of the transfer into a failure of this address; an error of our own disk is raised at once."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError | TimeoutError):
        advice = "Make room, or choose a folder that you may write to."
        raise unreadable_file(path, problem=f"cannot be written ({reason})", advice=advice) from None
    status = getattr(getattr(error, "response", None), "status_code", None)
    return _Failed(reason, final=status is not None and status < 500 and status not in _TRY_AGAIN)


def _expected_hash(file: RemoteFile, path: Path) -> str | None:
    """Return the published hash, else the recorded one, else None."""
    if file.sha256 is not None:
        return file.sha256.lower()
    try:
        words = _record_of(path).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        words = []
    if not words or len(words[0]) != 64 or set(words[0]) - set("0123456789abcdef"):
        raise unreadable_file(_record_of(path), problem="not a SHA-256", advice="Delete it.")
    return words[0]


def _record(file: RemoteFile, path: Path, found: str) -> None:
    """Write down the hash of a file that has no published one, in the format of sha256sum."""
    if file.sha256 is None and not _record_of(path).exists():
        with suppress(OSError):  # a read-only folder is fine
            write_text(_record_of(path), f"{found}  {path.name}\n")


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _get_it_by_hand(file: RemoteFile, folder: Path, problem: str) -> UnreadableFile:
    """Build the error that says which file to put where."""
    ways = []
    for choice in file.choices:
        path = folder / choice.name
        expected = _expected_hash(choice, path)
        way = f"{choice.name} (SHA-256 {expected or 'unknown'}) from {' or '.join(choice.urls) or 'its host'}"
        ways.append(f"{way} and put it at {path}")
        if expected is not None and choice.sha256 is None:
            ways[-1] += f" (if the host has a new version, delete {_record_of(path)} first)"
    return unreadable_file(folder / file.name, problem=problem, advice=f"Get {'; or get '.join(ways)}.")


class _Bar:
    """The progress bar that pooch expects, drawn by rich."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress, self._task = progress, progress.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)  # 0: the host does not tell

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.refresh()


class _Lines:
    """The same interface for plain lines, outside a terminal."""

    def __init__(self, lines: PlainLines) -> None:
        self._lines = lines

    @property
    def total(self) -> int | None:
        return self._lines.total

    @total.setter
    def total(self, size: int) -> None:
        self._lines.total = size or None

    def update(self, size: int) -> None:
        self._lines.update(self._lines.done + size)

    def reset(self) -> None:
        self._lines.update(0)

    def close(self) -> None:
        pass


@contextmanager
def _progress_bar(title: str, *, shown: bool) -> Iterator[_Bar | _Lines | bool]:
    """Yield a bar, or False, which makes pooch draw none."""
    console = Console(stderr=True)
    if not shown or is_silent():
        yield False
        return
    if not console.is_terminal:
        with PlainLines(f"downloading {title}, bytes", None) as lines:
            yield _Lines(lines)
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=console, transient=True) as progress:
        yield _Bar(progress, title)
