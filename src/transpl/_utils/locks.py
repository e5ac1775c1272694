"""Locks between processes, and the lock between the threads of this process."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from transpl._utils.errors import InputError, invalid

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

# Held by code that changes process-wide state, or computes numbers that depend on it: torch's random generator, the
# number of CPU threads, warning filters, environment variables. Models in several threads therefore compute one after
# the other, with the numbers of a lone run.
process_state = threading.RLock()

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_LONGEST_COMMAND = 120
_AGAIN = 0.05  # seconds
_NO_ENTRY = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
_held: dict[tuple[Path, int], int] = {}  # by lock file and the thread that holds it: its open file


def one_thread_at_a_time(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let the decorated function hold `process_state`."""

    @wraps(function)
    def alone(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with process_state:
            return function(*args, **kwargs)

    return alone


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock between processes inside the block; the system releases the lock of a process that dies.

    Yields True. With wait=False it yields False at once if another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _acquire(descriptor, wait=wait)
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: str | os.PathLike[str], file: str | None = None, *, wait: float = 0.0) -> Iterator[None]:
    """Be the only process, and the only thread of it, that writes into a folder; or only one file in it.

    Refused, in a line that says who holds it, if another one still does after `wait` seconds. A thread may hold the
    same lock again inside the block. The lock file is removed at the end, and so are new folders that stayed empty.
    """
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise invalid("out", expected="a folder", got=f"the file {home}", advice="Choose another name.")
    path = home.resolve() / (".lock" if file is None else f".{file}.lock")
    mine = path, threading.get_ident()
    if fcntl is None or mine in _held:
        yield
        return
    new_folders = [each for each in (path.parent, *path.parent.parents) if not each.exists()]
    try:
        descriptor = _open_lock(path, wait)
    except OSError as error:
        if error.errno not in _NO_ENTRY:
            raise
        yield  # nothing else can be written there either, and the error will say what
        return
    _held[mine] = descriptor
    try:
        yield
    finally:
        del _held[mine]
        _release(path, descriptor)
        with suppress(OSError):  # not empty
            for each in new_folders:
                each.rmdir()


def require_held(folder: str | os.PathLike[str]) -> None:
    """Raise if the folder that `writing` locked was deleted: another process may have created it again."""
    home = Path(folder).resolve()
    descriptor = _held.get((home / ".lock", threading.get_ident()))
    if descriptor is not None and not _is_file_of(home / ".lock", descriptor):
        expected, got = "the folder that this command began", f"{home}, which was deleted meanwhile"
        raise invalid("out", expected=expected, got=got, advice="Run it again.")


def _open_lock(path: Path, wait: float) -> int:
    """Open and lock a lock file; raise if another one holds it."""
    last = time.monotonic() + wait
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the holder has just removed the folder, which stayed empty
            continue
        if not _acquire(descriptor, wait=False):
            holder = _holder(descriptor)
            os.close(descriptor)
            if time.monotonic() >= last:
                raise _taken(path, holder)
            time.sleep(_AGAIN)
            continue
        if _is_file_of(path, descriptor):
            _write_holder(descriptor)
            return descriptor
        os.close(descriptor)  # its holder has removed it, and perhaps there is another one by now


def _release(path: Path, descriptor: int) -> None:
    if _is_file_of(path, descriptor):  # not the lock of another process, after the folder was deleted
        path.unlink(missing_ok=True)  # before closing, so that a waiting process notices and makes a new one
    os.close(descriptor)


def _is_file_of(path: Path, descriptor: int) -> bool:
    """Whether a lock file is the one that is open: it may have been removed, and another one made."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _acquire(descriptor: int, *, wait: bool) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_holder(descriptor: int) -> None:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv else "python"
    if len(command) > _LONGEST_COMMAND:
        command = f"{command[:_LONGEST_COMMAND]}..."
    since = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):  # a full disk
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"pid": os.getpid(), "command": command, "since": since}).encode())


def _holder(descriptor: int) -> str:
    """Who holds a lock, as the file says."""
    try:
        about = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {about['pid']} ({about['command']}) since {about['since']}"
    except (ValueError, TypeError, KeyError):  # it has not written it yet
        return "another process"


def _taken(path: Path, holder: str) -> InputError:
    expected, advice = "a place that no other process writes to", "Wait until it ends, or choose another place."
    place = path.parent if path.name == ".lock" else path.parent / path.name[1 : -len(".lock")]
    return invalid("out", expected=expected, got=f"{place}, held by {holder}", advice=advice)
