"""Names, and what is said about wrong ones. What is registered is tested by the battery."""

from __future__ import annotations

import pytest
from conftest import refusal

from transpl.methods import Method
from transpl.methods.registry import _entries, create, entries, entry, names, register
from transpl.methods.softmax import Softmax


@pytest.fixture
def clean():
    before = dict(_entries)
    yield
    _entries.clear()
    _entries.update(before)


def test_references_come_first_and_new_methods_last(clean):
    assert names()[:2] == ("no-adapt", "target-only")
    register("mine", family="own", needs="source", reference="-")(type("Mine", (Softmax,), {"__doc__": "One.\n\nTwo."}))
    assert names()[-1] == "mine"
    assert entry("mine").summary == "One."
    assert set(names()) == set(entries())


def test_settings_by_data_set():
    method = create("softmax", dataset="wisdm", max_epochs=3)
    assert isinstance(method, Softmax)
    assert (method.settings.width, method.settings.top_ratio, method.settings.max_epochs) == (128, 0.2, 3)


def test_wrong_names(clean):
    with refusal("method", "softmax.*transpl methods"):
        create("sofmax")
    with refusal("family", "own"):
        register("x", family="no such", needs="-", reference="-")
    with refusal("name", "Another method has it"):
        register("softmax", family="own", needs="-", reference="-")(type("Other", (Method,), {}))


@pytest.mark.parametrize("name", names())
def test_every_entry_says_what_it_is(name):
    found = entry(name)
    assert found.summary.endswith(".")
    assert found.needs
    assert found.reference
