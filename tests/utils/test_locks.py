"""Locks between processes: one holder at a time, a dead process holds nothing, and who holds a folder is told."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import refusal

from transpl._utils import locks
from transpl._utils.locks import file_lock, require_held, writing

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


# who may write


@pytest.fixture
def in_thread():
    with ThreadPoolExecutor(1) as threads:
        yield lambda call: threads.submit(call).result()


def take(folder, **options):
    with writing(folder, **options):
        return sorted(path.name for path in folder.iterdir())


def test_a_folder_has_one_writer_who_may_come_in_again(tmp_path, in_thread):
    with writing(tmp_path / "out"):
        with refusal("out", rf"{tmp_path / 'out'}, held by process {os.getpid()} \(.*\) since \d{{4}}-.*"):
            in_thread(lambda: take(tmp_path / "out"))
        assert take(tmp_path / "out") == [".lock"]
        assert take(tmp_path) == [".lock", "out"], "other folders are free"
        with refusal("out", "held by"):
            in_thread(lambda: take(tmp_path / "out"))
    assert in_thread(lambda: take(tmp_path / "out")) == [".lock"]


def test_a_file_has_one_writer_beside_those_of_other_files(tmp_path, in_thread):
    with writing(tmp_path, "few.csv"), refusal("out", rf"{tmp_path / 'few.csv'}, held by"):
        assert in_thread(lambda: take(tmp_path)) == [".few.csv.lock", ".lock"]
        in_thread(lambda: take(tmp_path, file="few.csv"))


def test_nothing_is_left_of_a_lock_or_of_folders_that_stayed_empty(tmp_path):
    with pytest.raises(RuntimeError), writing(tmp_path / "a" / "b"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with writing(tmp_path / "a" / "b"):
        (tmp_path / "a" / "c").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "c"]


def test_who_waits_gets_a_lock_that_nobody_else_has(tmp_path):
    """Each lock file is removed while others wait for it."""
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        with writing(tmp_path, wait=60):
            inside += 1
            most = max(most, inside)
            time.sleep(0.002)
            inside -= 1

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(work) for _ in range(60)]:
            done.result()
    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_the_lock_file_of_a_killed_process_is_taken_over(tmp_path):
    (tmp_path / ".lock").write_text("not JSON")
    assert take(tmp_path) == [".lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_deleted_and_begun_afresh_belongs_to_its_new_writer(tmp_path, in_thread):
    out, begun, done = tmp_path / "out", threading.Event(), threading.Event()

    def write_afresh():
        with writing(out):
            begun.set()
            done.wait(60)
            require_held(out)
            return take(out)

    with ThreadPoolExecutor(1) as threads:
        with writing(out):
            require_held(out)
            shutil.rmtree(out)
            other = threads.submit(write_afresh)
            assert begun.wait(60)
            with refusal("out", "deleted"):
                require_held(out)
        with refusal("out", "held by"):
            in_thread(lambda: take(out))
        done.set()
        assert other.result() == [".lock"], "the first writer removed the lock of the second"


def test_where_no_lock_file_can_be_made_the_writer_itself_says_why(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr(locks.os, "open", refuse)
    with writing(tmp_path):
        assert list(tmp_path.iterdir()) == []
