"""The other process of `test_one_writer`: runs commands, and waits where each takes its lock and where it releases it.

Reads a line of JSON with the words of a command; writes lines ["holds", path], ["releases", path] and ["exit", code].
After the first two it goes on when it reads a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from transpl import cli
from transpl._utils import locks

answers, sys.stdout = sys.stdout, sys.stderr
open_lock, release = locks._open_lock, locks._release
paths: list[Path] = []  # of the locks of this command, the outermost first


def say(*words: object) -> None:
    print(json.dumps(words), file=answers, flush=True)


def say_and_wait(what: str, path: Path) -> None:
    if path == paths[0]:
        say(what, str(path))
        sys.stdin.readline()


def opening(path: Path, wait: float) -> int:
    paths.append(path)
    descriptor = open_lock(path, wait)
    say_and_wait("holds", path)
    return descriptor


def releasing(path: Path, descriptor: int) -> None:
    say_and_wait("releases", path)
    release(path, descriptor)


def main() -> None:
    locks._open_lock, locks._release = opening, releasing
    for line in sys.stdin:
        paths.clear()
        sys.argv = ["transpl", *json.loads(line)]
        try:
            cli.main()
        except SystemExit as leaving:
            say("exit", leaving.code or 0)


main()
