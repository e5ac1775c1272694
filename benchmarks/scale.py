"""How time and memory grow with windows, channels, classes, codes and domains; and how long `--help` takes.

python -m benchmarks.scale            everything that `make bench` takes from here
python -m benchmarks.scale domains    1, 10, 100 and 1000 target domains, seconds per stage

Seconds are CPU seconds, which other work on the machine hardly disturbs; only `import_seconds` and `help_seconds` are
wall-clock time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from transpl import TransPL
from transpl.jobs import label_windows
from transpl.markov import TransitionCounts, label_probabilities, log_likelihoods
from transpl.methods import TransPLMethod
from transpl.windows import CHUNK, as_windows

CHANNELS, TIME, PATCHES, CLASSES, CODES = 9, 128, 16, 6, 8
SHAPE = {"windows": 20_000, "channels": CHANNELS, "classes": CLASSES, "codes": CODES}
WINDOWS_PER_DOMAIN = 16


def run() -> dict[str, float]:
    sizes = (10**3, 10**4, 10**5, 10**6)
    seconds = seconds_over("windows", sizes)
    results = {
        "growth_exponent": exponent(sizes, seconds),
        "label_1e6_seconds": seconds[-1],
        "growth_channels": growth("channels", (2, 4, 8, 16, 32)),
        "growth_classes": growth("classes", (2, 4, 8, 16, 32)),
        "growth_codes": growth("codes", (4, 8, 16, 32, 64)),
        "count_1e8_seconds": count_1e8(),
    }
    with tempfile.TemporaryDirectory() as folder:
        results |= streaming(Path(folder), (CHUNK // 4, CHUNK, 8 * CHUNK))
    results |= {
        "import_seconds": waiting("-c", "import transpl"),
        "help_seconds": waiting("-m", "transpl.cli.main", "--help"),
    }
    return results


def growth(axis: str, sizes: tuple[int, ...]) -> float:
    """The power of `axis` with which the time to count and label grows."""
    return exponent(sizes, seconds_over(axis, sizes))


def seconds_over(axis: str, sizes: tuple[int, ...]) -> list[float]:
    return [fastest(counting_and_labelling(**{**SHAPE, axis: size})) for size in sizes]


def counting_and_labelling(windows: int, channels: int, classes: int, codes: int) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    s = rng.integers(0, codes, (windows, channels, PATCHES), dtype=np.int8)
    known = rng.integers(0, codes, (200, channels, PATCHES))
    class_counts = TransitionCounts.from_codes(known, codes, rng.integers(0, classes, 200), classes)

    def count_and_label() -> None:
        TransitionCounts.from_codes(s, codes)
        for first in range(0, windows, CHUNK):
            label_probabilities(log_likelihoods(s[first : first + CHUNK], class_counts), np.ones(channels))

    return count_and_label


def count_1e8() -> float:
    """Seconds to count 10^8 transitions of 9 channels."""
    windows = -(-(10**8) // (CHANNELS * (PATCHES - 1)))
    s = np.random.default_rng(0).integers(0, CODES, (windows, CHANNELS, PATCHES), dtype=np.int8)
    return fastest(lambda: TransitionCounts.from_codes(s, CODES))


def streaming(folder: Path, sizes: tuple[int, ...]) -> dict[str, float]:
    """Label files of windows as new target domains, each in a process of its own."""
    quick_model().save(folder / "model")
    seconds, peaks = zip(*(stream_in_child(folder, n) for n in sizes), strict=True)
    return {
        "growth_streaming": exponent(sizes, seconds),
        "windows_per_second": sizes[-1] / seconds[-1],
        "peak_mb": peaks[-1],
        "peak_growth_mb": peaks[-1] - peaks[-2],
    }


def stream_in_child(folder: Path, n: int) -> tuple[float, float]:
    write_walks(folder / f"{n}.npy", n)
    words = [sys.executable, "-m", "benchmarks.scale", "stream", folder / "model", folder / f"{n}.npy", folder / str(n)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    (folder / f"{n}.npy").unlink()
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def stream(model: str, windows: str, out: str) -> None:
    """Print CPU seconds, and by how many MB the process at its peak is above what it is with all libraries loaded.

    All resident memory counts, mapped files too: the windows are mapped one chunk at a time.
    """
    torch.set_num_threads(1)
    fitted = TransPL.load(model)
    label_windows(fitted, np.load(windows, mmap_mode="r")[:64], f"{out}-first", adapt=True)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak; ru_maxrss would include our parent
    before, start = memory_mb("VmRSS"), time.process_time()
    label_windows(fitted, windows, out, adapt=True)
    print(time.process_time() - start, memory_mb("VmHWM") - before)


def domains(numbers: Iterable[int] = (1, 10, 100, 1000)) -> None:
    """Adapt one model to so many small target domains in turn; prints CPU seconds per stage."""
    torch.set_num_threads(1)
    method = quick_model().fitted_method()
    print(f"domains of {WINDOWS_PER_DOMAIN} windows   encode    count    align    label     save    total  bytes each")
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            seconds, size = adapt_to_domains(method, number, Path(folder))
        columns = "".join(f"{value:9.3f}" for value in (*seconds, sum(seconds)))
        print(f"{number:>21}{columns}{size:12.0f}", flush=True)


def adapt_to_domains(method: TransPLMethod, number: int, folder: Path) -> tuple[list[float], float]:
    """CPU seconds of each stage, and the mean size of a file of counts."""
    seconds, sizes = np.zeros(5), []
    for d in range(number):
        windows = as_windows(walks(WINDOWS_PER_DOMAIN, seed=d))
        moments = [time.process_time()]
        codes = method.codes(windows)
        moments.append(time.process_time())
        counts = method.count_codes(codes)
        moments.append(time.process_time())
        label = method.vote(replace(method.state.unadapted(), target_counts=counts))
        moments.append(time.process_time())
        label(codes)
        moments.append(time.process_time())
        counts.save(folder / f"{d}.npz")
        moments.append(time.process_time())
        seconds += np.diff(moments)
        sizes.append((folder / f"{d}.npz").stat().st_size)
    return seconds.tolist(), float(np.mean(sizes))


def quick_model() -> TransPL:
    """The paper's method after one epoch: its speed is that of a good one. Wide `sigma`: no channel is given up."""
    X = walks(64, seed=0)
    return TransPL(variant="paper", max_epochs=1, device="cpu", n_threads=1, sigma=10.0).fit(X, np.arange(64) % CLASSES)


