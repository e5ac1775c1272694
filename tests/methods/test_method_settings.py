"""Settings: what makes two methods share a source model, and the values of a data set."""

from __future__ import annotations

import pytest
from conftest import refusal

from transpl.methods import TransPLSettings
from transpl.methods.adabn import AdaBNSettings
from transpl.methods.deepcoral import DeepCORALSettings
from transpl.methods.method_settings import AdaptSettings, SourceSettings
from transpl.methods.raincoat import RaincoatSettings
from transpl.methods.registry import create, entries
from transpl.methods.sasa import SASASettings


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


CODES = ("transpl", "transpl-ws", "transpl-markov", "code-cnn", "code-lstm", "code-gru")


@pytest.mark.parametrize("dataset", ["ucihar", "wisdm", "hhar", "ptb", "my own"])
def test_preset_cnn_trains_as_the_field_does(dataset):
    settings = AdaptSettings.for_dataset(dataset, "cnn")
    found = (settings.backbone, settings.width, settings.dropout, settings.source_lr, settings.adapt_lr)
    assert found == ("cnn", 128, 0.5, 1e-3, 1e-3)
    loop = settings.adapt_loop()
    assert (loop.max_epochs, loop.batch_size, loop.weight_decay, loop.warmup_steps, loop.keep) == (
        *(40, 32, 1e-4, 0),
        "last",
    )
    shape = settings.backbone_shape(n_classes=6, n_channels=9)
    assert (type(shape).__name__, shape.n_classes, shape.n_channels, shape.width) == ("CNNSettings", 6, 9, 128)


@pytest.mark.parametrize(
    ("dataset", "lr", "w_c", "w_a", "weighting"),
    [
        ("ucihar", 5e-4, 0.101, 4.230, "fixed"),
        ("wisdm", 1e-3, 6.663, 6.488, "fixed"),
        ("hhar", 5e-4, 0.439, 5.936, "fixed"),
        ("ptb", 1e-3, 1.0, 1.0, "learnable"),  # AdaTime has no values for it
    ],
)
def test_preset_cnn_takes_adatimes_weights(dataset, lr, w_c, w_a, weighting):
    s = DeepCORALSettings.for_dataset(dataset, "cnn")
    assert (s.adapt_lr, s.cross_entropy_weight, s.coral_weight, s.weighting) == (lr, w_c, w_a, weighting)
    assert (s.backbone, s.max_epochs, s.keep) == ("cnn", 40, "last")
    assert DeepCORALSettings.for_dataset(dataset, "cnn", max_epochs=3).max_epochs == 3


def test_preset_cnn_without_a_preset_of_adatime():
    assert RaincoatSettings.for_dataset("ucihar", "cnn").adapt_lr == 1e-3
    assert SASASettings.for_dataset("my own", "cnn").variant == "adatime"


@pytest.mark.parametrize("name", CODES)
def test_methods_on_codes_have_no_cnn(name):
    with refusal("settings", "backbone"):
        create(name, backbone="cnn")
    with refusal("preset", "cnn"):
        create(name, dataset="ucihar", preset="cnn")
    settings = entries()[name].method.Settings()
    assert (settings.backbone, settings.keep) == ("patch-transformer", "best")


def test_every_other_method_on_a_network_has_the_preset():
    on_networks = {name for name, each in entries().items() if issubclass(each.method.Settings, SourceSettings)}
    assert {name for name in on_networks if "cnn" in entries()[name].method.Settings.preset_names()} == (
        on_networks - set(CODES)
    )


def test_shortest_window_depends_on_the_backbone():
    assert SourceSettings(patch_length=6).shortest_window == 12
    assert SourceSettings(patch_length=6, backbone="cnn").shortest_window == 2


def test_wrong_backbones_are_named():
    with refusal("backbone", "'patch-transformer', 'cnn'"):
        SourceSettings(backbone="resnet")
    with refusal("backbone", "batch normalisation"):
        AdaBNSettings(backbone="patch-transformer")
    with refusal("backbone"):
        AdaBNSettings(backbone="resnet")
    with refusal("keep"):
        SourceSettings(keep="first")
