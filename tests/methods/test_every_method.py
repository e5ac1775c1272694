"""One battery for every registered method. Exceptions are listed at the top, each with its reason.

A case is a method on its default backbone, or "NAME on cnn". The CNN repeats only what depends on the backbone.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal

from transpl.methods import Labelled, Method, SourceModel, TargetInfo
from transpl.methods.method_settings import SourceSettings
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import create, entries, entry, names
from transpl.nn import Execution, loop
from transpl.nn.rows import epoch_batches
from transpl.windows import Windows, as_windows

ALL = names()
# It counts and votes. The network stays as it is.
NO_GRADIENT = {"transpl-markov"}
WITHOUT_NETWORK = {name for name in ALL if not issubclass(entry(name).method.Settings, SourceSettings)}
COUNCILS = {name for name in WITHOUT_NETWORK if name.startswith("transpl-plus")}
ON_NETWORKS = [name for name in ALL if name not in WITHOUT_NETWORK]
REFERENCES = {"no-adapt", "target-only"}  # they adapt nothing
NEVER_TRAINS_ON_THE_TARGET = {*REFERENCES, "adabn", *NO_GRADIENT, *WITHOUT_NETWORK}
ON_CNN = [
    f"{name} on cnn"
    for name in ON_NETWORKS
    if {each.name: each.default for each in fields(entry(name).method.Settings)}.get("backbone") == "patch-transformer"
]
EVERYWHERE = [*ALL, *ON_CNN]
NO_WEIGHT = {
    "transpl",
    "transpl-ws",
    "adabn",
    *NO_GRADIENT,
    *WITHOUT_NETWORK,
}  # weights of losses are learnt, or there is no loss
OF_HEADS_ALONE = {"overlap"}  # terms that no feature enters: ATT's penalty is on the weights of its heads
OTHER_NETWORK = {"sasa", "ssss-tsa"}  # they classify features that No Adapt does not have
LEARNS_LATE = {
    # Its MMD knows no scale: while features are still alike it outweighs the cross entropy, and learning starts late.
    "mmda": {"max_epochs": 40, "adapt_lr": 5e-3},
    # As published; after 16 epochs, as the others have, it has not even fitted the source.
    "raincoat": {"max_epochs": 50},
    # It trains afresh on both domains, channel by channel; without pretraining it needs several times the epochs.
    "ssss-tsa": {"max_epochs": 80},
}
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
CPU = Execution(device="cpu")
K = 3


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, **shift)
    return Labelled(as_windows(X), y, K)


SOURCE, VALIDATION, TARGET = labelled(30, 0), labelled(12, 1), labelled(21, 2, gain=1.5, offset=0.3)


def tiny(case: str, execution: Execution = CPU, **changes: object) -> Method:
    """A method with a tiny network and few epochs."""
    name, _, backbone = case.partition(" on ")
    wanted = {**SHAPE, "max_epochs": 2, "check_every": 1, "batch_size": 8, "source_lr": 2e-3, "adapt_lr": 2e-3}
    wanted |= {"dropout": 0.3} | ({"backbone": backbone} if backbone else {})
    wanted |= {"rounds": 2, "round_epochs": 1, "pretrain_epochs": 1, "adapt_epochs": 2, "classifier_epochs": 2}
    wanted |= {"witnesses": ("codes", "linear"), "views": ("recorded", "standardised")}
    known = {field.name for field in fields(entry(name).method.Settings)}
    return create(name, execution, **{key: value for key, value in (wanted | changes).items() if key in known})


def source_model(source: Labelled = SOURCE, validation: Labelled = VALIDATION, **changes: object) -> SourceModel:
    return SourceModel(source, validation, tiny("no-adapt", **changes).settings.source(), CPU)


def shared_source(case: str) -> SourceModel:
    return trained_source(backbone_of(case))


@cache
def trained_source(backbone: str, two_classes: bool = False, rare_class: bool = False) -> SourceModel:
    source, validation = SOURCE, VALIDATION
    if two_classes:
        source, validation = (Labelled(part.windows, part.y % 2, K) for part in (SOURCE, VALIDATION))
    if rare_class:  # 17 rows in batches of 8
        rows = np.r_[np.flatnonzero(SOURCE.y == 0)[:1], np.flatnonzero(SOURCE.y > 0)[:16]]
        source = Labelled(SOURCE.windows[rows], SOURCE.y[rows], K)
    return source_model(source, validation, backbone=backbone)


def backbone_of(case: str) -> str:
    return getattr(tiny(case).settings, "backbone", "patch-transformer")


def cuts_patches(case: str) -> bool:
    """Whether windows must hold two patches; the council is as content with shorter ones."""
    return case not in COUNCILS and backbone_of(case) != "cnn" and hasattr(tiny(case).settings, "patch_length")


def prior_for(method: Method) -> np.ndarray | None:
    return np.array([0.5, 0.3, 0.2]) if "prior" in method.requires else None


def adapt(method: Method, target: Windows, prior: np.ndarray | None = None) -> None:
    """Adapt, with class proportions and groups (every window its own) for methods that need them."""
    prior = prior_for(method) if prior is None else prior
    groups = np.arange(len(target)) if "groups" in method.requires else None
    method.adapt(target, TargetInfo(prior=prior, groups=groups))


def adapted(name: str, target: Labelled = TARGET, execution: Execution = CPU, **changes: object) -> Method:
    """A method that started from the shared source model and saw the target."""
    method = tiny(name, execution, **changes)
    method.start_from(shared_source(name))
    adapt(method, target.windows)
    return method


@cache
def reference(name: str) -> Method:
    """A method adapted to the usual target, for many tests: look, do not touch."""
    return watched(name)[0]


@cache
def watched(name: str) -> tuple[Method, dict[str, loop._Loop]]:
    """The reference, and the last training loop of each phase on the target."""
    shared_source(name).train()
    seen, run_epoch = {}, loop._Loop.run_epoch

    def watch(self):
        seen[self.run.phase] = self
        return run_epoch(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop._Loop, "run_epoch", watch)
        return adapted(name), seen


def digest(network: torch.nn.Module) -> str:
    whole = hashlib.sha256()
    for tensor in network.state_dict().values():
        whole.update(tensor.numpy().tobytes())
    return whole.hexdigest()


def test_the_names_of_the_command_line_are_all_there():
    expected = (
        "no-adapt target-only deepcoral mmda codats codats-ws sasa raincoat softmax ncp sp att shot t2pl "
        "code-cnn code-lstm code-gru transpl transpl-ws"
    )
    assert [name for name in ALL if name in expected.split()] == expected.split()


@pytest.mark.parametrize("name", EVERYWHERE)
def test_life_of_a_method(name):
    before = digest(shared_source(name).network)
    rng = torch.get_rng_state()
    method = tiny(name)
    method.start_from(shared_source(name))
    source_only = method.predict_proba(TARGET.windows)
    adapt(method, TARGET.windows)
    p, labels = method.predict_proba(TARGET.windows), method.pseudo_label(TARGET.windows)
    for probabilities in (source_only, p, labels.probabilities):
        assert probabilities.shape == (21, K)
        assert np.allclose(probabilities.sum(axis=1), 1)
        assert (probabilities >= 0).all()
    assert np.array_equal(labels.labels, labels.probabilities.argmax(axis=1))
    assert labels.confidence.shape == (21,)
    assert np.isfinite(labels.confidence).all()
    assert digest(shared_source(name).network) == before, "the shared source model is left alone"
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(type(value) is float for phase in method.history.values() for row in phase for value in row.values())
    assert np.array_equal(p, reference(name).predict_proba(TARGET.windows)), "same seed, same numbers"
    assert method.history == reference(name).history
    assert json.loads(json.dumps(method.details)) == method.details == reference(name).details


@pytest.mark.parametrize("name", ON_NETWORKS)
def test_fit_source_trains_what_start_from_takes(name):
    method = tiny(name)
    method.fit_source(SOURCE, VALIDATION)
    expected = NoAdapt(tiny("no-adapt", **vars(method.settings.source())).settings, CPU)
    expected.start_from(shared_source(name))
    assert np.array_equal(method.predict_proba(TARGET.windows), expected.predict_proba(TARGET.windows))


@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ALL)
def test_a_caller_without_gradients_gets_the_same_method(name, without_gradients):
    with without_gradients():
        method = tiny(name)
        method.fit_source(SOURCE, VALIDATION)
        adapt(method, TARGET.windows)
    expected = reference(name).predict_proba(TARGET.windows)
    assert np.array_equal(method.predict_proba(TARGET.windows), expected)
    adapt(method, TARGET.windows)  # what it was left with can be trained on
    assert np.array_equal(method.predict_proba(TARGET.windows), expected)


@pytest.mark.parametrize("name", ALL)
def test_adapting_again_starts_from_the_source_again(name):
    method = adapted(name, labelled(9, 7))
    adapt(method, TARGET.windows)
    expected = reference(name).predict_proba(TARGET.windows)
    assert np.array_equal(method.predict_proba(TARGET.windows), expected)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_interrupted_after_every_epoch_and_resumed_equals_uninterrupted(name, tmp_path, monkeypatch):
    straight = reference(name)
    n_epochs = sum(len(epochs) for phase, epochs in straight.history.items() if phase != "source")
    run_epoch, left = loop._Loop.run_epoch, [0]

    def cut_off(self):
        if self.run.phase == "source":  # of methods that train their own; it keeps no checkpoints here
            return run_epoch(self)
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return run_epoch(self)

    monkeypatch.setattr(loop._Loop, "run_epoch", cut_off)
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    for _ in range(n_epochs - 1):
        left[0] = 1
        with pytest.raises(KeyboardInterrupt):
            adapted(name, execution=saving)
    left[0] = 1
    resumed = adapted(name, execution=saving)
    assert np.array_equal(resumed.predict_proba(TARGET.windows), straight.predict_proba(TARGET.windows))
    assert resumed.history == straight.history


@pytest.mark.parametrize("name", ALL)
def test_every_loss_moves_the_encoder(name):
    """After training, because an adversary's gradient is nothing in its first step."""
    _, seen = watched(name)
    assert bool(seen) != (name in NEVER_TRAINS_ON_THE_TARGET)
    for phase in seen.values():
        objective = phase.run.objective.train()
        batch = next(iter(epoch_batches(phase.rows, 8, seed=0, epoch=0)))
        losses = objective(batch)
        assert objective.terms
        moved = [(key, p) for key, p in objective.named_parameters() if p.requires_grad]
        encoder = [p for key, p in moved if "encoder." in key or "embed." in key] or [p for _, p in moved]
        absent = set(objective.terms) - set(losses)
        assert absent <= {"proportions", "code", "reconstruction"}, "only without a prior, or without codes"
        for term in set(objective.terms) - absent:
            reached = [p for _, p in moved] if term in OF_HEADS_ALONE else encoder
            gradients = torch.autograd.grad(losses[term], reached, retain_graph=True, allow_unused=True)
            assert sum(float(g.abs().sum()) for g in gradients if g is not None) > 0, f"{phase.run.phase}: {term}"


