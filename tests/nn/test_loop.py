from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import transpl.nn.loop
from transpl._utils.errors import InputError, UnreadableFile
from transpl.nn import (
    Execution,
    LoopSettings,
    Network,
    NetworkSettings,
    TrainingDiverged,
    train,
    train_network,
    use_cpu_kernels,
)
from transpl.nn.devices import restored_environment
from transpl.nn.loop import Checkpoint, EarlyStopping, Objective, _Run, _train_on_rank, fingerprint, new_optimizer
from transpl.nn.objectives import SourceObjective
from transpl.nn.rows import Rows

SETTINGS = NetworkSettings(n_classes=2, patch_length=4, width=16, n_coarse=4, n_fine=8, n_layers=1, n_heads=2)
LOOP = LoopSettings(max_epochs=6, batch_size=8, patience=10)
CPU = Execution(device="cpu")


def rows(n: int, seed: int) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    x = torch.randn(n, 2, 16, generator=generator) + y[:, None, None]
    return {"x": x, "y": y}


def fit(execution: Execution = CPU, loop: LoopSettings = LOOP, seed: int = 0) -> tuple[Network, list]:
    return train_network(SETTINGS, rows(24, 0), rows(12, 1), loop, execution, seed=seed)


def same(a: Network, b: Network) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_same_seed_same_numbers_and_another_seed_others():
    (a, history_a), (b, history_b), (c, _) = fit(), fit(), fit(seed=1)
    assert same(a, b)
    assert history_a == history_b
    assert not same(a, c)


def test_plain_torch_trains_as_the_cpu_kernels_do(tmp_path):
    settings = replace(SETTINGS, dropout=0.0)  # whose random numbers differ
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    histories = []
    for enabled in (True, False):
        with use_cpu_kernels(enabled):
            histories.append(train_network(settings, rows(24, 0), rows(12, 1), LOOP, saving, seed=0)[1])
    fused, plain = ([record["loss"] for record in history] for history in histories)
    assert fused == pytest.approx(plain, rel=1e-4)
    assert len(list(tmp_path.iterdir())) == 2, "neither resumes the other's training"


def test_loss_falls_and_history_is_plain_data():
    _, history = fit(loop=LoopSettings(max_epochs=12, batch_size=8, learning_rate=2e-3))
    assert history[-1]["loss"] < history[0]["loss"]
    assert all(type(value) is float for record in history for value in record.values())
    assert {"epoch", "loss", "cross_entropy", "code", "reconstruction"} <= set(history[0])
    assert ["validation_loss" in record for record in history[:4]] == [False, True, False, True]


def test_no_global_state_is_changed():
    torch.manual_seed(11)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    n_threads, environment = torch.get_num_threads(), dict(os.environ)
    fit(Execution(device="cpu", n_threads=n_threads + 1), LoopSettings(max_epochs=1, batch_size=8))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.get_num_threads() == n_threads
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert dict(os.environ) == environment


@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_training_has_gradients_though_the_caller_has_none(without_gradients):
    with without_gradients():
        network, history = fit()
        objective = SourceObjective(new_network())  # of tensors that no gradient may enter
        run = {"rows": rows(24, 0), "validation": rows(12, 1), "settings": LOOP, "seed": 0, "phase": "source"}
        trained = train(objective, execution=CPU, **run)
        assert not torch.is_grad_enabled()
    straight, straight_history = fit()
    assert history == straight_history
    assert same(network, straight)
    assert not any(tensor.is_inference() for tensor in (*network.state_dict().values(), *trained.weights.values()))


class Interrupted(Exception):
    pass


class DiesInEpoch(SourceObjective):
    """Raises at the first training batch of a given epoch (3 batches an epoch)."""

    def __init__(self, network: Network, epoch: int) -> None:
        super().__init__(network)
        self.calls_left = 3 * epoch

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        if self.training:
            self.calls_left -= 1
            if self.calls_left < 0:
                raise Interrupted
        return super().forward(batch)


