"""Runs commands for `test_kills`, each in a fork of this process, and kills them before the n-th change of a file.

Reads lines of JSON: the words of a command, and n or null. Writes lines of JSON: how the process ended (its exit code,
or minus its signal), and how often it opened a file to write, renamed, removed or made one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from transpl import cli
from transpl.methods.registry import entries

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
ROOT = os.getcwd()


def changes_a_file(event: str, arguments: tuple) -> bool:
    if event == "open":
        path, mode, flags = arguments
        writes = (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if mode is None else set(mode) & set("wax+")
        return bool(writes) and isinstance(path, str | os.PathLike) and os.fspath(path).startswith(ROOT)
    return event in CHANGES


def run(words: list[str], last: int | None) -> tuple[int, int]:
    done = Path(f"{ROOT}.count")
    done.write_text("0")
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, arguments: tuple) -> None:
            nonlocal count
            if changes_a_file(event, arguments):
                count += 1
                if count == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        sys.argv = ["transpl", *words]
        code = 1
        try:
            cli.main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        last = None
        done.write_text(str(count))
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(done.read_text())


if __name__ == "__main__":
    entries()
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), file=answers, flush=True)
