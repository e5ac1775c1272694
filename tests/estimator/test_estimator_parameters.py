"""The parameters of `TransPL`, before any fit."""

from __future__ import annotations

import re

import numpy as np
from conftest import make_waves, refusal

from transpl import TransPL


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
    names = re.findall(r"^    (\w+(?:, \w+)*)$", described, re.MULTILINE)
    assert sorted(", ".join(names).split(", ")) == sorted(TransPL().get_params())


def test_the_variant_sets_what_is_left_open_and_nothing_else():
    for variant, own in (("paper", "floor"), ("plus", "pseudocount")):
        for given, expected in ((None, own), ("additive", "additive")):
            method = TransPL(variant=variant, smoothing=given).new_method(0)
            found = method.settings if variant == "paper" else method.parameters
            assert found.smoothing == expected
    with refusal("variant", "'plus', 'paper'"):
        TransPL(variant="better").fit(*make_waves(20, 0))
