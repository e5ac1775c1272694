"""Losses of domain adaptation and of alignment, as pure functions of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction, check_int, check_not_negative, check_positive, invalid

CORAL_FORMS = ("published", "adatime")
SINKHORN_GRADIENTS = ("unrolled", "envelope")
N_KERNELS = 5
SHOT_EPSILON = 1e-5
_MIN_BANDWIDTH = 1e-12
_MIN_PROPORTION = 1e-7
_RELATIVE_EPSILON = 0.05
_BLOCK = 10  # Sinkhorn iterations between two checks of the marginals
_SMALL_STEP = 1.0
_PROBE = 0.01


def coral(z_s: Tensor, z_t: Tensor, form: str = "published") -> Tensor:
    r"""||Cov_s - Cov_t||_F^2 / (4 d^2), Cov = S / (n - 1), S = \sum_i (z_i - \bar z)(z_i - \bar z)^T.

    z_s (n_s, d), z_t (n_t, d) -> ()
    form : "adatime" is ||S_s - S_t||_F^2 / (4 d^4), as AdaTime computes it and as its published weights need it

    The loss is 0 if a side has fewer than two rows, so no covariance. Sun and Saenko 2016.
    """
    check_choice("form", form, CORAL_FORMS)
    _check_same_width("z_s", z_s, "z_t", z_t)
    if min(len(z_s), len(z_t)) < 2:
        return _zero_loss(z_s, z_t)
    d = z_s.shape[1]
    if form == "adatime":
        return (_scatter(z_s) - _scatter(z_t)).square().sum() / (4 * d**4)
    cov_s, cov_t = _scatter(z_s) / (len(z_s) - 1), _scatter(z_t) / (len(z_t) - 1)
    return (cov_s - cov_t).square().sum() / (4 * d**2)


def _scatter(z: Tensor) -> Tensor:
    r"""S = \sum_i (z_i - \bar z)(z_i - \bar z)^T; z (n, d) -> (d, d)."""
    centred = z - z.mean(dim=0)
    return centred.T @ centred


def mmd(z_s: Tensor, z_t: Tensor, b0: Tensor | None = None) -> Tensor:
    r"""MMD^2 = mean K_ss + mean K_tt - 2 mean K_st, k(a, b) = \sum_{i=0}^4 exp(-||a - b||^2 / (b_0 2^i)).

    z_s (n_s, d), z_t (n_t, d) -> (); the means include the diagonals, so it is at least 0 up to rounding
    b0 : the smallest bandwidth (); None is a quarter of the mean squared distance between different rows of the pooled
        batch, without gradient, at least 1e-12 in case all rows are equal

    The loss is 0 if a side has no rows. As in MMDA, Rahman et al. 2020.
    """
    _check_same_width("z_s", z_s, "z_t", z_t)
    n_s = len(z_s)
    if n_s == 0 or len(z_t) == 0:
        return _zero_loss(z_s, z_t)
    pooled = torch.cat([z_s, z_t])  # (n, d)
    D = _squared_distances(pooled, pooled)  # (n, n)
    k = _kernel(D, _bandwidth(D.detach()) if b0 is None else b0)
    return k[:n_s, :n_s].mean() + k[n_s:, n_s:].mean() - 2 * k[:n_s, n_s:].mean()


def _bandwidth(D: Tensor) -> Tensor:
    r"""b_0 = \sum_{i \ne j} D_ij / (4 n (n - 1)); the diagonal of D is 0."""
    n = len(D)
    return (D.sum() / (4 * n * (n - 1))).clamp(min=_MIN_BANDWIDTH)


def _kernel(D: Tensor, b0: Tensor) -> Tensor:
    bandwidths = b0 * 2.0 ** torch.arange(N_KERNELS, device=D.device, dtype=D.dtype)
    return torch.exp(-D / bandwidths[:, None, None]).sum(dim=0)


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
    epsilon : None is 0.05 mean(C), without gradient
    debiased : OT(x, y) - OT(x, x) / 2 - OT(y, y) / 2, all with the epsilon of (x, y). It is 0 for x = y, but can be
        slightly negative otherwise, as <P, C> leaves the entropy out
    gradient : "unrolled" also differentiates the iterations; "envelope" takes P as a constant, which is cheaper and at
        convergence the exact gradient of <P, C> + \epsilon KL(P || 1 / (n m))

    The cost is 0 if a side has no rows. Cuturi 2013, as RAINCOAT uses it.
    """
    check_choice("gradient", gradient, SINKHORN_GRADIENTS)
    _check_same_width("x", x, "y", y)
    if len(x) == 0 or len(y) == 0:
        return _zero_loss(x, y)

    def cost(C: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and gradient == "unrolled"):
            P = transport_plan(C, epsilon, max_iterations, tolerance)
        return (P * C).sum()

    C = _squared_distances(x, y)
    epsilon = _default_epsilon(C) if epsilon is None else epsilon
    if not debiased:
        return cost(C)
    return cost(C) - cost(_squared_distances(x, x)) / 2 - cost(_squared_distances(y, y)) / 2


