"""Without the extra `deep`: everything but networks imports and runs, and what needs torch says so in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import TINY, make_waves

from transpl import TransPL

LIGHT = [f"transpl.{name}" for name in ("windows", "markov", "council", "methods", "methods.registry", "estimator")]
LIGHT += [f"transpl.{name}" for name in ("datasets", "benchmark", "jobs", "report", "report.plots", "cli")]
NAMES = ("AdaptedTarget", "Drift", "Explanation", "InputError", "PseudoLabels", "ShiftReport", "TransPL", "adapt_many")

BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lightning_fabric"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
"""
COMMAND = "from transpl.cli import main; sys.argv[1:] = {words!r}; main()"


def run(code: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python in which torch cannot be imported."""
    environment = {**os.environ, "TRANSPL_DATA": str(folder)} if folder else None
    command = [sys.executable, "-c", BLOCKED + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def only_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


def test_all_that_is_light_imports():
    done = run(
        f"import importlib\nfor name in {LIGHT!r}: importlib.import_module(name)\n"
        f"from transpl import {', '.join(NAMES)}, datasets\n"
        "assert not {'torch', 'lightning_fabric'} & set(sys.modules)"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--help"], "adapt"),
        (["adapt", "--help"], "--target"),
        (["datasets", "list"], "ucihar"),
        (["methods"], "deepcoral"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_commands_that_need_no_network_run(words, said, tmp_path):
    done = run(COMMAND.format(words=words), tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--variant", "paper", "--dataset", "synthetic"],
        ["methods", "deepcoral"],
        ["bench", "--dataset", "synthetic", "--methods", "transpl"],
        ["figure", "codes", "."],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_need_torch_say_what_to_install(words, tmp_path):
    done = run(f"import os; os.chdir({str(tmp_path)!r})\n" + COMMAND.format(words=words))
    assert done.returncode == 2
    line = only_line(done.stderr)
    assert line.startswith("error: ")
    assert line.endswith('pip install "transpl[deep]"')


def test_the_papers_variant_says_what_to_install(tmp_path):
    X, y = make_waves(20, 0)
    TransPL(**{**TINY, "max_epochs": 1}).fit(X, y).save(tmp_path)
    for code in (
        "TransPL(variant='paper').fit([[0.0] * 32] * 4, [0, 1, 0, 1])",
        "TransPL(variant='paper').check_parameters()",
        f"TransPL.load({str(tmp_path)!r})",
    ):
        done = run(f"from transpl import TransPL\ntry: {code}\nexcept ValueError as error: print(error)")
        line = only_line(done.stdout)
        assert line.startswith("variant='paper': ")
        assert line.endswith('pip install "transpl[deep]"')


ROOT = Path(__file__).parents[1]
MAIN_JOB = [  # what a newcomer does
    ["adapt", "--source", "lab.npz", "--target", "home.npz", "--out", "out"],
    ["predict", "--model", "out", "--input", "home.npz", "--out", "labels.csv"],
    ["report", "out"],
]


@pytest.fixture
def recordings(tmp_path):
    for name, (X, y) in {"lab": make_waves(30, 0), "home": make_waves(20, 1, gain=1.5)}.items():
        np.savez(tmp_path / f"{name}.npz", X=X, y=y, channel_names=np.array(["ax", "ay"]))
    return tmp_path


def check_results(folder: Path) -> None:
    told = pd.read_csv(folder / "out" / "predictions.csv").drop(columns=["label_before", "truth"])
    pd.testing.assert_frame_equal(pd.read_csv(folder / "labels.csv"), told)
    for name in ("report.html", "metrics.json", "model/model.json"):
        assert (folder / "out" / name).is_file()


def test_the_main_job_runs(recordings):
    for words in MAIN_JOB:
        done = run(f"import os; os.chdir({str(recordings)!r})\n" + COMMAND.format(words=words))
        assert done.returncode == 0, done.stderr
    check_results(recordings)


@pytest.mark.slow
def test_the_wheel_alone_does_the_main_job(recordings):
    """In an environment of its own, with what the wheel itself asks for and nothing else."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(recordings), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = recordings.glob("*.whl")
    home = recordings / "environment"
    venv.create(home, with_pip=True)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    subprocess.run(pip, check=True, timeout=1800)
    absent = subprocess.run([home / "bin" / "python", "-c", "import torch"], capture_output=True, check=False)
    assert absent.returncode == 1
    for words in MAIN_JOB:
        command = [home / "bin" / "transpl", *words]
        done = subprocess.run(command, cwd=recordings, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    check_results(recordings)
