"""What a run is: the same name for the same run, everywhere and always."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from conftest import refusal
from tiny_bench import plan

from transpl.benchmark.plan import RunSpec, data_fingerprint, settings_without_seed
from transpl.benchmark.progress import distinct_names
from transpl.datasets import make_shifted
from transpl.methods import registry
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import entry
from transpl.methods.settings import AdaptSettings, SourceSettings

SPEC = RunSpec("ucihar", "d21825b723eb9a349ee9", 2, 11, "softmax", 0, {"width": 64, "sizes": (1, 2), "prior": None})
DATA = make_shifted(n_train=6, n_test=6, length=16)


@dataclass(frozen=True)
class WithTuple(SourceSettings):
    """sizes : of something"""

    sizes: tuple[int, ...] = (1, 2)
    limit: float | None = None


class OfTuples(NoAdapt):
    """Has settings that JSON turns into lists."""

    Settings = WithTuple


@pytest.fixture
def method_with_tuple(monkeypatch):
    registry.names()
    known = registry.Entry("of-tuples", OfTuples, "own", "source", "-")
    monkeypatch.setitem(registry._entries, "of-tuples", known)


def test_the_digest_is_the_same_in_every_process_and_release():
    """Results on disk are found by it: if this fails, every stored run is lost."""
    assert SPEC.digest == "c73aad837f315e614e8b"


def test_the_order_of_settings_does_not_matter():
    assert replace(SPEC, settings=dict(reversed(SPEC.settings.items()))).digest == SPEC.digest


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"source": 3}, {"goal": "label"}, {"data": "other"}, {"method": "sp"}, {"settings": {"width": 63}}],
)
def test_whatever_decides_the_numbers_is_in_the_digest(change):
    assert replace(SPEC, **change).digest != SPEC.digest


def test_a_spec_that_went_through_json_equals_itself():
    again = RunSpec.from_dict(json.loads(json.dumps(SPEC.as_dict())))
    assert again == SPEC
    assert again.digest == SPEC.digest
    assert again.settings == {"width": 64, "sizes": [1, 2], "prior": None}


def test_a_method_gets_its_tuples_back(method_with_tuple):
    settings = WithTuple(sizes=(3, 4), random_state=7)
    spec = replace(SPEC, method="of-tuples", seed=7, settings=settings_without_seed(settings))
    again = RunSpec.from_dict(json.loads(json.dumps(spec.as_dict())))
    assert again.method_settings() == settings
    assert hash(again.method_settings()) == hash(settings)


def test_the_seed_is_not_among_the_settings():
    one, two = (settings_without_seed(SourceSettings(random_state=seed)) for seed in (0, 1))
    assert one == two
    assert "random_state" not in one


def test_a_whole_number_is_the_same_setting_as_the_fraction_it_equals():
    whole, fraction = (
        settings_without_seed(AdaptSettings(adapt_lr=1)),
        settings_without_seed(AdaptSettings(adapt_lr=1.0)),
    )
    assert json.dumps(whole) == json.dumps(fraction)
    assert isinstance(whole["width"], int)


def test_a_setting_that_is_gone_renames_no_older_run():
    settings = settings_without_seed(entry("transpl").settings("ucihar"))
    assert settings["vote"] == "mean"
    spec = replace(SPEC, method="transpl", settings=settings)
    assert spec.method_settings() == entry("transpl").settings("ucihar", random_state=SPEC.seed)
    with refusal("settings", "got vote=product"):
        replace(spec, settings={**settings, "vote": "product"}).method_settings()


def test_numbers_of_numpy_are_plain_numbers():
    assert replace(SPEC, source=np.int64(2), seed=np.int64(0)).digest == SPEC.digest


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, np.int64(3)])
def test_settings_that_json_cannot_hold_are_refused(value):
    with refusal("settings", "JSON"):
        replace(SPEC, settings={"width": value})


def test_what_is_no_spec_is_refused():
    with refusal("goal"):
        replace(SPEC, goal="win")
    with refusal("seed"):
        replace(SPEC, seed=-1)
    with refusal("values", "a difference in seed"):
        RunSpec.from_dict({name: value for name, value in SPEC.as_dict().items() if name != "seed"})
    with pytest.raises(TypeError):
        RunSpec.from_dict({**SPEC.as_dict(), "source": "2"})


def test_an_unknown_method_is_a_spec_all_the_same():
    stranger = replace(SPEC, method="not-installed")
    assert RunSpec.from_dict(stranger.as_dict()) == stranger
    with refusal("method", "not-installed"):
        stranger.method_settings()


@pytest.mark.parametrize("part", ["X", "y", "domain_ids", "split"])
def test_every_value_of_the_data_counts(part):
    values = getattr(DATA, part).copy()
    values.flat[0] = values.flat[-1]
    assert (values != getattr(DATA, part)).any()
    assert data_fingerprint(replace(DATA, **{part: values})) != data_fingerprint(DATA)


def test_equal_data_have_equal_fingerprints():
    again = make_shifted(n_train=6, n_test=6, length=16)
    assert data_fingerprint(again) == data_fingerprint(DATA)


def test_names_say_the_goal_and_what_tells_alike_runs_apart():
    one = plan("transpl").runs(DATA)[0]
    other = plan("transpl", width=32).runs(DATA)[0]
    elsewhere = replace(other, source=1, target=2, goal="label")
    names = distinct_names([one, other, elsewhere])
    assert names[one.digest] == "small 0-1 transpl seed 0 width=16"
    assert names[other.digest] == "small 0-1 transpl seed 0 width=32"
    assert names[elsewhere.digest] == "small 1-2 transpl seed 0 (labels only)"
    old = replace(one, data="old")
    assert distinct_names([one, old])[old.digest] == "small 0-1 transpl seed 0 data=old"
