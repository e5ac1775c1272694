"""The page of the council: sections in order, numbers that are those of the files, and nothing it cannot know."""

from __future__ import annotations

import json
import re
from unittest import mock

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import CHANNELS, SEATS, made_up, made_up_council
from made_up_results import METRICS, SWAPPED, TURNED, council_summary, predictions, saved_council, shift
from page_reading import HOSTILE, caption, cards, data_of, headings, page_of, scores, section, text_of, write

from transpl._utils.errors import UnreadableFile
from transpl.report import write_report
from transpl.report.adaptation.explorer import explorer_data
from transpl.report.adaptation.label_section import agreement
from transpl.report.adaptation.overview import LOW_ACCURACY
from transpl.report.adaptation.saved_job import read_saved_job

GOOD, SHIFTED = 0, 1  # cards


def test_the_first_screen_answers_three_questions_before_all_sections():
    page = page_of(saved_council())
    assert len(cards(page)) == 3
    assert headings(page)[3] == "What came in"


def test_the_estimate_and_the_truth_are_those_of_the_files():
    said = cards(page_of(saved_council()))[GOOD]
    assert "87 %" in said
    assert "between 79 % and 92 %" in said
    assert "75.0 %" in said
    assert "50.0 % before adaptation" in said
    assert said.index("87 %") < said.index("75.0 %")
    unknown = cards(page_of(saved_council(metrics=None)))[GOOD]
    assert "87 %" in unknown
    assert "75.0 %" not in unknown


def test_scores_that_are_only_an_estimate_are_no_scores():
    only = {"estimated_accuracy": {"accuracy": 0.8, "low": 0.7, "high": 0.9}}
    about = council_summary()
    del about["estimated_accuracy"]
    page = page_of(saved_council(metrics=only, summary=about))
    assert "80 %" in cards(page)[GOOD]
    assert 'id="confusion"' not in page
    assert scores(page) == []


@pytest.mark.parametrize(("accuracy", "warned"), [(LOW_ACCURACY - 0.01, True), (LOW_ACCURACY, False), (0.9, False)])
def test_a_low_estimate_warns_and_says_what_to_do(accuracy, warned):
    page = page_of(saved_council(summary=council_summary(accuracy)))
    assert ('class="warning"' in page) == warned
    assert ("transpl review" in cards(page)[GOOD]) == warned


def test_what_was_undone_is_told_twice():
    page = page_of(saved_council())
    details = section(page, "What shifted")
    for where in (cards(page)[SHIFTED], details):
        assert TURNED in where
        assert SWAPPED in where
    assert "21.5 per window" in details
    assert details.count("per window") == 1  # the swap has no margin


def test_where_nothing_was_undone_it_says_so():
    page = page_of(saved_council(summary=council_summary() | {"undone": []}, shift=shift()))
    assert "Nothing was undone" in cards(page)[SHIFTED]
    assert "acc_y changed most" in cards(page)[SHIFTED]


def test_witnesses_are_ranked_by_their_estimated_accuracy():
    page = page_of(saved_council())
    part = re.search(r'<section id="witnesses">.*?</section>', page, re.S)[0]
    rows = re.findall(r'<th scope="row">\d+\. (.*?)</th>.*?--part:([\d.]+)', part, re.S)
    expected = sorted(council_summary()["witnesses"], key=lambda one: -one["accuracy"])
    assert [float(part) for _, part in rows] == [pytest.approx(one["accuracy"], abs=1e-4) for one in expected]
    assert [name.split(" on ")[0] for name, _ in rows] == [one["witness"] for one in expected]
    for kind in ("codes", "linear", "trees", "recorded", "standardised"):
        assert f"<dt>{kind}</dt>" in part
    assert "<dt>shape</dt>" not in part


def test_agreement_is_counted_on_the_windows_of_the_page():
    found = saved_council()
    data = data_of(page_of(found), "agreement-data")["data"][0]
    order = [found.explanation.seats.index((one.witness, one.view)) for one in found.witnesses]
    votes = found.explanation.votes[:, order]
    for i in range(len(SEATS)):
        for j in range(len(SEATS)):
            same = np.mean([row[i] == row[j] for row in votes])
            assert data["z"][i][j] == pytest.approx(100 * same)
    np.testing.assert_array_equal(agreement(votes), agreement(votes).T)


def test_agreement_on_some_windows_is_not_passed_off_as_that_of_all():
    some = saved_council()
    more = predictions(np.tile(some.explanation.answers, (2, 1)))
    assert "least sure" not in caption(page_of(some), "agreement")
    assert "least sure" in caption(page_of(saved_council(predictions=more)), "agreement")


def test_no_channel_is_said_to_vote_or_to_be_trusted():
    text = text_of(page_of(saved_council()))
    outside = text[: text.index("How it works")]
    assert "trust" not in outside
    assert "vote" not in outside
    assert "round of training" not in outside


def test_words_of_the_field_stay_in_their_box():
    text = text_of(page_of(saved_council()))
    outside = text[: text.index("How it works")]
    for word in ("Dawid", "EMD", "Markov", "expectation", "logistic"):
        assert word not in outside
        assert word in text


