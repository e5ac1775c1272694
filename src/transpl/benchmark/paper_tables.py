"""The six tables of the paper and two of our own: which rows they have, and what is shown of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transpl._utils.errors import check_choice
from transpl.benchmark.plan import Row

SETS = ("ucihar", "wisdm", "hhar", "ptb")
_TEST, _LABELS = "test", "labels"


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, or in its manner.

    part : the scores it prints, on the target's "test" part or of pseudo-"labels" on its train part
    rows : of a data set, in the order of the print; a row's label is its name among the published figures
    extras : what it prints beside accuracy and macro-F1
    published : the table whose published figures stand beside ours; None if there are none
    """

    name: str
    title: str
    part: str
    rows: Callable[[str], tuple[Row, ...]]
    datasets: tuple[str, ...] = SETS
    extras: tuple[str, ...] = ()
    published: str | None = None


def paper_table(name: str) -> PaperTable:
    """One of the tables by name."""
    check_choice("table", name, tuple(TABLES))
    return TABLES[name]


def _methods(*names: str) -> tuple[Row, ...]:
    return tuple(Row(name, name) for name in names)


_FULL = _methods(
    "no-adapt",
    "deepcoral",
    "mmda",
    "codats",
    "sasa",
    "raincoat",
    "softmax",
    "ncp",
    "sp",
    "att",
    "shot",
    "t2pl",
    "transpl",
)
_BY_LABELS = ("softmax", "ncp", "sp", "shot", "t2pl", "code-cnn", "code-lstm", "code-gru", "transpl", "transpl-ws")
# ATT labels with heads that only its own training makes.
_PSEUDO = tuple(
    Row("att", "att") if name == "att" else Row(name, name, goal="label")
    for name in (*_BY_LABELS[:3], "att", *_BY_LABELS[3:])
)
_WITHOUT_ALIGNMENT = {"channel_alignment": False}
_ABLATION = (
    Row("transpl-no-alignment", "transpl", _WITHOUT_ALIGNMENT),
    Row("transpl", "transpl"),
    Row("transpl-ws-no-alignment", "transpl-ws", _WITHOUT_ALIGNMENT),
    Row("transpl-ws", "transpl-ws"),
)
_CODEBOOKS = ((8, 0), (64, 0), (128, 0), (64, 64), (64, 8), (8, 8), (8, 64))


_BEYOND = _methods(
    "no-adapt",
    "softmax",
    "shot",
    "t2pl",
    "transpl",
    "transpl-markov",
    "transpl-plus",
    "transpl-plus-ws",
)
_WITH_GROUPS = ("ptb",)  # sets that say which windows are of one patient


def _beyond(dataset: str) -> tuple[Row, ...]:
    return _BEYOND + (_methods("transpl-plus-groups") if dataset in _WITH_GROUPS else ())


def _patch_lengths(dataset: str) -> tuple[Row, ...]:
    lengths = (5, 10, 15, 30) if dataset == "ptb" else (4, 8, 16, 32)
    return tuple(Row(str(m), "transpl", {"patch_length": m}) for m in lengths)


def _codebooks(dataset: str) -> tuple[Row, ...]:
    return tuple(
        Row(f"{coarse}/{fine or '-'}", "transpl", {"n_coarse": coarse, "n_fine": fine}, goal="label")
        for coarse, fine in _CODEBOOKS
    )


TABLES = {
    table.name: table
    for table in (
        PaperTable("full", "Adaptation performance in the target", _TEST, lambda dataset: _FULL, published="full"),
        PaperTable(
            "pseudo", "Pseudo-labels of the target's train part", _LABELS, lambda dataset: _PSEUDO, published="pseudo"
        ),
        PaperTable(
            "weak",
            "Weak supervision: class proportions of the target are known",
            _TEST,
            lambda dataset: _methods("codats", "codats-ws", "transpl", "transpl-ws"),
            published="weak",
        ),
        PaperTable(
            "ablation",
            "Channel alignment and weak supervision",
            _TEST,
            lambda dataset: _ABLATION,
            published="ablation",
        ),
        PaperTable("patch", "Patch lengths", _TEST, _patch_lengths, published="patch"),
        PaperTable(
            "codebook",
            "Sizes of the codebooks",
            _LABELS,
            _codebooks,
            ("hhar",),
            extras=("mse", "dead_codes"),
            published="codebook",
        ),
        PaperTable(
            "beyond",
            "Beyond the paper: adaptation without a gradient step",
            _TEST,
            _beyond,
            extras=("calibration_error", "seconds"),
            published="full",
        ),
    )
}