def transport_plan(
    C: Tensor, epsilon: float | Tensor | None = None, max_iterations: int = 1000, tolerance: float = 1e-4
) -> Tensor:
    r"""P = argmin <P, C> + \epsilon \sum_ij P_ij log P_ij over P >= 0 with rows 1/n and columns 1/m.

    P_ij = exp(f_i + g_j - C_ij / \epsilon); f corrects the sums of the rows, g those of the columns, in turn.

    C (n, m) -> (n, m); columns sum to 1/m, rows to 1/n with an L1 error of at most `tolerance`, which is checked every
    ten iterations, unless `max_iterations` are over first.
    """
    if C.ndim != 2 or 0 in C.shape:
        raise invalid("C", expected="shape (n, m), n and m 1 or more", got=tuple(C.shape), advice="Give a cost matrix.")
    if not isinstance(epsilon, Tensor | None):
        check_positive("epsilon", epsilon)
    check_int("max_iterations", max_iterations, least=1)
    check_not_negative("tolerance", tolerance)
    M = -C / (_default_epsilon(C) if epsilon is None else epsilon)
    f, g, P = M.new_zeros(len(M)), M.new_zeros(M.shape[1]), M
    step = math.inf
    for done in range(0, max_iterations, _BLOCK):
        n_iterations = min(_BLOCK, max_iterations - done)
        if step <= _SMALL_STEP:
            f, g = _scaling_iterations(P, f, g, n_iterations)
        else:
            f, g = _log_iterations(M, g, n_iterations)
        P = torch.exp(M + f[:, None] + g)
        error, step = _row_error(P.detach())
        if error <= tolerance:
            break
    return P


def _default_epsilon(C: Tensor) -> Tensor:
    r"""\epsilon = 0.05 mean(C), without gradient, above 0 even if C is 0."""
    return (_RELATIVE_EPSILON * C.detach().mean()).clamp(min=torch.finfo(C.dtype).tiny)


def _log_iterations(M: Tensor, g: Tensor, n_iterations: int) -> tuple[Tensor, Tensor]:
    r"""f_i = -log n - log \sum_j exp(M_ij + g_j), then g_j likewise: safe from any start."""
    log_n, log_m = (math.log(size) for size in M.shape)
    f = g
    for _ in range(n_iterations):
        f = -log_n - torch.logsumexp(M + g, dim=1)
        g = -log_m - torch.logsumexp(M + f[:, None], dim=0)
    return f, g


def _scaling_iterations(P: Tensor, f: Tensor, g: Tensor, n_iterations: int) -> tuple[Tensor, Tensor]:
    """The same iterations, several times faster, as factors u of the rows and v of the columns of P.

    No iteration moves f or g further than the one before it (log-sum-exp does not stretch the maximum norm). So after a
    step of at most 1, ten iterations change P_ij by factors below exp(20), and nothing overflows or vanishes.
    """
    n, m = P.shape
    u, v = _Scaling.apply(n * P, m * P.T, n_iterations)  # type: ignore[no-untyped-call]
    return f + u.log(), g + v.log()


