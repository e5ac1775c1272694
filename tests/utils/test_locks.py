"""Locks between processes: one holder at a time, and a dead process holds nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from transpl._utils.locks import file_lock

# As `file_lock` does it, without the time to import it.
HOLDER = """
import fcntl, os, sys, time
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def held_elsewhere(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    yield path, holder
    holder.kill()
    holder.communicate()


def test_who_does_not_wait_is_told_at_once(held_elsewhere):
    path, _ = held_elsewhere
    with file_lock(path, wait=False) as mine:
        assert not mine


def test_a_killed_process_lets_go(held_elsewhere):
    path, holder = held_elsewhere
    threading.Timer(0.3, holder.send_signal, [signal.SIGKILL]).start()
    with file_lock(path) as mine:
        assert mine
        assert holder.wait(10) == -signal.SIGKILL


def test_the_lock_is_free_after_the_block_even_if_it_fails(tmp_path):
    with pytest.raises(RuntimeError), file_lock(tmp_path / "locks" / "a"):
        raise RuntimeError
    with file_lock(tmp_path / "locks" / "a", wait=False) as mine:
        assert mine


def test_two_in_one_process_exclude_each_other_too(tmp_path):
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        with file_lock(tmp_path / "lock"):
            inside += 1
            most = max(most, inside)
            time.sleep(0.05)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
