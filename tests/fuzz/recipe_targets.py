"""The readers of the raw files of public data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from driver import target

from transpl.datasets.recipes import hhar, ptb_beats, ucihar, wisdm


def write_ucihar(folder: Path) -> None:
    """Two people, one per part, with six windows each."""
    rng = np.random.default_rng(0)
    for person, part in enumerate(("train", "test"), start=1):
        np.savetxt(folder / f"y_{part}.txt", np.arange(6) % 2 + 1, fmt="%d")
        np.savetxt(folder / f"subject_{part}.txt", np.full(6, person), fmt="%d")
        for channel in ucihar.CHANNELS:
            np.savetxt(folder / f"{channel}_{part}.txt", rng.normal(size=(6, ucihar.LENGTH)), fmt="%.3f")


def write_wisdm(folder: Path) -> None:
    lines = [f"{1 + i // 280},Walking,{10**12 + 50_000_000 * i},{i % 7}.5,0.1,-9.8;" for i in range(560)]
    (folder / wisdm.RAW_FILE).write_text("\n".join(lines) + "\n", encoding="latin1")


def write_hhar(folder: Path) -> None:
    head = "Index,Arrival_Time,Creation_Time,x,y,z,User,Model,Device,gt"
    lines = [f"{i},{10**12 + 7 * i},0,{i % 7}.5,0.1,-9.8,{'ab'[i // 280]},s3,s3_1,walk" for i in range(560)]
    (folder / hhar.RAW_FILE).write_text("\n".join([head, *lines]) + "\n", encoding="latin1")


def write_ptb(folder: Path) -> None:
    """One record of two seconds: 16-bit samples, twelve leads in .dat and three in .xyz."""
    home = folder / "patient001"
    home.mkdir()
    samples = np.random.default_rng(0).integers(-1000, 1000, (2000, len(ptb_beats.LEADS))).astype("<i2")
    (home / "s0001.dat").write_bytes(samples[:, :12].tobytes())
    (home / "s0001.xyz").write_bytes(samples[:, 12:].tobytes())
    lines = ["s0001 15 1000 2000"]
    for i, (lead, name) in enumerate(zip(samples.T.astype(int), ptb_beats.LEADS, strict=True)):
        checksum = (lead.sum() + 32768) % 65536 - 32768
        lines.append(f"s0001.{'dat' if i < 12 else 'xyz'} 16 2000 16 0 {lead[0]} {checksum} 0 {name}")
    lines += ["# age: 35", "# Reason for admission: Healthy control", ""]
    (home / "s0001.hea").write_text("\n".join(lines), encoding="latin1")


@target("ucihar", write=write_ucihar)
def build_ucihar(folder: Path) -> None:
    ucihar.build(folder, lambda _: None)


@target("wisdm", write=write_wisdm)
def build_wisdm(folder: Path) -> None:
    wisdm.build(folder, lambda _: None)


@target("hhar", write=write_hhar)
def build_hhar(folder: Path) -> None:
    hhar.build(folder, lambda _: None)


@target("ptb", write=write_ptb)
def read_ptb(folder: Path) -> None:
    for header in ptb_beats.selected(ptb_beats.read_headers(folder)):
        ptb_beats.beats_of(header, "consensus", None)
