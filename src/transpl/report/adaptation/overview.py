"""The overview: the questions that readers come with, what data came in, and how the method works."""

from __future__ import annotations

from html import escape

import numpy as np

from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import closed_box, counted, definitions, listed, percent

LOW_ACCURACY = 0.6  # estimated; below it readers are warned
_DOUBTFUL = 8  # windows in the list of those to check
_HARDLY_MOVED = 0.95  # weight from which a channel has hardly moved
_WORTH_TELLING = 0.05  # difference in the share of a class


def first_answers(saved: SavedJob) -> list[str]:
    """The two or three questions that most readers come with."""
    check = ("Which windows should I check?", _windows_to_check(saved))
    if saved.is_council:
        questions = [("How good are the labels?", _how_good(saved)), ("What shifted?", _what_shifted(saved)), check]
    else:
        questions = [("Which sensor changed most?", [f"<p>{_moved_most(saved)}{_trust_left(saved)}</p>"]), check]
    cards = ["\n".join(['<div class="answer">', f"<h2>{title}</h2>", *answer, "</div>"]) for title, answer in questions]
    return ['<div class="answers">', *cards, "</div>"]


def estimated_accuracy(saved: SavedJob) -> dict[str, float] | None:
    """accuracy, low and high; None if the folder has no estimate."""
    return saved.summary.get("estimated_accuracy") or (saved.metrics or {}).get("estimated_accuracy") or None


def _how_good(saved: SavedJob) -> list[str]:
    parts, estimate, metrics = [], estimated_accuracy(saved), saved.metrics
    if estimate is not None:
        accuracy, low, high = (escape(percent(estimate[name])) for name in ("accuracy", "low", "high"))
        parts += [
            f'<p class="estimate"><b>about {accuracy}</b> of the labels are right, probably between {low} and '
            f"{high}.</p>",
            '<p class="notes">This is an estimate from how much the witnesses agree. No true label was used for it.'
            "</p>",
        ]
    if metrics is None or "after" not in metrics:
        parts.append("<p>No true labels were given to compare with.</p>")
    else:
        after, before = (
            escape(percent(metrics[when]["accuracy"], 1)) if when in metrics else "" for when in ("after", "before")
        )
        parts.append(
            f"<p>True labels are known for {counted(metrics['after']['windows'], 'window')}: <b>{after}</b> of the "
            f"labels are right{f', {before} before adaptation' if before else ''}. The true labels were used only for "
            "this comparison.</p>"
        )
    if estimate is not None and estimate["accuracy"] < LOW_ACCURACY:
        parts.append(
            '<p class="warning"><b>Do not rely on these labels.</b> Many of them are probably wrong. It helps most to '
            "label some windows by hand: <code>transpl review --model FOLDER --out to_label.csv</code> (with the "
            "folder of this page) lists the ones to look at. Fill in true_label, then run transpl adapt again with "
            "<code>--labels to_label.csv</code>.</p>"
        )
    return parts


def _what_shifted(saved: SavedJob) -> list[str]:
    parts = ["<p>Nothing was undone in the target's signals.</p>", f"<p>{_moved_most(saved)}</p>"]
    if saved.undone:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in saved.undone)
        parts = [f'<ul class="undone">{items}</ul>', f"<p>As recorded: {_moved_most(saved)}</p>"]
    source, target = saved.summary["source"]["class_shares"], saved.summary["test"]["class_shares"]
    if not source:
        return parts
    most = max(saved.classes, key=lambda name: abs(target.get(name, 0.0) - source.get(name, 0.0)))
    before, after = source.get(most, 0.0), target.get(most, 0.0)
    if abs(after - before) < _WORTH_TELLING:
        return [*parts, "<p>The classes are about as common as in the source.</p>"]
    return [
        *parts,
        f"<p><b>{escape(most)}</b> is {'more' if after > before else 'less'} common: {escape(percent(before))} of the "
        f"source's windows, {escape(percent(after))} of those labelled here.</p>",
    ]


