"""A tiny fake data set and a tiny model, so that whole paths run in seconds."""

from __future__ import annotations

import re
import signal

import numpy as np
import pytest
import torch
from command_line import walk
from hypothesis import settings

from transpl._utils.errors import InputError

# For the tests whose examples take long; the others say themselves how many they want. Fast ones try the same examples
# every time, so that a change alone can break them; thorough ones look for new ones.
settings.register_profile("fast", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=300, deadline=None)
settings.load_profile("fast")

TINY = {
    "variant": "paper",
    "patch_length": 4,
    "width": 16,
    "n_coarse": 4,
    "n_fine": 8,
    "n_layers": 1,
    "n_heads": 2,
    "max_epochs": 4,
    "device": "cpu",
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_draws_whatever_ran_before() -> None:
    torch.manual_seed(0)


def refusal(argument: object, containing: str = "", error: type[Exception] | tuple = InputError):
    """Expect a one-line complaint that begins with the argument's name (or the file's path)."""
    return pytest.raises(error, match=rf"\A{re.escape(str(argument))}: .*{containing}.*\Z")


def make_waves(
    n: int,
    seed: int,
    *,
    n_classes: int = 2,
    channels: int = 2,
    length: int = 32,
    gain: float = 1.0,
    offset: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Sine windows: the class is the frequency, the domain a gain and an offset."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    t = np.arange(length)
    frequency = np.linspace(0.2, 1.2, n_classes)[y]
    phase = rng.uniform(0, 2 * np.pi, (n, channels))
    X = np.sin(frequency[:, None, None] * t + phase[:, :, None]) * gain + offset
    return (X + 0.1 * rng.normal(size=X.shape)).astype(np.float32), y.astype(np.int64)


@pytest.fixture
def waves() -> tuple[np.ndarray, np.ndarray]:
    return make_waves(40, seed=0)


@pytest.fixture
def shifted_waves() -> tuple[np.ndarray, np.ndarray]:
    return make_waves(30, seed=1, gain=1.5, offset=0.3)


@pytest.fixture
def alarm():
    """Fail after ten seconds, so that a reader that waits for a pipe does not wait for ever."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def files(tmp_path):
    walk(0, 1.0).to_csv(tmp_path / "lab.csv", index=False)
    walk(1, 1.5).drop(columns="activity").to_csv(tmp_path / "home.csv", index=False)
    walk(1, 1.5).to_parquet(tmp_path / "scored.parquet")
    return tmp_path
