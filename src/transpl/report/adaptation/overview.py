"""The first screen: how good the labels are, what shifted, which windows to check; and, at the end, what came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from transpl._utils.wording import counted, listed
from transpl.jobs.target_summary import ESTIMATE, LOW_ACCURACY
from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import closed_box, definitions, percent

_ROWS = 11  # of the list of what to check
_ROWS_OF_MISSING = 2  # that a class takes which no window got
_MISSING = 4  # such classes in the list
_HARDLY_MOVED = 0.95  # weight from which a channel has hardly moved
_WORTH_TELLING = 0.05  # difference in the share of a class


def lead(saved: SavedJob) -> str:
    """One sentence that introduces source, target and window."""
    summary = saved.summary
    source, target, n = summary["source"]["name"], summary["target"]["name"], summary["test"]["windows"]
    pieces = "pieces" if n != 1 else "piece"
    return (
        f'<p class="lead">Classifiers that learned from labelled recordings of <b>{escape(source)}</b> (the source) '
        f"labelled {n:,} short {pieces} (windows) of <b>{escape(target)}</b> (the target).</p>"
    )


def first_answers(saved: SavedJob) -> list[str]:
    """The three questions that readers come with."""
    questions = (
        ("good", "How good are the labels?", _how_good(saved)),
        ("shifted", "What shifted, and what was undone?", _what_shifted(saved)),
        ("check", "Which windows should I check?", _windows_to_check(saved)),
    )
    cards = [
        "\n".join([f'<div class="answer {name}">', f"<h2>{title}</h2>", *answer, "</div>"])
        for name, title, answer in questions
    ]
    return ['<div class="answers">', *cards, "</div>"]


def estimate_in(saved: SavedJob) -> dict[str, float] | None:
    """accuracy, low and high; None if the folder has no estimate."""
    return saved.summary.get(ESTIMATE) or (saved.metrics or {}).get(ESTIMATE) or None


# how good


def _how_good(saved: SavedJob) -> list[str]:
    estimate, metrics = estimate_in(saved), saved.metrics or {}
    known: dict[str, Any] = {when: metrics[when] for when in ("after", "before") if when in metrics}
    parts = [*_numbers(estimate, known), *_scale(estimate, known)]
    made = (
        "This variant does not estimate how many of its labels are right."
        if estimate is None
        else "The estimate comes from how far several classifiers agree; no true label was used for it."
    )
    truth = "No true labels were given to compare with."
    if "after" in known:
        windows = counted(known["after"]["windows"], "window")
        truth = f"True labels, known for {windows}, were used only to compare."
    parts.append(f'<p class="notes">{made} {truth}</p>')
    return [*parts, *_warning(saved, estimate)]


def _warning(saved: SavedJob, estimate: dict[str, float] | None) -> list[str]:
    """Why not to rely on the labels, as the command line says it too, and what helps."""
    is_low = estimate is not None and estimate["accuracy"] < LOW_ACCURACY
    reasons = saved.summary.get("warnings") or []
    if not (is_low or reasons):
        return []
    lead = "Do not rely on these labels." if is_low else "Check before you rely on these labels."
    said = ["Many of them are probably wrong."] if is_low else []
    said += [f"{reason[0].upper()}{reason[1:]}." for reason in reasons]
    return [
        f'<p class="warning"><b>{lead}</b> {escape(" ".join(said))} It helps most to label some windows by hand: '
        "<code>transpl review --model FOLDER --out to_label.csv</code> (with the folder of this page) lists the ones "
        "to look at. Fill in true_label, then run transpl adapt again with <code>--labels to_label.csv</code>.</p>"
    ]


def _numbers(estimate: dict[str, float] | None, known: Mapping[str, dict[str, float]]) -> list[str]:
    """The accuracies in large figures: estimated, true, and true before adaptation."""
    cards = []
    if estimate is not None:
        accuracy, low, high = (percent(estimate[name]) for name in ("accuracy", "low", "high"))
        cards.append((f"about {accuracy}", f"right, estimated; probably between {low} and {high}"))
    words = {"after": "right by the true labels", "before": "right before adaptation"}
    cards += [(percent(score["accuracy"], 1), words[when]) for when, score in known.items()]
    shown = [f'<div class="number"><b>{escape(number)}</b>{escape(words)}</div>' for number, words in cards]
    return ['<div class="numbers">', *shown, "</div>"] if shown else []


def _scale(estimate: dict[str, float] | None, known: Mapping[str, dict[str, float]]) -> list[str]:
    """The same accuracies on a line from 0 to 100 %."""
    marks = []
    if estimate is not None:
        width = estimate["high"] - estimate["low"]
        marks.append(f'<span class="interval" style="--at:{estimate["low"]:.4f};--width:{width:.4f}"></span>')
        marks.append(f'<span class="mark estimated" style="--at:{estimate["accuracy"]:.4f}"></span>')
    marks += [f'<span class="mark {when}" style="--at:{one["accuracy"]:.4f}"></span>' for when, one in known.items()]
    if not marks:
        return []
    keys = [("estimated", "estimated, with interval")] if estimate is not None else []
    keys += [(when, {"after": "true", "before": "before adaptation"}[when]) for when in known]
    legend = "".join(f'<span><span class="mark {name}"></span>{words}</span>' for name, words in keys)
    return [
        '<div class="scale" aria-hidden="true">',
        *marks,
        "</div>",
        '<div class="scale-ends" aria-hidden="true"><span>0 %</span>'
        f'<span class="key">{legend}</span><span>100 %</span></div>',
    ]


# what shifted


def _what_shifted(saved: SavedJob) -> list[str]:
    if not saved.is_council:
        return [f"<p>{_moved_most(saved)}{_trust_left(saved)}</p>", *_class_change(saved)]
    parts = [
        "<p>Nothing was undone: no clear change of the sensors was found.</p>",
        f"<p>{_moved_most(saved)}</p>",
    ]
    if saved.undone:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in saved.undone)
        parts = [f'<ul class="undone">{items}</ul>', f"<p>As recorded: {_moved_most(saved)}</p>"]
    return [*parts, *_class_change(saved)]


def _class_change(saved: SavedJob) -> list[str]:
    """The class whose share differs most from the source's."""
    source, target = saved.summary["source"]["class_shares"], saved.summary["test"]["class_shares"]
    if not source:
        return []
    most = max(saved.classes, key=lambda name: abs(target.get(name, 0.0) - source.get(name, 0.0)))
    before, after = source.get(most, 0.0), target.get(most, 0.0)
    if abs(after - before) < _WORTH_TELLING:
        return ["<p>The classes are about as common as in the source.</p>"]
    return [
        f"<p><b>{escape(most)}</b> is {'more' if after > before else 'less'} common: {escape(percent(before))} of the "
        f"source's windows, {escape(percent(after))} of the labels.</p>",
    ]