def silent(name: str) -> dict[str, object]:
    """Settings under which a method learns nothing from the target."""
    weights = [field.name for field in fields(entry(name).method.Settings) if field.name.endswith("_weight")]
    return {weight: 0.0 for weight in weights if weight != "cross_entropy_weight"} | {
        "weighting": "fixed",
        "codes": True,
        "dropout": 0.0,
        "warmup_steps": 0,
        "source_patience": 5,
        "head": "shared",
        "ema_decay": 0.0,
    }


@pytest.mark.parametrize("name", [name for name in ALL if name not in NO_WEIGHT | OTHER_NETWORK])
def test_without_its_weights_a_method_is_no_adapt(name):
    """From the same weights over the same batches; dropout off, as the target's pass would draw from its masks."""
    plain, muted = (tiny(each, **silent(each)) for each in ("no-adapt", name))
    for method in (plain, muted):
        method.start_from(silent_source())
        adapt(method, TARGET.windows)
    assert np.array_equal(muted.predict_proba(TARGET.windows), plain.predict_proba(TARGET.windows))


@cache
def silent_source() -> SourceModel:
    return source_model(**silent("no-adapt"))


@pytest.mark.parametrize("name", sorted(OTHER_NETWORK))
def test_without_its_weights_a_method_learns_nothing_from_the_target(name):
    other = labelled(21, 9, gain=-3.0)
    answers = []
    for target in (TARGET, other):
        method = tiny(name, **silent(name))
        method.start_from(SourceModel(SOURCE, VALIDATION, method.settings.source(), CPU))
        adapt(method, target.windows)
        answers.append(method.predict_proba(TARGET.windows))
    assert np.array_equal(*answers)


