"""Where and how a run is executed. None of it changes what is computed on one CPU."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric import Fabric

from transpl.errors import whole_number, wrong

_DEVICE = re.compile(r"(auto|cpu|mps|cuda(:\d+)?)")


@dataclass(frozen=True)
class Execution:
    """device : "auto", "cpu", "cuda", "cuda:1" or "mps"
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
            raise wrong(
                "device",
                expected="'auto', 'cpu', 'mps', 'cuda' or 'cuda:<number>'",
                got=repr(self.device),
                advice="Choose one of these.",
            )
        whole_number("devices", self.devices, least=1)
        if self.n_threads is not None:
            whole_number("n_threads", self.n_threads, least=1)

    def fabric(self) -> Fabric:
        """Build the Fabric that this describes."""
        resolve_device(self.device)
        accelerator, _, index = self.device.partition(":")
        with _quiet_lightning():
            if self.devices > 1:
                return Fabric(accelerator=accelerator, devices=self.devices, strategy="ddp_spawn")
            return Fabric(accelerator=accelerator, devices=[int(index)] if index else 1)


def resolve_device(name: str) -> torch.device:
    """Return the torch device of a name; "auto" is the first accelerator there is, or the CPU."""
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise wrong(
            "device", expected="a device of this machine", got=f"{name!r}, but there is no CUDA", advice="Use 'cpu'."
        )
    if name == "mps" and not torch.backends.mps.is_available():
        raise wrong("device", expected="a device of this machine", got="'mps', but there is none", advice="Use 'cpu'.")
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Use n CPU threads inside the block, and the caller's number again after it."""
    before = torch.get_num_threads()
    if n is not None:
        torch.set_num_threads(n)
    try:
        yield
    finally:
        if n is not None:
            torch.set_num_threads(before)


@contextmanager
def own_randomness() -> Iterator[None]:
    """Inside the block torch may be seeded at will; the caller's random state is restored after it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
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
