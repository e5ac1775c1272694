"""The six tables of the paper and two of our own: their rows, and what they show of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transpl._utils.errors import check_choice
from transpl.benchmark.plan import Row

SETS = ("ucihar", "wisdm", "hhar", "ptb")


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, or in its style.

    part : the scores it prints, on the target's "test" part or of pseudo-"labels" of its train part
    rows : rows for a data set, in the printed order; a row's label is its name among the published figures
    extras : what it prints besides accuracy and macro-F1
    published : the table whose published figures stand beside ours; None if there are none
    preset, normalise : the settings of its rows and the scaling of the channels, see `Plan`
    """

    name: str
    title: str
    part: str
    rows: Callable[[str], tuple[Row, ...]]
    datasets: tuple[str, ...] = SETS
    extras: tuple[str, ...] = ()
    published: str | None = None
    preset: str = "paper"
    normalise: str = "none"


def paper_table(name: str) -> PaperTable:
    """A table by name; an unknown name is refused."""
    check_choice("table", name, tuple(TABLES))
    return TABLES[name]


def _methods(names: str, goal: str = "adapt") -> tuple[Row, ...]:
    return tuple(Row(name, name, goal=goal) for name in names.split())


_FULL = _methods("no-adapt deepcoral mmda codats sasa raincoat softmax ncp sp att shot t2pl transpl")
_PSEUDO = (
    *_methods("softmax ncp sp", "label"),
    *_methods("att"),  # it labels with heads that only its own training makes
    *_methods("shot t2pl code-cnn code-lstm code-gru transpl transpl-ws", "label"),
)
_WEAK = _methods("codats codats-ws transpl transpl-ws")
_NO_ALIGNMENT = {"channel_alignment": False}
_ABLATION = (
    Row("transpl-no-alignment", "transpl", _NO_ALIGNMENT),
    Row("transpl", "transpl"),
    Row("transpl-ws-no-alignment", "transpl-ws", _NO_ALIGNMENT),
    Row("transpl-ws", "transpl-ws"),
)
_CODEBOOKS = tuple(
    Row(f"{coarse}/{fine or '-'}", "transpl", {"n_coarse": coarse, "n_fine": fine}, goal="label")
    for coarse, fine in ((8, 0), (64, 0), (128, 0), (64, 64), (64, 8), (8, 8), (8, 64))
)
_BEYOND = _methods("no-adapt softmax shot t2pl transpl transpl-markov transpl-plus transpl-plus-ws")
# What the field compares: every method on its CNN, each domain standardised, beside what needs no network.
_CNN = _methods(
    "no-adapt target-only adabn deepcoral mmda codats dann cdan dirt-t sasa raincoat softmax ncp sp att shot t2pl "
    "ssss-tsa features-linear features-trees"
)
_SETS_WITH_GROUPS = ("ptb",)  # they say which windows belong to one patient


def _beyond(dataset: str) -> tuple[Row, ...]:
    return _BEYOND + (_methods("transpl-plus-groups") if dataset in _SETS_WITH_GROUPS else ())


def _patch_lengths(dataset: str) -> tuple[Row, ...]:
    lengths = (5, 10, 15, 30) if dataset == "ptb" else (4, 8, 16, 32)
    return tuple(Row(str(m), "transpl", {"patch_length": m}) for m in lengths)


def _always(rows: tuple[Row, ...]) -> Callable[[str], tuple[Row, ...]]:
    return lambda dataset: rows


TABLES = {
    table.name: table
    for table in (
        PaperTable("full", "Adaptation performance in the target", "test", _always(_FULL), published="full"),
        PaperTable(
            "pseudo", "Pseudo-labels of the target's train part", "labels", _always(_PSEUDO), published="pseudo"
        ),
        PaperTable(
            "weak",
            "Weak supervision: class proportions of the target are known",
            "test",
            _always(_WEAK),
            published="weak",
        ),
        PaperTable(
            "ablation", "Channel alignment and weak supervision", "test", _always(_ABLATION), published="ablation"
        ),
        PaperTable("patch", "Patch lengths", "test", _patch_lengths, published="patch"),
        PaperTable(
            "codebook",
            "Sizes of the codebooks",
            "labels",
            _always(_CODEBOOKS),
            ("hhar",),
            extras=("mse", "dead_codes"),
            published="codebook",
        ),
        PaperTable(
            "beyond",
            "Beyond the paper: adaptation without a gradient step",
            "test",
            _beyond,
            extras=("calibration_error", "seconds"),
            published="full",
        ),
        PaperTable(
            "cnn",
            "Every method on the field's CNN, each domain standardised by its own train part",
            "test",
            _always(_CNN),
            extras=("calibration_error", "seconds"),
            preset="cnn",
            normalise="domain",
        ),
    )
}