class WithScale(SourceObjective):
    """One parameter more, exempt from weight decay."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.scale = nn.Parameter(torch.ones(1))

    def undecayed(self) -> list[nn.Parameter]:
        return [self.scale]


def test_weight_decay_exempts_what_the_objective_names_and_skips_what_is_frozen():
    objective = WithScale(new_network())
    objective.network.decoder.requires_grad_(False)
    groups = new_optimizer(objective, LoopSettings(weight_decay=0.3)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert groups[1]["params"] == [objective.scale]
    frozen = {id(parameter) for parameter in objective.network.decoder.parameters()}
    assert not frozen & {id(parameter) for parameter in groups[0]["params"]}


def test_all_epochs_and_the_last_weights_if_asked():
    """Validated on wrong labels, it grows worse the more it learns."""
    loop = LoopSettings(max_epochs=5, batch_size=8, patience=1, check_every=1, learning_rate=1e-2, keep="last")
    train_rows = rows(24, 0)
    wrong = {**train_rows, "y": (train_rows["y"] + 1) % SETTINGS.n_classes}
    trained = train(SourceObjective(new_network()), train_rows, wrong, loop, CPU, seed=0, phase="source")
    losses = [record["validation_loss"] for record in trained.history]
    assert len(losses) == 5
    assert min(losses) < losses[-1], "the last is not the best here"
    kept = SourceObjective(new_network())
    kept.load_state_dict(trained.weights)
    assert kept.eval().risk(wrong).item() == pytest.approx(losses[-1])


class CountsEpochs(SourceObjective):
    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.register_buffer("started", torch.zeros(0))

    def start_epoch(self, epoch: int) -> None:
        self.started = torch.cat([self.started, torch.tensor([float(epoch)])])


def test_epochs_are_announced():
    loop = LoopSettings(max_epochs=3, batch_size=8, keep="last")
    trained = train(CountsEpochs(new_network()), rows(24, 0), rows(12, 1), loop, CPU, seed=0, phase="source")
    assert trained.weights["started"].tolist() == [0, 1, 2]


def new_network() -> Network:
    torch.manual_seed(0)
    return Network(SETTINGS)


@pytest.mark.parametrize("epoch", [0, 1, 2, 5])
def test_interrupted_and_resumed_equals_never_interrupted(tmp_path, epoch):
    run = {"rows": rows(24, 0), "validation": rows(12, 1), "settings": LOOP, "seed": 0, "phase": "source"}
    straight = train(SourceObjective(new_network()), execution=CPU, **run)
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    with pytest.raises(Interrupted):
        train(DiesInEpoch(new_network(), epoch), execution=saving, **run)
    resumed = train(SourceObjective(new_network()), execution=saving, **run)
    assert resumed.history == straight.history
    assert all(torch.equal(resumed.weights[name], straight.weights[name]) for name in straight.weights)


@pytest.mark.slow  # a killed benchmark, which goes on in the same way, is among the fast ones
def test_killed_process_resumes_bit_for_bit(tmp_path):
    """A real SIGKILL in the middle of training, in another process."""
    script = Path(__file__).with_name("train_until_killed.py")
    killed = subprocess.run([sys.executable, script, str(tmp_path)], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert list(tmp_path.glob("source-*.ckpt"))
    resumed, history = fit(Execution(device="cpu", checkpoint_dir=tmp_path))
    straight, straight_history = fit()
    assert same(resumed, straight)
    assert history == straight_history


def test_finished_training_is_not_repeated(tmp_path):
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    first, _ = fit(saving)
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    again, _ = fit(saving)
    assert same(first, again)
    assert path.stat().st_mtime_ns == written


def test_another_job_has_a_checkpoint_of_its_own(tmp_path):
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    fit(saving)
    other, _ = fit(saving, seed=1)
    assert len(list(tmp_path.iterdir())) == 2
    assert same(other, fit(seed=1)[0])


def test_a_training_that_another_version_began_restarts(tmp_path, monkeypatch):
    """Its weights are not mixed with ours."""
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    with monkeypatch.context() as before:
        before.setattr(transpl.nn.loop, "__version__", "0.0.1")
        before.setattr(SourceObjective, "risk", lambda self, batch: torch.zeros(()))
        fit(saving)
    resumed, history = fit(saving)
    straight, straight_history = fit()
    assert same(resumed, straight)
    assert history == straight_history


def test_damaged_checkpoint_is_refused_in_one_line(tmp_path):
    saving = Execution(device="cpu", checkpoint_dir=tmp_path)
    fit(saving)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UnreadableFile, match="damaged checkpoint") as caught:
        fit(saving)
    assert "\n" not in str(caught.value)


def test_early_stopping_restores_the_best_weights():
    class Falling(Objective):
        """Risk is (w + 1)^2 while training pushes w up: the first check is the best."""

        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.zeros(()))

        def forward(self, batch: Rows) -> dict[str, Tensor]:
            return {"loss": -self.w}

        def risk(self, batch: Rows) -> Tensor:
            return (self.w + 1).square()

        def identity(self) -> str:
            return "falling"

    settings = LoopSettings(max_epochs=50, check_every=1, patience=3, learning_rate=0.1)
    trained = train(Falling(), rows(8, 0), rows(4, 1), settings, CPU, seed=0, phase="test")
    assert len(trained.history) == 4
    assert trained.weights["w"].item() == pytest.approx(0.1, abs=1e-3)


def test_warm_up_is_linear():
    class Linear(Objective):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.zeros(()))

        def forward(self, batch: Rows) -> dict[str, Tensor]:
            return {"loss": self.w}

        def risk(self, batch: Rows) -> Tensor:
            return self.w

        def identity(self) -> str:
            return "linear"

    # Adam moves a constant gradient by the learning rate: 0.25 + 0.5 + 0.75 + 1 + 1 times 0.1, no decay.
    settings = LoopSettings(max_epochs=5, batch_size=8, learning_rate=0.1, weight_decay=0.0, warmup_steps=4)
    trained = train(Linear(), rows(8, 0), rows(4, 1), settings, CPU, seed=0, phase="test")
    assert trained.weights["w"].item() == pytest.approx(-0.35, abs=1e-4)


def test_divergence_says_what_to_do():
    with pytest.raises(TrainingDiverged, match="Lower the learning rate"):
        fit(loop=LoopSettings(learning_rate=1e30, batch_size=8))


def test_values_that_overflow_the_network_are_refused():
    data = rows(8, 0)
    data["x"] = data["x"] * 1e30
    with pytest.raises(InputError, match=r"^X: expected values of moderate size"):
        train_network(SETTINGS, data, rows(4, 1), LOOP, CPU, seed=0)


@pytest.mark.parametrize("field", ["batch_size", "max_epochs", "check_every", "patience", "learning_rate"])
def test_impossible_settings_are_named(field):
    with pytest.raises(InputError, match="expected"):
        LoopSettings(**{field: 0})


def test_training_on_two_processes_returns_a_trained_network_and_leaves_all_else_alone():
    objective, environment = SourceObjective(new_network()), dict(os.environ)
    before = {name: tensor.clone() for name, tensor in objective.state_dict().items()}
    run = {"rows": rows(24, 0), "validation": rows(12, 1), "settings": LOOP, "seed": 0, "phase": "source"}
    pair = train(objective, execution=Execution(device="cpu", devices=2), **run)
    assert dict(os.environ) == environment
    alone = train(objective, execution=CPU, **run)
    assert all(torch.equal(tensor, before[name]) for name, tensor in objective.state_dict().items())
    assert len(pair.history) == len(alone.history) == LOOP.max_epochs
    assert pair.history[-1]["loss"] < pair.history[0]["loss"]
    assert pair.history[-1]["validation_loss"] == pytest.approx(alone.history[-1]["validation_loss"], rel=0.2)


class HasARunningStatistic(SourceObjective):
    """Its risk is a buffer that every rank moves by its own rows."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        self.seen = batch["x"].mean()
        return super().forward(batch)

    def risk(self, batch: Rows) -> Tensor:
        return self.seen


