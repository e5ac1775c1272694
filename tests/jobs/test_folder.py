"""Folders of results: finished or not, of one target or many, whole or cut off; the sample of windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import refusal

from transpl._utils.errors import InputError, UnreadableFile
from transpl._utils.files import read_json, write_json
from transpl.jobs.folder import (
    SAMPLE_FILE,
    SAMPLE_SIZE,
    TARGETS,
    UNFINISHED,
    begin_many,
    holds_many,
    is_unfinished,
    load_reading,
    load_sample,
    recording_failure,
    require_complete_predictions,
    require_finished,
    require_one_target,
    sample_of,
    save_sample,
    write_table,
    writing_results,
)
from transpl.jobs.review import review_job
from transpl.report.adaptation.saved_job import read_saved_job

P = np.array([[0.25, 0.75], [1 - 3.2e-05, 3.2e-05], [0.0, 1.0], [0.3, 0.7000000000000001]])
TABLE = pd.DataFrame({"window": range(4), "label": list("baab"), "confidence": P.max(axis=1)})
TABLE[["p_a", "p_b"]] = P
WHOLE = TABLE.to_csv(index=False)


def folder_of(home, text: str):
    write_json(home / "summary.json", {"test": {"windows": 4}, "classes": ["a", "b"]})
    (home / "predictions.csv").write_text(text)
    return home


def test_a_cut_is_noticed_or_costs_no_more_than_digits(tmp_path):
    readers = (lambda home: read_saved_job(home).predictions, lambda home: review_job(home, 4))
    for cut in range(1, len(WHOLE) - WHOLE.index("\n") - 1):
        folder_of(tmp_path, WHOLE[:-cut])
        for read in readers:
            try:
                assert len(read(tmp_path)) == 4, cut
                assert cut < 17  # the last digits of 0.7000000000000001
            except UnreadableFile as error:
                assert f"{tmp_path}/predictions.csv: " in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "words"), [(WHOLE[:-17], "row 4 of 4 is cut off"), (WHOLE[: WHOLE.rindex("3,b")], "3 rows, but")]
)
def test_a_cut_is_told_in_one_line(tmp_path, text, words):
    folder_of(tmp_path, text)
    for read in (read_saved_job, lambda home: review_job(home, 2)):
        with refusal(tmp_path / "predictions.csv", f"{words}.*Copy the folder again"):
            read(tmp_path)


def test_a_summary_that_counts_no_rows_asks_for_none(tmp_path):
    require_complete_predictions(tmp_path, TABLE)
    write_json(tmp_path / "summary.json", {"of": "old"})
    require_complete_predictions(tmp_path, TABLE)


def test_probabilities_add_up_to_one_but_for_rounding(tmp_path):
    require_complete_predictions(tmp_path, pd.DataFrame({"p_a": [0.3333], "p_b": [0.3333], "p_c": [0.3333]}))
    cut = pd.DataFrame({"p_a": [0.25, 0.25], "p_b": [0.75, 0.748]})  # the second was 0.75 too
    with refusal(tmp_path / "predictions.csv", "row 2 of 2 is cut off", UnreadableFile):
        require_complete_predictions(tmp_path, cut)


# one target or many, finished or not


@pytest.fixture
def leftovers(tmp_path):
    """What killed writers left in a folder and in its model."""
    (tmp_path / "model").mkdir()
    parts = [home / ".a.json.abcd1234.part.json" for home in (tmp_path, tmp_path / "model")]
    for part in parts:
        part.touch()
    return parts


def test_a_folder_is_marked_while_it_is_written_and_without_leftovers(tmp_path, leftovers):
    with writing_results(tmp_path):
        assert is_unfinished(tmp_path)
        assert "again" in read_json(tmp_path / UNFINISHED)["what_to_do"]
        assert not any(part.exists() for part in leftovers)
    assert not is_unfinished(tmp_path)
    require_finished(tmp_path)


def test_the_mark_stays_where_writing_was_interrupted_and_speaks_for_the_model_too(tmp_path):
    with pytest.raises(KeyboardInterrupt), writing_results(tmp_path):
        raise KeyboardInterrupt
    for folder in (tmp_path, tmp_path / "model"):
        with refusal(tmp_path, "interrupted.*Run transpl adapt .* again", UnreadableFile):
            require_finished(folder)
    with writing_results(tmp_path):
        pass
    require_finished(tmp_path)


def test_a_folder_of_many_is_known_from_its_first_moment(tmp_path, leftovers):
    assert not holds_many(tmp_path)
    begin_many(tmp_path, iter(["b", "a"]))
    assert holds_many(tmp_path)
    assert read_json(tmp_path / TARGETS) == {"targets": ["b", "a"]}
    assert not any(part.exists() for part in leftovers)
    begin_many(tmp_path, ["c"])  # as often as it is resumed


@pytest.mark.parametrize("name", ["summary.json", "predictions.csv", UNFINISHED])
def test_the_folder_of_one_target_is_not_taken_for_many(tmp_path, name):
    (tmp_path / name).touch()
    with refusal("out", "holds the results of one target"):
        begin_many(tmp_path, ["a"])
    assert not holds_many(tmp_path)
    require_one_target(tmp_path)


@pytest.mark.parametrize("name", ["summary.csv", TARGETS])
def test_the_folder_of_many_targets_is_not_taken_for_one(tmp_path, name):
    require_one_target(tmp_path)
    (tmp_path / name).touch()
    assert holds_many(tmp_path)
    with refusal("out", "holds many targets"):
        require_one_target(tmp_path)


@pytest.mark.parametrize(("error", "resumes"), [(InputError("X: no"), False), (RuntimeError("no"), True)])
def test_a_failure_is_recorded_until_a_run_succeeds(tmp_path, error, resumes):
    with pytest.raises(type(error)), recording_failure(tmp_path):
        raise error
    record = read_json(tmp_path / "failed.json")
    assert record["error"] == f"{type(error).__name__}: {error}"
    assert "Traceback" in record["traceback"]
    assert ("checkpoint" in record["what_to_do"]) == resumes
    with recording_failure(tmp_path):
        pass
    assert not (tmp_path / "failed.json").exists()


def test_tables_are_written_whole(tmp_path):
    write_table(tmp_path / "new" / "table.csv", pd.DataFrame({"a": [1, 2]}))
    assert (tmp_path / "new" / "table.csv").read_text() == "a\n1\n2\n"


# the sample of windows


def test_at_most_so_many_windows_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(700, 2, 8)).astype(np.float32), rng.normal(size=(5, 2, 8))
    y = np.array(["walk", "run"] * 350)
    save_sample(sample_of(X, y, T, ("a", "b")), tmp_path)
    found = load_sample(tmp_path)
    assert len(found.source) == SAMPLE_SIZE
    assert (found.source_rows[0], found.source_rows[-1]) == (0, 699)
    np.testing.assert_array_equal(found.source.values, X[found.source_rows])
    assert found.source_labels.tolist() == y[found.source_rows].tolist()
    assert found.target.values.dtype == np.float32
    np.testing.assert_array_equal(found.target.values, T.astype(np.float32))
    assert found.target_rows.tolist() == [0, 1, 2, 3, 4]
    assert found.channel_names == ("a", "b")


def test_windows_of_unequal_length_keep_their_length(tmp_path):
    X = [np.ones((1, n)) for n in (4, 6, 5)]
    save_sample(sample_of(X, np.array([1, 2, 1]), X, ("a",)), tmp_path)
    found = load_sample(tmp_path)
    assert found.target.lengths.tolist() == [4, 6, 5]
    assert found.target.ragged
    assert found.source_labels.tolist() == ["1", "2", "1"]


def test_other_files_are_refused(tmp_path):
    with refusal(tmp_path / SAMPLE_FILE, "no such file", UnreadableFile):
        load_sample(tmp_path)
    np.savez(tmp_path / SAMPLE_FILE, format=np.array("transpl-sample-1"))
    with refusal(tmp_path / SAMPLE_FILE, "not a sample", UnreadableFile):
        load_sample(tmp_path)
    np.savez(tmp_path / SAMPLE_FILE, X=np.ones(3))
    with pytest.raises(UnreadableFile):
        load_sample(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"source_labels": np.arange(3)},
        {"source_labels": np.array(["a"])},
        {"channel_names": np.array(["a", "b"])},
        {"source": np.array(["x"])},
        {"source": np.full((3, 1, 6), np.nan)},
        {"target": np.empty((0, 1, 6))},
        {"target_lengths": np.array([7, 6, 5])},
        {"target_lengths": np.array([0, 6, 5])},
        {"source_rows": np.array([0.5, 1, 2])},
        {"format": np.array("transpl-sample-0")},
    ],
)
def test_a_sample_from_a_stranger_is_checked(tmp_path, changed):
    X = [np.ones((1, n)) for n in (4, 6, 5)]
    save_sample(sample_of(X, np.array([1, 2, 1]), X, ("a",)), tmp_path)
    with np.load(tmp_path / SAMPLE_FILE) as arrays:
        np.savez(tmp_path / "changed.npz", **{**arrays, **changed})
    (tmp_path / "changed.npz").replace(tmp_path / SAMPLE_FILE)
    with refusal(tmp_path / SAMPLE_FILE, "not a sample", UnreadableFile):
        load_sample(tmp_path)


@pytest.mark.parametrize(
    "reading",
    [
        *([], None, "domain_col", 5, {"unknown": 1}),
        *({"domain_col": 5}, {"time_col": ["t"]}, {"group_col": {}}),
        *({"channels": "ax"}, {"channels": [1]}, {"channels": []}, {"channels": {"ax": 1}}),
        *({"window": "64"}, {"window": 0}, {"window": 1.5}, {"window": True}, {"window": 2**64}, {"step": -1}),
        *({"interval": "fast"}, {"interval": 0}, {"interval": False}, {"interval": [0.1]}),
        *({"rate": -50}, {"gap": "long"}, {"time_unit": "h"}, {"time_unit": 3}),
    ],
)
def test_a_description_of_recordings_that_was_edited_by_hand_is_checked(tmp_path, reading):
    write_json(tmp_path / "reading.json", reading)
    with refusal(tmp_path / "reading.json", "not written by transpl adapt", UnreadableFile):
        load_reading(tmp_path)


def test_a_description_of_recordings_comes_back_without_what_it_does_not_say(tmp_path):
    assert load_reading(tmp_path) == {}
    reading = {"domain_col": "who", "channels": ["ax"], "window": 8, "step": 4, "interval": 0.02}
    write_json(tmp_path / "reading.json", {**reading, "time_col": None})
    assert load_reading(tmp_path) == reading
    for number, told in (("NaN", "NaN"), ("1" + 400 * "0", "no finite number")):
        (tmp_path / "reading.json").write_text(f'{{"interval": {number}}}')
        with refusal(tmp_path / "reading.json", told, UnreadableFile):
            load_reading(tmp_path)
