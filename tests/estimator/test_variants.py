from __future__ import annotations

import pytest
from conftest import refusal

from transpl.estimator.variants import VARIANTS, adapter_class, check_mode, own_mode
from transpl.methods.council_adapter import CouncilAdapter
from transpl.methods.transpl.adapter import PaperAdapter


def test_every_variant_has_a_mode_of_its_own():
    assert {variant: own_mode(variant) for variant in VARIANTS} == {"plus": "markov", "paper": "finetune"}


def test_the_papers_variant_is_transpl():
    assert adapter_class("paper") is PaperAdapter
    assert PaperAdapter.variant == "paper"


def test_plus_is_the_council():
    assert adapter_class("plus") is CouncilAdapter
    assert CouncilAdapter.variant == "plus"


def test_modes_are_those_of_the_variant():
    for variant, mode in (("plus", None), ("plus", "markov"), ("paper", "finetune"), ("paper", "markov")):
        check_mode(variant, mode)
    with refusal("mode", "'markov' with variant='plus'"):
        check_mode("plus", "finetune")
    with refusal("mode", "'finetune', 'markov'"):
        check_mode("plus", "tune")


@pytest.mark.parametrize("ask", [own_mode, adapter_class])
def test_a_variant_that_does_not_exist_is_refused(ask):
    with refusal("variant", "'plus', 'paper'"):
        ask("better")