def _moved_most(saved: SavedJob) -> str:
    """Which channel changed most, and which least."""
    channels = [channel for channel in saved.channels_by_distance if channel.is_read]
    if not channels:
        return "Whether a sensor changed is not known: the codes of its signals do not vary."
    most, least = channels[0], channels[-1]
    if most.distance <= 0:
        return "No sensor changed: source and target show the same patterns."
    if len(channels) == 1:
        return f"The only channel, <b>{escape(most.name)}</b>, changed by {most.distance:.3f} (0 is unchanged)."
    hardly = ", but hardly" if most.weight >= _HARDLY_MOVED else ""
    if f"{most.distance:.3f}" == f"{least.distance:.3f}":
        return f"All changed equally{hardly} (distance {most.distance:.3f}, where 0 is unchanged)."
    return (
        f"The patterns of <b>{escape(most.name)}</b> changed most{hardly} (distance {most.distance:.3f}, where 0 is "
        f"unchanged), {escape(least.name)} least ({least.distance:.3f})."
    )


def _trust_left(saved: SavedJob) -> str:
    most = saved.channels_by_distance[0]
    if most.distance <= 0 or not most.is_read:
        return ""
    return f" Its vote now counts {escape(percent(most.weight))} of the vote of an unchanged sensor."


# what to check


