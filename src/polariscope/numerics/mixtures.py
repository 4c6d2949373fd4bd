"""Log-densities of mixtures, at draws of their components or at any points."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

BLOCK = 2**18
"""Size of a block in numbers, 2 MB: blocks that fit in the processor's cache are several times faster."""
LOG_2PI = math.log(2 * math.pi)


def log_sums(exponents: Float[np.ndarray, "row sample"]) -> Float[np.ndarray, " row"]:
    """Return log Σ_k e^x of each row; the array is overwritten.

    >>> log_sums(np.array([[-1000.0, -1000.0]])) + 1000
    array([0.69314718])
    """
    # The largest exponent is subtracted, so at least one term of the sum is 1.
    largest = exponents.max(axis=1, keepdims=True)
    exponents -= largest
    np.maximum(exponents, -700.0, out=exponents)  # e^−700 is negligible, but underflow is slow
    np.exp(exponents, out=exponents)
    return largest[:, 0] + np.log(exponents.sum(axis=1))


def log_mixture(
    n: int, log_densities: Callable[[slice], Float[np.ndarray, "row sample"]], n_points: int | None = None
) -> Float[np.ndarray, " point"]:
    r"""Return log (1/n) Σ_k q_k(z_i) for each i, computed in blocks of rows.

    :param n: number of components
    :param log_densities: function that returns log q_k(z_i) for some rows i and all k, in an array that is overwritten
    :param n_points: (default: as many as components) number of points z_i
    """
    n_rows = n if n_points is None else n_points
    densities = np.empty(n_rows)
    step = max(1, BLOCK // n)
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        densities[rows] = log_sums(log_densities(rows))
    return densities - math.log(n)


def log_normal_mixture(
    mean: Float[np.ndarray, " sample"],
    deviation: Float[np.ndarray, " sample"],
    noise: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, " sample"]:
    r"""Return log (1/n) Σ_k N(z_i; μ_k, σ_k²) at the draws z_i = μ_i + σ_i ε_i.

    Distances are computed as (μ_i − μ_k) + σ_i ε_i, not as a difference of squares, so a component can be narrower than
    the rounding error of z, and samples with the same mean still overlap.

    :param mean: μ of each component
    :param deviation: σ of each component, above 0
    :param noise: ε of each component's draw

    >>> log_normal_mixture(np.zeros(2), np.full(2, 1e-30), np.zeros(2)) + np.log(1e-30)
    array([-0.91893853, -0.91893853])
    """
    offset = np.log(deviation) + 0.5 * LOG_2PI
    shift = deviation * noise

    def log_densities(rows: slice) -> Float[np.ndarray, "row sample"]:
        exponents = mean[rows, None] - mean
        exponents += shift[rows, None]
        with np.errstate(over="ignore"):  # so far away that the density is 0
            exponents /= deviation
            exponents *= exponents
        exponents *= -0.5
        exponents -= offset
        return exponents

    return log_mixture(len(mean), log_densities)


def log_gaussian_mixture(
    z: Float[np.ndarray, "point latent"],
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    factor: Float[np.ndarray, "sample latent latent"] | None = None,
) -> Float[np.ndarray, " point"]:
    r"""Return log (1/n) Σ_k N(z_i; μ_k, Σ_k) at any points z_i.

    It is computed from differences z − μ instead of products, so narrow and distant components do not lose digits.

    :param z: points
    :param mean: μ of each component
    :param variance: variances of each component, above 0
    :param factor: (default None: Σ is diagonal) Cholesky factors of Σ; then ``variance`` is not used

    >>> log_gaussian_mixture(np.zeros((1, 2)), np.zeros((3, 2)), np.ones((3, 2))) + LOG_2PI
    array([0.])
    """
    n, n_latents = mean.shape
    inverse = None if factor is None else np.linalg.inv(factor)
    deviation = np.sqrt(variance)
    scales = deviation if factor is None else np.diagonal(factor, axis1=1, axis2=2)
    offset = np.log(scales).sum(axis=1) + 0.5 * n_latents * LOG_2PI

    def log_densities(rows: slice) -> Float[np.ndarray, "row sample"]:
        points = z[rows]
        squares = np.zeros((len(points), n))
        with np.errstate(over="ignore"):  # so far away that the density is 0
            if inverse is None:
                # One latent at a time, because a table of row, sample and latent would not fit in the cache.
                for j in range(n_latents):
                    squares += ((points[:, j, None] - mean[:, j]) / deviation[:, j]) ** 2
            else:
                # Multiplying by the inverse factor turns the quadratic form into a sum of squares.
                white = np.einsum("kab,ikb->ika", inverse, points[:, None] - mean)
                squares += (white**2).sum(axis=2)
        return -0.5 * squares - offset

    return log_mixture(n, log_densities, len(z))