def walks(n: int, seed: int) -> np.ndarray:
    steps = np.random.default_rng(seed).standard_normal((n, CHANNELS, TIME), dtype=np.float32)
    return steps.cumsum(axis=2) / np.float32(8)


def write_walks(path: Path, n: int) -> None:
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, CHANNELS, TIME))
    for first in range(0, n, CHUNK):
        file[first : first + CHUNK] = walks(min(CHUNK, n - first), seed=first)
    file.flush()


def waiting(*words: str) -> float:
    """Median seconds on the clock of five Python processes."""
    start_python = partial(subprocess.run, [sys.executable, *words], check=True, capture_output=True)
    return float(np.median([once(start_python, time.perf_counter) for _ in range(5)]))


def once(task: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    task()
    return clock() - start


def fastest(task: Callable[[], object], budget: float = 1.0) -> float:
    """The shortest of as many runs as fit into `budget` seconds, at least one."""
    seconds = [once(task)]
    while sum(seconds) < budget:
        seconds.append(once(task))
    return min(seconds)


def exponent(sizes: Iterable[int], seconds: Iterable[float]) -> float:
    """b of the line log seconds = a + b log size that fits best."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(seconds)), 1)[0])


def memory_mb(name: str) -> float:
    """A line of /proc/self/status: VmRSS is the resident memory now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def main(words: list[str]) -> None:
    if words[:1] == ["stream"]:
        stream(*words[1:])
    elif words == ["domains"]:
        domains()
    else:
        torch.set_num_threads(1)
        for name, value in run().items():
            print(f"{name:<26}{value:10.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
