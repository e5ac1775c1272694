"""Downloading one published file: checked against its hash, from one of several places, all of it or nothing.

A file that is there with the right bytes is used without a network. Where nobody has published a hash, that of the
first download is written beside the file (`<name>.sha256`) and holds from then on. Such a first download is checked
for its length, if the host tells it, and for being an archive of the kind its name says: hosts answer with a page, too.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from transpl._utils.errors import InputError, UnreadableFile, unreadable_file
from transpl._utils.files import replacing, sha256, write_text
from transpl.datasets.download_bar import download_bar
from transpl.datasets.members import is_archive_as_named
from transpl.datasets.recipe import RemoteFile, Say

TRIES = 3  # per address
PAUSE = 1.0  # seconds before the second try, twice as many before each further one
TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 16
_WORTH_ANOTHER_TRY = (408, 425, 429)  # of the answers 4xx; every 5xx is


class _NoUse(Exception):
    """This address will not give the file, however often it is asked."""


class _Failed(Exception):
    """This try did not give the file; another may."""


def fetch(
    file: RemoteFile, folder: Path, *, offline: bool = False, progress: bool = False, say: Say = lambda line: None
) -> Path:
    """Return where `file` lies in `folder`, after downloading it if need be.

    offline : use no network; a file that is not there is an error that says what to put where
    progress : draw a bar on stderr, if that is a terminal
    """
    folder = Path(folder)
    for choice in file.choices:
        if _is_there(choice, folder / choice.name, say):
            return folder / choice.name
    if offline:
        present = (folder / file.name).exists()
        raise _put_it_there(file, folder, "has the wrong bytes" if present else "is not there")
    failures: list[str] = []
    for choice in file.choices:
        if _download(choice, folder / choice.name, failures, progress=progress, say=say):
            return folder / choice.name
    problem = f"could not be downloaded ({'; '.join(failures) or 'no address is known'})"
    raise _put_it_there(file, folder, problem)


def discard(path: Path) -> list[Path]:
    """Delete a download and the record of its hash; return what was there."""
    present = [each for each in (path, _record_of(path)) if each.exists()]
    for each in present:
        each.unlink()
    return present


def _is_there(file: RemoteFile, path: Path, say: Say) -> bool:
    """Say whether the right bytes lie at `path`; where no hash is known they are right from now on."""
    expected = _expected_hash(file, path)
    present = _hash_of(path)
    if present is None:
        return False
    if file.sha256 is None and not is_archive_as_named(path, file.name):
        say(f"{path} is not the archive that its name says: it is not used.")
        if expected == present:  # it should never have been recorded
            with suppress(OSError):
                _record_of(path).unlink()
        return False
    if expected not in (None, present):
        say(f"{path} has other bytes than it should (SHA-256 {present[:12]}...): it is not used.")
        return False
    _record(file, path, present)
    return True


def _download(file: RemoteFile, path: Path, failures: list[str], *, progress: bool, say: Say) -> bool:
    """Put the file at `path` from the first address that gives it; add to `failures` what the others said."""
    for url in file.urls:
        say(f"Downloading {file.name} from {url}")
        try:
            _record(file, path, _try_repeatedly(url, file, path, progress=progress, say=say))
        except (_Failed, _NoUse) as error:
            failures.append(f"{url}: {error}")
            say(f"{url} did not give the file: {error}")
        else:
            return True
    return False


def _try_repeatedly(url: str, file: RemoteFile, path: Path, *, progress: bool, say: Say) -> str:
    for again in range(TRIES - 1):
        try:
            return _try(url, file, path, progress=progress)
        except _Failed as error:
            say(f"{url}: {error}; trying again")
            time.sleep(PAUSE * 2**again)
    return _try(url, file, path, progress=progress)


def _try(url: str, file: RemoteFile, path: Path, *, progress: bool) -> str:
    """Put what `url` sends at `path` if it is right; return its hash."""
    try:
        with replacing(path) as part:
            _transfer(url, part, title=path.name, progress=progress)
            return _checked(part, file, _expected_hash(file, path))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _verdict(path, error) from None


def _checked(part: Path, file: RemoteFile, expected: str | None) -> str:
    """Return the hash of what was sent; raise if it is not what was asked for."""
    found, size = sha256(part), part.stat().st_size
    if file.sha256 is None and not is_archive_as_named(part, file.name):
        with open(part, "rb") as stream:
            start = stream.read(20)
        raise _Failed(f"sent {size} bytes that are not the archive that {file.name} should be (they begin {start!r})")
    if expected not in (None, found):
        raise _Failed(f"sent {size} bytes with SHA-256 {found}, not {expected}")
    return found


def _transfer(url: str, part: Path, *, title: str, progress: bool) -> None:
    """Write what `url` sends to `part`."""
    pooch = _pooch()
    answers: list[Any] = []

    def as_sent(response: Any, **options: Any) -> None:
        """Keep a .tar.gz that is sent as "gzip-encoded" from being decompressed on the way."""
        answers.append(response)
        response.raw.headers.pop("Content-Encoding", None)

    wishes = {"headers": {"Accept-Encoding": "identity"}, "hooks": {"response": as_sent}, "timeout": TIMEOUT}
    try:
        with download_bar(title, shown=progress) as bar:
            pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, **wishes)(url, str(part), None)
        _check_length(answers[-1], part)
    finally:
        for answer in answers:
            answer.close()  # pooch leaves the connection of a failed transfer open


def _pooch() -> Any:
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError:
        advice = "Install it with: pip install pooch"
        raise unreadable_file("download", problem="needs pooch, which is not installed", advice=advice) from None
    return pooch


def _check_length(answer: Any, part: Path) -> None:
    announced = answer.headers.get("Content-Length")
    if announced is not None and int(announced) != (size := part.stat().st_size):
        raise _Failed(f"sent {size} of {announced} bytes")


def _verdict(path: Path, error: OSError | ValueError) -> Exception:
    """Return what an exception of the transfer means: our disk, a final no, or bad luck."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError | TimeoutError):
        advice = "Make room, or choose a folder that you may write to."
        return unreadable_file(path, problem=f"cannot be written ({reason})", advice=advice)
    status = getattr(getattr(error, "response", None), "status_code", None)
    final = status is not None and status < 500 and status not in _WORTH_ANOTHER_TRY
    return _NoUse(reason) if final else _Failed(reason)


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
    if file.sha256 is not None or _record_of(path).exists():
        return
    with suppress(OSError):  # a folder that may only be read serves as well
        write_text(_record_of(path), f"{found}  {path.name}\n")  # sha256sum --check reads it too


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _hash_of(path: Path) -> str | None:
    try:
        return sha256(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable_file(path, problem=f"cannot be read ({error.strerror})", advice="Move it away.") from None


def _put_it_there(file: RemoteFile, folder: Path, problem: str) -> UnreadableFile:
    """Say which file to put where by hand."""
    advice = "; or get ".join(_by_hand(choice, folder / choice.name) for choice in file.choices)
    return unreadable_file(folder / file.name, problem=problem, advice=f"Get {advice}.")


def _by_hand(file: RemoteFile, path: Path) -> str:
    expected = _expected_hash(file, path)
    which = f"{file.name} (SHA-256 {'unknown' if expected is None else expected})"
    words = f"{which} from {' or '.join(file.urls) or 'its host'} and put it at {path}"
    if expected is not None and file.sha256 is None:
        words += f" (if the host has a new version, delete {_record_of(path)} first)"
    return words
