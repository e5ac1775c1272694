"""Where a training runs, and blocks that leave the caller's process as it was."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric import Fabric
from threadpoolctl import threadpool_limits

from transpl._utils.errors import check_int, invalid
from transpl._utils.locks import process_state

_DEVICE = re.compile(r"(auto|cpu|cuda(:\d+)?)")


@dataclass(frozen=True)
class Execution:
    """Where a training runs. None of it changes the task, and only `devices` changes its numbers.

    device : "auto" (CUDA if there is any, else the CPU), "cpu", "cuda" or "cuda:1"
    devices : how many of them train together (data-parallel)
    n_threads : CPU threads while training; None keeps torch's setting
    checkpoint_dir : folder for the checkpoints from which an interrupted training resumes; None keeps none
    progress : show progress on stderr
    """

    device: str = "auto"
    devices: int = 1
    n_threads: int | None = None
    checkpoint_dir: Path | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.device, str) or not _DEVICE.fullmatch(self.device):
            raise invalid(
                "device",
                expected="'auto', 'cpu', 'cuda' or 'cuda:<number>'",
                got=repr(self.device),
                advice="Choose one of them.",
            )
        check_int("devices", self.devices, least=1)
        if self.devices > 1 and ":" in self.device:
            raise invalid(
                "device", expected="'cuda' for several devices", got=self.device, advice="Leave out the number."
            )
        if self.n_threads is not None:
            check_int("n_threads", self.n_threads, least=1)

    def fabric(self) -> Fabric:
        """Build the Lightning Fabric for this device."""
        device = resolve_device(self.device)
        with _quiet_lightning():
            if self.devices > 1:
                return Fabric(accelerator=device.type, devices=self.devices, strategy="ddp_spawn")
            return Fabric(accelerator=device.type, devices=1 if device.index is None else [device.index])


def resolve_device(name: str) -> torch.device:
    """Return the torch device of a name; "auto" is CUDA if there is any, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise invalid(
            "device", expected="a device of this machine", got=f"{name!r}, but there is no CUDA", advice="Use 'cpu'."
        )
    return torch.device(name)


@contextmanager
def cpu_threads(n: int | None) -> Iterator[None]:
    """Use n CPU threads (of torch and of k-means) inside the block, and the caller's number again after it.

    Other threads of this process that compute wait, also with n=None, which keeps the number as it is.
    """
    with process_state:
        if n is None:
            yield
            return
        before = torch.get_num_threads()
        try:
            with threadpool_limits(n):
                torch.set_num_threads(n)
                yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def restored_environment() -> Iterator[None]:
    """Undo what the block does to environment variables (training on several devices sets some)."""
    with process_state:
        before = dict(os.environ)
        try:
            yield
        finally:
            for name in os.environ.keys() - before.keys():
                del os.environ[name]
            for name, value in before.items():
                if os.environ.get(name) != value:
                    os.environ[name] = value


@contextmanager
def isolated_rng() -> Iterator[None]:
    """Restore torch's random state after the block, which may seed as it likes."""
    with process_state, torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        yield


@contextmanager
def with_gradients() -> Iterator[None]:
    """Compute gradients inside the block, even if the caller has turned them off (`torch.no_grad`)."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    logger = logging.getLogger("lightning_fabric")
    with process_state, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning_fabric")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
