"""The parameters of `TransPL`, before any fit."""

from __future__ import annotations

import re
from inspect import signature

import numpy as np
import pytest
from conftest import make_waves, refusal

from transpl import TransPL
from transpl.council import CouncilSettings
from transpl.estimator import VARIANTS, check_mode, help_of
from transpl.estimator.parameters import default_mode
from transpl.estimator.transpl import method_class
from transpl.methods import CouncilMethod, TransPLMethod, TransPLSettings
from transpl.methods.council_settings import CodebookSettings, CouncilMethodSettings
from transpl.methods.method_settings import settings_table


def test_parameters_have_the_documented_names_and_defaults():
    params = TransPL().get_params()
    documented = {
        "patch_length": 8,
        "width": 64,
        "n_coarse": 8,
        "n_fine": 64,
        "sigma": 0.2,
        "prior_temperature": 1.0,
        "top_ratio": 0.5,
        "source_lr": 5e-4,
        "adapt_lr": 5e-4,
        "batch_size": 32,
        "max_epochs": 200,
        "random_state": 0,
        "device": "auto",
        "variant": "plus",
        "undo": "auto",
        **dict.fromkeys(("witnesses", "views", "triads", "channel_names")),
    }
    assert documented.items() <= params.items()


def test_parameters_are_checked_before_fit_on_demand():
    generator = np.random.RandomState(0)
    assert TransPL(random_state=generator).check_parameters().random_state is generator
    assert generator.randint(1000) == np.random.RandomState(0).randint(1000), "nothing was drawn"
    for name, value in {"sigma": -1, "variant": "best", "undo": "time", "random_state": -1}.items():
        with refusal(name):
            TransPL(**{name: value}).check_parameters()
    with refusal("device"):
        TransPL(variant="paper", device="tpu").check_parameters()


def test_every_parameter_is_described_where_users_look():
    described = TransPL.__doc__.partition("Parameters\n")[2].partition("Attributes\n")[0]
    assert re.findall(r"^    (\w+) : ", described, re.MULTILINE) == list(signature(TransPL).parameters)
    assert all(help_of(name) for name in TransPL().get_params())
    with refusal("parameter"):
        help_of("no_such_parameter")


def test_defaults_are_those_of_the_settings_they_become():
    """But for those that are left to the variant."""
    of_plus, of_paper = (
        {each.name: each for each in settings_table(cls)} for cls in (CouncilMethodSettings, TransPLSettings)
    )
    for name, parameter in signature(TransPL).parameters.items():
        setting = of_paper.get(name, of_plus.get(name))
        if setting is not None and name not in ("smoothing", "witnesses", "views"):
            assert parameter.default == setting.default, name
    plus, paper = (TransPL(variant=variant).new_method(0) for variant in ("plus", "paper"))
    assert plus.settings == CouncilMethodSettings()
    assert plus.codebook_settings == CodebookSettings()
    assert plus.settings.council() == CouncilSettings()
    assert paper.settings == TransPLSettings()


def test_the_variant_sets_what_is_left_open_and_nothing_else():
    for variant, own in (("paper", "floor"), ("plus", "pseudocount")):
        for given, expected in ((None, own), ("additive", "additive")):
            method = TransPL(variant=variant, smoothing=given).new_method(0)
            found = method.settings if variant == "paper" else method.codebook_settings
            assert found.smoothing == expected
    with refusal("variant", "'plus', 'paper'"):
        TransPL(variant="better").fit(*make_waves(20, 0))


def test_every_variant_has_a_method_and_a_default_mode():
    assert {variant: default_mode(variant) for variant in VARIANTS} == {"plus": "markov", "paper": "finetune"}
    assert (method_class("paper"), method_class("plus")) == (TransPLMethod, CouncilMethod)
    assert all(method_class(variant).variant == variant for variant in VARIANTS)


def test_modes_are_those_of_the_variant():
    for variant, mode in (("plus", None), ("plus", "markov"), ("paper", "finetune"), ("paper", "markov")):
        check_mode(variant, mode)
    with refusal("mode", "'markov' with variant='plus'"):
        check_mode("plus", "finetune")
    with refusal("mode", "'finetune', 'markov'"):
        check_mode("plus", "tune")


@pytest.mark.parametrize("ask", [default_mode, method_class])
def test_a_variant_that_does_not_exist_is_refused(ask):
    with refusal("variant", "'plus', 'paper'"):
        ask("better")


def test_windows_with_the_axes_swapped_are_recognised():
    X, y = make_waves(24, 0, n_classes=2)
    model = TransPL().fit(X, y)
    with refusal("X", r"\.transpose\(0, 2, 1\)"):
        model.predict(X.transpose(0, 2, 1))
    with pytest.warns(UserWarning, match=r"\.transpose\(0, 2, 1\)"):
        TransPL(witnesses=("linear",)).fit(X.transpose(0, 2, 1), y)
