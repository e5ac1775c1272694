import json
import re

import pandas as pd
import pytest

from transpl.errors import NotReadable
from transpl.report import write_report
from transpl.report.page import render

SUMMARY = {
    "transpl_version": "1",
    "written": "2026-01-01T00:00:00+00:00",
    "source": {"name": "ann <script>", "windows": 1000, "class_shares": {"sit": 0.5, "walk": 0.5}},
    "target": {"name": "bob", "windows": 2000},
    "test": {"windows": 3, "class_shares": {"sit": 0.2, "walk": 0.8}, "true_class_shares": {"sit": 0.3, "walk": 0.7}},
    "mode": "finetune",
    "prior": None,
    "classes": ["sit", "walk"],
    "channels": [
        {"name": "acc_x", "distance": 0.05, "weight": 0.94},
        {"name": "gyro_z", "distance": 0.4, "weight": 0.02},
    ],
    "sigma": 0.2,
    "codebook_usage": {"coarse": {"counts": [5, 0, 3], "perplexity": 1.9, "dead": [1]}},
    "history": {
        "source": [{"epoch": 0.0, "loss": 2.0}, {"epoch": 1.0, "loss": 1.0, "validation_loss": 1.5}],
        "adapt": [{"epoch": 0.0, "loss": 0.9, "validation_loss": 1.4}],
    },
    "seconds": {"source": 1.0, "adapt": 2.0},
}
METRICS = {
    "before": {"windows": 3, "accuracy": 0.5, "macro_f1": 0.4},
    "after": {"windows": 3, "accuracy": 0.75, "macro_f1": 0.7},
    "pseudo_labels": {"windows": 9, "accuracy": 0.8, "macro_f1": 0.7},
    "confusion": {"labels": ["sit", "walk"], "counts": [[1, 0], [1, 1]]},
}
CONFIDENCE = pd.Series([0.9, 0.6, 0.7])


def test_page_is_self_contained_and_of_a_size_to_mail():
    page = render(SUMMARY, METRICS, CONFIDENCE)
    without_library = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.S)
    assert "Plotly" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", without_library)
    assert len(page) < 15e6


def test_page_says_what_matters_in_words_and_numbers():
    page = render(SUMMARY, METRICS, CONFIDENCE)
    for words in ("50.0 %", "75.0 %", "80.0 %", "gyro_z moved most (distance 0.400)", "acc_x least", "1,000 labelled"):
        assert words in page
    for title in ("What shifted", "How sure the labels are", "Where labels are right and wrong", "The vocabulary"):
        assert f"<h2>{title}</h2>" in page


def test_names_from_files_cannot_inject_markup():
    page = render(SUMMARY, METRICS, CONFIDENCE)
    assert "ann &lt;script&gt;" in page
    assert "ann <script>" not in page


def test_page_without_truth_has_no_scores():
    summary = {**SUMMARY, "test": {**SUMMARY["test"], "true_class_shares": None}}
    page = render(summary, None, CONFIDENCE)
    assert "nothing is scored" in page
    assert "Where labels are right and wrong" not in page


def test_a_source_that_is_not_at_hand_is_not_counted():
    source = {"name": "ann", "windows": None, "class_shares": None}
    assert "Labelled windows of ann, 2,000 unlabelled windows of bob" in render(
        {**SUMMARY, "source": source}, None, CONFIDENCE
    )


def test_report_is_made_of_saved_files_only(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps(SUMMARY))
    CONFIDENCE.to_frame("confidence").to_csv(tmp_path / "predictions.csv")
    path = write_report(tmp_path)
    assert path == tmp_path / "report.html"
    assert "nothing is scored" in path.read_text()
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    assert "75.0 %" in write_report(tmp_path).read_text()


def test_folder_without_results_is_refused(tmp_path):
    with pytest.raises(NotReadable, match=r"no summary\.json"):
        write_report(tmp_path)
