from __future__ import annotations

import pytest
from conftest import refusal

from transpl.estimator.variants import VARIANTS, check_mode, method_class, own_mode
from transpl.methods import CouncilMethod, TransPLMethod


def test_every_variant_has_a_mode_of_its_own():
    assert {variant: own_mode(variant) for variant in VARIANTS} == {"plus": "markov", "paper": "finetune"}


def test_the_papers_variant_is_transpl():
    assert method_class("paper") is TransPLMethod
    assert TransPLMethod.variant == "paper"


def test_plus_is_the_council():
    assert method_class("plus") is CouncilMethod
    assert CouncilMethod.variant == "plus"


def test_modes_are_those_of_the_variant():
    for variant, mode in (("plus", None), ("plus", "markov"), ("paper", "finetune"), ("paper", "markov")):
        check_mode(variant, mode)
    with refusal("mode", "'markov' with variant='plus'"):
        check_mode("plus", "finetune")
    with refusal("mode", "'finetune', 'markov'"):
        check_mode("plus", "tune")


@pytest.mark.parametrize("ask", [own_mode, method_class])
def test_a_variant_that_does_not_exist_is_refused(ask):
    with refusal("variant", "'plus', 'paper'"):
        ask("better")
