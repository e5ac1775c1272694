"""A tiny fitted model with windows of both domains, for the tests of studies and figures."""

from __future__ import annotations

from functools import cache

import numpy as np
from conftest import TINY

from transpl.datasets import make_shifted
from transpl.methods import Labelled, TransPLMethod, TransPLSettings
from transpl.nn import Execution
from transpl.report.figures.figure_parts import BothDomains, Subject
from transpl.windows import as_windows

DATA = make_shifted(n_train=24, n_test=12, length=32, n_channels=3)


def labelled(X, y) -> Labelled:
    return Labelled(as_windows(X), y, len(DATA.class_names))


@cache
def tiny_subject(n_fine: int = 8) -> Subject:
    """Fitted once for all tests: change nothing in it."""
    settings = {name: value for name, value in TINY.items() if name not in ("device", "variant")}
    method = TransPLMethod(TransPLSettings(**{**settings, "max_epochs": 2, "n_fine": n_fine}), Execution("cpu"))
    here, there = DATA.domain(0), DATA.domain(1)
    source, target = labelled(here.X_train, here.y_train), labelled(there.X_train, there.y_train)
    method.fit_source(source, labelled(here.X_test, here.y_test))
    rows = 10 * np.arange(len(target.windows))  # numbers of their own, as in a sample
    sides = BothDomains(source.windows, target.windows, rows)
    return Subject("tiny 0 → 1", "tiny", method, DATA.class_names, DATA.channel_names, sides)
