"""Models in several threads of one process: the numbers of a lone run, and a process that stays as it was."""

from __future__ import annotations

import logging
import os
import random
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves
from threadpoolctl import threadpool_info

import transpl
from transpl import TransPL

N_THREADS = 4
CPU_THREADS = (1, None, 2, None)
SETTINGS = {"plus": {"witnesses": ["codes", "linear"]}, "paper": {**TINY, "max_epochs": 2}}


def state_of_the_process():
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "random": random.getstate(),
        "threads of torch": torch.get_num_threads(),
        "threads of libraries": [(each["filepath"], each["num_threads"]) for each in threadpool_info()],
        "gradients": torch.is_grad_enabled(),
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "logging": logging.getLogger("lightning_fabric").level,
        "error state": np.geterr(),
    }


def answers(settings, seed):
    """All that is computed by a model of this seed, which has its own data."""
    source, target = make_waves(24, seed=seed), make_waves(16, seed=seed + 10, gain=1.5, offset=0.3)
    model = TransPL(**settings, random_state=seed).fit(*source).adapt(target[0])
    found = [model.predict_proba(target[0]), model.pseudo_label(target[0]).probabilities, model.channel_distances_]
    return [array.tobytes() for array in found]


@pytest.mark.parametrize("variant", SETTINGS)
def test_models_in_four_threads_give_the_numbers_of_a_lone_run(variant):
    jobs = [({**SETTINGS[variant], "n_threads": n}, seed) for seed, n in enumerate(CPU_THREADS)]
    alone = [answers(*job) for job in jobs]
    before = state_of_the_process()
    with ThreadPoolExecutor(N_THREADS) as threads:
        together = list(threads.map(lambda job: answers(*job), jobs))
    after = state_of_the_process()
    assert together == alone
    assert len({tuple(each) for each in alone}) == N_THREADS, "every model has its own numbers"
    assert after == before


def test_whatever_changes_the_process_holds_the_lock():
    """Filters of warnings and the umask are the process's; two threads that change and restore them mix them up."""
    root = Path(transpl.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text()
        for block in re.findall(r"([^\n]*\n[^\n]*)warnings\.catch_warnings\(", text):
            assert re.search(r"process_state,\s*\Z", block), f"{path}: {block}"
        for name in ("os.umask(", "os.chdir(", "np.random.seed(", "np.seterr(", "random.seed("):
            assert name not in text, f"{path}: {name}"