class _Scaling(torch.autograd.Function):
    r"""u_k = 1 / (A v_{k-1}), v_k = 1 / (B u_k), v_0 = 1: the last u and v.

    One node of the graph instead of four per iteration, and one matrix product for each gradient:
    dA = \sum_k e_k v_{k-1}^T and dB = \sum_k h_k u_k^T with h_k = -dv_k v_k^2 and e_k = -du_k u_k^2.
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
    r"""\sum_i |\sum_j P_ij - 1/n|, and the size of the next step of f, max_i |log(n \sum_j P_ij)|."""
    rows = len(P) * P.sum(dim=1)
    error, step = torch.stack([(rows - 1).abs().mean(), rows.log().abs().amax()]).tolist()
    return error, step


def mean_entropy(logits: Tensor) -> Tensor:
    r"""(1/n) \sum_i H(p_i), H(p) = -\sum_k p_k log p_k, p = softmax(logits).

    logits (n, K) -> (), 0 without rows; exact and finite for logits of any size.
    """
    log_p = F.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p).sum() / max(1, len(logits))


def row_entropies(logits: Tensor) -> Tensor:
    r"""H(p_i) = -\sum_k p_ik log p_ik, p = softmax(logits); logits (n, K) -> (n,)."""
    log_p = F.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1)


def mean_entropy_of(p: Tensor) -> Tensor:
    r"""(1/n) \sum_i H(p_i), H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), 0 without rows.

    Epsilon shifts H by up to K epsilon; it is that of SHOT, Liang et al. 2020.
    """
    return _entropies(p).sum() / max(1, len(p))


def diversity(p: Tensor) -> Tensor:
    r"""H(\bar p), \bar p = (1/n) \sum_i p_i, H(p) = -\sum_k p_k log(p_k + \epsilon); p (n, K) -> (), 0 without rows."""
    return _entropies(p.sum(dim=0) / max(1, len(p)))


def _entropies(p: Tensor) -> Tensor:
    """(..., K) -> (...)."""
    return -(p * (p + SHOT_EPSILON).log()).sum(dim=-1)


def sparsemax(z: Tensor, dim: int = -1) -> Tensor:
    r"""p = max(z - \tau, 0), \tau = (\sum_{i \in S} z_i - 1) / |S|: the point of the simplex nearest to z.

    S are the k largest z, k = max{j : 1 + j z_(j) > \sum_{r <= j} z_(r)}, z_(1) >= z_(2) >= ...

    z (..., K, ...) -> the same shape, sums to 1 along `dim`. Masked entries, -inf, get 0 and gradient 0; if all are
    masked, all get 0. Martins and Astudillo 2016.
    """
    masked = z == -torch.inf
    top = z.detach().amax(dim, keepdim=True)
    # Neither a shift of z nor entries more than 1 below the largest change p, so both can be limited.
    z = (z - top.masked_fill(top == -torch.inf, 0.0)).clamp(min=-2.0)
    S = _support(z.detach(), dim)
    tau = ((z * S).sum(dim, keepdim=True) - 1) / S.sum(dim, keepdim=True)
    # The mask, not only the clamp, zeroes entries outside S: rounding at a tie with tau must not pass a gradient.
    return (z - tau).clamp(min=0.0).masked_fill(masked | ~S, 0.0)


def _support(z: Tensor, dim: int) -> Tensor:
    """Mark the entries of S; ties are in or out together."""
    descending = z.sort(dim, descending=True).values.movedim(dim, -1)
    j = torch.arange(1, descending.shape[-1] + 1, device=z.device)
    inside = 1 + j * descending > descending.cumsum(-1)  # a prefix: true up to j = k
    k = inside.sum(-1, keepdim=True)
    return z >= descending.gather(-1, k - 1).movedim(-1, dim)


def reverse_gradient(z: Tensor, strength: float) -> Tensor:
    r"""R(z) = z, dR/dz = -\lambda I with \lambda = `strength` (Ganin et al. 2016)."""
    return _Reversal.apply(z, strength)  # type: ignore[no-untyped-call]


def reversal_strength(q: float) -> float:
    r"""\lambda(q) = 2 / (1 + exp(-10 q)) - 1, from 0 at the start (q = 0) to almost 1 at the end (q = 1)."""
    check_fraction("q", q, zero=True, one=True)
    return 2 / (1 + math.exp(-10 * q)) - 1


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


def weight_overlap(W1: Tensor, W2: Tensor) -> Tensor:
    r"""\sum_ij |W_1 W_2^T|_ij: how similar the units of two layers on the same features are (Saito et al. 2017).

    W1 (units, features), W2 (units', features) -> (); torch's layout, the paper's |W_1^T W_2| has columns for units
    """
    _check_same_width("W1", W1, "W2", W2)
    return (W1 @ W2.T).abs().sum()


def divergence_from(p: Tensor, logits: Tensor) -> Tensor:
    r"""(1/n) \sum_i KL(p_i || q_i), q = softmax(logits), 0 log 0 = 0; p and logits (n, K) -> ()."""
    return (torch.xlogy(p, p) - p * logits.log_softmax(dim=-1)).sum() / max(1, len(p))


def virtual_adversarial_loss(classify: Callable[[Tensor], Tensor], x: Tensor, logits: Tensor, radius: float) -> Tensor:
    r"""(1/n) \sum_i KL(p(x_i) || p(x_i + r_i)), r_i the change of length `radius` that changes p(x_i) most.

    r_i = radius g_i / ||g_i||, g_i = the gradient by v of KL(p(x_i) || p(x_i + v)) at v = 0.01 u_i / ||u_i||,
    u_i ~ N(0, I): one power iteration for the largest curvature. Neither p(x) nor r carries a gradient.

    classify : x (n, D, T) -> logits (n, K)
    logits : classify(x), computed already

    Miyato et al. 2018, as VADA uses it. Published is 1e-6 in place of 0.01, but in 32 bits x + 1e-6 u / ||u|| is mostly
    x itself, and the direction would be that of rounding errors.
    """
    check_positive("radius", radius)
    p = logits.detach().softmax(dim=-1)
    with torch.enable_grad():
        v = (_PROBE * _unit_windows(torch.randn_like(x))).requires_grad_()
        (g,) = torch.autograd.grad(divergence_from(p, classify(x + v)), v)
    return divergence_from(p, classify(x + radius * _unit_windows(g)))


def _unit_windows(v: Tensor) -> Tensor:
    """v_i / ||v_i||, a window of zeros stays zero; v (n, D, T)."""
    lengths = torch.linalg.vector_norm(v.flatten(1), dim=1)
    return v / torch.where(lengths > 0, lengths, 1)[:, None, None]


def proportion_divergence(pi: Tensor, p_bar: Tensor) -> Tensor:
    r"""KL(\pi || \bar p) = \sum_k \pi_k log(\pi_k / \bar p_k), a class with \pi_k = 0 contributes 0.

    pi (K,) known proportions of the target, p_bar (K,) mean prediction for target rows, at least 1e-7 -> ().
    Wilson et al. 2020.
    """
    if pi.ndim != 1:
        raise invalid("pi", expected="shape (classes,)", got=tuple(pi.shape), advice="Give one proportion per class.")
    if p_bar.shape != pi.shape:
        expected = f"shape {tuple(pi.shape)}, as pi has"
        raise invalid("p_bar", expected=expected, got=tuple(p_bar.shape), advice="Average predictions over the rows.")
    return (torch.xlogy(pi, pi) - torch.xlogy(pi, p_bar.clamp(min=_MIN_PROPORTION))).sum()


def _check_same_width(first: str, a: Tensor, second: str, b: Tensor) -> None:
    """Raise unless `a` and `b` (called `first` and `second`) are matrices with equally many columns."""
    if a.ndim != 2:
        raise invalid(first, expected="shape (rows, columns)", got=tuple(a.shape), advice="Flatten or add axes.")
    if b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise invalid(
            second,
            expected=f"shape (rows, {a.shape[1]}), as {first} has {a.shape[1]} columns",
            got=tuple(b.shape),
            advice="Take both from the same layer.",
        )


def _zero_loss(a: Tensor, b: Tensor) -> Tensor:
    """Return 0 as a part of the graphs of both."""
    return a[:0].sum() + b[:0].sum()


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    r"""D_ij = ||a_i - b_j||^2; a (n, d), b (m, d) -> (n, m).

    Equal rows have distance and gradient 0. The rounding errors of |a|^2 + |b|^2 - 2 a b would become a loss where a
    bandwidth is made of them.
    """
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