def _books_of_all_ranks(fabric) -> dict[str, np.ndarray]:
    torch.manual_seed(fabric.global_rank)  # ranks that start apart must end together
    run = _Run(SourceObjective(Network(SETTINGS)), rows(24, 0), rows(12, 1), LOOP, CPU, None, 0, "source")
    weights, _, _ = _train_on_rank(fabric, run)
    books = {name: torch.from_numpy(array) for name, array in weights.items() if name.endswith(".vectors")}
    return {name: fabric.all_gather(book).numpy() for name, book in books.items()}


def _risks_of_all_ranks(fabric) -> np.ndarray:
    settings = LoopSettings(max_epochs=2, batch_size=8, check_every=1)
    run = _Run(HasARunningStatistic(new_network()), rows(24, 0), rows(12, 1), settings, CPU, None, 0, "source")
    _, history, _ = _train_on_rank(fabric, run)
    return fabric.all_gather(torch.tensor([record["validation_loss"] for record in history])).numpy()


def _seen_by_all_ranks(fabric) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return _books_of_all_ranks(fabric), _risks_of_all_ranks(fabric)


@pytest.fixture(scope="module")
def seen_by_all_ranks():
    """Two processes take long to start: they are started once for both tests."""
    with restored_environment():
        return Execution(device="cpu", devices=2).fabric().launch(_seen_by_all_ranks)


