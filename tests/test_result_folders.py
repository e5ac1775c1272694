"""Predictions that were cut off, wherever the cut is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import refusal

from transpl.errors import NotReadable
from transpl.files import write_json
from transpl.report.adaptation.saved import read_saved
from transpl.result_folders import require_whole_predictions
from transpl.review import review_job

P = np.array([[0.25, 0.75], [1 - 3.2e-05, 3.2e-05], [0.0, 1.0], [0.3, 0.7000000000000001]])
TABLE = pd.DataFrame({"window": range(4), "label": list("baab"), "confidence": P.max(axis=1)})
TABLE[["p_a", "p_b"]] = P
WHOLE = TABLE.to_csv(index=False)


def folder_of(home, text: str):
    write_json(home / "summary.json", {"test": {"windows": 4}, "classes": ["a", "b"]})
    (home / "predictions.csv").write_text(text)
    return home


def test_a_cut_is_noticed_or_costs_no_more_than_digits(tmp_path):
    readers = (lambda home: read_saved(home).predictions, lambda home: review_job(home, 4))
    for cut in range(1, len(WHOLE) - WHOLE.index("\n") - 1):
        folder_of(tmp_path, WHOLE[:-cut])
        for read in readers:
            try:
                assert len(read(tmp_path)) == 4, cut
                assert cut < 17  # the last digits of 0.7000000000000001
            except NotReadable as error:
                assert f"{tmp_path}/predictions.csv: " in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "words"), [(WHOLE[:-17], "row 4 of 4 is cut off"), (WHOLE[: WHOLE.rindex("3,b")], "3 rows, where")]
)
def test_a_cut_is_told_in_one_line(tmp_path, text, words):
    folder_of(tmp_path, text)
    for read in (read_saved, lambda home: review_job(home, 2)):
        with refusal(tmp_path / "predictions.csv", f"{words}.*Copy the folder anew"):
            read(tmp_path)


def test_a_summary_that_counts_no_rows_asks_for_none(tmp_path):
    require_whole_predictions(tmp_path, TABLE)
    write_json(tmp_path / "summary.json", {"of": "old"})
    require_whole_predictions(tmp_path, TABLE)
