"""ATT: which rows two heads may label, how many are asked, and labels for the table."""

import itertools

import numpy as np
from conftest import refusal

from transpl.methods.labelling import agreed, candidate_share, tri_training_labels

# Agree and both sure; agree and both unsure; sure but of different classes; agree with one sure.
P1 = np.array([[0.95, 0.05], [0.6, 0.4], [0.95, 0.05], [0.99, 0.01]])
P2 = np.array([[0.92, 0.08], [0.7, 0.3], [0.03, 0.97], [0.55, 0.45]])


def test_the_rule_on_four_rows():
    assert agreed(P1, P2).tolist() == [True, False, False, True]
    assert agreed(P2, P1).tolist() == [True, False, False, True]


def test_the_threshold_itself_is_not_enough():
    p = [[0.75, 0.25]]
    assert agreed(p, p, threshold=0.75).tolist() == [False]
    assert agreed(p, p, threshold=0.7499).tolist() == [True]


def test_every_row_gets_a_label_and_disagreement_no_confidence():
    pseudo = tri_training_labels(P1, P2)
    np.testing.assert_array_equal(pseudo.labels, [0, 0, 1, 0])
    np.testing.assert_allclose(pseudo.confidence, [0.95, 0.7, 0, 0.99], rtol=1e-15)
    np.testing.assert_allclose(pseudo.probabilities, (P1 + P2) / 2, rtol=1e-15)


def test_where_the_rule_holds_the_table_has_the_common_label():
    rng = np.random.default_rng(0)
    p1, p2 = rng.dirichlet(np.full(3, 0.2), 300), rng.dirichlet(np.full(3, 0.2), 300)
    rows = agreed(p1, p2)
    assert 0 < rows.sum() < 300
    pseudo = tri_training_labels(p1, p2)
    np.testing.assert_array_equal(pseudo.labels[rows], p1.argmax(axis=1)[rows])
    assert (pseudo.confidence[rows] > 0.9).all()


def test_shares_grow_and_are_capped():
    shares = [candidate_share(k) for k in range(40)]
    assert shares[:2] == [0.05, 0.1]
    assert all(a <= b for a, b in itertools.pairwise(shares))
    assert shares[19:] == [1.0] * 21
    assert candidate_share(0, rounds=1) == 1.0


def test_one_row_and_one_class():
    assert agreed(P1[:1], P2[:1]).tolist() == [True]
    assert agreed([[1.0]], [[1.0]]).tolist() == [True]


def test_input_that_cannot_be_used_is_refused():
    with refusal("probabilities"):
        agreed(P1, P2[:3])
    with refusal("probabilities"):
        agreed(P1[:0], P2[:0])
    with refusal("threshold"):
        agreed(P1, P2, threshold=1.0)
    with refusal("k"):
        candidate_share(-1)
    with refusal("rounds"):
        candidate_share(0, rounds=0)
