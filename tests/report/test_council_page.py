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
from page_reading import HOSTILE, cards, data_of, headings, page_of, scores, section, text_of, write

from transpl._utils.errors import UnreadableFile
from transpl.council import witness_in_words
from transpl.jobs.target_summary import LOW_ACCURACY
from transpl.report import write_report
from transpl.report.adaptation.explorer import explorer_data
from transpl.report.adaptation.saved_job import read_saved_job
from transpl.report.adaptation.witness_section import believed_share, label_agreement
from transpl.report.html_parts import percent

GOOD, SHIFTED, CHECK = 0, 1, 2  # cards


def test_the_first_screen_answers_three_questions_before_all_sections():
    page = page_of(saved_council())
    assert len(cards(page)) == 3
    assert headings(page)[3].startswith("The labels")
    places = [page.index(f'<section id="{name}"') for name in ("over-time", "labels", "shift", "witnesses", "codes")]
    assert [*places, page.index('<section id="explorer"')] == sorted([*places, page.index('<section id="explorer"')])


def test_the_estimate_and_the_truth_are_those_of_the_files():
    said = cards(page_of(saved_council()))[GOOD]
    assert "87 %" in said
    assert "between 79 % and 92 %" in said
    assert "75.0 %" in said
    assert "50.0 % right before adaptation" in said
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
    assert scores(page) == ["about 80 % right, estimated; probably between 70 % and 90 %"]


@pytest.mark.parametrize(("accuracy", "warned"), [(LOW_ACCURACY - 0.01, True), (LOW_ACCURACY, False), (0.9, False)])
def test_a_low_estimate_warns_and_says_what_to_do(accuracy, warned):
    page = page_of(saved_council(summary=council_summary(accuracy)))
    assert ('class="warning"' in page) == warned
    assert ("transpl review" in cards(page)[GOOD]) == warned


def test_what_the_command_line_warned_of_stands_beside_the_estimate():
    warned = council_summary(0.92, warnings=["hardly any window is labelled <sit>"])
    page = page_of(saved_council(summary=warned))
    card = cards(page)[GOOD]
    assert "<sit>" not in page
    assert "Hardly any window is labelled <sit>." in card
    assert "transpl review" in card
    assert "Do not rely" not in card


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


def witness_rows(page):
    part = re.search(r'<section id="witnesses">.*?</section>', page, re.S)[0]
    rows = re.findall(r'<tr><th scope="row">\d+\. (.*?)</th>(.*?)</tr>', part, re.S)
    return {name: [text_of(cell) for cell in re.findall(r"<td.*?</td>", cells, re.S)] for name, cells in rows}


def test_witnesses_are_ranked_by_how_much_they_decided():
    found = saved_council()
    page, e = page_of(found), found.explanation
    parts = np.mean([np.abs(e.contributions(i).witnesses) for i in range(len(e))], axis=0)
    np.testing.assert_allclose(believed_share(e), parts / parts.sum())
    order = np.argsort(-parts, kind="stable")
    rows = witness_rows(page)
    assert list(rows) == [witness_in_words(*SEATS[s]) for s in order]
    known = {(one["witness"], one["view"]): one["accuracy"] for one in council_summary()["witnesses"]}
    for s, (believed, agrees, *_) in zip(order, rows.values(), strict=True):
        assert believed == percent(parts[s] / parts.sum()).replace("\N{NO-BREAK SPACE}", " ")
        assert agrees == percent(known[SEATS[s]]).replace("\N{NO-BREAK SPACE}", " ")
    for kind in ("codes", "linear", "trees", "recorded", "standardised"):
        assert f"<dt>{kind}</dt>" in page
    assert "<dt>shape</dt>" not in page


def test_the_table_says_who_agreed_with_whom():
    found = saved_council()
    e = found.explanation
    votes = e.votes[:, np.argsort(-believed_share(e), kind="stable")]
    for i, (_, _, *cells) in enumerate(witness_rows(page_of(found)).values()):
        expected = [f"{100 * np.mean([row[i] == row[j] for row in votes]):.0f}" for j in range(len(SEATS))]
        expected[i] = ""
        assert cells == expected
    np.testing.assert_array_equal(label_agreement(votes), label_agreement(votes).T)


def test_agreement_on_some_windows_is_not_passed_off_as_that_of_all():
    some = saved_council()
    more = predictions(np.tile(some.explanation.answers, (2, 1)))
    words = "Half of these windows are the ones to check first"
    assert words not in section(page_of(some), "Which witnesses were believed")
    assert words in section(page_of(saved_council(predictions=more)), "Which witnesses were believed")


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
    assert 'class="cell' not in page
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


# what to check


def with_truth(p, truth, **change):
    """Results with these probabilities and true labels; every window is explained."""
    e = made_up_council(n=len(p), windows=np.arange(len(p)), answers=p)
    classes = e.classes
    return saved_council(e, predictions=predictions(p, classes, truth=truth), **change)


def test_classes_that_no_label_names_come_first_with_their_likeliest_windows():
    p = np.array([[0.9, 0.02, 0.08], [0.8, 0.15, 0.05], [0.1, 0.02, 0.88], [0.2, 0.3, 0.5]])
    said = cards(page_of(with_truth(p, ["sit", "stand", "walk", "walk"])))[CHECK]
    assert (
        "No window was labelled stand (25 % of the source). If it occurs, then likeliest in window 3 or window 1"
        in said
    )
    rest = said[said.index("likeliest in window 3 or window 1") + 34 :]
    assert re.findall(r"window (\d+) :", rest) == ["2", "0"]  # of the source, fewer are walk than sit
    assert "0 of these 2 are wrong; of all 4 labels, 1." in said


def test_windows_labelled_by_hand_are_not_offered_again():
    p = np.array([[0.9, 0.02, 0.08], [0.8, 0.15, 0.05], [0.1, 0.02, 0.88], [0.2, 0.3, 0.5]])
    e = made_up_council(n=4, windows=np.arange(4), answers=p)
    by_hand = predictions(p, e.classes)
    by_hand.insert(1, "true_label", ["", "sit", "walk", ""])
    said = cards(page_of(saved_council(e, predictions=by_hand)))[CHECK]
    assert "likeliest in window 3 ." in said
    assert "of 2 labels" in said
    assert re.findall(r"window (\d+) :", said) == ["0"]


def test_the_list_says_how_many_of_it_are_wrong_only_where_that_is_known():
    p = np.array([[0.9, 0.05, 0.05], [0.4, 0.5, 0.1], [0.1, 0.1, 0.8]])
    assert "1 of these 2 are wrong; of all 2 labels, 1." in cards(page_of(with_truth(p, ["stand", "stand", ""])))[CHECK]
    assert "wrong" not in cards(page_of(with_truth(p, [""] * 3)))[CHECK]


def test_the_list_and_the_explorer_follow_the_ranks_of_the_results():
    found = saved_council()
    ranks = np.roll(np.arange(1, 13), 5)
    table = found.predictions.assign(check=ranks)[
        ["window", "label", "confidence", "check", "p_sit", "p_stand", "p_walk"]
    ]
    ranked = saved_council(found.explanation, predictions=table)
    page = page_of(ranked)
    listed = re.findall(r'<li><a href="#window-(\d+)">', page)
    assert listed == [str(row) for row in np.argsort(ranks)[: len(listed)]]
    assert explorer_data(ranked)["check"] == (ranks - 1).tolist()
