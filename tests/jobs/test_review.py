"""The csv that a person fills in: what is in it, and how it comes back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command_line import FAST, READ, adapt, transpl
from conftest import TINY, refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl import TransPL, jobs
from transpl.datasets import make_shifted
from transpl.datasets.recordings.reading import Recordings
from transpl.jobs import least_confident, read_labels, review_job, review_recordings
from transpl.jobs.folder import write_table

DATA = make_shifted(n_train=30, n_test=20, length=32)
CLASSES = list(DATA.class_names)


def recordings(part: str = "train", **change) -> Recordings:
    domain = DATA.domain(1)
    X, y = (domain.X_train, domain.y_train) if part == "train" else (domain.X_test, domain.y_test)
    n = len(X)
    whole = Recordings(
        X=X,
        y=np.array(CLASSES)[y],
        domain=None,
        group=np.array(["morning", "evening"])[np.arange(n) % 2],
        start=np.arange(n) * 16,
        channel_names=DATA.channel_names,
        description="",
    )
    return replace(whole, **change)


def job(**change) -> jobs.Job:
    source = DATA.domain(0)
    here = replace(recordings(), X=source.X_train, y=np.array(CLASSES)[source.y_train])
    return jobs.from_recordings(here, recordings(), **change)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reviewed")
    jobs.run(job(mode="markov"), TransPL(**TINY), out)
    return out


# choosing


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.1, 0.2, 0.5])), min_size=1), st.integers(1, 9))
def test_the_least_confident_are_chosen(windows, n):
    labels, confidence = zip(*windows, strict=True)
    plain = least_confident(labels, confidence, n)
    assert plain.tolist() == sorted(range(len(windows)), key=lambda i: (confidence[i], i))[:n]
    turns = least_confident(labels, confidence, n, spread=True)
    left = {label: [i for i in np.argsort(confidence, kind="stable") if labels[i] == label] for label in labels}
    expected = []
    while any(left.values()):
        round_ = [rows.pop(0) for rows in left.values() if rows]
        expected += sorted(round_, key=lambda i: (confidence[i], i))
    assert turns.tolist() == expected[:n]


# the table


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("window", "@x"),
        ("window", 1.5),
        ("window", 1e300),
        ("confidence", "x"),
        ("confidence", np.nan),
        ("check", "=1"),
    ],
)
def test_a_damaged_table_is_refused(folder, tmp_path, column, value):
    table = pd.read_csv(folder / "predictions.csv").astype({column: object})
    table.loc[2, column] = value
    table.to_csv(tmp_path / "predictions.csv", index=False)
    with refusal(tmp_path / "predictions.csv", rf"column {column}"):
        review_job(tmp_path, 5)


def test_a_table_without_two_classes_is_refused(folder, tmp_path):
    table = pd.read_csv(folder / "predictions.csv")
    table["p_a"] = 1.0
    table[[name for name in table if not name.startswith("p_") or name == "p_a"]].to_csv(
        tmp_path / "predictions.csv", index=False
    )
    with refusal(tmp_path / "predictions.csv", "column p_"):
        review_job(tmp_path, 5)


def test_a_job_is_reviewed_from_its_files(folder):
    table = review_job(folder, 7)
    predictions = pd.read_csv(folder / "predictions.csv", float_precision="round_trip")
    doubtful = predictions.sort_values("check").head(7)
    assert table.columns.tolist() == [
        *("window", "group", "start", "label", "confidence", "runner_up", "runner_up_probability"),
        *("true_label", "explanation"),
    ]
    assert table["window"].tolist() == doubtful["window"].tolist()
    assert (table["true_label"] == "").all()
    p = doubtful[[f"p_{name}" for name in CLASSES]].to_numpy()
    assert table["runner_up_probability"].tolist() == np.sort(p, axis=1)[:, -2].tolist()
    assert table["runner_up"].tolist() == [CLASSES[k] for k in np.argsort(-p, axis=1)[:, 1]]
    assert all(
        text.startswith(f"{label}, 0.") for text, label in zip(table["explanation"], table["label"], strict=True)
    )


def test_recordings_are_reviewed_as_the_job_that_labelled_them(folder):
    model, _ = jobs.load_model(folder)
    table = review_recordings(model, recordings(), 7)
    pd.testing.assert_frame_equal(table, review_job(folder, 7), check_dtype=False)
    assert review_recordings(model, recordings("test"), 50)["window"].nunique() == 20


def test_confidences_that_differ_in_the_last_bit_are_ranked(tmp_path):
    """Sure windows do: pandas' own reading of a csv would mix them up."""
    confidence = 1 - np.arange(1, 33) * 2.0**-53
    table = pd.DataFrame({"window": np.arange(32), "label": "a", "confidence": confidence, "p_a": confidence})
    table.assign(p_b=1 - confidence).to_csv(tmp_path / "predictions.csv", index=False)
    assert review_job(tmp_path, 32)["window"].tolist() == list(range(32))[::-1]


def test_a_folder_without_predictions_is_refused(tmp_path):
    with refusal(tmp_path, "no predictions.csv in it"):
        review_job(tmp_path, 5)
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "predictions.csv")
    with refusal(tmp_path / "predictions.csv", "not written by transpl adapt"):
        review_job(tmp_path, 5)