def test_explorer_shows_the_parts_of_every_window():
    found = saved_council()
    data, e = explorer_data(found), found.explanation
    assert data["kind"] == "council"
    assert data["voters"][:-2] == [", ".join(seat) for seat in SEATS]
    assert [window["row"] for window in data["windows"]] == e.windows.tolist()
    for i, window in enumerate(data["windows"]):
        parts = e.contributions(i)
        assert data["classes"][window["label"]] == parts.label
        assert data["classes"][window["against"]] == parts.against
        np.testing.assert_allclose(window["parts"], [*parts.witnesses, parts.bias, parts.rest], atol=1e-6)
        assert sum(window["parts"]) == pytest.approx(window["margin"], abs=1e-5)
        assert sum(window["channelParts"]) == pytest.approx(window["codeMargin"], abs=1e-5)
        linear = e.linear_parts(i)
        assert window["linearMargin"] == pytest.approx(linear.features.sum() + linear.bias, abs=1e-6)
        named = [[*e.feature_names[f]] for f, _, _ in window["featuresFor"]]
        assert all(name in data["features"] for name in named)
        assert window["agree"] == (e.votes[i] == e.probabilities[i].argmax()).sum()
        assert window["sentence"] == e.sentence(i)
        np.testing.assert_allclose(window["says"], e.seat_answers[i], atol=1e-6)


@pytest.mark.parametrize("case", [{"absent": 1}, {"bias": np.array([0.0, 0.0, -np.inf])}, {"linear": False}])
def test_nothing_infinite_reaches_the_page(case):
    data = explorer_data(saved_council(made_up_council(windows=np.arange(12), **case)))
    json.dumps(data, allow_nan=False)
    assert all(abs(part) <= 1e4 for window in data["windows"] for part in window["parts"])


def test_many_channels_and_witnesses_stay_within_bounds():
    rng = np.random.default_rng(0)
    n, T = 1000, 512
    e = made_up_council(n=n, windows=np.arange(n), nearest=None, signals=rng.normal(size=(n, 4, T)).astype(np.float32))
    assert len(page_of(saved_council(e)).encode()) < 9e6


def test_without_an_explanation_it_still_tells_the_witnesses():
    found = saved_council()
    page = page_of(type(found)(found.summary, found.predictions))
    assert 'id="agreement"' not in page
    assert "Which witnesses were believed" in headings(page)
    assert "no explanation.npz" in section(page, "Why a window got its label")


def test_names_from_files_cannot_inject_markup():
    classes, names = np.array([f"{HOSTILE}{k}" for k in range(3)]), tuple(f"{HOSTILE}{d}" for d in range(4))
    seats = tuple((f"{HOSTILE}{s}", HOSTILE) for s in range(6))
    quantities = tuple((HOSTILE, f"{HOSTILE}{f}") for f in range(12))
    e = made_up_council(
        windows=np.arange(12), classes=classes, channel_names=names, seats=seats, feature_names=quantities, nearest=None
    )
    shares = dict.fromkeys(classes.tolist(), 1 / 3)
    about = council_summary() | {
        "source": {"name": HOSTILE, "windows": 1, "class_shares": shares},
        "target": {"name": HOSTILE, "windows": 1},
        "test": {"windows": 1, "class_shares": shares, "true_class_shares": shares},
        "classes": classes.tolist(),
        "channels": [{"name": name, "distance": 0.1, "weight": 0.5} for name in names],
        "witnesses": [{"witness": one, "view": view, "accuracy": 0.5} for one, view in seats],
        "undone": [HOSTILE],
    }
    metrics = {**METRICS, "confusion": {"labels": classes.tolist(), "counts": np.eye(3, dtype=int).tolist()}}
    known = predictions(e.answers, classes, group=HOSTILE)
    page = page_of(saved_council(e, metrics, summary=about, predictions=known, shift=shift(names, classes)))
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script")
    assert HOSTILE in text_of(page)


def test_page_needs_nothing_but_itself():
    page = re.sub(
        r'(<script type="application/json" id="[^"]*">).*?</script>', r"\1", page_of(saved_council()), flags=re.S
    )
    assert "//" not in re.sub(r"^\s*// .*$| // .*$|http://www.w3.org/2000/svg", "", page, flags=re.M)
    assert set(re.findall(r'href="(.)', page)) == {"#"}


def test_it_is_made_of_saved_files_only(tmp_path):
    found = saved_council()
    write(tmp_path, found)
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    with mock.patch("transpl.report.html_parts.get_plotlyjs", return_value=""):
        page = write_report(tmp_path).read_text()
    assert page == page_of(read_saved_job(tmp_path))
    assert data_of(page, "explorer-data") == json.loads(json.dumps(explorer_data(found)))


def test_files_of_both_variants_in_one_folder_are_errors(tmp_path):
    write(tmp_path, saved_council())
    made_up(windows=np.arange(12)).save(tmp_path / "explanation.npz")
    with refusal(tmp_path, "different variants", UnreadableFile):
        write_report(tmp_path)


def test_channels_keep_their_names_in_the_ranking():
    table = re.findall(r'<table class="ranking">.*?</table>', page_of(saved_council()), re.S)[-1]
    assert sorted(re.findall(r"\d\. (\w+)</th>", table)) == sorted(CHANNELS)
    assert "trust" not in table


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ({"sit": 0.2, "stand": 0.4, "walk": 0.4}, "sit is less common: 50 % of the source's windows, 20 %"),
        ({"sit": 0.48, "stand": 0.26, "walk": 0.26}, "about as common as in the source"),
    ],
)
def test_the_class_whose_share_changed_most_is_named(here, words):
    about = council_summary()
    about["test"] |= {"class_shares": here}
    assert words in cards(page_of(saved_council(summary=about)))[SHIFTED]
    about["source"] |= {"class_shares": None}
    assert words not in cards(page_of(saved_council(summary=about)))[SHIFTED]


def test_answers_of_more_than_one_window_are_shown_beside_those_of_one():
    e = made_up_council(windows=np.arange(12))
    assert not explorer_data(saved_council(e))["answersDiffer"]
    smoothed = made_up_council(windows=np.arange(12), answers=np.roll(e.answers, 1, axis=0))
    assert explorer_data(saved_council(smoothed))["answersDiffer"]