def _windows_to_check(saved: SavedJob) -> list[str]:
    """Classes that no window got, with their likeliest windows, then the doubtful labels; none labelled by hand."""
    missing = list(saved.missing_classes.items())
    rows = [_missing_row(saved, name, windows) for name, windows in missing[:_MISSING]]
    if len(missing) > _MISSING:
        others = escape(listed((name for name, _ in missing[_MISSING:]), "or"))
        rows[-1] += f'<li class="missing">Nor was any labelled {others}.</li>'
    named = {window for _, windows in missing for window in windows}
    known = saved.labelled_by_hand
    order = [row for row in saved.check_order.tolist() if row not in named and not known[row]]
    order = order[: _ROWS - _ROWS_OF_MISSING * len(rows)]
    items = [f"<li>{_window_link(saved, row)}: {_two_likeliest(saved, row)}</li>" for row in order]
    opened = " Open one to see its signal and the reasons." if saved.explained else ""
    intro = "First the classes that no label names, then the most doubtful" if missing else "The most doubtful"
    return [
        f"<p>{intro} of {counted(int((~known).sum()), 'label')}.{opened}</p>",
        f'<ul class="never">{"".join(rows)}</ul>' if rows else "",
        f'<ol class="doubtful">{"".join(items)}</ol>',
        *_how_many_wrong(saved, order),
    ]


def _missing_row(saved: SavedJob, name: str, windows: Sequence[int]) -> str:
    share = (saved.summary["source"]["class_shares"] or {}).get(name)
    of_source = "" if share is None else f" ({escape(percent(share))} of the source)"
    links = listed((_window_link(saved, row) for row in windows), "or")
    candidates = f" If it occurs, then likeliest in {links}." if windows else ""
    return f'<li class="missing"><b>No window was labelled {escape(name)}</b>{of_source}.{candidates}</li>'


def _window_link(saved: SavedJob, row: int) -> str:
    return f'<a href="#window-{row}">window {row}</a>' if row in saved.explained else f"window {row}"


def _two_likeliest(saved: SavedJob, row: int) -> str:
    p = saved.probabilities[row]
    return " or ".join(f"{escape(saved.classes[k])} {escape(percent(p[k]))}" for k in (-p).argsort(kind="stable")[:2])


def _how_many_wrong(saved: SavedJob, rows: Sequence[int]) -> list[str]:
    """How many labels of the list and of all windows are wrong, where the truth is known."""
    truth = saved.truth
    if truth is None:
        return []
    wrong = [truth[row] != saved.labels[row] for row in rows if truth[row]]
    known = truth != ""
    everywhere = int((truth != saved.labels)[known].sum())
    return [
        f'<p class="notes">By the true labels, {sum(wrong)} of these {len(wrong)} are wrong; of all '
        f"{int(known.sum()):,} labels, {everywhere:,}. The list was made without them.</p>"
    ]


# what came in

_LABELLED_BY = {
    "finetune": "a neural network, trained on the source and then on the labels that the vote gave to the target",
    "markov": "a vote of the channels on which patterns follow each other; nothing was trained on the target",
    "source": "the network as trained on the source; it was not adapted",
}


def incoming_section(saved: SavedJob) -> list[str]:
    """Windows, channels, classes, where the labels come from, and the other scores if the truth is known."""
    summary, explanation = saved.summary, saved.explanation
    source, target = summary["source"], summary["target"]
    source_windows = "" if source["windows"] is None else f"{counted(source['windows'], 'window')} "
    labelled_by = _LABELLED_BY.get(summary["mode"], summary["mode"])
    if saved.is_council:
        labelled_by = (
            f"{counted(len(saved.witnesses), 'simple classifier')} (witnesses); each counts by how reliable it proved "
            "on this target, judged without any true label"
        )
    facts = [
        ("source", f"{source['name']}: {source_windows}with labels"),
        ("target", f"{target['name']}: {counted(target['windows'], 'window')} to adapt to, used without labels"),
        ("labels on this page", f"of {counted(summary['test']['windows'], 'window')} of the target"),
        ("channels", f"{len(saved.channels)}: {listed(channel.name for channel in saved.channels)}"),
        ("classes", f"{len(saved.classes)}: {listed(saved.classes)}"),
        ("labels come from", labelled_by),
    ]
    if explanation is not None and explanation.signals is not None:
        up_to = "up to " if explanation.codes.min() < 0 else ""
        steps = explanation.signals.shape[-1]
        facts.insert(3, ("a window", f"{up_to}{steps} time steps, read in pieces of {explanation.patch_length}"))
    if summary["prior"]:
        given = listed(f"{name} {percent(share)}" for name, share in summary["prior"].items())
        facts.append(("class proportions given", given))
    return [
        '<section id="incoming"><h2>What came in</h2>',
        definitions([*facts, *_scores(saved)]),
        *_gain(saved),
        "</section>",
    ]


