"""States on disk; that a training goes on from them exactly is tested with the loop."""

from __future__ import annotations

import logging

import pytest
import torch

from transpl._utils.errors import UnreadableFile
from transpl.nn import checkpoint as checkpoint_module
from transpl.nn.checkpoint import Checkpoint, fingerprint

STATE = {"weights": {"w": torch.arange(3.0)}, "epoch": 4}


@pytest.fixture
def checkpoint(tmp_path) -> Checkpoint:
    return Checkpoint(tmp_path, "source", fingerprint("a job", rows=[]))


def test_what_was_saved_comes_back(checkpoint, caplog):
    assert checkpoint.load() is None
    checkpoint.save(STATE)
    found = checkpoint.load()
    assert found["epoch"] == 4
    assert torch.equal(found["weights"]["w"], STATE["weights"]["w"])
    assert not caplog.messages


@pytest.mark.parametrize("version", [{"transpl": "0.0.1"}, {"torch": "1.0"}], ids=str)
def test_a_state_of_another_version_is_left_and_said_so(checkpoint, monkeypatch, caplog, version):
    caplog.set_level(logging.WARNING, logger="transpl.nn.checkpoint")
    versions = checkpoint_module.versions()
    with monkeypatch.context() as before:
        before.setattr(checkpoint_module, "versions", lambda: {**versions, **version})
        checkpoint.save(STATE)
    assert checkpoint.load() is None
    (message,) = caplog.messages
    assert message == f"{checkpoint.path}: written by another version of transpl or torch; training begins anew."
    checkpoint.save({**STATE, "epoch": 1})
    assert checkpoint.load()["epoch"] == 1


def test_a_state_of_a_version_that_did_not_say_which_it_was_is_left(checkpoint, caplog):
    old = {"format": "transpl-checkpoint-1", "fingerprint": checkpoint.fingerprint, **STATE}
    torch.save(old, checkpoint.path)
    assert checkpoint.load() is None
    assert len(caplog.messages) == 1


def test_a_file_of_another_job_under_this_name_is_refused(checkpoint, tmp_path):
    other = Checkpoint(tmp_path, "source", fingerprint("another job", rows=[]))
    other.save(STATE)
    other.path.rename(checkpoint.path)
    with pytest.raises(UnreadableFile, match="Delete it to start anew"):
        checkpoint.load()
