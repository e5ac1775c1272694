"""Settings: what makes two methods share a source model, and the values of a data set."""

from __future__ import annotations

import pytest
from conftest import refusal

from transpl.methods import TransPLSettings
from transpl.methods.deepcoral import DeepCORALSettings
from transpl.methods.method_settings import AdaptSettings, SourceSettings


def test_the_source_part_is_all_that_a_source_model_depends_on():
    paper, other = TransPLSettings(sigma=0.1, adapt_lr=1e-3), DeepCORALSettings(coral_weight=3.0)
    assert paper.source() == other.source() == SourceSettings()
    assert TransPLSettings(width=128).source() != SourceSettings()
    assert TransPLSettings(random_state=1).source() != SourceSettings()


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("ucihar", (64, 8, 0.2, 1.0, 0.5, 5e-4, 5e-4)),
        ("wisdm", (128, 8, 0.1, 2.0, 0.2, 2e-4, 5e-4)),
        ("hhar", (128, 8, 0.1, 5.0, 0.2, 2e-4, 2e-4)),
        ("ptb", (128, 15, 0.2, 1.0, 0.7, 5e-4, 5e-4)),
    ],
)
def test_the_papers_table(dataset, expected):
    s = TransPLSettings.for_dataset(dataset)
    found = (s.width, s.patch_length, s.sigma, s.prior_temperature, s.top_ratio, s.source_lr, s.adapt_lr)
    assert found == expected


def test_own_data_gets_the_defaults_and_changes_win():
    assert TransPLSettings.for_dataset("mine") == TransPLSettings()
    assert TransPLSettings.for_dataset("wisdm", width=32).width == 32


def test_presets():
    adatime = DeepCORALSettings.for_dataset("hhar", "adatime")
    assert (adatime.adapt_lr, adatime.cross_entropy_weight, adatime.coral_weight) == (5e-4, 0.439, 5.936)
    assert (adatime.weighting, adatime.coral_form, adatime.width) == ("fixed", "adatime", 128)
    with refusal("preset", "'paper', 'adatime'"):
        DeepCORALSettings.for_dataset("hhar", "no such")


@pytest.mark.parametrize(
    ("name", "value"),
    [("adapt_lr", 0.0), ("adapt_patience", 0), ("source_lr", -1.0), ("source_patience", 0), ("warmup_steps", -1)],
)
def test_wrong_values_are_named(name, value):
    with refusal(name):
        AdaptSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("weighting", "x"), ("coral_weight", -1.0), ("codes", 3), ("coral_form", "x")]
)
def test_wrong_values_of_joint_methods_are_named(name, value):
    with refusal(name):
        DeepCORALSettings(**{name: value})
