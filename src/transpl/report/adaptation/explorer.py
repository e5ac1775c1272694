"""The explorer: choose a window, see its signal, who voted for what and why. The page's script fills it."""

from __future__ import annotations

from transpl.report.adaptation.explorer_data import explorer_data
from transpl.report.adaptation.saved import Saved
from transpl.report.wording import as_script_data, choice

_ORDERS = [("doubt", "least sure first"), ("odds", "vote and label differ first"), ("number", "by number")]
_ORDERS_OF_COUNCIL = [
    ("doubt", "least sure first"),
    ("agree", "witnesses disagree most first"),
    ("number", "by number"),
]
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
        *_controls(_ORDERS_OF_COUNCIL if saved.of_council else _ORDERS),
        *_places(of_council=saved.of_council),
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


def _controls(orders: list[tuple[str, str]]) -> list[str]:
    return [
        '<div class="controls" hidden>',
        '<span class="stepper"><button type="button" id="previous" aria-keyshortcuts="ArrowLeft">◀ Previous</button> '
        '<button type="button" id="next" aria-keyshortcuts="ArrowRight">Next ▶</button></span>',
        choice("window-list", "window", []),
        choice("window-order", "order", orders),
        '<label>go to number <input id="window-number" type="search" inputmode="numeric" size="6"></label>',
        "</div>",
        '<p id="window-status" role="status" class="notes"></p>',
    ]


def _places(*, of_council: bool) -> list[str]:
    """Empty places that the script fills."""
    voters = "What each witness adds" if of_council else "Who moved the vote"
    numbers = f"All numbers of this {'label' if of_council else 'vote'}"
    return [
        '<div id="window-panel" tabindex="-1" hidden>',
        '<h3 id="window-title"></h3><p id="window-sentence"></p>',
        f'<div class="columns {"of-council" if of_council else ""}">',
        '<div><h4>Probability of each class</h4><div id="window-classes"></div></div>',
        f'<div><h4>{voters}, most first</h4><p class="notes" id="votes-words"></p>',
        '<div id="window-votes" tabindex="-1"></div>',
        *(['<button type="button" id="all-witnesses" hidden>Show the other witnesses</button>'] if of_council else []),
        "</div></div>",
        '<h4>The signal, and the code of each piece</h4><p class="notes" id="signal-words"></p>',
        '<div id="window-signals" tabindex="-1"></div>',
        '<button type="button" id="all-signals" hidden>Show the other channels</button>',
        *(['<h4>What the codes say</h4><p class="notes" id="codes-words"></p>'] if of_council else []),
        *_two_lists("for", "against"),
        *(_FEATURES if of_council else []),
        '<div id="nearest"><h4>The most similar source windows</h4><ol id="window-nearest"></ol></div>',
        f'<details id="numbers"><summary>{numbers}</summary>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{numbers}"></div></details>',
        "</div>",
    ]


def _two_lists(left: str, right: str) -> list[str]:
    return [
        f'<div class="columns"><div><h4 id="{left}-title"></h4><ol id="window-{left}"></ol></div>',
        f'<div><h4 id="{right}-title"></h4><ol id="window-{right}"></ol></div></div>',
    ]


_FEATURES = [
    '<div id="linear"><h4>What the numbers of the linear witness say</h4><p class="notes" id="linear-words"></p>',
    *_two_lists("features-for", "features-against"),
    "</div>",
]
