"""The report in a real browser: it asks nobody for anything, its controls work, its numbers are explain()'s."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY

from transpl import TransPL, jobs
from transpl.datasets import make_shifted

pytest.importorskip("fcntl", reason="the browser is driven over pipes, which need a POSIX system")

from headless_browser import browser, find_browser
from made_up_explanation import CLASSES, SEATS, made_up, made_up_council
from made_up_results import METRICS, council_summary, predictions, saved, saved_council, shift, summary

from transpl.report import write_report
from transpl.report.adaptation_page import render_adaptation

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium found: install one, or name it in the environment variable TRANSPL_BROWSER"
)
DATA = make_shifted(n_train=30, n_test=24, length=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    jobs.run(jobs.from_dataset(DATA, 0, 1), TransPL(**{**TINY, "variant": "paper", "max_epochs": 2}), out)
    write_report(out)
    return out


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(str(BROWSER), tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def tab(chromium, folder):
    """The report, opened once; every test leaves it usable for the next."""
    chromium.open(folder / "report.html")
    return chromium


@pytest.fixture(scope="module")
def explanation(folder):
    return TransPL.load(folder / "model").explain(DATA.domain(1).X_test, channel_names=DATA.channel_names)


def text(tab, selector):
    return tab.value(f"document.querySelector({selector!r}).innerText").replace("\N{NO-BREAK SPACE}", " ")


def click(tab, identity):
    tab.value(f"document.getElementById({identity!r}).click()")


def choose(tab, identity, value):
    tab.value(
        f"(() => {{ const field = document.getElementById({identity!r}); field.value = {json.dumps(str(value))};"
        "field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


def wait_until(tab, condition):
    """Let frames pass until something is drawn."""
    tab.value(
        f"new Promise((done) => {{ const look = () => ({condition}) ? done() : requestAnimationFrame(look); look(); }})"
    )


def shown_window(tab):
    return int(re.match(r"Window (\d+):", text(tab, "#window-title"))[1])


def drawn(identity):
    return f"document.querySelector('#{identity} .main-svg') !== null"


def test_it_opens_without_errors_and_asks_nobody(tab, folder):
    tab.value("document.getElementById('matrix-source').scrollIntoView()")
    wait_until(tab, drawn("matrix-source"))
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith("data:")] == [(folder / "report.html").as_uri()]


def test_numbers_of_every_window_are_those_of_explain(tab, explanation):
    """What is on the screen, read from there."""
    for position in (0, 7, 23):
        choose(tab, "window-number", position)
        assert shown_window(tab) == position
        assert text(tab, "#window-sentence") == f"The vote says {explanation.sentence(position)}"
        tab.value("document.getElementById('numbers').open = true")
        rows = tab.value(
            "[...document.querySelectorAll('#numbers tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
        )
        found = np.array([[float(cell.split()[0]) for cell in row[2:]] for row in rows]) / 100
        np.testing.assert_allclose(found[:-1], explanation.votes[position], atol=2e-6)
        np.testing.assert_allclose(found[-1], explanation.probabilities[position], atol=2e-6)
        parts = tab.value(
            "[...document.querySelectorAll('#window-votes tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
        )
        contributions = explanation.contributions(position)
        by_name = dict(zip(explanation.channel_names, contributions.channels, strict=True))
        for name, _, points in parts:
            assert float(points.split()[0].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
                100 * by_name[name], abs=0.006
            )
        answers = tab.value(
            "[...document.querySelectorAll('#window-classes tbody tr')].map((r) => r.cells[2].innerText)"
        )
        assert [float(cell.split()[0]) for cell in answers] == pytest.approx(
            100 * explanation.answers[position], abs=0.051
        )


def test_data_in_the_page_are_those_of_explain(tab, explanation):
    """What the numbers on the screen are made of, of all windows."""
    data = tab.value("page.dataOf('explorer-data')")
    assert [window["row"] for window in data["windows"]] == list(range(24))
    np.testing.assert_allclose([w["vote"] for w in data["windows"]], explanation.probabilities, atol=1e-6)
    np.testing.assert_allclose([w["says"] for w in data["windows"]], explanation.posteriors, atol=1e-6)
    np.testing.assert_array_equal([w["codes"] for w in data["windows"]], explanation.codes)
    signal = tab.value(
        "signals.reader(page.dataOf('explorer-data').signals, page.dataOf('explorer-data').channels.length)(5, 1)"
    )
    X = DATA.domain(1).X_test
    np.testing.assert_allclose(signal, X[5, 1], atol=np.ptp(X[:, 1]) / 65534)


def test_buttons_and_arrow_keys_go_on_and_back(tab):
    order = tab.value("page.dataOf('explorer-data').check")
    order = np.argsort(order, kind="stable").tolist()
    choose(tab, "window-order", "check")
    assert shown_window(tab) == order[0]
    assert tab.value("document.getElementById('previous').disabled")
    click(tab, "next")
    assert shown_window(tab) == order[1]
    tab.value("document.getElementById('next').focus()")
    tab.press("ArrowRight")
    assert shown_window(tab) == order[2]
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    assert shown_window(tab) == order[0]
    assert text(tab, "#window-status").startswith(f"Window {order[0]}, 1 of 24, to check first.")


def test_a_field_keeps_its_arrow_keys(tab):
    before = shown_window(tab)
    tab.value("document.getElementById('window-number').focus()")
    tab.press("ArrowRight")
    assert shown_window(tab) == before


def test_a_link_opens_its_window(tab):
    first = tab.value("document.querySelector('.doubtful a').hash")
    click(tab, "next")
    tab.value("document.querySelector('.doubtful a').click()")
    assert first == f"#window-{shown_window(tab)}"
    assert tab.value("document.activeElement.id") == "window-panel"
    assert tab.value("Math.abs(document.getElementById('explorer').getBoundingClientRect().top) < 50")


def test_a_number_that_is_not_there_is_said_so(tab):
    before = shown_window(tab)
    choose(tab, "window-number", 999)
    assert "Window 999 is not among the 24" in text(tab, "#window-status")
    assert shown_window(tab) == before


def test_another_channel_has_other_matrices(tab):
    tab.value("document.getElementById('shift-channel').scrollIntoView()")
    wait_until(tab, drawn("matrix-difference"))
    for channel in (1, 0):
        choose(tab, "shift-channel", channel)
        assert text(tab, "#matrix-words").startswith(f"{DATA.channel_names[channel]}: ")
        z = tab.value("document.getElementById('matrix-difference').data[0].z")
        data = tab.value("page.dataOf('shift-data')")
        source, target = (np.array(data[side][channel], dtype=float) for side in ("source", "target"))
        rows = [counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) for counts in (source, target)]
        np.testing.assert_allclose(z, rows[1] - rows[0], atol=1e-12)
        assert tab.value(
            "[...document.querySelectorAll('#moved tbody')].filter((b) => !b.hidden).map((b) => b.dataset.channel)"
        ) == [str(channel)]


def test_tab_reaches_every_control_and_leaves_again(tab):
    tab.value("document.querySelector('.doubtful a').focus()")
    seen = []
    for _ in range(25):
        tab.press("Tab")
        seen.append(tab.value("document.activeElement.id || document.activeElement.tagName"))
    controls = ["shift-channel", "next", "window-list", "window-order", "window-number"]
    assert [name for name in dict.fromkeys(seen) if name in controls] == controls
    assert "SUMMARY" in seen[seen.index("window-number") :]


def test_charts_follow_the_readers_colours(tab):
    tab.value("document.getElementById('confidence').scrollIntoView()")
    wait_until(tab, drawn("confidence"))
    colour = "document.getElementById('confidence').layout.font.color"
    light = tab.value(colour)
    tab.prefer("dark")
    wait_until(tab, f"{colour} !== {light!r}")
    assert tab.value(colour) == tab.value("page.colours().ink")
    tab.prefer("light")
    wait_until(tab, f"{colour} === {light!r}")


def test_a_phone_need_not_scroll_sideways(tab):
    tab.resize(390, 800)
    wait_until(tab, "window.innerWidth === 390")
    tab.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert tab.value("document.documentElement.scrollWidth") <= 390
    tab.resize(1280, 900)


def test_nothing_of_all_this_made_trouble(tab):
    assert tab.problems == []


def cells(tab, selector):
    where = selector if " " in selector else f"{selector} tbody"
    rows = f"[...document.querySelectorAll('{where} tr')].map((r) => [...r.cells].map((c) => c.innerText))"
    return [
        [cell.replace("\N{MINUS SIGN}", "-").replace("\N{NO-BREAK SPACE}", " ") for cell in row]
        for row in tab.value(rows)
    ]


def test_a_councils_parts_are_shown_as_factors(chromium, tmp_path):
    e = made_up_council(windows=np.arange(12))
    page = tmp_path / "council.html"
    page.write_text(render_adaptation(saved_council(e)))
    for window in (3, 8):
        chromium.open(page, fragment=f"#window-{window}")
        found = e.contributions(window)
        assert text(chromium, "#window-sentence") == f"Labelled {e.sentence(window)}"
        said = dict(zip([", ".join(seat) for seat in SEATS], e.classes[e.votes[window]], strict=True))
        parts = dict(zip(said, found.witnesses, strict=True))
        votes = [(row[0].split(" says ")[0], row) for row in cells(chromium, "#window-votes") if " says " in row[0]]
        assert [name for name, _ in votes] == sorted(parts, key=lambda name: -abs(parts[name]))
        for name, row in votes:
            assert row[0] == f"{name} says {said[name]}"
            sign, ratio = row[2].split()
            assert float(ratio) ** (1 if sign == "\N{MULTIPLICATION SIGN}" else -1) == pytest.approx(
                np.exp(parts[name]), rel=6e-3
            )
        lead = re.search(
            rf"make {found.label} ([\d.]+) times as likely as {found.against},", text(chromium, "#votes-words")
        )
        assert float(lead[1]) == pytest.approx(np.exp(found.log_odds), rel=6e-3)
        chromium.value("document.getElementById('numbers').open = true")
        *numbers, together = cells(chromium, "#numbers")
        assert [float(row[-1]) for row in numbers] == pytest.approx(
            [*found.witnesses, found.bias, found.rest], abs=2e-6
        )
        assert float(together[-1]) == pytest.approx(found.log_odds, abs=2e-6)
        assert [float(cell.split()[0]) for cell in together[2:-1]] == pytest.approx(
            100 * e.probabilities[window], abs=2e-4
        )
        linear = e.top_evidence(window).features_for[0]
        first = text(chromium, "#window-features-for li")
        assert first.startswith(f"{linear.channel}, {linear.quantity}: {abs(linear.value):.1f} standard deviations")
    assert chromium.problems == []


def test_of_many_witnesses_the_most_decisive_are_in_sight(chromium, tmp_path):
    seats = tuple((f"witness {s}", "recorded") for s in range(15))
    e = made_up_council(windows=np.arange(12), seats=seats)
    about = council_summary() | {
        "witnesses": [{"witness": name, "view": view, "accuracy": 0.5} for name, view in seats]
    }
    page = tmp_path / "many.html"
    page.write_text(render_adaptation(saved_council(e, summary=about)))
    chromium.open(page, fragment="#window-3")
    parts = np.sort(np.abs(e.contributions(3).witnesses))[::-1]
    assert len(cells(chromium, "#window-votes")) == 8 < len(parts)
    click(chromium, "all-witnesses")
    assert sum(" says " in row[0] for row in cells(chromium, "#window-votes")) == 15
    assert chromium.value("document.getElementById('all-witnesses').hidden")
    click(chromium, "next")
    assert sum(" says " in row[0] for row in cells(chromium, "#window-votes")) == 15
    assert chromium.problems == []


@pytest.mark.parametrize("case", [{}, {"linear": False}, {"absent": 1}, {"bias": np.array([0.0, 0.0, -np.inf])}])
def test_a_councils_page_works_on_a_phone_in_the_dark(chromium, tmp_path, case):
    page = tmp_path / "council.html"
    page.write_text(render_adaptation(saved_council(made_up_council(windows=np.arange(12), **case))))
    chromium.open(page, width=390, height=800, dark=True)
    choose(chromium, "window-order", "agree")
    for _ in range(11):
        click(chromium, "next")
    assert chromium.value("document.documentElement.scrollWidth") <= 390
    assert chromium.value("document.getElementById('linear').hidden") == ("linear" in case)
    assert chromium.problems == []


def test_windows_on_which_witnesses_disagree_come_first_if_asked(chromium, tmp_path):
    e = made_up_council(windows=np.arange(12))
    page = tmp_path / "council.html"
    page.write_text(render_adaptation(saved_council(e)))
    chromium.open(page)
    choose(chromium, "window-order", "agree")
    agreeing = (e.votes == e.probabilities.argmax(axis=1)[:, None]).sum(axis=1)
    assert agreeing[shown_window(chromium)] == agreeing.min()


def test_bars_show_who_moved_the_vote_and_which_way_not_how_far_a_channel_is_trusted(chromium, tmp_path):
    e = made_up(windows=np.arange(12))
    page = tmp_path / "moved.html"
    page.write_text(render_adaptation(saved(e)))
    chromium.open(page)
    for window in range(12):
        choose(chromium, "window-number", window)
        found = e.contributions(window)
        assert cells(chromium, "#window-votes thead")[0][1].split("\n") == [f"← {found.against}", f"{found.label} →"]
        bars = chromium.value(
            "[...document.querySelectorAll('#window-votes tbody .push')].map((push) => [...push.children].map("
            "(side) => side.querySelector('.bar').getBoundingClientRect().width / side.getBoundingClientRect().width))"
        )
        order = np.argsort(-np.abs(found.channels), kind="stable")
        assert [row[0] for row in cells(chromium, "#window-votes")] == [e.channel_names[d] for d in order]
        part = found.channels[order] / np.abs(found.channels).max()
        np.testing.assert_allclose(bars, np.stack([np.maximum(-part, 0), np.maximum(part, 0)], axis=1), atol=0.02)


def test_with_a_single_class_nothing_moved_the_vote(chromium, tmp_path):
    three = made_up(windows=np.arange(12), nearest=None)
    log_probabilities = three.log_probabilities[:1]
    alone = replace(three, classes=CLASSES[:1], answers=np.ones((12, 1)), log_probabilities=log_probabilities)
    page = tmp_path / "alone.html"
    page.write_text(render_adaptation(replace(saved(three), explanation=alone)))
    chromium.open(page, fragment="#window-3")
    assert "no other class" in text(chromium, "#votes-words")
    assert cells(chromium, "#window-votes") == []
    assert chromium.problems == []


def with_classes(names):
    """Results in which the classes have other names; those beyond the third are never likely."""
    e, K = made_up(windows=np.arange(12), nearest=None), len(names)
    table = np.concatenate([e.log_probabilities, np.repeat(e.log_probabilities[:1] - 3, K - 3, axis=0)])
    answers = np.hstack([e.answers, np.zeros((12, K - 3))])[:, ::-1]
    e = replace(e, classes=np.array(names), log_probabilities=table[::-1].copy(), answers=answers)
    shares = dict.fromkeys(names, 1 / K)
    about = summary(
        classes=names,
        source={"name": "ann", "windows": 1, "class_shares": shares},
        test={"windows": 1, "class_shares": shares, "true_class_shares": shares},
    )
    metrics = {**METRICS, "confusion": {"labels": names, "counts": np.eye(K, dtype=int).tolist()}}
    return e, saved(e, metrics, summary=about, shift=None)


def test_long_names_of_classes_leave_room_for_charts_and_tables(chromium, tmp_path):
    long = "a class whose name goes on and on and_on_without_a_break_of_any_kind"
    names = ["<b>bold</b>", '$x^2$ & "y"', long]
    page = tmp_path / "long.html"
    page.write_text(render_adaptation(with_classes(names)[1]))
    chromium.open(page, width=390, height=800)
    for identity, axes in (("class-shares", "x"), ("confusion", "xy")):
        chromium.value(f"document.getElementById({identity!r}).scrollIntoView()")
        wait_until(chromium, drawn(identity))
        for axis in axes:
            ticks = chromium.value(
                f"[...document.querySelectorAll('#{identity} .{axis}tick text')].map((tick) => tick.textContent)"
            )
            assert sorted(ticks) == sorted([*names[:2], "a class whose name\N{HORIZONTAL ELLIPSIS}"])
    rows = "document.querySelector('#confusion .bglayer, #confusion .plot').getBoundingClientRect().height"
    assert chromium.value(rows) > 100
    chromium.value("document.getElementById('numbers').open = true")
    assert chromium.value("document.querySelector('#numbers tbody th').getBoundingClientRect().width") > 80
    assert chromium.value("document.documentElement.scrollWidth") <= 390
    assert chromium.problems == []


def test_of_many_classes_the_most_probable_are_in_sight(chromium, tmp_path):
    names = [f"class {k:02d}" for k in range(25)]
    e, results = with_classes(names)
    page = tmp_path / "many.html"
    page.write_text(render_adaptation(results))
    chromium.open(page, width=390, height=800, fragment="#window-4")
    order = np.argsort(-e.probabilities[4].round(6), kind="stable")
    assert [row[0] for row in cells(chromium, "#window-classes")] == [names[k] for k in order]
    chromium.value("document.getElementById('numbers').open = true")
    assert chromium.value("document.querySelector('#numbers tbody th').getBoundingClientRect().width") > 80
    assert chromium.value("document.documentElement.scrollWidth") <= 390
    assert chromium.problems == []


def test_many_channels_unequal_lengths_and_hostile_names_make_no_trouble(chromium, tmp_path):
    hostile = '</script><img src=x onerror="alert(1)">&amp;'
    names = tuple(f"{hostile}{d}" for d in range(14))
    explanation = made_up(
        windows=np.arange(12),
        weights=np.linspace(0.1, 0.9, 14),
        ragged=True,
        absent=1,
        channel_names=names,
        classes=np.array(["sit", "stand", hostile]),
        nearest=None,
    )
    explanation.signals[3, :, 20:] = np.nan
    shares = dict.fromkeys(["sit", "stand", hostile], 1 / 3)
    about = summary(
        classes=list(shares),
        channels=[{"name": name, "distance": 0.1, "weight": 0.5} for name in names],
        source={"name": hostile, "windows": 1, "class_shares": shares},
        test={"windows": 1, "class_shares": shares, "true_class_shares": None},
    )
    page = tmp_path / "hostile.html"
    page.write_text(
        render_adaptation(saved(explanation, None, summary=about, shift=shift(names, np.array(list(shares)))))
    )
    chromium.open(page, width=390, height=800, fragment="#window-3")
    assert shown_window(chromium) == 3
    pictures = "document.querySelectorAll('.signal').length"
    assert chromium.value(pictures) == 12
    click(chromium, "all-signals")
    assert chromium.value(pictures) == 14
    assert chromium.value("document.getElementById('all-signals').hidden")
    assert text(chromium, ".signal figcaption").startswith(f"{hostile}0, from")
    choose(chromium, "window-order", "odds")
    assert chromium.value("document.querySelectorAll('img').length") == 0
    assert chromium.value("document.documentElement.scrollWidth") <= 390
    assert chromium.problems == []


def back(tab):
    """Go back in the history and wait until the page has noticed."""
    tab.value(
        "new Promise((done) => { addEventListener('popstate', () => setTimeout(done, 0), { once: true });"
        "history.back(); })"
    )


def test_back_returns_to_what_was_seen_before_and_not_to_another_page(chromium, folder):
    chromium.open(folder / "report.html")
    address = chromium.value("location.pathname")
    first = shown_window(chromium)
    links = chromium.value("[...document.querySelectorAll('.doubtful a')].map((link) => link.hash)")
    for at in (1, 2):
        chromium.value(f"document.querySelectorAll('.doubtful a')[{at}].click()")
    for _ in range(3):
        click(chromium, "next")
    back(chromium)  # a walk is one step
    assert links[2] == f"#window-{shown_window(chromium)}" == chromium.value("location.hash")
    back(chromium)
    assert links[1] == f"#window-{shown_window(chromium)}"
    back(chromium)
    assert shown_window(chromium) == first
    assert chromium.value("location.hash") == ""
    assert chromium.value("location.pathname") == address
    assert chromium.problems == []


def first_screens(windows=40):
    """Results that fill the first screen: with and without a class that no label names, with and without truth."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([3, 1, 3], size=windows)
    none = p.copy()
    none[:, 1] *= 0.1
    none /= none.sum(axis=1, keepdims=True)
    for probabilities in (p, none):
        e = made_up_council(n=windows, windows=np.arange(windows), answers=probabilities, nearest=None)
        truth = CLASSES[rng.integers(0, 3, windows)]
        yield saved_council(e, predictions=predictions(probabilities, truth=truth))
        yield saved_council(e, metrics=None, predictions=predictions(probabilities))


