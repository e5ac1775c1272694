"""The whole chain from codes to labels, recomputed with plain loops, and the names outsiders rely on."""

import inspect
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import ot
import pytest

import transpl.markov
from transpl.markov import (
    TransitionCounts,
    channel_distances,
    channel_weights,
    label_probabilities,
    log_likelihoods,
    transport_cost,
)

FLOOR = 1e-4


def domains(seed, channels=3, patches=8, n_codes=4, classes=3):
    """Source codes with labels, shifted target codes, and a codebook."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, 20)
    source = rng.integers(0, n_codes, (20, channels, patches))
    sticky = rng.random(source.shape) < 0.5
    source = np.where(sticky, labels[:, None, None] % n_codes, source)  # classes differ
    target = rng.integers(0, n_codes, (7, channels, patches))
    target[:, 0] = np.where(rng.random((7, patches)) < 0.5, 0, target[:, 0])  # channels shift by different amounts
    return source, labels, target, rng.normal(size=(n_codes, 5))


def label_with_the_package(source, labels, target, codebook, classes, sigma, prior, temperature):
    n_codes = len(codebook)
    source_counts, target_counts = (TransitionCounts.from_codes(codes, n_codes) for codes in (source, target))
    distances = channel_distances(source_counts, target_counts, transport_cost(codebook))
    class_counts = TransitionCounts.from_codes(source, n_codes, labels, classes)
    return label_probabilities(
        log_likelihoods(target, class_counts), channel_weights(distances, sigma), prior, temperature
    )


# The paper's equations, one number at a time.


def rows_of_counts(sequences, n_codes):
    rows = [[0] * n_codes for _ in range(n_codes)]
    for sequence in sequences:
        for i, j in pairwise(sequence):
            rows[i][j] += 1
    return rows


def shares(row):
    return [count / sum(row) for count in row] if sum(row) else None


def cosine_costs(codebook):
    n = len(codebook)
    costs = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if i != j:
                dot = sum(a * b for a, b in zip(codebook[i], codebook[j], strict=True))
                costs[i][j] = 1 - dot / (math.hypot(*codebook[i]) * math.hypot(*codebook[j]))
    return costs


def channel_weight(source, target, costs, sigma, emd):
    n = len(costs)
    total = 0.0
    for p, q in zip(rows_of_counts(source, n), rows_of_counts(target, n), strict=True):
        if shares(p) and shares(q):
            total += emd(shares(p), shares(q), costs)
    return math.exp(-((total / n) ** 2) / sigma**2)


def posterior_of_a_channel(sequence, rows_of_classes, prior, temperature):
    unnormalised = []
    for rows, share in zip(rows_of_classes, prior, strict=True):
        logs = []
        for i, j in pairwise(sequence):
            p = shares(rows[i])[j] if shares(rows[i]) else 0.0
            logs.append(math.log(p if p > 0 else FLOOR))
        unnormalised.append(math.exp(sum(logs) / len(logs)) * share ** (1 / temperature))
    return [value / sum(unnormalised) for value in unnormalised]


def label_with_loops(source, labels, target, codebook, classes, sigma, prior, temperature, emd):
    source, labels, target, codebook = source.tolist(), labels.tolist(), target.tolist(), codebook.tolist()
    costs, channels = cosine_costs(codebook), len(source[0])
    prior = prior or [1 / classes] * classes
    result = [[0.0] * classes for _ in target]
    for d in range(channels):
        weight = channel_weight([w[d] for w in source], [w[d] for w in target], costs, sigma, emd)
        rows_of_classes = [
            rows_of_counts([w[d] for w, y in zip(source, labels, strict=True) if y == k], len(codebook))
            for k in range(classes)
        ]
        for n, window in enumerate(target):
            for k, p in enumerate(posterior_of_a_channel(window[d], rows_of_classes, prior, temperature)):
                result[n][k] += weight * p / channels
    return [[value / sum(row) for value in row] for row in result]


def emd_by_pot(p, q, costs):
    return float(ot.emd2(np.array(p), np.array(q), np.array(costs)))


def total_variation(p, q, costs):
    """The earth mover's distance if moving costs 1 wherever it goes."""
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("prior", "temperature"), [(None, 1.0), ([0.5, 0.2, 0.3], 1.0), ([0.1, 0.2, 0.7], 2.0)])
def test_labels_agree_with_the_papers_equations_in_plain_loops(seed, prior, temperature):
    case = domains(seed)
    settings = {"classes": 3, "sigma": 0.2, "prior": prior, "temperature": temperature}
    expected = label_with_loops(*case, **settings, emd=emd_by_pot)
    np.testing.assert_allclose(label_with_the_package(*case, **settings), expected, rtol=0, atol=1e-12)