# a list that is there already


def type_into(path, *labels: str) -> pd.DataFrame:
    """Fill in the first rows, as a person does."""
    table = pd.read_csv(path, keep_default_na=False)
    table["true_label"] = [*labels, *table["true_label"][len(labels) :]]
    table.to_csv(path, index=False)
    return table


def test_labels_typed_into_a_list_are_kept_when_it_is_written_again(monkeypatch, capsys, folder, tmp_path):
    words = ["review", "--model", folder, "--out", tmp_path / "few.csv", "--n"]
    assert transpl(monkeypatch, *words, "5") == 0
    typed = type_into(tmp_path / "few.csv", "class_0", "class_1")
    assert transpl(monkeypatch, *words, "5") == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "few.csv", keep_default_na=False), typed)
    assert "5 windows, 2 of them labelled before" in capsys.readouterr().err
    assert transpl(monkeypatch, *words, "1") == 0  # the second is no longer listed
    few = pd.read_csv(tmp_path / "few.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(few, typed.head(2))
    assert transpl(monkeypatch, *words, "9") == 0
    few = pd.read_csv(tmp_path / "few.csv", keep_default_na=False)
    assert few["true_label"].tolist() == ["class_0", "class_1", *[""] * 7]
    capsys.readouterr()
    assert transpl(monkeypatch, *words, "9", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"table": str(tmp_path / "few.csv"), "windows": 9, "labelled_before": 2}


def test_labels_typed_in_a_spreadsheet_that_rounds_are_kept(folder, tmp_path):
    path = tmp_path / "few.csv"
    write_table(path, review_job(folder, 3))
    type_into(path, "class_0", "class_1").round(3).to_csv(path, index=False)
    assert review_job(folder, 3, earlier=path)["true_label"].tolist() == ["class_0", "class_1", ""]


def test_labels_that_a_job_was_given_stay_in_the_list_of_the_next(folder, tmp_path):
    path = tmp_path / "few.csv"
    write_table(path, review_job(folder, 3))
    typed = type_into(path, "class_0", "class_1")
    jobs.run(job(mode="markov", labels=[path]), TransPL(**TINY), tmp_path / "out")
    table = review_job(tmp_path / "out", 4, earlier=path)
    assert len(table) == 6
    assert table["true_label"].tolist() == [*[""] * 4, "class_0", "class_1"]
    assert table["window"].tolist()[4:] == typed["window"].tolist()[:2]
    write_table(path, table)
    assert len(read_labels([path], recordings(), CLASSES)) == 2


CHANGES = {
    "of another recording": {"confidence": 0.123},
    "of another place": {"start": 999},
    "of another label": {"label": "class_9"},
    "of no window": {"window": 99},
    "twice": {"window": 3, "group": "evening", "start": 48},
    "with a column of one's own": {"remark": "the dog"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_list_with_labels_that_cannot_be_kept_is_not_replaced(monkeypatch, capsys, folder, tmp_path, change):
    path = tmp_path / "few.csv"
    write_table(path, review_job(folder, 4))
    type_into(path, "class_0", "class_1").assign(**change).to_csv(path, index=False)
    before = path.read_bytes()
    assert transpl(monkeypatch, "review", "--model", folder, "--out", path) == 2
    assert "error: out: expected a new file, or an earlier list" in capsys.readouterr().err.splitlines()[-1]
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["a;b\n1;2\n", "t,ax\n0,1\n", "\0\0"])
def test_a_file_that_is_no_list_is_not_replaced(folder, tmp_path, text):
    (tmp_path / "home.csv").write_text(text)
    with refusal("out", "Choose another file"):
        review_job(folder, 2, earlier=tmp_path / "home.csv")


def test_a_list_without_labels_is_replaced_whatever_it_was_of(folder, tmp_path):
    write_table(tmp_path / "few.csv", review_job(folder, 4).assign(confidence=0.1))
    assert (review_job(folder, 4, earlier=tmp_path / "few.csv")["true_label"] == "").all()
    (tmp_path / "empty.csv").touch()  # as the shell makes it for > empty.csv
    assert len(review_job(folder, 4, earlier=tmp_path / "empty.csv")) == 4


# reading back


def filled(path, **rows: str):
    table = pd.DataFrame(
        {"window": [4, 7], "group": ["morning", "evening"], "start": [64, 112], "true_label": ["", ""]}
    )
    for column, values in rows.items():
        table[column] = values
    table.to_csv(path, index=False)
    return path


def test_labels_come_back_by_window(tmp_path):
    path = filled(tmp_path / "few.csv", true_label=["class_2", ""])
    assert read_labels([path], recordings(), CLASSES) == {4: "class_2"}
    more = filled(tmp_path / "more.csv", true_label=["", "class_0"])
    assert read_labels([path, more], recordings(), CLASSES) == {4: "class_2", 7: "class_0"}
    npz = recordings(start=None, group=None)  # nothing but the number to know a window by
    assert read_labels([path], npz, CLASSES) == {4: "class_2"}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"true_label": ["swim", ""]}, "'swim' for window 4. Check the spelling; a class that the source does not"),
        ({"true_label": ["class_0", "class_1"], "window": [4, 4], "group": "morning", "start": 64}, "window 4 again"),
        ({"true_label": ["class_0", ""], "window": [30, 7]}, r"windows 0..29 of the target, got window 30"),
        ({"true_label": ["class_0", ""], "window": [4.5, 7]}, "got window 4.5"),
        ({"true_label": ["class_0", ""], "window": ["x", "y"]}, "got window x"),
        ({"true_label": ["class_0", ""], "start": [65, 112]}, "start '64' for window 4, as in the target, got '65'"),
        ({"true_label": ["class_0", ""], "group": "evening"}, "group 'morning' for window 4"),
    ],
)
def test_labels_of_other_windows_or_classes_are_refused(tmp_path, rows, words):
    with refusal("few.csv", words):
        read_labels([filled(tmp_path / "few.csv", **rows)], recordings(), CLASSES)


