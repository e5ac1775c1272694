"""Every finished run of a table on a line of its own: small enough to keep when the folder is gone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from transpl.benchmark.blocks import Block, blocks_of
from transpl.benchmark.reading import Reading
from transpl.benchmark.shelf import Shelf

KEYS = ("dataset", "row", "pair", "seed")
_DECIMALS = 3


def runs_as_csv(folder: Path, which: str, datasets: Sequence[str] = (), how: Reading | None = None) -> str:
    """CSV: `KEYS`, then what the table shows of a run (percent, seconds); blank what its data set does not have."""
    how = how or Reading()
    blocks = blocks_of(which, Shelf(folder, how.data), datasets, how)
    metrics = list(dict.fromkeys(metric for block in blocks for metric in block.metrics))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*KEYS, *metrics], restval="", lineterminator="\n")
    writer.writeheader()
    for block in blocks:
        writer.writerows(_lines(block))
    return stream.getvalue()


def _lines(block: Block) -> Iterator[dict[str, object]]:
    for row, choices in block.rows():
        for spec, result in ((choice.spec, choice.result) for choice in choices):
            if result is not None:
                values = {metric: round(block.value(result, metric), _DECIMALS) for metric in block.metrics}
                yield {"dataset": block.dataset, "row": row.label, "pair": spec.pair, "seed": spec.seed, **values}
