"""The page about one adaptation: what it says, that it says it safely, and that it needs nothing but itself."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import CLASSES, made_up
from made_up_results import METRICS, predictions, saved, shift, summary
from page_reading import HOSTILE, caption, cards, data_of, facts, page_of, scores, section, text_of, write
from plotly.offline import get_plotlyjs

from transpl._utils.errors import UnreadableFile
from transpl.jobs.folder import write_table
from transpl.report import write_report
from transpl.report.adaptation.label_section import class_proportions
from transpl.report.adaptation.saved_job import read_saved_job
from transpl.report.adaptation_page import render_adaptation
from transpl.report.html_parts import percent


def test_the_first_screen_says_which_sensor_changed_most():
    page = page_of(saved())
    first = cards(page)[1]
    assert first.startswith("The patterns of acc_y changed most (distance 0.400")
    assert "acc_x least (0.050)" in first
    assert "2 %" in first  # of an unchanged sensor's vote
    assert text_of(page).index("acc_y changed most") < text_of(page).index("What came in")


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ([("a", 0.0, 1.0), ("b", 0.0, 1.0)], ["No sensor changed"]),
        ([("a", 0.01, 0.99), ("b", 0.0, 1.0)], ["a changed most, but hardly", "0.010"]),
        ([("a", 0.4012, 0.1), ("b", 0.4009, 0.1)], ["All changed equally", "0.401"]),
        ([("a", 0.3, 0.1)], ["only channel", "0.300"]),
    ],
)
def test_small_equal_and_single_changes_are_told_apart(channels, words):
    found = [{"name": name, "distance": d, "weight": w} for name, d, w in channels]
    card = cards(page_of(saved(summary=summary(channels=found))))[1]
    assert all(word in card for word in words)


def test_the_least_sure_windows_come_first_and_open():
    p = np.array([[0.9, 0.1, 0.0], [0.3, 0.36, 0.34], [0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])
    page = page_of(saved(made_up(n=4, windows=np.arange(4), answers=p)))
    assert re.findall(r'<li><a href="#window-(\d+)">', page) == ["1", "2", "3", "0"]
    assert "window 1 : stand 36 % or walk 34 %" in text_of(page)
    assert "4 labels" in cards(page)[2]


def test_windows_that_the_page_cannot_open_are_no_links():
    explanation = made_up(n=2, windows=np.array([0, 2]))
    p = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])
    page = page_of(saved(explanation, predictions=predictions(p)))
    assert sorted(re.findall(r'<li><a href="#window-(\d+)">', page)) == ["0", "2"]
    assert "window 1 : stand 40 %" not in text_of(page)
    assert "window 1: stand 40 % or sit 30 %" in text_of(page)
    assert "2 of 3 windows" in section(page, "Why a window got its label")


def test_it_says_what_came_in_and_who_answers():
    page = page_of(saved(summary=summary(prior={"sit": 0.9})))
    found = facts(page)
    for name, words in {
        "source": "ann: 1,000 windows",
        "target": "bob: 2,000 windows",
        "a window": "75 time steps, read in pieces of 8",
        "channels": "4: acc_x, acc_y, acc_z and gyro",
        "classes": "3: sit, stand and walk",
        "labels come from": "a neural network",
        "class proportions given": "sit 90 %",
    }.items():
        assert found[name].startswith(words)
    assert scores(page) == ["75.0 % right by the true labels", "50.0 % right before adaptation"]
    assert found["after adaptation"].startswith("75.0 % of 12 labels right; macro-F1")
    assert found["before adaptation"].startswith("50.0 % of 12 labels right")
    assert found["windows adapted to by the vote of the channels"].startswith("80.0 % of 9 labels right")
    source = {"name": "ann", "windows": None, "class_shares": None}
    assert facts(page_of(saved(summary=summary(source=source))))["source"] == "ann: with labels"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.2717, 0.3913, ["raised", "11.9"]),  # as 39.1 and 27.2 are shown
        (0.5, 0.4, ["lowered", "10.0"]),
        (0.5, 0.5, ["did not change"]),
    ],
)
def test_gain_and_loss_are_said_in_words(before, after, words):
    known = {"before": {**METRICS["before"], "accuracy": before}, "after": {**METRICS["after"], "accuracy": after}}
    said = section(page_of(saved(metrics=known)), "What came in").split("Adaptation ")[-1]
    assert all(word in said for word in words)


def test_words_of_the_paper_stay_in_their_box():
    text = text_of(page_of(saved()))
    outside = text[: text.index("How it works")]
    for word in ("posterior", "EMD", "earth mover", "VQ", "quantis", "Markov"):
        assert word not in outside
        assert word in text


def test_no_label_is_more_than_sure():
    page = page_of(saved(predictions=predictions(np.eye(3)[np.arange(12) % 3])))
    assert "more than 99 %" in caption(page, "confidence")


def test_it_says_how_many_labels_adaptation_changed_if_that_is_known():
    about = summary()
    assert "changed" not in caption(page_of(saved()), "confidence")
    about["test"] |= {"changed": 5}
    assert "changed 5 of 12 labels" in caption(page_of(saved(summary=about)), "confidence")


def test_a_class_that_no_window_got_is_named():
    about = summary()
    about["test"] |= {"class_shares": {"sit": 0.0, "stand": 1.0, "walk": 0.0}}
    assert "labelled sit or walk" in caption(page_of(saved(summary=about)), "class-shares")
    assert "No window" not in caption(page_of(saved()), "class-shares")


def test_page_without_truth_has_no_scores():
    known = saved()
    blank = {**known.summary, "test": {**known.summary["test"], "true_class_shares": None}}
    page = page_of(saved(metrics=None, summary=blank))
    assert scores(page) == []
    assert 'id="confusion"' not in page
    assert 'id="confusion"' in page_of(known)


def test_class_proportions_come_from_everywhere():
    found = class_proportions(saved(summary=summary(prior={"sit": 0.9})))
    assert list(found) == ["source", "target, as you said", "target, labels", "target, true"]
    assert found["target, as you said"] == {"sit": 0.9, "stand": 0.0, "walk": 0.0}
    bars = data_of(page_of(saved(shift=None)), "class-shares-data")["data"]
    assert [bar["name"] for bar in bars] == ["source", "target, labels", "target, true"]


def test_a_bar_of_a_class_that_no_window_got_says_so():
    about = summary()
    about["test"] |= {"class_shares": {"sit": 0.0, "stand": 1.0, "walk": 0.0}}
    bars = {bar["name"]: bar for bar in data_of(page_of(saved(summary=about)), "class-shares-data")["data"]}
    assert bars["target, labels"]["text"] == ["none", "", "none"]
    assert bars["source"]["text"] == ["", "", ""]


def test_channels_are_ranked_and_many_are_folded_away():
    table = re.search(r'<table class="ranking">.*?</table>', page_of(saved()), re.S)[0]
    assert re.findall(r"<th scope=\"row\">(.*?)</th>", table) == ["1. acc_y", "2. acc_z", "3. gyro", "4. acc_x"]
    assert re.findall(r"--part:([\d.]+)", table) == ["1.0000", "0.5000", "0.2500", "0.1250"]
    many = [{"name": f"c{d}", "distance": 1.0 - d / 50, "weight": 0.5} for d in range(45)]
    assert "25 more channels" in text_of(page_of(saved(summary=summary(channels=many))))


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_channel_of_one_code_is_not_read_rather_than_trusted_most(with_counts):
    about, report = summary(), shift()
    about["channels"][1] |= {"distance": 0.0, "weight": 0.0}
    for counts in (report.source_counts, report.target_counts):
        counts[1] = 0
        counts[1, 2, 2] = 50
    page = page_of(saved(summary=about, shift=report if with_counts else None))
    name, *others = (about["channels"][i]["name"] for i in (1, 0, 2, 3))
    said = section(page, "What shifted")
    assert f"4. {name} not read" in said
    assert f"Not read: {name}." in said
    card = cards(page)[1]
    assert name not in card
    assert any(other in card for other in others)


def test_matrices_get_the_counts_and_the_table_the_words():
    page, known = page_of(saved()), shift()
    data = data_of(page, "shift-data")
    assert np.array_equal(data["source"], known.source_counts)
    assert np.array_equal(data["target"], known.target_counts)
    first = known.transitions(1).iloc[0]
    d = known.channel_names.index(first["channel"])
    rows = re.search(rf'<tbody data-channel="{d}">(.*?)</tbody>', page, re.S)[1]
    words = text_of(rows.split("</tr>")[0])
    assert words.startswith(f"{first['channel']}: after code {first['from_code']} comes code {first['to_code']} ")
    assert words.endswith(f"{100 * first['source']:.0f} % {100 * first['target']:.0f} %")
    assert ("more often" in words) == (first["difference"] > 0)


def test_codes_are_drawn_with_their_usage():
    page = page_of(saved())
    cards = re.findall(r"<li><span class=\"code-name\">.*?</li>", page, re.S)
    assert len(cards) == 5
    assert all("<polyline" in card for card in cards)
    assert [text_of(card) for card in cards][:2] == ["code 0 50 %", "code 1 never used"]
    assert "5 codes; 4 are in use" in text_of(page)
    older = {name: value for name, value in summary().items() if name != "decoded_codes"}
    assert "<polyline" not in page_of(saved(summary=older))


def test_of_many_codes_the_most_used_are_drawn():
    counts = [0, *range(1, 70)]
    many = summary(codebook_usage={"coarse": {"counts": counts}}, decoded_codes=np.ones((70, 8)).tolist())
    page = page_of(saved(summary=many))
    drawn = [int(code) for code in re.findall(r'class="code-name">code <span[^>]*>(\d+)', page)]
    assert drawn == list(range(6, 70))


def test_results_without_an_explanation_say_so_in_a_line():
    found = saved()
    page = page_of(type(found)(found.summary, found.predictions))
    assert "no explanation.npz" in section(page, "Why a window got its label")
    assert "no shift.json" in section(page, "What the network learned")
    assert "acc_y changed most" in cards(page)[1]
    assert 'id="explorer-data"' not in page
    assert 'href="#window-' not in page


def test_names_from_files_cannot_inject_markup():
    classes, names = np.array([f"{HOSTILE}{k}" for k in range(3)]), tuple(f"{HOSTILE}{d}" for d in range(4))
    explanation = made_up(windows=np.arange(12), classes=classes, channel_names=names, nearest=None)
    shares = dict.fromkeys(classes.tolist(), 1 / 3)
    about = summary(
        source={"name": HOSTILE, "windows": 1, "class_shares": shares},
        target={"name": HOSTILE, "windows": 1},
        test={"windows": 1, "class_shares": shares, "true_class_shares": shares},
        classes=classes.tolist(),
        channels=[{"name": name, "distance": 0.1, "weight": 0.5} for name in names],
        transpl_version=HOSTILE,
        prior=shares,
    )
    metrics = {**METRICS, "confusion": {"labels": classes.tolist(), "counts": np.eye(3, dtype=int).tolist()}}
    known = predictions(explanation.answers, classes, group=HOSTILE)
    page = page_of(saved(explanation, metrics, summary=about, predictions=known, shift=shift(names, classes)))
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script")
    assert HOSTILE in text_of(page)
    data = data_of(page, "explorer-data")
    assert data["classes"] == classes.tolist()
    assert data["windows"][0]["origin"] == f"group {HOSTILE}"


def test_page_needs_nothing_but_itself():
    page = re.sub(r'(<script type="application/json" id="[^"]*">).*?</script>', r"\1", page_of(saved()), flags=re.S)
    assert "//" not in re.sub(r"^\s*// .*$| // .*$|http://www.w3.org/2000/svg", "", page, flags=re.M)
    assert not re.search(r"\b(src|action|srcset)\s*=\s*[\"']|@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert get_plotlyjs() in render_adaptation(saved())


def test_every_control_has_a_label():
    page = re.sub(r"<script.*?</script>", "", page_of(saved()), flags=re.S)
    for control in re.findall(r"<(?:select|input)[^>]*>", page):
        before = page[: page.index(control)]
        assert before.rindex("<label>") > before.rfind("</label>")


def test_ten_thousand_windows_stay_below_fifteen_megabytes():
    rng = np.random.default_rng(0)
    n, T = 10_000, 128
    explanation = made_up(
        n=n, windows=np.arange(n), nearest=None, signals=rng.normal(size=(n, 4, T)).astype(np.float32)
    )
    results = saved(explanation)
    page = page_of(results)
    assert len(page.encode()) + len(get_plotlyjs().encode()) < 15e6
    data = data_of(page, "explorer-data")
    assert len(data["windows"]) == 400
    assert set(results.check_order[:200].tolist()) <= {window["row"] for window in data["windows"]}


def test_report_is_made_of_saved_files_only(tmp_path):
    write(tmp_path, saved())
    path = write_report(tmp_path)
    assert path == tmp_path / "report.html"
    assert scores(path.read_text()) == []
    assert 'id="explorer-data"' in path.read_text()
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    assert len(scores(write_report(tmp_path).read_text())) == 2


def test_labels_that_look_like_numbers_or_nothing_stay_as_they_are(tmp_path):
    found = saved()
    table = found.predictions.assign(label=["NA", "01"] * 6).astype({"window": int})
    table.insert(1, "group", ["007"] * 12)
    write(tmp_path, saved(predictions=table))
    again = read_saved_job(tmp_path)
    assert again.predictions["label"].tolist() == ["NA", "01"] * 6
    assert again.origins([3]) == ["group 007"]
    assert again.confidence.dtype == np.float64


def test_folder_without_results_is_an_error(tmp_path):
    with pytest.raises(UnreadableFile, match=r"no summary\.json"):
        write_report(tmp_path)


def test_explanation_of_other_results_is_an_error(tmp_path):
    about = summary()
    write(tmp_path, saved(summary={**about, "test": {**about["test"], "windows": 5}}))
    write_table(tmp_path / "predictions.csv", saved().predictions.iloc[:5])
    with refusal(tmp_path, "explains window 11, predictions.csv has none", UnreadableFile):
        write_report(tmp_path)


def test_damaged_files_are_named_in_the_error(tmp_path):
    write(tmp_path, saved())
    (tmp_path / "explanation.npz").write_bytes(b"no")
    with refusal(tmp_path / "explanation.npz", error=UnreadableFile):
        write_report(tmp_path)


def test_summary_of_another_version_is_an_error(tmp_path):
    write(tmp_path, saved())
    (tmp_path / "summary.json").write_text(json.dumps({"classes": CLASSES.tolist()}))
    with refusal(tmp_path, "incomplete or of another version", UnreadableFile):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "0 %"), (0.004, "< 1 %"), (0.006, "1 %"), (0.5, "50 %"), (1.0, "100 %")]
)
def test_percentages_never_round_something_to_nothing(share, words):
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == words
