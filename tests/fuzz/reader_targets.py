"""The readers of recordings, windows, prepared data sets, other projects' files, archives and labels."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import tarfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
from driver import target
from rich.console import Console
from scipy.io import netcdf_file, savemat

from transpl._utils.errors import InputError
from transpl._utils.files import write_json
from transpl.datasets.card_page import write_card_page
from transpl.datasets.cards import Provenance, card_or_contents, card_path, make_card, refuse_second_scaling
from transpl.datasets.catalogue import card_text
from transpl.datasets.importers import import_files
from transpl.datasets.prepared import load_prepared, save_prepared
from transpl.datasets.recordings import read_recordings
from transpl.datasets.recordings.make import prepare_recordings
from transpl.datasets.unpack import unpacked
from transpl.jobs import folder as results
from transpl.jobs.file_check import check_files
from transpl.jobs.review import read_labels
from transpl.jobs.target_files import TargetFile
from transpl.windows import as_windows

ROLES = {"domain_col": "who", "label_col": "activity", "time_col": "t", "window": 8}


def table(n: int = 160) -> pd.DataFrame:
    """Two people doing two things; a clock, two channels and a column of dates."""
    rng, row = np.random.default_rng(0), np.arange(n)
    return pd.DataFrame(
        {
            "t": row * 0.02,
            "ax": np.sin(row).round(3),
            "ay": rng.normal(size=n).round(3),
            "who": np.where(row < n // 2, "ann", "bob"),
            "activity": np.where(row // 20 % 2, "walk", "run"),
            "date": pd.date_range("2020-01-01", periods=n, freq="20ms"),
        }
    )


def windows(n: int = 24) -> dict[str, np.ndarray]:
    """The arrays of a prepared data set of two domains."""
    row = np.arange(n)
    return {
        "X": np.random.default_rng(0).normal(size=(n, 2, 8)).astype(np.float32),
        "y": row % 2,
        "domain": row // (n // 2),
        "split": (row % 3 == 0).astype(np.int8),
        "class_names": np.array(["run", "walk"]),
        "channel_names": np.array(["ax", "ay"]),
        "group": row // 4,
        "pairs": np.array([[0, 1], [1, 0]]),
    }


def write_csv(folder: Path) -> None:
    table().to_csv(folder / "walk.csv", index=False)


def write_csv_gz(folder: Path) -> None:
    (folder / "walk.csv.gz").write_bytes(gzip.compress(table().to_csv(index=False).encode(), mtime=0))


def write_parquet(folder: Path) -> None:
    table().set_index("t").to_parquet(folder / "walk.parquet")


def write_dialect(folder: Path) -> None:
    table().to_csv(folder / "walk.tsv", index=False, sep="\t", decimal=",", encoding="cp1252")


def write_long(folder: Path) -> None:
    long = table().drop(columns="date").melt(["t", "who", "activity"], var_name="channel")
    long.to_csv(folder / "walk.csv", index=False, sep=";")


def write_feather(folder: Path) -> None:
    table().to_feather(folder / "walk.feather")


def write_matlab(folder: Path) -> None:
    savemat(folder / "walk.mat", {"trial": _columns()})
    savemat(folder / "cut.mat", {name: array for name, array in windows().items() if name != "pairs"})


def write_hdf5(folder: Path) -> None:
    with h5py.File(folder / "walk.h5", "w") as file:
        for name, column in _columns().items():
            file[f"trial/{name}"] = column
    with h5py.File(folder / "cut.h5", "w") as file:
        file.create_dataset("X", data=windows()["X"], compression="gzip")
        file["y"] = windows()["y"]


def write_netcdf(folder: Path) -> None:
    with netcdf_file(folder / "walk.nc", "w") as file:
        file.createDimension("time", len(table()))
        for name, column in _columns().items():
            if column.dtype.kind == "f":
                file.createVariable(name, "d", ("time",))[:] = column


def _columns() -> dict[str, np.ndarray]:
    frame = table().drop(columns="date")
    return {name: frame[name].to_numpy() for name in frame}


def write_npz(folder: Path) -> None:
    np.savez(folder / "walk.npz", **windows())


def write_npy(folder: Path) -> None:
    np.save(folder / "walk.npy", windows()["X"])


def write_tables(folder: Path) -> None:
    (folder / "own").mkdir()
    table().to_csv(folder / "own" / "ann.csv", index=False)
    table().to_parquet(folder / "own" / "bob.parquet")


def write_prepared(folder: Path) -> None:
    np.savez(folder / "raw.npz", **windows())
    npz = folder / "walks.npz"
    save_prepared(load_prepared(folder / "raw.npz"), npz)
    (folder / "raw.npz").unlink()
    write_json(card_path(npz), make_card(npz, Provenance("import", "Walks", "none", [], {})))


def write_reading(folder: Path) -> None:
    write_csv(folder)
    columns = {"domain_col": "who", "time_col": "t", "group_col": "activity", "channels": ["ax", "ay"]}
    write_json(folder / "reading.json", {**columns, "window": 8, "step": 4, "interval": 0.02})


def write_authors_files(folder: Path) -> None:
    for domain in ("01", "02"):
        for split in ("train", "test"):
            X = windows()["X"].swapaxes(1, 2)
            (folder / f"USER{domain}_{split}X.pkl").write_bytes(pickle.dumps(X, protocol=2))
            labels = pd.DataFrame({"GLOBAL_ID": np.arange(len(X)), "y_true": np.arange(len(X)) % 2})
            labels.to_csv(folder / f"USER{domain}_{split}Y.csv", index=False)


def write_adatime_files(folder: Path) -> None:
    import torch

    for domain in (1, 2):
        for split in ("train", "test"):
            content = {"samples": torch.from_numpy(windows()["X"]), "labels": windows()["y"]}
            stream = io.BytesIO()
            torch.save(content, stream)
            (folder / f"{split}_{domain}.pt").write_bytes(stream.getvalue())


def write_zip(folder: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/walk.csv", table(20).to_csv(index=False))
    with zipfile.ZipFile(folder / "raw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/walk.csv", table(20).to_csv(index=False))
        archive.writestr("inner.zip", inner.getvalue())


def write_tar(folder: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("data/ann.csv", "data/bob.csv"):
            content = table(20).to_csv(index=False).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    (folder / "raw.tar").write_bytes(packed.getvalue())
    (folder / "raw.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def write_labels(folder: Path) -> None:
    write_csv(folder)
    columns = {"window": [0, 3, 5], "domain": ["ann", "ann", "ann"], "start": [0, 12, 24]}
    more = {"label": ["run", "walk", "run"], "confidence": [0.5, 0.6, 0.7], "true_label": ["run", "", "walk"]}
    pd.DataFrame({**columns, **more}).to_csv(folder / "labels.csv", index=False)


@target("csv", write=write_csv)
def read_csv(folder: Path) -> None:
    read_recordings(folder / "walk.csv", **ROLES)
    read_recordings(folder / "walk.csv", **{**ROLES, "time_col": "date"}, labels_only_score=True)


@target("csv.gz", write=write_csv_gz)
def read_csv_gz(folder: Path) -> None:
    read_recordings(folder / "walk.csv.gz", **ROLES)


@target("parquet", write=write_parquet)
def read_parquet(folder: Path) -> None:
    read_recordings(folder / "walk.parquet", **ROLES)
    read_recordings(folder / "walk.parquet", **{**ROLES, "time_col": "date"}, labels_only_score=True)


@target("dialects", write=write_dialect)
def read_dialect(folder: Path) -> None:
    read_recordings(folder / "walk.tsv", **ROLES)


@target("long", write=write_long)
def read_long(folder: Path) -> None:
    read_recordings(folder / "walk.csv", **ROLES)


@target("feather", write=write_feather)
def read_feather(folder: Path) -> None:
    read_recordings(folder / "walk.feather", **ROLES)


@target("matlab", write=write_matlab)
def read_matlab(folder: Path) -> None:
    read_recordings(folder / "walk.mat", **ROLES)
    read_recordings(folder / "cut.mat", label_col="y")


@target("hdf5", write=write_hdf5)
def read_hdf5(folder: Path) -> None:
    read_recordings(folder / "walk.h5", **ROLES)
    read_recordings(folder / "cut.h5", label_col="y")


@target("netcdf", write=write_netcdf)
def read_netcdf(folder: Path) -> None:
    read_recordings(folder / "walk.nc", time_col="t", window="0.2s", rate=40.0)


@target("check", write=write_csv)
def look_at_files(folder: Path) -> None:
    found = check_files([folder / "walk.csv"], window=8)
    json.dumps(found.as_json(), allow_nan=False)
    assert found.lines()
    if found.files[0].problem is not None:
        raise InputError(found.files[0].problem)


@target("npz", write=write_npz)
def read_npz(folder: Path) -> None:
    read_recordings(folder / "walk.npz", domain=0)
    read_recordings(folder / "walk.npz", label_col="y", labels_only_score=True)


@target("npy", write=write_npy)
def read_npy(folder: Path) -> None:
    as_windows(TargetFile(folder / "walk.npy").read()).in_memory()


@target("make", write=write_tables)
def make_from_tables(folder: Path) -> None:
    roles = {"label_col": "activity", "domain_col": "who", "time_col": "t", "channels": ["ax", "ay"], "window": 8}
    prepare_recordings(folder / "own", "walks", home=folder / "home", chunk_rows=50, **roles)
    load_prepared(folder / "home" / "walks.npz")


@target("prepared", write=write_prepared)
def read_prepared(folder: Path) -> None:
    card_or_contents(folder / "walks.npz")
    load_prepared(folder / "walks.npz")


@target("contents", write=write_prepared, damage=["walks.npz"])
def read_prepared_without_card(folder: Path) -> None:
    (folder / "walks.json").unlink()
    try:
        card_or_contents(folder / "walks.npz")
    finally:
        load_prepared(folder / "walks.npz")


@target("card", write=write_prepared, damage=["walks.json"])
def read_card(folder: Path) -> None:
    refuse_second_scaling(folder / "walks.npz", "per_split")
    card = card_or_contents(folder / "walks.npz")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        Console(file=nowhere).print(card_text(card))
    write_card_page(card, load_prepared(folder / "walks.npz"), folder / "walks.html")


@target("reading.json", write=write_reading, damage=["reading.json"])
def read_reading(folder: Path) -> None:
    read_recordings(folder / "walk.csv", **results.load_reading(folder))


@target("authors", write=write_authors_files, damage=["*train*"])
def import_authors_files(folder: Path) -> None:
    import_files(folder, "own", "transpl")


@target("adatime", write=write_adatime_files, damage=["train_*"])
def import_adatime_files(folder: Path) -> None:
    import_files(folder, "own", "adatime")


@target("zip", write=write_zip)
def unpack_zip(folder: Path) -> None:
    unpacked(folder / "raw.zip", folder / "out", max_bytes=100 << 20)
    assert sorted(path.name for path in folder.iterdir()) == ["out", "raw.zip"]


@target("tar", write=write_tar)
def unpack_tar(folder: Path) -> None:
    unpacked(folder / "raw.tar", folder / "out", max_bytes=100 << 20)
    unpacked(folder / "raw.tar.gz", folder / "out_gz", max_bytes=100 << 20)
    assert sorted(path.name for path in folder.iterdir()) == ["out", "out_gz", "raw.tar", "raw.tar.gz"]


@target("labels", write=write_labels, damage=["labels.csv"])
def read_label_file(folder: Path) -> None:
    found = read_recordings(folder / "walk.csv", **ROLES)
    read_labels([folder / "labels.csv"], found, ["run", "walk"])
