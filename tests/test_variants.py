from __future__ import annotations

import pytest
from conftest import refusal

from transpl.methods.transpl_adapter import PaperAdapter
from transpl.variants import VARIANTS, adapter_class, own_mode


def test_every_variant_has_a_mode_of_its_own():
    assert {variant: own_mode(variant) for variant in VARIANTS} == {"plus": "markov", "paper": "finetune"}


def test_the_papers_variant_is_transpl():
    assert adapter_class("paper") is PaperAdapter
    assert PaperAdapter.variant == "paper"


def test_plus_is_not_there_yet():
    with pytest.raises(ValueError, match=r"\Avariant: 'plus' is not available in this version\. .*\Z"):
        adapter_class("plus")


@pytest.mark.parametrize("ask", [own_mode, adapter_class])
def test_a_variant_that_does_not_exist_is_refused(ask):
    with refusal("variant", "'plus', 'paper'"):
        ask("better")
