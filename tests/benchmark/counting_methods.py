"""Methods that leave a trace; given to `--import`, so that workers load them too.

TRACE : folder for the traces, a file per event
MEET : processes that must all have begun a run before any of them goes on
"""

import os
import signal
import time
import uuid
from pathlib import Path

from transpl.benchmark import source_store
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import register

TRACE = Path(os.environ["TRACE"])
train_source = source_store.train_source


def trace(event):
    (TRACE / f"{event} {uuid.uuid4().hex}").write_text(str(os.getpid()))


def meet():
    """Wait until enough processes are here."""
    patience = time.monotonic() + 600
    while len({path.read_text() for path in TRACE.glob("run *")}) < int(os.environ.get("MEET", "1")):
        if time.monotonic() > patience:
            raise TimeoutError
        time.sleep(0.02)


def traced_training(model):
    trace(f"training {model.settings.random_state}")
    return train_source(model)


source_store.train_source = traced_training


@register("counted", family="own", needs="source", reference="-")
class Counted(NoAdapt):
    """Adapts nothing, and says how often."""

    def _adapt(self, target, prior):
        trace("run")
        meet()
        super()._adapt(target, prior)


@register("deadly", family="own", needs="source", reference="-")
class Deadly(Counted):
    """Kills its process."""

    def _adapt(self, target, prior):
        trace("deadly")
        os.kill(os.getpid(), signal.SIGKILL)
