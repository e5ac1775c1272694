"""Run all benchmarks on one thread, print a table, write benchmarks/out/bench.json."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks import scale, speed
from transpl._utils.files import write_json

OUT = Path(__file__).parent / "out" / "bench.json"


def main() -> None:
    torch.set_num_threads(1)
    results = {**speed.measure_steps(), **speed.measure_labelling(), **scale.run()}
    for name, value in results.items():
        print(f"{name:<26}{value:10.3f}")
    write_json(OUT, results)
    print(f"wrote {OUT.relative_to(Path.cwd())}" if OUT.is_relative_to(Path.cwd()) else f"wrote {OUT}")


if __name__ == "__main__":
    main()