@pytest.mark.parametrize("name", ALL)
def test_a_class_without_source_rows(name):
    method = tiny(name)
    method.start_from(trained_source(backbone_of(name), two_classes=True))
    adapt(method, TARGET.windows)
    assert np.isfinite(method.predict_proba(TARGET.windows)).all()
    labels = method.pseudo_label(TARGET.windows)
    assert np.isfinite(labels.probabilities).all()
    assert set(labels.labels.tolist()) <= {0, 1}


@pytest.mark.parametrize("rows", [np.flatnonzero(TARGET.y == 0), np.array([4])], ids=["one class", "one row"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_target_of_one_class_and_one_of_one_row(name, rows):
    method = adapted(name, Labelled(TARGET.windows[rows], TARGET.y[rows], K))
    assert np.isfinite(method.predict_proba(TARGET.windows)).all()
    labels = method.pseudo_label(TARGET.windows[rows])
    assert np.isfinite(labels.probabilities).all()
    assert np.isfinite(labels.confidence).all()


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_class_too_rare_for_most_batches_and_a_last_batch_of_one(name):
    method = tiny(name)
    method.start_from(trained_source(backbone_of(name), rare_class=True))
    adapt(method, TARGET.windows[:17])
    assert np.isfinite(method.predict_proba(TARGET.windows)).all()


@pytest.mark.parametrize("name", [name for name in ALL if entries()[name].method.starts_from_source])
def test_labels_follow_when_classes_change_their_numbers(name):
    """The source model with its classes renumbered gives the renumbered pseudo-labels."""
    order = np.array([2, 0, 1])  # the class that was order[k] is now k
    model = renumbered(shared_source(name), order)
    plain, other = tiny(name), tiny(name)
    plain.start_from(shared_source(name))
    other.start_from(model)
    before, after = plain.pseudo_label(TARGET.windows), other.pseudo_label(TARGET.windows)
    assert np.allclose(after.probabilities, before.probabilities[:, order], atol=1e-6)
    assert np.allclose(after.confidence, before.confidence, atol=1e-6)


def renumbered(model: SourceModel, order: np.ndarray) -> SourceModel:
    new_number = np.argsort(order)
    network = copy.deepcopy(model.network)
    last = network.head[-1]
    with torch.no_grad():
        last.weight.copy_(last.weight[order])
        last.bias.copy_(last.bias[order])
    source, validation = (replace(part, y=new_number[part.y]) for part in (model.source, model.validation))
    other = SourceModel(source, validation, model.settings, CPU)
    other.__dict__["_trained"] = model._trained._replace(network=network.eval())
    return other


@pytest.mark.parametrize("name", ALL)
def test_wrong_targets_are_refused(name):
    method = tiny(name)
    with pytest.raises(Exception, match=r"not fitted. Call fit_source first\.\Z"):
        method.adapt(TARGET.windows)
    method.start_from(shared_source(name))
    with refusal("target", "2 channels"):
        method.adapt(as_windows(np.zeros((3, 5, 32))))
    least = 8 if cuts_patches(name) else 2
    with refusal("target", f"at least {least} steps"):
        method.adapt(as_windows(np.zeros((3, 2, least - 1))))
    n = len(TARGET.windows)
    info = {"prior": np.ones(K), "few_labels": np.zeros(n, int), "groups": np.zeros(n, int), "smooth": True}
    for part in info.keys() - method.uses - method.requires:
        with refusal(part, "None for this method"):
            method.adapt(TARGET.windows, TargetInfo(**{part: info[part]}))
    for part in method.requires:
        with refusal(part, "a value"):
            method.adapt(TARGET.windows, TargetInfo())


@pytest.mark.parametrize("name", EVERYWHERE)
def test_unequal_lengths_work_or_are_refused(name):
    ragged = as_windows([window[:, : 32 - 4 * (i % 3)] for i, window in enumerate(TARGET.windows.values)])
    method = tiny(name)
    method.start_from(shared_source(name))
    if method.equal_length:
        with refusal("target", "one length"):
            adapt(method, ragged)
        return
    adapt(method, ragged)
    assert np.isfinite(method.predict_proba(ragged)).all()


@pytest.mark.parametrize("name", ALL)
def test_settings_of_every_data_set_and_preset(name):
    Settings = entry(name).method.Settings
    for dataset in ("ucihar", "wisdm", "hhar", "ptb", "my own"):
        for preset in ("paper", *Settings.presets):
            settings = Settings.for_dataset(dataset, preset)
            if name in ON_NETWORKS:
                assert settings.patch_length == (15 if dataset == "ptb" else 8)
                narrow = 64 if settings.backbone == "patch-transformer" else 128
                assert settings.width == (narrow if dataset in ("ucihar", "my own") else 128)
    with refusal("settings", "Check the spelling"):
        Settings.for_dataset("ucihar", no_such_field=1)


@pytest.mark.parametrize("name", ON_NETWORKS)
def test_no_phase_is_longer_than_the_most_epochs(name):
    settings = entry(name).method.Settings(max_epochs=3)
    loops = [getattr(settings, each)() for each in dir(settings) if each.endswith("_loop")]
    assert loops
    assert {each.max_epochs for each in loops} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in REFERENCES | NO_GRADIENT])
