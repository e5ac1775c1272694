r"""How far each channel moved, by two measures: prototypes of [CLS] vectors, and our earth mover's distance.

prototype distance of channel d:   || mean_S CLS_d - mean_T CLS_d ||_2
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from transpl.nn import channel_summaries
from transpl.report.studies.both_rules import distances_by_rule
from transpl.report.studies.subject import Subject
from transpl.windows import evenly_spaced

POINTS = 300  # drawn per domain; the distances are of all windows


def alignment_study(subject: Subject) -> dict[str, Any]:
    """Per channel: points of both domains in the plane of their two main directions, and both distances."""
    method, sides = subject.method, subject.windows
    network = method.state.source_network
    with method.on_device(network):
        source, target = channel_summaries(network, sides.source), channel_summaries(network, sides.target)
    prototypes = prototype_distances(source, target)
    rules = distances_by_rule(method, method.state.class_counts.pooled(), subject.counts_of_target())
    distances = rules[method.settings.smoothing]
    channels = [
        {
            "name": name,
            "distance": float(distances[d]),
            "weight": float(method.trust(distances)[d]),
            "distances": {rule: float(found[d]) for rule, found in rules.items()},
            "prototype_distance": float(prototypes[d]),
            **_in_a_plane(source[:, d], target[:, d]),
        }
        for d, name in enumerate(subject.channel_names)
    ]
    return {
        "name": subject.name,
        "source_windows": len(source),
        "target_windows": len(target),
        "rule": method.settings.smoothing,
        "rank_correlations": {rule: rank_correlation(found, prototypes) for rule, found in rules.items()},
        "channels": channels,
    }


def prototype_distances(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""|| mean_n CLS^S_{n,d} - mean_n CLS^T_{n,d} ||_2; (n, D, d) and (n', D, d) -> (D,)."""
    return np.linalg.norm(source.mean(axis=0) - target.mean(axis=0), axis=-1)


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's; None where there is nothing to order."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(spearmanr(a, b).statistic)


def _in_a_plane(source: NDArray[np.float64], target: NDArray[np.float64]) -> dict[str, Any]:
    """Both (n, d) on the two main directions of both together; the full decomposition has no random part."""
    pca = PCA(2, svd_solver="full").fit(np.concatenate([source, target]))
    return {
        "variance_shares": [float(np.nan_to_num(share)) for share in pca.explained_variance_ratio_],
        "source": _points(pca, source),
        "target": _points(pca, target),
    }


def _points(pca: PCA, values: NDArray[np.float64]) -> list[list[float]]:
    return pca.transform(values[evenly_spaced(len(values), POINTS)]).round(5).tolist()
