"""Damaged files: each is read or refused in one line, by every registered reader (see driver.py)."""

from __future__ import annotations

import pytest
from driver import SUCCESS, Worker, all_targets, run

CASES = 15  # of each target; a thousand in the slow test
DEAR = 8  # of those that load a model or read a whole folder
MORE = {"bench": 24}  # most files that it cannot read count as missing, which is no error


@pytest.fixture(scope="module")
def worker():
    with Worker() as worker:
        yield worker


@pytest.mark.parametrize("name", all_targets())
def test_damaged_files_are_read_or_refused_in_one_line(name, worker):
    is_dear = all_targets()[name].write.__module__ == "folder_targets" and not name.startswith("plan")
    _check(name, range(MORE.get(name, DEAR if is_dear else CASES)), worker)


@pytest.mark.slow
@pytest.mark.parametrize("name", all_targets())
def test_thousands_of_damaged_files_are_read_or_refused_in_one_line(name, worker):
    _check(name, range(1000), worker)


def _check(name, numbers, worker):
    ((_, counts),) = run([name], numbers, worker)
    assert counts.bad == []
    assert counts.outcomes[SUCCESS] < counts.cases == len(numbers), "no case was damaged"


@pytest.mark.parametrize("name", all_targets())
def test_sound_files_are_read(name, worker):
    assert worker.ask(name, 0)[:2] == (SUCCESS, "")