def test_not_much_worse_than_no_adapt_on_a_shifted_pair(name):
    """Over three seeds at most five points below (spec/baselines.md, section 16)."""
    reference = "no-adapt on cnn" if backbone_of(name) == "cnn" else "no-adapt"
    scores = np.array([[scored(each, seed) for each in (reference, name)] for seed in range(3)])
    no_adapt, with_method = scores.mean(axis=0)
    assert with_method >= no_adapt - 0.05


@cache
def scored(name: str, seed: int) -> float:
    """Accuracy on the target; trained long enough to matter."""
    target, test = noisy(45, seed + 20, shifted=True), noisy(60, seed + 30, shifted=True)
    changes = {"max_epochs": 16, "check_every": 2, "random_state": seed, "adapt_epochs": 8, "rounds": 4}
    changes |= LEARNS_LATE.get(name, {})
    method = tiny(name, **changes, batch_size=16)
    method.start_from(shifted_source(backbone_of(name), seed, changes["max_epochs"]))
    adapt(method, target.windows, np.array([0.5, 0.5]) if "prior" in method.requires else None)
    return float((method.predict_proba(test.windows).argmax(axis=1) == test.y).mean())


@cache
def shifted_source(backbone: str, seed: int, max_epochs: int) -> SourceModel:
    changes = {"backbone": backbone, "max_epochs": max_epochs, "check_every": 2}
    changes |= {"random_state": seed, "batch_size": 16}
    settings = tiny("no-adapt", **changes).settings.source()
    return SourceModel(noisy(60, seed), noisy(30, seed + 10), settings, CPU)


def noisy(n: int, seed: int, *, shifted: bool = False) -> Labelled:
    """Two classes told apart by frequency, three channels; the shift rescales channels."""
    X, y = make_waves(n, seed, channels=3)
    X = X + 0.6 * np.random.default_rng(seed).normal(size=X.shape)
    gain = np.array([1.6, 1.0, 0.6]) if shifted else np.ones(3)
    return Labelled(as_windows((X * gain[:, None]).astype(np.float32)), y, 2)
