"""CORAL: source and target features with the same covariance (Sun & Saenko 2016)."""

from __future__ import annotations

from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.nn.losses.checks import nothing, same_width

FORMS = ("published", "adatime")


def coral(z_s: Tensor, z_t: Tensor, form: str = "published") -> Tensor:
    r"""||Cov_s - Cov_t||_F^2 / (4 d^2), Cov = S / (n - 1), S = \sum_i (z_i - \bar z)(z_i - \bar z)^T.

    z_s (n_s, d), z_t (n_t, d) -> ()
    form : "adatime" is ||S_s - S_t||_F^2 / (4 d^4), as AdaTime computes it; its published weights belong to this one

    A side with fewer than two rows has no covariance: the loss is then 0.
    """
    check_choice("form", form, FORMS)
    same_width("z_s", z_s, "z_t", z_t)
    if min(len(z_s), len(z_t)) < 2:
        return nothing(z_s, z_t)
    d = z_s.shape[1]
    if form == "adatime":
        return (_scatter(z_s) - _scatter(z_t)).square().sum() / (4 * d**4)
    cov_s, cov_t = _scatter(z_s) / (len(z_s) - 1), _scatter(z_t) / (len(z_t) - 1)
    return (cov_s - cov_t).square().sum() / (4 * d**2)


def _scatter(z: Tensor) -> Tensor:
    r"""S = \sum_i (z_i - \bar z)(z_i - \bar z)^T; z (n, d) -> (d, d)."""
    centred = z - z.mean(dim=0)
    return centred.T @ centred
