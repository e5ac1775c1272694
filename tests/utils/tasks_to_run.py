"""What the workers of test_parallel.py run; they import it without torch, which would slow their start."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np


def count_to(n):
    rng = np.random.default_rng(n)
    return {"sum": sum(range(n)), "draw": rng.normal(size=3).tolist()}


def do(task):
    """One function for all kinds of tasks: (kind, argument)."""
    kind, argument = task
    return globals()[f"do_{kind}"](argument)


def do_count(n):
    return count_to(n)


def do_raise(message):
    raise ValueError(message)


def do_raise_once(marker):
    if is_first(marker):
        raise RuntimeError("the first time")
    return "second time"


def do_leave(code):
    sys.exit(code)


def do_lock(_):
    return threading.Lock()


def do_unreadable(_):
    return Unreadable()


class Unreadable:
    def __reduce__(self):
        return do_raise, ("cannot be read",)


def do_threads(_):
    import torch
    from threadpoolctl import threadpool_info

    pools = [pool["num_threads"] for pool in threadpool_info()]
    return {"torch": torch.get_num_threads(), "most": max(pools, default=1), "variable": os.environ["OMP_NUM_THREADS"]}


def do_be_killed_once(marker):
    if is_first(marker):
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def do_be_killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def do_wait_for(marker):
    for _ in range(6000):  # a minute, for a test that fails
        if Path(marker).exists():
            return "waited"
        time.sleep(0.01)
    return "nobody came"


def do_vanish(code):
    os._exit(code)


def do_leave_a_child_behind(pid_file):
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    Path(pid_file).write_text(str(child))
    os._exit(3)


def is_first(marker):
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


_kept = []


def do_grow(megabytes):
    """Keep memory, for longer than loky waits before it looks."""
    _kept.append(np.ones(megabytes * 2**17))
    time.sleep(1.05)
    return os.getpid()
