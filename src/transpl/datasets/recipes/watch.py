"""Shoulder exercises on a smartwatch: real recordings of ten people that `pip install "transpl[watch]"` brings.

The recordings are part of the package seglearn (BSD-3; Burns et al. 2018, arXiv:1802.01489). It is never imported; its
one data file is read here. 140 recordings of 19 to 52 seconds at 50 Hz: 10 people x 7 exercises
x 2 arms, 20 repetitions each. Windows of 128 samples (2.56 s), one every 64: 3,605.

Domains   the people, 1 to 10 as in the file.
Classes   pendulum (PEN), abduction (ABD), forward elevation (FEL), internal and external rotation with a band
          (IR, ER), lower trapezius row (TRAP), bent-over row (ROW).
Channels  ax ay az: acceleration with gravity, in g (the norm has mean 1.15, peaks near 7.5).
          wx wy wz: angular velocity, in rad/s (standard deviations 1.0, 2.5, 1.1; peaks near 29).
          The file names no units; these are judged by size. Nothing is scaled or centred.

Split     by recording: the left arm's recordings train, the right arm's test (46-50 % of each person's windows).
          A person has only two recordings of an exercise, one per arm. So with every class in both parts, a split by
          recording either sets arm against arm or mixes the arms over the exercises; in the latter case the arm would
          reveal the class in train and mislead in test.
Mirror    a watch on the other wrist is turned round, so left and right differ like an image and its reflection: ax, wy
          and wz change sign (mean ax of PEN: +1.0 g left, -1.1 g right, alike in all ten people). That shift is known
          and is not between people, so by default the right arm is mirrored into the left arm's frame. With
          `mirror=False` the values of the file stay, and each person's test part is a reflection of the train part
          (logistic regression within a person: 83 % mirrored, 72 % not).

Pairs     person i and the person six further on, i -> i + 6, counting round: everyone is source once and target
          once. Steps of 1 and 9 would pair people who exercised at the same pace (1-2, 3-4, 5-6, 8-9). Of the other
          steps, 3, 4 and 6 keep all ten pairs between 40 and 85 % for a logistic regression on means, spreads,
          quantiles and spectra, fitted to the source's train and scored on the target's test part; 6 spreads the
          ten most (45-81 %, mean 66 %; within a person 83 %; over all ordered pairs 67 %). No adaptation method
          was run to choose them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from transpl._utils.errors import unreadable_file
from transpl._utils.hashing import hash_file
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pickles import read_pickled_npy
from transpl.windows import cut

LENGTH, STEP = 128, 64
PAIRS = tuple((i, (i + 5) % 10 + 1) for i in range(1, 11))  # i -> i + 6, counting round
SHA256 = "eb122f23cdf06ef6bd6c6c5312958ec5cf9d038e2e6d457b8081662c75a42537"  # the file in seglearn 1.2.5
_INSTALL = 'Install it with: pip install "transpl[watch]"'
_LEFT = 0
_MIRROR = np.array([-1, 1, 1, 1, -1, -1], np.float32)  # reflection in x; angular velocity is a pseudovector


def load_watch(*, mirror: bool = True) -> Dataset:
    """Build the data set from the installed file; `mirror=False` leaves the right arm in its own frame."""
    return from_file(watch_file(), mirror=mirror)


def watch_available() -> bool:
    """Tell whether the package with the recordings is installed."""
    return importlib.util.find_spec("seglearn") is not None


def watch_file() -> Path:
    """Return where seglearn's data file is, without importing seglearn."""
    spec = importlib.util.find_spec("seglearn")
    if spec is None or not spec.submodule_search_locations:
        raise unreadable_file(
            "watch", problem="its recordings come with seglearn, which is not installed", advice=_INSTALL
        )
    return Path(spec.submodule_search_locations[0]) / "data" / "watch_dataset.npy"


def from_file(path: Path, *, mirror: bool = True) -> Dataset:
    """Build the data set from `path`, which must be exactly the file that this module was written for."""
    if not path.is_file():
        raise unreadable_file(path, problem="no such file, though seglearn is installed", advice=_INSTALL)
    if (found := hash_file(path)) != SHA256:
        problem = f"another version of the recordings (SHA-256 {found[:12]}..., expected {SHA256[:12]}...)"
        raise unreadable_file(path, problem=problem, advice='Install the known one with: pip install "seglearn==1.2.5"')
    file: dict[str, Any] = read_pickled_npy(path)
    right = np.asarray(file["side"]) != _LEFT
    windows = []
    for series, is_right in zip(file["X"], right, strict=True):  # (time, channels)
        cut_series = cut(series.T, LENGTH, STEP).windows
        windows.append(cut_series * _MIRROR[:, None] if mirror and is_right else cut_series)
    counts = [len(each) for each in windows]
    return Dataset(
        name="watch",
        X=np.concatenate(windows),
        y=np.repeat(file["y"], counts),
        domain_ids=np.repeat(file["subject"], counts),
        split=np.repeat(np.where(right, TEST, TRAIN), counts),
        class_names=tuple(file["y_labels"]),
        channel_names=tuple(file["X_labels"]),
        pairs=PAIRS,
    )
