"""The method in a few words, for those who want to know."""

from __future__ import annotations

from transpl.report.adaptation.saved import Voting

_CODES = (
    "Each window is cut into short pieces (patches). A network turns every piece of every channel into one of a few "
    "codes by vector quantisation (VQ): the code whose vector is nearest. The small shapes on this page are what the "
    "network's decoder makes of a code alone."
)
_CHAINS = (
    "For every class and channel of the source it is counted how often one code follows another: a transition "
    "matrix, that is, a Markov chain per class and channel."
)
_FOLLOWED = (
    " The target's windows are then counted to the classes that they were labelled as, and labelled again, up to "
    "{rounds} times."
)
_TRUST = (
    "The same is counted on the target, without labels. The distance of a channel is the mean earth mover's distance "
    "(EMD) between the rows of both matrices, with the cosine distance between code vectors (0 to 2) as cost. Its "
    "weight, here called trust, is exp(-distance² / sigma²)."
)
_COPIES = (
    " Every channel votes twice: as it was recorded, and as its aligned copy, after a linear map of all channels that "
    "gives the target the source's means and covariances. In the source a channel and its copy are the same."
)
_CHANNEL = (
    "A channel's vote for a class is its posterior probability by Bayes' rule: how well that class's chain explains "
    "the codes of the window. It is a mean over time"
)
_FLAT = " and therefore flat: look at the order rather than at the height."
_CALIBRATED = "; how sharp it may be was set on held-out windows of the source."
_MEAN = "The vote of all channels, weighted by trust, is the pseudo-label."
_PRODUCT = (
    "The channels' likelihoods are multiplied, each to the power of its share of all trust, and with Bayes' rule give "
    "the pseudo-label."
)
_NETWORK = (
    " The network that was trained on the source votes too, with its own class probabilities: half of the say is its "
    "own, half is the channels'."
)
_TEMPERED = (
    " In the end all confidences are lowered alike, until their mean on the target is the share of its windows whose "
    "label stayed the same while they were counted and labelled again."
)
_LEARNT = {
    "labels": " The network may then be fine-tuned on the most confident of them; in that case its answer can differ "
    "from the vote, and the page says so.",
    "vote": " The network may then learn the vote's probabilities of all windows; in that case its answer can differ "
    "from the vote, and the page says so.",
}
_MARGIN = (
    "The margin of a label over its runner-up is shared out over channels and single steps in proportion to their "
    "log-odds, so that the parts add up to the margin exactly. Nothing in the explorer is estimated."
)
_LOG_ODDS = (
    "The lead of a label over its runner-up is the factor by which it is more probable. Its logarithm, the log-odds, "
    "is shared out over voters and single steps, so that the parts add up, and the factors multiply, to the lead "
    "exactly. A probability below 10⁻¹² counts as that. Nothing in the explorer is estimated."
)
_NEAREST = "Nearest source windows are those that share most codes at the same places, channels weighted by trust."


def how_it_works(voting: Voting) -> list[str]:
    """A closed box; open it for the terms of the paper."""
    items = "".join(f"<li>{point}</li>" for point in _points(voting))
    return [f"<section><details><summary>How it works</summary><ul>{items}</ul></details></section>"]


def _points(voting: Voting) -> list[str]:
    joined = _MEAN if voting.vote == "mean" else _PRODUCT
    return [
        _CODES,
        _CHAINS + (_FOLLOWED.format(rounds=voting.refine_rounds) if voting.refine_rounds else ""),
        _TRUST + (_COPIES if voting.aligned_copies else ""),
        _CHANNEL + (_CALIBRATED if voting.calibrate else _FLAT),
        joined
        + (_NETWORK if voting.classifier_evidence else "")
        + (_TEMPERED if voting.temper else "")
        + _LEARNT[voting.learning],
        _LOG_ODDS if voting.vote == "product" or voting.classifier_evidence or voting.temper else _MARGIN,
        _NEAREST,
    ]
