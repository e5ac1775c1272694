"""Targets that are functions; the workers of test_adapt_many.py import them."""

import os
import signal

from conftest import make_waves


def read_waves():
    return make_waves(20, seed=5, gain=1.3)[0]


def refuse():
    raise RuntimeError("two\nlines")


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """A function that notes in a file that it was called."""

    def __init__(self, note):
        self.note = str(note)

    def __call__(self):
        with open(self.note, "a") as stream:
            stream.write("x")
        return read_waves()