def test_the_first_screen_has_all_three_answers_and_no_hole(chromium, tmp_path):
    """The cards lie in two columns that end together, and a card has little empty room."""
    box = "(e) => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    for results in first_screens():
        page = tmp_path / "page.html"
        page.write_text(render_adaptation(results))
        for dark in (False, True):
            chromium.open(page, height=800, dark=dark)
            good, shifted, check = chromium.value(f"[...document.querySelectorAll('.answer')].map({box})")
            assert check[1] <= 800
            assert good[0] == check[0]
            assert shifted[1] == pytest.approx(check[1], abs=1)
            assert shifted[0] - good[1] == pytest.approx(16, abs=1)
            ends = chromium.value(
                "[...document.querySelectorAll('.answer')].map((e) => e.getBoundingClientRect().bottom "
                "- e.lastElementChild.getBoundingClientRect().bottom)"
            )
            assert max(ends) < 150
        estimate = chromium.value("document.querySelector('.number b').getBoundingClientRect().bottom")
        assert estimate < 250
    assert chromium.problems == []


def test_a_bar_without_windows_says_none(chromium, tmp_path):
    about = council_summary()
    about["test"] |= {"class_shares": {"sit": 0.0, "stand": 1.0, "walk": 0.0}}
    page = tmp_path / "none.html"
    page.write_text(render_adaptation(saved_council(summary=about)))
    chromium.open(page)
    chromium.value("document.getElementById('class-shares').scrollIntoView()")
    wait_until(chromium, drawn("class-shares"))
    words = chromium.value("[...document.querySelectorAll('#class-shares .bartext')].map((text) => text.textContent)")
    assert words.count("none") == 2


