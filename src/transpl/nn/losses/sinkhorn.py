"""Entropic optimal transport between two sets of rows (Cuturi 2013; as RAINCOAT uses it)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transpl._utils.errors import check_choice, check_int, check_not_negative, check_positive, invalid
from transpl.nn.losses.checks import nothing, same_width
from transpl.nn.losses.distances import squared_distances

GRADIENTS = ("unrolled", "envelope")
_RELATIVE_EPSILON = 0.05
_BLOCK = 10  # iterations between two looks at the marginals
_SMALL_STEP = 1.0


def sinkhorn(
    x: Tensor,
    y: Tensor,
    epsilon: float | Tensor | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-4,
    debiased: bool = False,
    gradient: str = "unrolled",
) -> Tensor:
    r"""OT(x, y) = <P, C>, C_ij = ||x_i - y_j||^2, P the `transport_plan` of C.

    x (n, d), y (m, d) -> ()
    epsilon : None is 0.05 mean(C), as a constant (no gradient)
    debiased : OT(x, y) - OT(x, x) / 2 - OT(y, y) / 2, all with the epsilon of (x, y). 0 for x = y; as <P, C> leaves
        the entropy out, it can be slightly negative between others
    gradient : "unrolled" differentiates the iterations too; "envelope" takes P as a constant, which is the exact
        gradient of <P, C> + \epsilon KL(P || 1 / (n m)) at convergence, and cheaper

    A side without rows has nothing to transport: the cost is then 0.
    """
    check_choice("gradient", gradient, GRADIENTS)
    same_width("x", x, "y", y)
    if len(x) == 0 or len(y) == 0:
        return nothing(x, y)

    def cost(C: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and gradient == "unrolled"):
            P = transport_plan(C, epsilon, max_iterations, tolerance)
        return (P * C).sum()

    C = squared_distances(x, y)
    epsilon = default_epsilon(C) if epsilon is None else epsilon
    if not debiased:
        return cost(C)
    return cost(C) - cost(squared_distances(x, x)) / 2 - cost(squared_distances(y, y)) / 2


def transport_plan(
    C: Tensor, epsilon: float | Tensor | None = None, max_iterations: int = 1000, tolerance: float = 1e-4
) -> Tensor:
    r"""P = argmin <P, C> + \epsilon \sum_ij P_ij log P_ij over P >= 0 with rows 1/n and columns 1/m.

    P_ij = exp(f_i + g_j - C_ij / \epsilon); in turn f makes the rows right, g the columns.

    C (n, m) -> (n, m); columns sum to 1/m, rows to 1/n with an L1 error of at most `tolerance`, looked at every ten
    iterations, unless `max_iterations` are over first.
    """
    if C.ndim != 2 or 0 in C.shape:
        raise invalid("C", expected="shape (n, m), n and m 1 or more", got=tuple(C.shape), advice="Give a cost matrix.")
    if not isinstance(epsilon, Tensor | None):
        check_positive("epsilon", epsilon)
    check_int("max_iterations", max_iterations, least=1)
    check_not_negative("tolerance", tolerance)
    M = -C / (default_epsilon(C) if epsilon is None else epsilon)
    f, g, P = M.new_zeros(len(M)), M.new_zeros(M.shape[1]), M
    step = math.inf
    for done in range(0, max_iterations, _BLOCK):
        n_iterations = min(_BLOCK, max_iterations - done)
        if step <= _SMALL_STEP:
            f, g = _scaled(P, f, g, n_iterations)
        else:
            f, g = _in_logs(M, g, n_iterations)
        P = torch.exp(M + f[:, None] + g)
        error, step = _row_error(P.detach())
        if error <= tolerance:
            break
    return P


def default_epsilon(C: Tensor) -> Tensor:
    r"""\epsilon = 0.05 mean(C), without gradient, above 0 even if C is 0."""
    return (_RELATIVE_EPSILON * C.detach().mean()).clamp(min=torch.finfo(C.dtype).tiny)


def _in_logs(M: Tensor, g: Tensor, n_iterations: int) -> tuple[Tensor, Tensor]:
    r"""f_i = -log n - log \sum_j exp(M_ij + g_j), then g_j likewise: safe from any start."""
    log_n, log_m = (math.log(size) for size in M.shape)
    f = g
    for _ in range(n_iterations):
        f = -log_n - torch.logsumexp(M + g, dim=1)
        g = -log_m - torch.logsumexp(M + f[:, None], dim=0)
    return f, g


def _scaled(P: Tensor, f: Tensor, g: Tensor, n_iterations: int) -> tuple[Tensor, Tensor]:
    """The same iterations as factors u of the rows and v of the columns of P, several times faster.

    An iteration never moves f or g by more than the one before it (log-sum-exp does not stretch the maximum norm), so
    after a step of at most 1 ten of them change P_ij by factors below exp(20): neither overflow nor a lost entry.
    """
    n, m = P.shape
    u, v = _Scaling.apply(n * P, m * P.T, n_iterations)  # type: ignore[no-untyped-call]
    return f + u.log(), g + v.log()


class _Scaling(torch.autograd.Function):
    r"""u_k = 1 / (A v_{k-1}), v_k = 1 / (B u_k), v_0 = 1: the last u and v.

    One node instead of four per iteration, and one product for all that reaches A, another for B:
    with h_k = -dv_k v_k^2 and e_k = -du_k u_k^2, dA = \sum_k e_k v_{k-1}^T, dB = \sum_k h_k u_k^T.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor, n_iterations: int) -> tuple[Tensor, Tensor]:
        us, vs = [], [A.new_ones(A.shape[1])]
        for _ in range(n_iterations):
            us.append(torch.mv(A, vs[-1]).reciprocal_())
            vs.append(torch.mv(B, us[-1]).reciprocal_())
        U, V = torch.stack(us), torch.stack(vs)  # (k, n), (k + 1, m)
        ctx.save_for_backward(A, B, U, V)
        return us[-1], vs[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        A, B, U, V = ctx.saved_tensors
        AT, BT = A.T.contiguous(), B.T.contiguous()
        (du, dv), zero = gradients, torch.zeros_like(U[0])
        e, h = [], []
        for slope_u, slope_v in zip((-U.square()).flip(0).unbind(), (-V.square()).flip(0).unbind(), strict=False):
            h.append(dv * slope_v)
            e.append(torch.addmv(du, BT, h[-1]).mul_(slope_u))
            du, dv = zero, torch.mv(AT, e[-1])
        return torch.stack(e[::-1], dim=1) @ V[:-1], torch.stack(h[::-1], dim=1) @ U, None


def _row_error(P: Tensor) -> tuple[float, float]:
    r"""\sum_i |\sum_j P_ij - 1/n|, and how far the next f will move, max_i |log(n \sum_j P_ij)|."""
    rows = len(P) * P.sum(dim=1)
    error, step = torch.stack([(rows - 1).abs().mean(), rows.log().abs().amax()]).tolist()
    return error, step
