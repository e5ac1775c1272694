import os

import pytest
import torch

from transpl._utils.errors import InputError
from transpl.nn.devices import Execution, cpu_threads, isolated_rng, resolve_device, restored_environment


def test_threads_are_restored_even_after_an_error():
    before = torch.get_num_threads()
    inside = []

    def fail():
        with cpu_threads(before + 1):
            inside.append(torch.get_num_threads())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert inside == [before + 1]
    assert torch.get_num_threads() == before


def test_none_leaves_threads_alone():
    before = torch.get_num_threads()
    with cpu_threads(None):
        assert torch.get_num_threads() == before


def test_callers_random_state_is_restored():
    before = torch.get_rng_state()
    with isolated_rng():
        torch.manual_seed(5)
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", 3])
def test_unknown_device_is_named(name):
    with pytest.raises(InputError, match=r"^device: expected"):
        Execution(device=name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_absent_cuda_is_said_plainly():
    with pytest.raises(InputError, match=r"there is no CUDA"):
        resolve_device("cuda")


@pytest.mark.parametrize("field", ["devices", "n_threads"])
def test_counts_must_be_positive(field):
    with pytest.raises(InputError, match=f"^{field}: expected"):
        Execution(**{field: 0})


def test_auto_finds_a_device():
    assert resolve_device("auto").type in {"cpu", "cuda", "mps"}
    assert Execution(device="cpu").fabric().world_size == 1


def test_the_environment_is_restored(monkeypatch):
    for name, value in (("TRANSPL_KEPT", "a"), ("TRANSPL_CHANGED", "b"), ("TRANSPL_DELETED", "c")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TRANSPL_NEW", raising=False)
    before = dict(os.environ)
    with restored_environment():
        os.environ["TRANSPL_CHANGED"] = "other"
        os.environ["TRANSPL_NEW"] = "d"
        del os.environ["TRANSPL_DELETED"]
    assert dict(os.environ) == before