# the timeline


def timeline_page(tmp_path, **columns):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], size=12)
    e = made_up_council(windows=np.arange(12), answers=p)
    path = tmp_path / "timeline.html"
    path.write_text(render_adaptation(saved_council(e, predictions=predictions(p, **columns))))
    return path, CLASSES[p.argmax(axis=1)]


def test_the_timeline_draws_labels_and_truth_and_opens_windows(chromium, tmp_path):
    truth = CLASSES[np.arange(12) % 3]
    page, labels = timeline_page(tmp_path, truth=truth)
    for width, dark in ((1280, False), (390, True)):
        chromium.open(page, width=width, dark=dark)
        widths = (
            "[...document.querySelectorAll('#timeline {0}')].reduce((sum, bar) => sum + bar.width.baseVal.value, 0)"
        )
        right, wrong, true = (
            chromium.value(widths.replace("{0}", f"rect.{kind}")) for kind in ("label:not(.wrong)", "wrong", "true")
        )
        assert right / true == pytest.approx((labels == truth).mean(), abs=0.02)
        assert (right + wrong) / true == pytest.approx(1, abs=0.02)
        assert chromium.value("document.documentElement.scrollWidth") <= width
    chromium.open(page)
    chromium.value("document.getElementById('timeline').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        chromium.press(key)
    assert text(chromium, "#timeline-status").startswith(f"Window 1: {labels[1]}, ")
    assert f"true label {truth[1]}" in text(chromium, "#timeline-status")
    chromium.value("document.querySelector('#timeline-status a').click()")
    assert shown_window(chromium) == 1
    verdict = "right by the true label" if labels[1] == truth[1] else f"wrong, the true label is {truth[1]}"
    assert verdict in text(chromium, "#window-title")
    assert chromium.problems == []


def test_the_timeline_of_another_recording_is_chosen(chromium, tmp_path):
    group, start = ["bob", "eve"] * 6, np.arange(12) * 64
    page, _ = timeline_page(tmp_path, group=group, start=start)
    chromium.open(page)
    assert chromium.value("document.querySelectorAll('#timeline rect.true').length") == 0
    for at, name in enumerate(("bob", "eve")):
        choose(chromium, "timeline-recording", at)
        chromium.value("document.getElementById('timeline').focus()")
        chromium.press("ArrowRight")
        assert text(chromium, "#timeline-status").startswith(f"Window {at} at {64 * at}:")
        assert name in chromium.value("document.querySelector('#timeline svg').getAttribute('aria-label')")
    assert chromium.problems == []