def test_labels_agree_with_plain_loops_and_no_transport_solver_if_codes_are_orthogonal():
    source, labels, target, _ = domains(3)
    case = source, labels, target, np.diag([1.0, 2.0, 0.5, 3.0])
    settings = {"classes": 3, "sigma": 0.3, "prior": [0.3, 0.3, 0.4], "temperature": 1.5}
    expected = label_with_loops(*case, **settings, emd=total_variation)
    np.testing.assert_allclose(label_with_the_package(*case, **settings), expected, rtol=0, atol=1e-12)


def test_the_channels_of_the_example_weigh_differently():
    # Guards the tests above: with equal weights they would not notice a lost alignment.
    source, _, target, codebook = domains(0)
    counts = (TransitionCounts.from_codes(codes, 4) for codes in (source, target))
    weights = channel_weights(channel_distances(*counts, transport_cost(codebook)), 0.2)
    assert weights.max() > 1.2 * weights.min()


def test_windows_of_two_clear_classes_are_labelled_right():
    # class 0 alternates, class 1 stays; the target does the same in other windows.
    alternating, staying = [[0, 1, 0, 1, 0, 1]], [[0, 0, 0, 1, 1, 1]]
    source, labels = np.array([alternating, staying, staying]), np.array([0, 1, 1])
    target = np.array([[[0, 0, 1, 1, 1, 1]], [[1, 0, 1, 0, 1, 0]]])
    result = label_with_the_package(source, labels, target, np.eye(2), 2, 0.5, None, 1.0)
    assert result.argmax(axis=1).tolist() == [1, 0]


# names


SIGNATURES = {
    "transport_cost": ["codebook"],
    "channel_distances": ["source", "target", "cost"],
    "channel_weights": ["distances", "sigma"],
    "log_likelihoods": ["codes", "class_counts", "smoothing", "epsilon"],
    "label_probabilities": ["log_likelihoods", "weights", "prior", "prior_temperature"],
    "TransitionCounts.from_codes": ["codes", "n_codes", "labels", "n_classes"],
    "TransitionCounts.probabilities": ["self", "smoothing", "epsilon"],
    "TransitionCounts.save": ["self", "path"],
    "TransitionCounts.load": ["path"],
}
DEFAULTS = {
    "log_likelihoods": {"smoothing": "floor"},
    "label_probabilities": {"prior": None, "prior_temperature": 1.0},
    "TransitionCounts.from_codes": {"labels": None, "n_classes": None},
    "TransitionCounts.probabilities": {"smoothing": "floor"},
}


def parameters_of(name):
    thing = transpl.markov
    for part in name.split("."):
        thing = getattr(thing, part)
    return inspect.signature(thing).parameters


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_promised_names_take_the_promised_arguments_in_order(name):
    parameters = list(parameters_of(name).values())
    promised, further = parameters[: len(SIGNATURES[name])], parameters[len(SIGNATURES[name]) :]
    assert [parameter.name for parameter in promised] == SIGNATURES[name]
    assert all(parameter.default is not inspect.Parameter.empty for parameter in further)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_promised_defaults_hold(name):
    assert {key: parameters_of(name)[key].default for key in DEFAULTS[name]} == DEFAULTS[name]


def test_every_exported_name_exists():
    assert len(set(transpl.markov.__all__)) == len(transpl.markov.__all__)
    assert [name for name in transpl.markov.__all__ if not hasattr(transpl.markov, name)] == []


def test_importing_the_mathematics_does_not_load_torch():
    program = "import sys, transpl.markov; print(sorted({'torch', 'lightning_fabric', 'sklearn'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"
