"""Selection rules: the risks, and that each rule sees only its own evidence."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import refusal
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from tiny_bench import CHANGES

from transpl.benchmark.protocol import split_pair
from transpl.benchmark.selection import (
    DEFAULT_RULE,
    RULES,
    Rule,
    SelectionEvidence,
    all_risks,
    density_ratio,
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


MODEST = settings(deadline=None, max_examples=40)
WEIGHTS = arrays(np.float64, st.integers(1, 9), elements=st.floats(0.01, 100))


def test_dev_by_hand():
    assert dev([0.5, 1, 3], [1, 0, 2]) == pytest.approx(0.952381, abs=1e-6)


@given(WEIGHTS, st.floats(-5, 5))
@MODEST
def test_dev_of_a_constant_loss_is_that_loss_unless_the_weights_say_nothing(w, c):
    spread = np.ptp(w) / w.max()
    assume(spread == 0 or spread > 1e-6)
    losses = np.full(len(w), c)
    expected = c if spread > 0 else c * w[0]
    assert dev(w, losses) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("w", [0.1, 1.0, 3.0])
def test_dev_without_variance_is_iwcv(w):
    losses = [1.0, 0.0, 2.0]
    assert dev([w] * 3, losses) == iwcv([w] * 3, losses) == pytest.approx(w)
    assert dev([w], [2.0]) == pytest.approx(2 * w)
    assert dev([w, np.nextafter(w, 9), w], losses) == pytest.approx(w)


@given(st.integers(0, 10**6))
@MODEST
def test_dev_by_its_formula(seed):
    rng = np.random.default_rng(seed)
    w, loss = rng.gamma(2, 0.5, 12), rng.gamma(1, 1, 12)
    eta = -((w * loss - (w * loss).mean()) * (w - w.mean())).sum() / ((w - w.mean()) ** 2).sum()
    assert dev(w, loss) == pytest.approx((w * loss).mean() + eta * w.mean() - eta)
    order = rng.permutation(12)
    assert dev(w[order], loss[order]) == pytest.approx(dev(w, loss))


def test_source_risk_and_iwcv_are_means():
    assert source_risk([1.0, 2.0, 6.0]) == 3
    assert iwcv([0.5, 1, 3], [1, 0, 2]) == pytest.approx(6.5 / 3)
    assert iwcv(np.ones(3), [1.0, 2.0, 6.0]) == 3


def clouds(seed, n_s=300, n_t=150, d=4, shift=1.0):
    rng = np.random.default_rng(seed)
    z_t = rng.normal(size=(n_t, d))
    z_t[:, 0] += shift
    return rng.normal(size=(n_s, d)), z_t, rng.normal(size=(200, d))


def test_density_ratio_follows_the_true_one():
    """Two Gaussians one apart along the first axis: log w = z_0 - 1/2."""
    z_s, z_t, z = clouds(0)
    w = density_ratio(z_s, z_t, z, seed=0)
    assert w.shape == (200,)
    assert np.corrcoef(np.log(w), z[:, 0] - 0.5)[0, 1] > 0.8
    assert 0.7 < w.mean() < 1.4


def test_density_ratio_of_one_domain_is_about_one_whatever_the_sizes():
    z_s, z_t, z = clouds(1, n_s=400, n_t=100, shift=0)
    w = density_ratio(z_s, z_t, z, seed=0)
    assert 0.6 < np.median(w) < 1.5


def test_density_ratio_is_a_function_of_its_seed_and_leaves_global_randomness_alone():
    data = clouds(2, n_s=60, n_t=60)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = density_ratio(*data, seed=3)
    assert np.array_equal(first, density_ratio(*data, seed=3))
    assert not np.array_equal(first, density_ratio(*data, seed=4))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_density_ratio_does_not_depend_on_the_units_of_features():
    data = clouds(5)
    scale, offset = np.array([1e3, 1.0, 1e-3, 1.0]), np.array([500.0, 0.0, -3.0, 0.0])
    other_units = (z * scale + offset for z in data)
    np.testing.assert_allclose(density_ratio(*other_units, seed=0), density_ratio(*data, seed=0), rtol=1e-3)


def test_density_ratio_is_by_the_learning_rate_that_tells_held_out_rows_apart_best(monkeypatch):
    """The one in the middle learns something, the others say one half whatever they see."""

    def fit(z, y, learning_rate, seed):
        def predict_proba(z):
            p = expit(5 * z[:, 0]) if learning_rate == 0.05 else np.full(len(z), 0.5)
            return np.stack([1 - p, p], axis=1)

        return SimpleNamespace(predict_proba=predict_proba)

    monkeypatch.setattr("transpl.benchmark.selection._fit", fit)
    like_source, like_target = density_ratio(np.zeros((20, 1)), np.ones((20, 1)), [[0.0], [1.0]], seed=0)
    assert like_source < 0.1
    assert like_target > 10


def test_domains_far_apart_still_give_finite_weights():
    z_s, z_t, z = clouds(3, shift=1e4)
    w = density_ratio(z_s, z_t, np.concatenate([z, z_t]), seed=0)
    assert np.isfinite(w).all()
    assert (w > 0).all()
    assert math.isfinite(dev(w, np.ones(len(w))))


def test_few_rows_one_feature_and_a_constant_feature_are_fine():
    w = density_ratio([[0.0], [0.1]], [[1.0], [1.1]], [[0.5]], seed=0)
    assert w.shape == (1,)
    assert np.isfinite(w).all()
    z_s, z_t, z = (np.pad(part, ((0, 0), (0, 1)), constant_values=7) for part in clouds(4, n_s=20, n_t=20))
    assert np.isfinite(density_ratio(z_s, z_t, z, seed=0)).all()


def test_bad_input_is_named():
    with refusal("losses", "expected 2, one per weight, got 3"):
        dev([1, 2], [1, 2, 3])
    with refusal("losses", r"got \(0,\)"):
        source_risk([])
    with refusal("weights", r"got \(1, 2\)"):
        iwcv([[1, 2]], [1, 2])
    with refusal("z_target_train", r"\(rows, 2\), 2 or more rows, got \(3, 1\)"):
        density_ratio(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)), seed=0)
    with refusal("z_source_train", "2 or more rows"):
        density_ratio(np.zeros((1, 2)), np.zeros((3, 2)), np.zeros((3, 2)), seed=0)
    with refusal("z_validation", "NaN or infinity"):
        density_ratio(np.eye(3), np.eye(3), np.full((1, 3), np.nan), seed=0)
