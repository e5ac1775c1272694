"""Which model is best on the target, judged without target labels: risks to be minimised (AdaTime's set)."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from transpl._utils.errors import invalid

LEARNING_RATES = (0.1, 0.05, 0.01)
_EPOCHS = 30
_BATCH_SIZE = 64
_LEAST_PROBABILITY = 1e-6
_NO_SPREAD = 1e-9  # of weights, relative; below it their variance is rounding errors


def source_risk(losses: ArrayLike) -> float:
    r"""R = (1/n) \sum_i l_i; losses (n,) of held-out source rows."""
    return float(_rows("losses", losses).mean())


def iwcv(weights: ArrayLike, losses: ArrayLike) -> float:
    r"""R = (1/n) \sum_i w_i l_i (importance-weighted cross-validation, Sugiyama et al. 2007).

    weights (n,) from `density_ratio`, losses (n,) of the same held-out source rows
    """
    w, loss = _weights_and_losses(weights, losses)
    return float((w * loss).mean())


def dev(weights: ArrayLike, losses: ArrayLike) -> float:
    r"""R = mean(w l) + \eta mean(w) - \eta, \eta = -Cov(w l, w) / Var(w) (deep embedded validation, You et al. 2019).

    The weights' true mean is 1, so \eta, a control variate, takes variance out of `iwcv` and nothing else.
    Weights that are all equal (or one row) have no variance to take: then R = mean(w l).
    """
    w, loss = _weights_and_losses(weights, losses)
    wl = w * loss
    if np.ptp(w) <= _NO_SPREAD * np.abs(w).max():
        return float(wl.mean())
    covariance = np.cov(wl, w, ddof=1)
    eta = -covariance[0, 1] / covariance[1, 1]
    return float(wl.mean() + eta * w.mean() - eta)


def density_ratio(
    z_source_train: ArrayLike, z_target_train: ArrayLike, z_validation: ArrayLike, seed: int
) -> NDArray[np.float64]:
    r"""w(z) = (N_s / N_t) P(target | z) / P(source | z), P by a classifier that tells source from target features.

    z_source_train (N_s, d), z_target_train (N_t, d), z_validation (n, d) -> (n,), finite and positive

    The classifier has d - d/2 - 2 units and sees 80 % of the rows for 30 epochs; of the learning rates 0.1, 0.05 and
    0.01 the one with the lowest cross-entropy on the other 20 % is kept. The same seed gives the same weights.
    """
    z_s = _features("z_source_train", z_source_train, least=2)
    z_t = _features("z_target_train", z_target_train, least=2, d=z_s.shape[1])
    z = _features("z_validation", z_validation, least=1, d=z_s.shape[1])
    scaler = StandardScaler().fit(np.concatenate([z_s, z_t]))
    domains = _domain_classifier(scaler.transform(z_s), scaler.transform(z_t), seed)
    p = _target_probability(domains, scaler.transform(z))
    return len(z_s) / len(z_t) * p / (1 - p)


def _domain_classifier(z_s: NDArray[np.float64], z_t: NDArray[np.float64], seed: int) -> MLPClassifier:
    """Fit one classifier per learning rate, return the best on held-out rows; target is class 1."""
    rng = np.random.default_rng(seed)
    parts = [np.split(rng.permutation(rows), [max(1, len(rows) // 5)]) for rows in (z_s, z_t)]
    held_out, fitted = (np.concatenate(side) for side in zip(*parts, strict=True))
    y_held_out, y_fitted = (np.repeat([0, 1], [len(s), len(t)]) for s, t in zip(*parts, strict=True))
    classifiers = [_fit(fitted, y_fitted, rate, seed) for rate in LEARNING_RATES]
    risks = [log_loss(y_held_out, _target_probability(each, held_out)) for each in classifiers]
    return classifiers[int(np.argmin(risks))]


def _fit(z: NDArray[np.float64], y: NDArray[np.int64], learning_rate: float, seed: int) -> MLPClassifier:
    classifier = MLPClassifier(
        hidden_layer_sizes=(max(1, z.shape[1] // 2),),
        learning_rate_init=learning_rate,
        batch_size=min(_BATCH_SIZE, len(z)),
        max_iter=_EPOCHS,
        n_iter_no_change=_EPOCHS,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # It stops after a number of epochs on purpose.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(z, y)


def _target_probability(classifier: MLPClassifier, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(target | z), away from 0 and 1 so that ratios and logs are finite; z (n, d) -> (n,)."""
    return np.clip(classifier.predict_proba(z)[:, 1], _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)


def _weights_and_losses(weights: ArrayLike, losses: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    w, loss = _rows("weights", weights), _rows("losses", losses)
    if w.shape != loss.shape:
        raise invalid(
            "losses", expected=f"{len(w)}, one per weight", got=len(loss), advice="Use the same rows for both."
        )
    return w, loss


def _rows(argument: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise invalid(argument, expected="shape (rows,), 1 or more", got=array.shape, advice="Give a number per row.")
    return array


def _features(argument: str, values: ArrayLike, *, least: int, d: int | None = None) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) < least or array.shape[1] != (d or array.shape[1]):
        raise invalid(
            argument,
            expected=f"shape (rows, {d or 'features'}), {least} or more rows",
            got=array.shape,
            advice="Take all features from the same layer.",
        )
    if not np.isfinite(array).all():
        raise invalid(
            argument, expected="finite numbers", got="NaN or infinity", advice="The network may have diverged."
        )
    return array
