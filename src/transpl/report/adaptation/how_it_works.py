"""The method in a few words, for those who want to know."""

from __future__ import annotations

_CODES = (
    "Each window is cut into short pieces (patches). A network turns every piece of every channel into one of a few "
    "codes by vector quantisation (VQ): the code whose vector is nearest. The small shapes on this page are what the "
    "network's decoder makes of a code alone."
)
_CHAINS = (
    "For every class and channel of the source it is counted how often one code follows another: a transition "
    "matrix, that is, a Markov chain per class and channel."
)
_TRUST = (
    "The same is counted on the target, without labels. The distance of a channel is the mean earth mover's distance "
    "(EMD) between the rows of both matrices, with the cosine distance between code vectors (0 to 2) as cost. Its "
    "weight, here called trust, is exp(-distance² / sigma²)."
)
_CHANNEL = (
    "A channel's vote for a class is its posterior probability by Bayes' rule: how well that class's chain explains "
    "the codes of the window. It is a mean over time and therefore flat: look at the order rather than at the height."
)
_VOTE = (
    "The vote of all channels, weighted by trust, is the pseudo-label. The network may then be fine-tuned on the most "
    "confident of them; in that case its answer can differ from the vote, and the page says so."
)
_MARGIN = (
    "The margin of a label over its runner-up is shared out over channels and single steps in proportion to their "
    "log-odds, so that the parts add up to the margin exactly. Nothing in the explorer is estimated."
)
_NEAREST = "Nearest source windows are those that share most codes at the same places, channels weighted by trust."


def how_it_works() -> list[str]:
    """A closed box; open it for the terms of the paper."""
    points = (_CODES, _CHAINS, _TRUST, _CHANNEL, _VOTE, _MARGIN, _NEAREST)
    items = "".join(f"<li>{point}</li>" for point in points)
    return [f"<section><details><summary>How it works</summary><ul>{items}</ul></details></section>"]