def test_names_that_a_spreadsheet_takes_for_formulas_are_written_and_read_as_they_are(tmp_path):
    names = ["=1+1", "@x", "-y", "+z"]
    write_table(tmp_path / "few.csv", pd.DataFrame({"window": range(4), "true_label": names}))
    assert read_labels([tmp_path / "few.csv"], recordings(), names) == dict(enumerate(names))


def test_files_without_labels_or_columns_are_refused(tmp_path):
    with refusal("labels", "none in few.csv"):
        read_labels([filled(tmp_path / "few.csv")], recordings(), CLASSES)
    pd.DataFrame({"window": [1]}).to_csv(tmp_path / "few.csv", index=False)
    with refusal("labels", "a column of few.csv"):
        read_labels([tmp_path / "few.csv"], recordings(), CLASSES)
    same = [filled(tmp_path / f"{name}.csv", true_label=["class_0", ""]) for name in "ab"]
    with refusal("b.csv", "every window once"):
        read_labels(same, recordings(), CLASSES)


# a job with labels


def test_labelled_windows_are_used_shown_and_not_scored(folder, tmp_path):
    table = review_job(folder, 6).head(4)
    truth = recordings().y
    path = tmp_path / "few.csv"
    table.assign(true_label=truth[table["window"]]).to_csv(path, index=False)
    outcome = jobs.run(job(mode="markov", labels=[path]), TransPL(**TINY), tmp_path / "out")
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv", keep_default_na=False)
    given = predictions[predictions["true_label"] != ""]
    assert sorted(given["window"]) == sorted(table["window"])
    assert outcome.metrics["labels_given"] == 4
    assert outcome.metrics["after"]["windows"] == outcome.metrics["pseudo_labels"]["windows"] == 26
    rest = predictions["true_label"] == ""
    right = (predictions["label"] == truth)[rest].mean()
    assert outcome.metrics["after"]["accuracy"] == pytest.approx(right)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["target"]["labels_given"] == 4
    again = review_job(tmp_path / "out", 30)
    assert len(again) == 26
    assert not set(again["window"]) & set(table["window"])
    model, _ = jobs.load_model(tmp_path / "out")
    assert np.allclose(model.predict_proba(recordings().X).max(axis=1), predictions["confidence"])


def test_a_target_labelled_throughout_is_not_scored(tmp_path):
    every = pd.DataFrame({"window": np.arange(30), "true_label": recordings().y})
    every.to_csv(tmp_path / "all.csv", index=False)
    outcome = jobs.run(job(mode="markov", labels=[tmp_path / "all.csv"]), TransPL(**TINY), tmp_path / "out")
    assert outcome.metrics is None


# commands


def test_review_then_adapt_with_labels(monkeypatch, capsys, files):
    assert adapt(monkeypatch, files, "scored.parquet", "--mode", "markov") == 0
    words = ["--model", files / "out", "--n", "5", "--out", files / "few.csv"]
    assert transpl(monkeypatch, "review", *words) == 0
    table = pd.read_csv(files / "few.csv")
    assert len(table) == 5
    again = ["--input", files / "home.csv", "--spread", "--device", "cpu"]
    assert transpl(monkeypatch, "review", *words, *again) == 0
    assert pd.read_csv(files / "few.csv")["label"].nunique() == 2
    table.assign(true_label="walk").to_csv(files / "few.csv", index=False)
    capsys.readouterr()
    labels = ["--mode", "markov", "--labels", files / "few.csv"]
    assert adapt(monkeypatch, files, "scored.parquet", *labels) == 0
    said = capsys.readouterr()
    assert "5 labels given" in said.err
    assert "the 5 windows that you labelled are not scored" in said.out
    assert adapt(monkeypatch, files, "home.csv", "--step", "16", *labels) == 2
    assert "Label the windows of this very recording" in capsys.readouterr().err
    two = ["--source", files / "lab.csv", "--target", files / "home.csv", files / "scored.parquet"]
    assert transpl(monkeypatch, "adapt", *two, "--out", files / "many", *READ, *FAST, *labels) == 2
    assert "--labels: expected one target" in capsys.readouterr().err