@pytest.mark.slow  # starts two processes once more
def test_two_processes_end_with_the_same_codebooks(seen_by_all_ranks):
    gathered, _ = seen_by_all_ranks
    assert set(gathered) == {"network.quantizer.coarse.vectors", "network.quantizer.fine.vectors"}
    for books in gathered.values():
        assert books.shape[0] == 2
        assert np.array_equal(books[0], books[1])


@pytest.mark.slow
def test_two_processes_decide_alike_though_their_running_statistics_differ(seen_by_all_ranks):
    _, risks = seen_by_all_ranks
    assert risks.shape == (2, 2)
    assert np.array_equal(risks[0], risks[1])


STATE = {"weights": {"w": torch.arange(3.0)}, "epoch": 4}


@pytest.fixture
def checkpoint(tmp_path) -> Checkpoint:
    return Checkpoint(tmp_path, "source", fingerprint("a job", rows=[]))


def test_a_saved_state_can_be_loaded(checkpoint, caplog):
    assert checkpoint.load() is None
    checkpoint.save(STATE)
    found = checkpoint.load()
    assert found["epoch"] == 4
    assert torch.equal(found["weights"]["w"], STATE["weights"]["w"])
    assert not caplog.messages


@pytest.mark.parametrize("change", [{"transpl": "0.0.1"}, {"torch": "1.0"}], ids=str)
def test_a_checkpoint_of_another_version_is_ignored_with_a_warning(checkpoint, caplog, change):
    caplog.set_level(logging.WARNING, logger="transpl.nn.loop")
    versions = {**checkpoint.header["versions"], **change}
    torch.save({**checkpoint.header, "versions": versions, **STATE}, checkpoint.path)
    assert checkpoint.load() is None
    (message,) = caplog.messages
    assert str(checkpoint.path) in message
    checkpoint.save({**STATE, "epoch": 1})
    assert checkpoint.load()["epoch"] == 1


def test_a_checkpoint_of_a_format_without_versions_is_ignored(checkpoint, caplog):
    old = {"format": "transpl-checkpoint-1", "fingerprint": checkpoint.header["fingerprint"], **STATE}
    torch.save(old, checkpoint.path)
    assert checkpoint.load() is None
    assert len(caplog.messages) == 1


def test_a_file_of_another_job_under_this_name_is_refused(checkpoint, tmp_path):
    other = Checkpoint(tmp_path, "source", fingerprint("another job", rows=[]))
    other.save(STATE)
    other.path.rename(checkpoint.path)
    with pytest.raises(UnreadableFile, match="damaged checkpoint"):
        checkpoint.load()


def test_stops_after_patience_checks_without_gain_and_keeps_the_best():
    stopping = EarlyStopping(patience=2)
    for epoch, loss in enumerate([3.0, 2.0, 2.5, 2.0]):
        assert not stopping.exhausted
        stopping.update(loss, {"w": torch.tensor([float(epoch)])})
    assert stopping.exhausted
    assert stopping.best == 2.0
    assert stopping.best_weights["w"].item() == 1.0


def test_a_gain_resets_the_count():
    stopping = EarlyStopping(patience=2)
    for loss in [3.0, 4.0, 2.0, 4.0]:
        stopping.update(loss, {})
    assert not stopping.exhausted


def test_a_training_of_fixed_length_never_stops_and_keeps_the_last():
    stopping = EarlyStopping(patience=1, keep="last")
    for epoch, loss in enumerate([1.0, 2.0, 3.0]):
        stopping.update(loss, {"w": torch.tensor([float(epoch)])})
    assert not stopping.exhausted
    assert stopping.best_weights["w"].item() == 2.0


def test_kept_weights_do_not_follow_later_training():
    stopping, weight = EarlyStopping(patience=1), torch.zeros(1)
    stopping.update(1.0, {"w": weight})
    weight += 5
    assert stopping.best_weights["w"].item() == 0.0
