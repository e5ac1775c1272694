"""The examples in docstrings run."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    *("windows", "markov.alignment", "markov.counts", "markov.explanation", "markov.posterior"),
    *("council.council", "council.shifts.shift"),
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(import_module(f"transpl.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed
