"""A tiny job through every front door: what it leaves behind, as plain values to compare with an earlier version.

python tests/golden/tiny_job.py write      write golden.json anew (after a change that is meant to change numbers)
python tests/golden/tiny_job.py digest     one hash per output: equal on one machine before and after a refactoring
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).with_name("golden.json")
CLASSES = ("rest", "wave")
NETWORK = {
    "patch_length": 4,
    "width": 16,
    "n_coarse": 4,
    "n_fine": 8,
    "n_layers": 1,
    "n_heads": 2,
    "max_epochs": 2,
    "batch_size": 16,
}


def recording(seed: int, gain: float) -> pd.DataFrame:
    """Two channels at 50 Hz; the class changes every 64 samples and sets the frequency."""
    rng = np.random.default_rng(seed)
    k = np.repeat(np.arange(40) % 2, 64)
    phase = np.cumsum(np.where(k == 1, 0.9, 0.25))
    signals = {
        "a": gain * np.sin(phase) + 0.1 * rng.normal(size=k.size),
        "b": gain * np.cos(1.3 * phase) + 0.1 * rng.normal(size=k.size),
    }
    table = pd.DataFrame({"t": np.arange(k.size) / 50, **signals}).round(4)
    return table.assign(activity=np.array(CLASSES)[k])


def adapt_job(folder: Path, variant: str) -> Path:
    """`transpl adapt` on two csv files; returns the folder of results."""
    source, target, out = folder / "lab.csv", folder / "home.csv", folder / variant
    recording(0, 1.0).to_csv(source, index=False)
    recording(1, 1.5).to_csv(target, index=False)
    options = ["--label-col", "activity", "--time-col", "t", "--window", "32", "--threads", "1", "--variant", variant]
    if variant == "paper":
        own = ("patch_length", "width", "max_epochs")  # options by name
        options += [f"--set={name}={value}" for name, value in NETWORK.items() if name not in own]
        options += ["--patch-length", "4", "--width", "16", "--epochs", "2"]
    arguments = ["adapt", "--source", str(source), "--target", str(target), "--out", str(out), *options]
    subprocess.run([sys.executable, "-m", "transpl.cli.main", *arguments], check=True, capture_output=True)
    return out


def method_results() -> dict[str, Any]:
    """Scores of every registered method on one tiny pair."""
    from transpl.benchmark import run_pair
    from transpl.datasets import make_shifted
    from transpl.methods import registry
    from transpl.nn import Execution

    data = make_shifted(n_train=24, n_test=15, length=32)
    names = [name for name in registry.names() if name != "transpl-plus-groups"]
    results = {}
    for result in run_pair(data, (0, 1), names, seed=0, execution=Execution(n_threads=1), changes=NETWORK):
        results[result.method] = {
            "error": result.error,
            "test": result.test,
            "pseudo_labels": result.pseudo_labels,
            "epochs": result.epochs,
        }
    return results


def adapt_results(variant: str) -> dict[str, Any]:
    """Tables, scores and the files of a model folder of a job."""
    with tempfile.TemporaryDirectory() as temporary:
        out = adapt_job(Path(temporary), variant)
        return {
            "files": sorted(file_name(path, out) for path in out.rglob("*") if path.is_file()),
            "predictions": pd.read_csv(out / "predictions.csv").to_dict(orient="list"),
            "predictions.csv sha256": sha256((out / "predictions.csv").read_bytes()),
            "weights sha256": [sha256(path.read_bytes()) for path in sorted((out / "model").glob("*.safetensors"))],
            "metrics": json.loads((out / "metrics.json").read_text()),
            "model.json keys": sorted(json.loads((out / "model" / "model.json").read_text())),
            "shift": json.loads((out / "shift.json").read_text()),
        }


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "methods": method_results,
    "adapt plus": partial(adapt_results, "plus"),
    "adapt paper": partial(adapt_results, "paper"),
}


def file_name(path: Path, folder: Path) -> str:
    """The path within the folder; weights are named by their hash, which differs from one kind of CPU to the next."""
    return re.sub(r"weights-[0-9a-f]+", "weights-HASH", str(path.relative_to(folder)))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digests(found: dict[str, Any]) -> dict[str, str]:
    """One hash per output, of its exact values."""
    parts = {**{f"method {name}": value for name, value in found["methods"].items()}}
    for job in ("adapt plus", "adapt paper"):
        parts |= {f"{job}: {name}": value for name, value in found[job].items()}
    return {name: sha256(json.dumps(value, sort_keys=True).encode())[:16] for name, value in parts.items()}


def main() -> None:
    found = {name: make() for name, make in PARTS.items()}
    if sys.argv[1:] == ["write"]:
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    for name, digest in digests(found).items():
        sys.stdout.write(f"{digest}  {name}\n")


if __name__ == "__main__":
    main()
