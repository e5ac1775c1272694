"""Results as folders, and pages as their readers see them: texts, cards, sections, and the data of the scripts."""

from __future__ import annotations

import json
import re
from html import unescape
from unittest import mock

from transpl.jobs.folder import write_table
from transpl.report.adaptation_page import render_adaptation

HOSTILE = '</script><img src=x onerror="alert(1)">&amp;'


def page_of(results) -> str:
    """The page without plotly itself."""
    with mock.patch("transpl.report.html_parts.get_plotlyjs", return_value=""):
        return render_adaptation(results)


def text_of(page: str) -> str:
    """What a reader sees, in one line; no-break spaces as spaces."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<.*?>", " ", shown)).split())


def data_of(page: str, identity: str):
    return json.loads(re.search(rf'<script type="application/json" id="{identity}">(.*?)</script>', page, re.S)[1])


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


def cards(page: str) -> list[str]:
    """The answers on the first screen, as text, without their questions."""
    found = re.split(r'<div class="answer \w+">\s*<h2>.*?</h2>', page.split('<section id="over-time">')[0])[1:]
    return [text_of(card) for card in found]


def section(page: str, heading: str) -> str:
    """A section as text."""
    return text_of(re.search(rf"<h2[^>]*>{re.escape(heading)}</h2>.*?</section>", page, re.S)[0])


def caption(page: str, chart: str) -> str:
    """What is written below a chart."""
    return text_of(re.search(rf'id="{chart}".*?<figcaption>(.*?)</figcaption>', page, re.S)[1])


def facts(page: str) -> dict[str, str]:
    """The facts about the data that came in, by name."""
    found = re.search(r'<dl class="facts">.*?</dl>', page, re.S)[0]
    return {text_of(name): text_of(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", found, re.S)}


def scores(page: str) -> list[str]:
    """The accuracies in large figures, as text."""
    return [text_of(card) for card in re.findall(r'<div class="number">.*?</div>', page, re.S)]


def write(folder, results):
    """The files of a job, without scores."""
    (folder / "summary.json").write_text(json.dumps(results.summary))
    write_table(folder / "predictions.csv", results.predictions)
    if results.explanation is not None:
        results.explanation.save(folder / "explanation.npz")
    results.shift.save(folder / "shift.json")
