"""Maximum mean discrepancy of two samples, with several kernels."""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError

Kernel = Literal["imq", "imq-per-latent", "imq-unsquared", "rbf"]
Estimator = Literal["unbiased", "biased"]
Width = float | Float[Tensor, ""]
BLOCK = 2**16
"""Number of values that are processed at once, so they fit the processor's cache."""
SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def squared_distances(x: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample sample"]:
    """Return ‖x_i − x_j‖² of all pairs, by one matrix product; 0 on the diagonal and never negative."""
    x = x - x.mean(0)  # ‖a‖² + ‖b‖² − 2ab loses precision to a common offset
    squares = (x**2).sum(1)
    distances = squares[:, None] + squares[None, :] - 2 * x @ x.T
    return distances.clamp_min(0) * (1 - torch.eye(len(x), dtype=x.dtype, device=x.device))


def imq(
    t: Float[Tensor, "*pair"], base: Width, scales: tuple[float, ...]
) -> tuple[Float[Tensor, "*pair"], Float[Tensor, "*pair"]]:
    """Return Σ_s C_s / (C_s + t) with C_s = s · base, and its derivative with respect to t."""
    value, slope, part = torch.zeros_like(t), torch.zeros_like(t), torch.empty_like(t)
    for scale in scales:
        # As a number, because the width has no gradient.
        c = float(scale * base)
        torch.add(t, c, out=part).reciprocal_()
        value.add_(part, alpha=c)
        # The derivative of C/(C + t) is −C/(C + t)².
        slope.addcmul_(part, part, value=-c)
    return value, slope


class InverseMultiquadratic(torch.autograd.Function):
    """The kernel of distances; it stores one slope for the backward pass instead of an array for every scale."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, base: Width, scales: tuple[float, ...]) -> Tensor:
        value, slope = imq(t, base, scales)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope, None, None


class PerLatentSum(torch.autograd.Function):
    """Σ_ij w_ij Σ_l k(x_il, x_jl), a few latents at a time, with the gradient computed in the forward pass.

    If w is symmetric, the derivative with respect to x_il is 4 Σ_j w_ij k'(d²) d, with d = x_il − x_jl. All latents at
    once would need sample × sample × latent numbers and be limited by memory.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, base: Width, scales: tuple[float, ...]) -> Tensor:
        total, gradients = x.new_zeros(()), []
        for columns in x.T.split(max(1, BLOCK // len(x) ** 2)):
            difference = columns[:, :, None] - columns[:, None, :]
            value, slope = imq(difference**2, base, scales)
            total += value.mul_(weights).sum()
            gradients.append(4 * slope.mul_(weights).mul_(difference).sum(2))
        ctx.save_for_backward(torch.cat(gradients).T)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradients[0] * gradient, None, None, None


def kernel_sum(
    x: Float[Tensor, "sample latent"],
    weights: Float[Tensor, "sample sample"],
    kernel: Kernel = "imq",
    width: Width | None = None,
    scales: tuple[float, ...] = SCALES,
) -> Float[Tensor, ""]:
    r"""Return Σ_ij w_ij k(x_i, x_j) over all pairs of a sample, with symmetric weights w.

    * ``imq``: the inverse multiquadratic, with n latents, width σ (default 1) and scales s,

      .. math:: k(x, y) = \sum_s \frac{C_s}{C_s + \|x - y\|^2}, \qquad C_s = 2 n \sigma^2 s

      For s = 1, C is the mean squared distance of two draws from N(0, σ²I). Tolstikhin et al., Wasserstein
      Auto-Encoders (tolstikhin2018); the scales are added, not averaged, as in their code.
    * ``imq-per-latent``: the same for every coordinate alone, C_s = 2σ²s, summed over latents (the code of
      mathieu2019). It compares marginals: it does not distinguish q(z) and p(z) that differ only in the dependence
      between latents.
    * ``imq-unsquared``: C_s / (C_s + ‖x − y‖), as printed in mathieu2019 App. B, without the square. C is not
      stated there; here it is s√(2nσ²), again the distance of two draws.
    * ``rbf``: exp(−‖x − y‖² / 2σ²); without a width, σ is the median distance of the sample, and its gradient is
      ignored.

    All are positive definite. They distinguish any two distributions, except that ``imq-per-latent`` distinguishes only
    marginals.
    """
    sigma: Width = 1.0 if width is None else width
    typical = 2 * x.shape[1] * sigma**2
    if kernel == "imq-per-latent":
        return PerLatentSum.apply(x, weights, 2 * sigma**2, scales)
    distances = squared_distances(x)
    if kernel == "imq":
        return (weights * InverseMultiquadratic.apply(distances, typical, scales)).sum()
    if kernel == "imq-unsquared":
        # The root has no derivative at 0, and the clamp blocks the gradient there.
        lengths = distances.clamp_min(torch.finfo(x.dtype).tiny).sqrt()
        return (weights * InverseMultiquadratic.apply(lengths, typical**0.5, scales)).sum()
    square = median_square(distances) if width is None else width**2
    return (weights * torch.exp(-0.5 * distances / square)).sum()


def median_square(distances: Float[Tensor, "sample sample"]) -> Float[Tensor, ""]:
    """Return the median squared distance of distinct points, without gradient; 1 if all points coincide."""
    rows, columns = torch.triu_indices(len(distances), len(distances), 1, device=distances.device)
    squares = distances.detach()[rows, columns]
    apart = squares[
        squares > torch.finfo(squares.dtype).eps * squares.max()
    ]  # smaller values are rounding errors of 0
    return apart.median() if len(apart) else squares.new_ones(())


def mmd(
    x: Float[Tensor, "first latent"],
    y: Float[Tensor, "second latent"],
    kernel: Kernel = "imq",
    width: Width | None = None,
    scales: tuple[float, ...] = SCALES,
    estimator: Estimator = "unbiased",
) -> Float[Tensor, ""]:
    r"""Estimate the squared maximum mean discrepancy between the distributions of two samples.

    .. math:: \mathrm{MMD}^2(P, Q) = \mathbb{E}\left[ k(X, X') - 2 k(X, Y) + k(Y, Y') \right]

    for independent X, X' ~ P and Y, Y' ~ Q: the squared distance of the two mean embeddings, which is 0 if P = Q.
    ``unbiased`` (the U-statistic) excludes the pairs of a point with itself from the two within-sample terms and can be
    negative. ``biased`` (the V-statistic) includes them, is never negative, and exceeds it by
    (k(x,x) − mean of the other k) / n for each sample, which matters most in small batches.

    Reference: mushom2020 Eq. 2.6; Gretton et al., A Kernel Two-Sample Test (gretton2012). The median bandwidth depends
    on the sample, so the U-statistic is unbiased only for a fixed bandwidth.

    >>> round(float(mmd(torch.zeros(2, 1), torch.ones(2, 1), kernel="rbf", width=1.0)), 6)
    0.786939
    """
    if estimator == "unbiased" and min(len(x), len(y)) < 2:
        raise InputError(
            problem="the unbiased estimator compares different points of a sample, so each requires at least 2",
            got=f"{len(x)} and {len(y)}",
            remedy=("use ", Argument("estimator", "biased")),
        )
    weights = pair_weights(len(x), len(y), estimator).to(x)
    return kernel_sum(torch.cat([x, y]), weights, kernel, width, scales)


# Batches of one size share their weights, which are quadratic in it.
@functools.lru_cache(maxsize=8)
def pair_weights(n: int, m: int, estimator: Estimator) -> Float[Tensor, "both both"]:
    """Return the weight of every pair of the pooled sample: 1/n² or 1/m² within, −1/nm across; they sum to 0.

    The unbiased weights are 0 for a point with itself, and 1/n(n − 1) or 1/m(m − 1) for the other pairs within.
    """
    sign = torch.cat(
        [torch.full((n,), 1 / n, dtype=torch.float64), torch.full((m,), -1 / m, dtype=torch.float64)]
    )
    # Within a sample the product of signs is positive, across samples negative.
    weights = torch.outer(sign, sign)
    if estimator == "unbiased":
        weights[:n, :n] *= n / (n - 1)
        weights[n:, n:] *= m / (m - 1)
        weights.fill_diagonal_(0)
    return weights
