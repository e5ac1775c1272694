"""The explorer: choose a window, see its signal, who voted for what and why. The page's script fills it."""

from __future__ import annotations

from transpl.report.adaptation.explorer_data import explorer_data
from transpl.report.adaptation.saved import Saved
from transpl.report.wording import as_script_data, choice

_ORDERS = [("doubt", "least sure first"), ("odds", "vote and label differ first"), ("number", "by number")]
_NO_EXPLANATION = (
    "<p>Single windows are not shown: this folder has no explanation.npz. transpl adapt and demo write it for a single "
    "target; for one of many targets, or older results, run transpl adapt on that target.</p>"
)


def explorer_section(saved: Saved) -> list[str]:
    """Controls, empty places, and the data; one line if the folder explains nothing."""
    title = '<section id="explorer" aria-labelledby="why"><h2 id="why">Why a window got its label</h2>'
    if saved.explanation is None or not len(saved.explanation):
        return [title, _NO_EXPLANATION, "</section>"]
    data = explorer_data(saved)
    return [
        title,
        "<noscript><p>The explorer needs scripts. predictions.csv has the labels.</p></noscript>",
        *_intro(len(data["windows"]), len(saved.predictions)),
        *_controls(),
        *_places(),
        as_script_data("explorer-data", data),
        "</section>",
    ]


def _intro(shown: int, all_windows: int) -> list[str]:
    if shown == all_windows:
        return []
    return [
        f'<p class="notes">{shown:,} of {all_windows:,} windows are in this page: half of them the least sure, '
        "the others spread over classes.</p>"
    ]


def _controls() -> list[str]:
    return [
        '<div class="controls" hidden>',
        '<span class="stepper"><button type="button" id="previous" aria-keyshortcuts="ArrowLeft">◀ Previous</button> '
        '<button type="button" id="next" aria-keyshortcuts="ArrowRight">Next ▶</button></span>',
        choice("window-list", "window", []),
        choice("window-order", "order", _ORDERS),
        '<label>go to number <input id="window-number" type="search" inputmode="numeric" size="6"></label>',
        "</div>",
        '<p id="window-status" role="status" class="notes"></p>',
    ]


def _places() -> list[str]:
    return [
        '<div id="window-panel" tabindex="-1" hidden>',
        '<h3 id="window-title"></h3><p id="window-sentence"></p>',
        '<div class="columns"><div><h4>Probability of each class</h4><div id="window-classes"></div></div>',
        '<div><h4>Who moved the vote, most first</h4><p class="notes" id="votes-words"></p>'
        '<div id="window-votes"></div></div></div>',
        '<h4>The signal, and the code of each piece</h4><p class="notes" id="signal-words"></p>'
        '<div id="window-signals" tabindex="-1"></div>',
        '<button type="button" id="all-signals" hidden>Show the other channels</button>',
        '<div class="columns"><div><h4 id="for-title"></h4><ol id="window-for"></ol></div>',
        '<div><h4 id="against-title"></h4><ol id="window-against"></ol></div></div>',
        '<div id="nearest"><h4>The most similar source windows</h4><ol id="window-nearest"></ol></div>',
        '<details id="numbers"><summary>All numbers of this vote</summary>'
        '<div class="wide" tabindex="0" role="region" aria-label="All numbers of this vote"></div></details>',
        "</div>",
    ]
