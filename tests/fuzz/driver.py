"""Reads damaged files in a process of its own: each must be read, or refused in one line, soon and in little memory.

A target is a reader with sound files of its kind. To add one, write a module `<something>_targets.py` in this folder:

    from driver import target

    @target("plan", write=write_plan)  # write_plan(folder) writes sound files into an empty folder
    def read_plan_file(folder):
        read_plan(folder / "plan.yaml")

Case 0 of a target is its sound files, which must be read. In case k > 0, one file is damaged by one to three
mutations (see `mutations`) that depend on the target's name and k only.
"""

from __future__ import annotations

import importlib
import json
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from mutations import mutate

HERE = Path(__file__).parent
SUCCESS, REFUSED = "success", "one-line error"
TRACEBACK, HANG, CRASH, SLOW, GREEDY = "traceback", "hang", "crash", "too slow", "too much memory"
BAD = (TRACEBACK, HANG, CRASH, SLOW, GREEDY)
SECONDS = 15.0  # of the processor, for one case
_PATIENCE = 120.0  # seconds after which a case hangs, on a machine that may be busy
MEGABYTES = 1000  # that one case may add
_ROOM = 3 * MEGABYTES << 20  # address space that a case may add, so that no case can harm the machine
_LONGEST = 2000  # characters of an error that still count as a line


@dataclass(frozen=True)
class Target:
    """A reader, and how to write sound files for it; `damage` has patterns of the files that are mutated."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    damage: tuple[str, ...]


TARGETS: dict[str, Target] = {}


def target(name: str, *, write: Callable[[Path], object], damage: Iterable[str] = ("*",)) -> Callable[..., Any]:
    """Register the decorated reader, which takes the folder that `write` has filled."""

    def register(read: Callable[[Path], object]) -> Callable[[Path], object]:
        assert name not in TARGETS, f"two targets called {name}"
        TARGETS[name] = Target(name, write, read, tuple(damage))
        return read

    return register


@cache
def all_targets() -> dict[str, Target]:
    """Return the targets of all modules in this folder."""
    for path in sorted(HERE.glob("*_targets.py")):
        importlib.import_module(path.stem)
    return TARGETS


# in the worker


@cache
def _sound_files(name: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        all_targets()[name].write(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_case(name: str, number: int, folder: Path) -> None:
    """Write the files of a case."""
    files, rng = dict(_sound_files(name)), random.Random(f"{name} {number}")
    if number:
        chosen = [file for file in files if any(fnmatch(file, pattern) for pattern in all_targets()[name].damage)]
        damaged = rng.choice(chosen)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            files[damaged] = mutate(damaged, files[damaged], rng)
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def run_case(name: str, number: int) -> tuple[str, str, int, float]:
    """Read the files of a case in this process; return outcome, error, megabytes and seconds."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        write_case(name, number, folder)
        before, begin = _reset_peak(), time.process_time()
        outcome, error = _outcome(all_targets()[name].read, folder)
        return outcome, error, (_memory("VmHWM") - before) >> 10, time.process_time() - begin
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(read: Callable[[Path], object], folder: Path) -> tuple[str, str]:
    from transpl._utils.errors import InputError

    try:
        read(folder)
    except InputError as error:
        message = str(error)
        if message.isprintable() and len(message) <= _LONGEST:
            return REFUSED, message
        return TRACEBACK, f"not one line of text, but {len(message)} characters: {message[:300]!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return TRACEBACK, "".join(traceback.format_exception(error, limit=-8))
    return SUCCESS, ""


def serve() -> None:
    """Answer lines [name, number] with lines [outcome, error, megabytes, seconds]; nothing else goes to stdout."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, number = json.loads(line)
        room = (_memory("VmSize") << 10) + _ROOM if number else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
        print(json.dumps(run_case(name, number)), file=answers, flush=True)


def _reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(entry))


# in the process that asks


@dataclass
class Counts:
    """The outcomes of a target's cases; `bad` has the number and the error of the first of each bad kind."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0  # of the longest case
    longest: int = 0  # its number
    megabytes: int = 0  # of the greediest case
    bad: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, number: int, outcome: str, error: str, megabytes: int, seconds: float) -> None:
        self.cases += 1
        self.outcomes[outcome] += 1
        if seconds > self.seconds:
            self.seconds, self.longest = seconds, number
        self.megabytes = max(self.megabytes, megabytes)
        if outcome in BAD:
            self.bad.append((number, outcome, error))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Worker:
    """A process that reads one case after the other; it is replaced after a hang or a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._warm: set[str] = set()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self._warm.clear()

    def ask(self, name: str, number: int) -> tuple[str, str, int, float]:
        """Return outcome, error, megabytes and seconds of a case."""
        if self._process is None:
            self._start()
        if name not in self._warm:
            self._warm.add(name)
            self._send(name, 0)  # imports what the reader needs, before memory is limited
        outcome, error, megabytes, seconds = self._send(name, number)
        if outcome in (SUCCESS, REFUSED) and (megabytes > MEGABYTES or seconds > SECONDS):
            outcome = GREEDY if megabytes > MEGABYTES else SLOW
        return outcome, error, megabytes, seconds

    def _start(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, str(HERE / "worker.py")]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def _send(self, name: str, number: int) -> tuple[str, str, int, float]:
        process = self._process
        if process is None:
            return CRASH, "the worker does not start", 0, 0.0
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps([name, number])}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _PATIENCE)
        answer = process.stdout.readline() if ready else ""
        if answer:
            return tuple(json.loads(answer))
        code = process.poll()
        self.close()
        return (CRASH, f"exit code {code}", 0, 0.0) if ready else (HANG, "no answer", 0, _PATIENCE)


def run(names: Iterable[str], numbers: Iterable[int], worker: Worker) -> Iterator[tuple[str, Counts]]:
    """Run the cases `numbers` of each target, and yield its counts."""
    for name in names:
        counts = Counts()
        for number in numbers:
            counts.add(number, *worker.ask(name, number))
        yield name, counts
