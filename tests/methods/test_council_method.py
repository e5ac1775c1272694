"""The council as a method of the benchmark: no network, what it says of itself, groups and settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import refusal
from tiny_source import CPU, TARGET, K, source_model, waves

from transpl.benchmark import Result, split_pair
from transpl.benchmark.run import run_method
from transpl.council import CouncilSettings
from transpl.datasets import make_shifted
from transpl.datasets.prepared import load_prepared
from transpl.methods import Method, SourceModel, TargetInfo
from transpl.methods.council_settings import CouncilMethodSettings
from transpl.methods.registry import create, entries
from transpl.windows import as_windows

SHARED = Path(__file__).parents[3] / "shared" / "data"
FEW = {"witnesses": ("codes", "linear"), "views": ("recorded", "standardised")}
NAMES = [name for name in entries() if name.startswith("transpl-plus")]


def council(name: str = "transpl-plus", **changes: object) -> Method:
    return create(name, CPU, **{**FEW, **changes})


def never(model: SourceModel) -> None:
    raise AssertionError("a source network is trained for a method that has none")


@pytest.mark.parametrize("goal", ["adapt", "label"])
@pytest.mark.parametrize("name", NAMES)
def test_no_source_network_is_trained_in_a_benchmark(name, goal):
    data = make_shifted(n_train=20, n_test=10, length=32)
    groups = np.arange(len(data)) // 2
    pair, evaluator = split_pair(replace(data, groups=groups), 0, 1)
    method = council(name)
    model = SourceModel(pair.source, pair.validation, method.settings.source(), CPU, trainer=never)
    blank = Result("synthetic", (0, 1), name, 0, {})
    result = run_method(blank, method, model, pair, evaluator, goal).result
    assert result.seconds["source"] == 0
    assert set(result.pseudo_labels) == {"initial"}
    assert bool(result.test) == (goal == "adapt")
    assert set(result.risks) == ({"source_risk", "few_shot", "target_oracle"} if goal == "adapt" else set())
    assert json.loads(json.dumps(result.as_dict())) == result.as_dict()


def test_details_hold_the_estimate_what_was_undone_and_the_seats():
    method = council()
    method.start_from(source_model())
    assert method.details == {}
    method.adapt(TARGET)
    estimate, seats = method.details["estimated_accuracy"], method.details["seats"]
    assert 0 <= estimate["low"] <= estimate["accuracy"] <= estimate["high"] <= 1
    assert all(isinstance(sentence, str) for sentence in method.details["undone"])
    expected = {(witness, view) for witness in FEW["witnesses"] for view in FEW["views"]}
    assert {(seat["witness"], seat["view"]) for seat in seats} >= expected
    assert all(0 <= seat["accuracy"] <= 1 for seat in seats)


def test_windows_of_one_group_get_one_label():
    method = council("transpl-plus-groups")
    method.start_from(source_model())
    test = waves(18, 5, gain=1.5, offset=0.3)
    groups = np.arange(len(TARGET)) % K  # the classes of `waves` take turns
    method.adapt(TARGET, TargetInfo(groups=groups))
    answers = method.predict_proba(test.windows, groups=test.y + 40).argmax(axis=1)
    assert all(len(set(answers[test.y == k])) == 1 for k in range(K))
    assert method.label_record["initial"].labels.shape == (len(TARGET),)
    assert all(len(set(method.label_record["initial"].labels[groups == k])) == 1 for k in range(K))


def test_groups_are_needed_or_not_and_fit_the_windows():
    method = council("transpl-plus-groups")
    method.start_from(source_model())
    with refusal("groups", "transpl-plus"):
        method.adapt(TARGET)
    with refusal("groups", f"{len(TARGET)} "):
        method.adapt(TARGET, TargetInfo(groups=np.zeros(3, int)))
    with refusal("groups", "2 "):
        method.predict_proba(TARGET[:2], groups=np.zeros(3, int))


def test_settings_are_the_councils_with_the_axes_of_known_sets():
    settings = CouncilMethodSettings(random_state=3, witnesses=["codes"], views="shape", triads=[[0, 1, 2]])
    assert settings.council() == CouncilSettings(("codes",), ("shape",), triads=((0, 1, 2),), random_state=3)
    assert hash(settings) == hash(CouncilMethodSettings(**vars(settings)))
    assert CouncilMethodSettings().council() == CouncilSettings()
    of_set = {name: CouncilMethodSettings.for_dataset(name).channel_names for name in ("ucihar", "wisdm", "ptb", "own")}
    assert of_set["wisdm"] == ("acc_x", "acc_y", "acc_z")
    assert len(of_set["ucihar"]) == 9
    assert of_set["ptb"] is None
    assert of_set["own"] is None
    for wrong_value in ({"witnesses": ("nobody",)}, {"views": ("sideways",)}, {"random_state": -1}):
        with refusal(next(iter(wrong_value))):
            CouncilMethodSettings(**wrong_value)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared prepared data are not at {SHARED}")
@pytest.mark.parametrize("name", ["ucihar", "wisdm", "hhar"])
def test_the_axes_of_known_sets_are_those_of_the_data(name):
    data = load_prepared(SHARED / f"{name}.npz")
    assert CouncilMethodSettings.for_dataset(name).channel_names == data.channel_names


def test_a_wrong_triad_is_refused_in_one_line():
    method = council(triads=((0, 1, 7),))
    with refusal("triads"):
        method.start_from(source_model())
        method.adapt(as_windows(TARGET.values))
