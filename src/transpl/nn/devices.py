"""Where and how a run is executed."""

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

_DEVICE = re.compile(r"(auto|cpu|cuda(:\d+)?)")


@dataclass(frozen=True)
class Execution:
    """device : "auto" (CUDA if there is any, else the CPU), "cpu", "cuda" or "cuda:1"
    devices : how many of them train together (data-parallel)
    n_threads : CPU threads while training; None leaves torch's setting alone
    checkpoint_dir : where an interrupted training can be resumed from; None keeps no checkpoint
    progress : show a progress bar (in terminals only)
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
                advice="Choose one of these.",
            )
        check_int("devices", self.devices, least=1)
        if self.devices > 1 and ":" in self.device:
            raise invalid(
                "device", expected="'cuda' for several devices", got=self.device, advice="Leave out the number."
            )
        if self.n_threads is not None:
            check_int("n_threads", self.n_threads, least=1)

    def fabric(self) -> Fabric:
        """Build the Fabric that this describes."""
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
def threads(n: int | None) -> Iterator[None]:
    """Use n CPU threads inside the block (torch's, and those of k-means), and the caller's number again after it."""
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
def own_environment() -> Iterator[None]:
    """Inside the block environment variables may be set at will (several devices need some); restored after it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def own_randomness() -> Iterator[None]:
    """Inside the block torch may be seeded at will; the caller's random state is restored after it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        yield


@contextmanager
def own_gradients() -> Iterator[None]:
    """Inside the block gradients are computed, though the caller may have switched them off (`torch.no_grad`)."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning_fabric")
            yield
    finally:
        logger.setLevel(level)