def _moved_most(saved: SavedJob) -> str:
    """Which channel changed most, and which least."""
    channels = saved.channels_by_distance
    most, least = channels[0], channels[-1]
    if most.distance <= 0:
        return "No sensor changed: source and target show the same patterns."
    if len(channels) == 1:
        return f"The only channel, <b>{escape(most.name)}</b>, changed by {most.distance:.3f} (0 is unchanged)."
    hardly = ", but hardly" if most.weight >= _HARDLY_MOVED else ""
    if f"{most.distance:.3f}" == f"{least.distance:.3f}":
        return f"All changed equally{hardly} (distance {most.distance:.3f}, where 0 is unchanged)."
    return (
        f"<b>{escape(most.name)}</b> changed most{hardly} (distance {most.distance:.3f}, where 0 is unchanged), "
        f"{escape(least.name)} least ({least.distance:.3f})."
    )


def _trust_left(saved: SavedJob) -> str:
    most = saved.channels_by_distance[0]
    if most.distance <= 0:
        return ""
    return f" Its vote now counts {escape(percent(most.weight))} of the vote of an unchanged sensor."


def _windows_to_check(saved: SavedJob) -> list[str]:
    """The least sure ones, as "window 17: sit 51 % or walk 49 %"."""
    explained = set() if saved.explanation is None else set(saved.explanation.windows.tolist())
    probabilities, items = saved.probabilities, []
    for row in np.argsort(saved.confidence, kind="stable")[:_DOUBTFUL].tolist():
        p = probabilities[row]
        likeliest = np.argsort(-p, kind="stable")[:2]
        name = f'<a href="#window-{row}">window {row}</a>' if row in explained else f"window {row}"
        classes = " or ".join(f"{escape(saved.classes[k])} {escape(percent(p[k]))}" for k in likeliest)
        items.append(f"<li>{name}: {classes}</li>")
    opened = " Open one to see its signal and the reasons." if explained else ""
    return [
        f"<p>These are the least sure of {counted(len(saved.confidence), 'label')}.{opened}</p>",
        f'<ol class="doubtful">{"".join(items)}</ol>',
    ]


_LABELLED_BY = {
    "finetune": "a neural network, trained on the source and then on the labels that the vote gave to the target",
    "markov": "a vote of the channels on which patterns follow each other; nothing was trained on the target",
    "source": "the network as trained on the source; it was not adapted",
}


def incoming_section(saved: SavedJob) -> list[str]:
    """Windows, channels, classes, where the labels come from, and the scores if the truth is known."""
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
        ("target", f"{target['name']}: {counted(target['windows'], 'window')}, used without labels"),
        ("labelled here", counted(summary["test"]["windows"], "window")),
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
    return ["<section><h2>What came in</h2>", definitions(facts), *_scores(saved), "</section>"]


def _scores(saved: SavedJob) -> list[str]:
    vote = "" if saved.is_council else " by the vote of the channels,"
    names = {
        "before": "right before adaptation",
        "after": "right after adaptation",
        "pseudo_labels": f"right{vote} on the windows adapted to",
    }
    metrics = saved.metrics or {}
    cards = [
        f'<div class="number"><b>{100 * metrics[key]["accuracy"]:.1f} %</b>{escape(words)}<br>'
        f'<span class="notes">{counted(metrics[key]["windows"], "window")}; macro-F1 '
        f"{100 * metrics[key]['macro_f1']:.1f} %</span></div>"
        for key, words in names.items()
        if key in metrics
    ]
    if not cards:
        return ["<p>No true labels were given, so nothing is scored here.</p>"]
    parts = ['<div class="numbers">', *cards, "</div>"]
    if "before" not in metrics or "after" not in metrics:
        return parts
    before, after = (round(100 * metrics[key]["accuracy"], 1) for key in ("before", "after"))  # as shown above
    if before == after:
        return [*parts, "<p>Adaptation did not change how many labels are right.</p>"]
    verb = "raised" if after > before else "lowered"
    return [
        *parts,
        f"<p>Adaptation {verb} the share of right labels by {abs(after - before):.1f} percentage points.</p>",
    ]


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
