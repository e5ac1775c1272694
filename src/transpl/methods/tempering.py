"""How sure the vote may be of a target, told by how far its labels withstood the refinement."""

from __future__ import annotations

import numpy as np

from transpl.markov.calibration import fit_temper
from transpl.methods.vote import Chunks, Vote


def temper_by_kept_labels(before: Vote, after: Vote, chunks: Chunks) -> float:
    r"""c such that the mean confidence of n windows, y^c / \sum y^c, is (kept + 1) / (n + 2).

    Kept are the windows whose label is the same before and after the class matrices followed the target. Sharpness is
    set on the source, where the vote is right far more often; labels that fall with the first closer look were not
    worth the confidence that they came with. The 1 and the 2 (Laplace's rule of succession) matter for a few windows.

    chunks : of the target's windows; only their probabilities are kept
    returns : c in (0, 1]
    """
    kept, found = 0, []
    for _, coded in chunks:
        y = after.probabilities(coded)
        kept += int(np.count_nonzero(before.probabilities(coded).argmax(axis=1) == y.argmax(axis=1)))
        found.append(y)
    return fit_temper(found, (kept + 1) / (sum(map(len, found)) + 2))