def _scores(saved: SavedJob) -> list[tuple[str, str]]:
    vote = " by the vote of the channels" if not saved.is_council else ""
    names = {
        "after": "after adaptation",
        "before": "before adaptation",
        "pseudo_labels": f"windows adapted to{vote}",
    }
    metrics = saved.metrics or {}
    return [
        (
            words,
            f"{percent(metrics[key]['accuracy'], 1)} of {counted(metrics[key]['windows'], 'label')} right; macro-F1 "
            f"(every class counts the same) {percent(metrics[key]['macro_f1'], 1)}",
        )
        for key, words in names.items()
        if key in metrics
    ]


def _gain(saved: SavedJob) -> list[str]:
    metrics = saved.metrics or {}
    if "before" not in metrics or "after" not in metrics:
        return []
    before, after = (round(100 * metrics[key]["accuracy"], 1) for key in ("before", "after"))  # as shown above
    if before == after:
        return ["<p>Adaptation did not change how many labels are right.</p>"]
    verb = "raised" if after > before else "lowered"
    return [f"<p>Adaptation {verb} the share of right labels by {abs(after - before):.1f} percentage points.</p>"]


def how_it_works(saved: SavedJob) -> list[str]:
    """A closed box with the terms of the field."""
    return closed_box("How it works", _COUNCIL_POINTS if saved.is_council else _PAPER_POINTS)


_PAPER_POINTS = (
    "Each window is cut into short pieces (patches). A network turns every piece of every channel into one of a few "
    "codes by vector quantisation (VQ): the code whose vector is nearest. The small shapes on this page are what the "
    "network's decoder makes of a single code.",
    "For every class and channel of the source, it is counted how often one code follows another. This gives a "
    "transition matrix, that is, a Markov chain, per class and channel.",
    "The same is counted on the target, without labels. The distance of a channel is the mean earth mover's distance "
    "(EMD) between the rows of both matrices; moving probability costs the cosine distance between code vectors (0 to "
    "2). The weight of the channel, here called trust, is exp(-distance² / sigma²).",
    "A channel's vote for a class is its posterior probability by Bayes' rule: how well that class's chain explains "
    "the codes of the window. It is a mean over time and therefore flat: the order of the classes says more than the "
    "height of the bars.",
    "The vote of all channels, weighted by trust, is the pseudo-label. The network may then be fine-tuned on the most "
    "confident of them; then its answer can differ from the vote, and the page says so.",
    "The margin of a label over its runner-up is divided among channels and single steps in proportion to their log "
    "odds, so the parts add up to the margin exactly. Nothing in the explorer is estimated.",
    "The nearest source windows are those that share most codes at the same places, with channels weighted by trust.",
)
_COUNCIL_POINTS = (
    "First, simple changes of the target's sensors are searched for: turned, mirrored or swapped axes, another unit or "
    "sampling rate, a dead channel. A change is undone if the source explains the target much better without it.",
    "Each witness names a class for each window. An algorithm in the manner of Dawid and Skene (1979), expectation "
    "maximisation, then finds what fits together best: the class of every window, how often each class occurs, and how "
    "often each witness mistakes one class for another. Some witnesses then learn again, on the target, from these "
    "labels, and all are joined once more.",
    "The logarithm of a class's probability is a sum: what each witness adds, according to how reliable it proved, the "
    "share of the class, and what known labels and neighbouring windows add. The explorer shows the parts that decide "
    "between two classes, as factors whose product is the whole. Nothing in it is approximated.",
    "Codes are short shapes, found by k-means clustering of all pieces of the source's signals. For every class and "
    "channel it is counted how often one code follows another: a Markov chain. How well a class's chains explain the "
    "codes of a window is the likelihood of that class.",
    "The same transitions are counted on the target, without labels. The distance of a channel is the mean earth "
    "mover's distance (EMD) between the rows of both transition matrices, with the cosine distance of codes as cost.",
    "The linear witness is a logistic regression: the sum of every quantity times its weight. The explorer shows the "
    "parts of this sum. Trees and kernels have no such parts and are shown as a whole.",
    "Similar source windows are those that share most codes at the same places.",
)
