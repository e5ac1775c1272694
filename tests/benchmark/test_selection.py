"""Rules of selection see what they may and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refusal
from tiny_bench import CHANGES

from transpl.benchmark.protocol import split_pair
from transpl.benchmark.selection import (
    DEFAULT_RULE,
    RULES,
    Rule,
    SelectionEvidence,
    all_risks,
    dev,
    iwcv,
    select_best,
    source_risk,
)
from transpl.datasets import make_shifted
from transpl.methods.registry import create
from transpl.nn import Execution

MAY_SEE = {
    "source_risk": {"source_losses"},
    "iwcv": {"source_losses", "weights"},
    "dev": {"source_losses", "weights"},
    "few_shot": {"few_shot_risk"},
    "target_oracle": {"test_risk"},
}
EVIDENCE = {
    "source_losses": np.array([0.1, 0.4, 0.3]),
    "weights": np.array([0.5, 1.5, 1.2]),  # of a mean of 1 two rules would be the same
    "few_shot_risk": 0.7,
    "test_risk": 0.9,
}


class Guarded:
    """Evidence that says what is looked at."""

    def __init__(self, **evidence) -> None:
        self.evidence, self.seen = evidence, set()

    def __getattr__(self, name):
        self.seen.add(name)
        return self.evidence[name]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_looks_at_its_evidence_only(name):
    guarded = Guarded(**EVIDENCE)
    assert np.isfinite(RULES[name].judge(guarded))
    assert guarded.seen == MAY_SEE[name]


def test_the_rules_are_the_known_risks():
    evidence = SimpleNamespace(**EVIDENCE)
    losses, weights = EVIDENCE["source_losses"], EVIDENCE["weights"]
    assert RULES["source_risk"].judge(evidence) == source_risk(losses)
    assert RULES["iwcv"].judge(evidence) == iwcv(weights, losses)
    assert RULES["dev"].judge(evidence) == dev(weights, losses) != iwcv(weights, losses)
    assert RULES["few_shot"].judge(evidence) == 0.7
    assert RULES["target_oracle"].judge(evidence) == 0.9
    assert DEFAULT_RULE == "source_risk"
    assert "ORACLE" in RULES["target_oracle"].what


def test_a_rule_without_its_evidence_has_no_opinion():
    evidence = SimpleNamespace(**{**EVIDENCE, "weights": None})
    assert RULES["dev"].judge(evidence) is None
    assert RULES["source_risk"].judge(evidence) is not None


def test_held_out_rows_that_look_like_the_target_weigh_more():
    """The target lies two to the right of the source, so weights grow to the right."""
    rng = np.random.default_rng(0)
    here, there, held_out = (rng.normal(size=(n, 3)) for n in (300, 150, 100))
    there[:, 0] += 2
    pair = SimpleNamespace(
        source=SimpleNamespace(windows=here), target=there, validation=SimpleNamespace(windows=held_out)
    )
    method = SimpleNamespace(features=lambda windows: windows, seed=0)
    weights = SelectionEvidence(method, pair, None, None).weights
    assert np.corrcoef(np.log(weights), held_out[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize("risk", [float("nan"), float("inf")])
def test_a_risk_that_is_no_number_is_left_out(monkeypatch, risk):
    rules = {"dev": Rule("dev", "", (), lambda: risk), "iwcv": Rule("iwcv", "", (), lambda: 0.5)}
    monkeypatch.setattr("transpl.benchmark.selection.RULES", rules)
    assert all_risks(None, None, None, None) == {"iwcv": 0.5}


@pytest.fixture(scope="module")
def adapted():
    pair, evaluator = split_pair(make_shifted(n_train=24, n_test=15, length=32), 0, 1)
    method = create("softmax", Execution("cpu", n_threads=1), **CHANGES)
    method.fit_source(pair.source, pair.validation)
    method.adapt(pair.target)
    return method, pair, evaluator, method.predict_proba(pair.test)


def test_every_rule_judges_an_adapted_method(adapted):
    risks = all_risks(*adapted)
    assert risks.keys() == RULES.keys()
    assert all(np.isfinite(list(risks.values())))
    assert risks == all_risks(*adapted)


def test_rules_without_target_labels_do_not_ask_the_evaluator(adapted):
    method, pair, *_ = adapted
    evidence = SelectionEvidence(method, pair, None, None)
    for name in ("source_risk", "iwcv", "dev"):
        assert RULES[name].judge(evidence) == all_risks(*adapted)[name]
    with pytest.raises(AttributeError):
        RULES["few_shot"].judge(evidence)


def test_source_risk_does_not_look_at_the_target(adapted):
    method, pair, *_ = adapted
    blind = SimpleNamespace(validation=pair.validation)
    assert (
        RULES["source_risk"].judge(SelectionEvidence(method, blind, None, None)) == all_risks(*adapted)["source_risk"]
    )


def test_one_target_window_is_too_few_to_look_like_the_target(adapted):
    method, pair, evaluator, answers = adapted
    single = SimpleNamespace(source=pair.source, validation=pair.validation, target=pair.target[:1])
    assert all_risks(method, single, evaluator, answers).keys() == {"source_risk", "few_shot", "target_oracle"}


def test_the_lowest_risk_wins_and_the_first_of_equals():
    risks = {"a": {"dev": 0.3, "iwcv": 1.0}, "b": {"dev": 0.1, "iwcv": 1.0}, "c": {"dev": 0.2, "iwcv": 1.0}}
    assert select_best(risks, "dev") == "b"
    assert select_best(risks, "iwcv") == "a"


def test_a_rule_that_is_unknown_or_that_some_lack_is_refused():
    with refusal("rule", "one of 'source_risk'"):
        select_best({"a": {}}, "accuracy")
    with refusal("rule", "runs with a dev, got none in a, c"):
        select_best({"a": {}, "b": {"dev": 1.0}, "c": {}}, "dev")
