"""How methods label target rows: arrays in, arrays out, the same answer each time. No torch, no training.

Features are (n, d), probabilities (n, K) with rows that sum to 1. Rules that end in probabilities become labels
through `most_probable`; the others return `PseudoLabels`.
"""

from transpl.methods.labelling.clusters import cluster_probabilities, cluster_prototypes, match_clusters, stronger_of
from transpl.methods.labelling.most_probable import most_probable
from transpl.methods.labelling.per_class import most_confident_per_class, round_share
from transpl.methods.labelling.prototypes import (
    Prototypes,
    class_prototypes,
    pooled_mean,
    prototype_probabilities,
    unit_rows,
)
from transpl.methods.labelling.shot_labels import shot_labels
from transpl.methods.labelling.t2pl_labels import t2pl_labels
from transpl.methods.labelling.tri_training import agreed, candidate_share, tri_training_labels

__all__ = [
    "Prototypes",
    "agreed",
    "candidate_share",
    "class_prototypes",
    "cluster_probabilities",
    "cluster_prototypes",
    "match_clusters",
    "most_confident_per_class",
    "most_probable",
    "pooled_mean",
    "prototype_probabilities",
    "round_share",
    "shot_labels",
    "stronger_of",
    "t2pl_labels",
    "tri_training_labels",
    "unit_rows",
]
