"""Logarithms of sums of densities: a mixture at the draws of its components, or anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

BLOCK = 2**18
"""Numbers held at once, 2 MB: what stays near the processor is several times faster than what does not."""
LOG_2PI = math.log(2 * math.pi)


def log_sums(exponents: Float[np.ndarray, "row sample"]) -> Float[np.ndarray, " row"]:
    """log Σ_k e^x of each row; the array is used up.

    >>> log_sums(np.array([[-1000.0, -1000.0]])) + 1000
    array([0.69314718])
    """
    largest = exponents.max(axis=1, keepdims=True)
    exponents -= largest
    np.maximum(exponents, -700.0, out=exponents)  # e^−700 is nothing beside 1, but underflow is slow
    np.exp(exponents, out=exponents)
    return largest[:, 0] + np.log(exponents.sum(axis=1))


def log_mixture(
    n: int, log_densities: Callable[[slice], Float[np.ndarray, "row sample"]], n_places: int | None = None
) -> Float[np.ndarray, " point"]:
    r"""log (1/n) Σ_k q_k(z_i) for each i, a few rows at a time.

    :param n: number of components
    :param log_densities: gives log q_k(z_i) for some rows i and all k, in an array that may be used up
    :param n_places: (default: as many as components) number of places z_i
    """
    n_rows = n if n_places is None else n_places
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
    r"""log (1/n) Σ_k N(z_i; μ_k, σ_k²) at the draws z_i = μ_i + σ_i ε_i.

    Distances are (μ_i − μ_k) + σ_i ε_i and never a difference of squares: a component may be narrower than the
    rounding error of z, and samples with the same mean still overlap.

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
    r"""log (1/n) Σ_k N(z_i; μ_k, Σ_k) at any places z_i.

    From differences z − μ, not from products: a component that is narrow and far away keeps its digits.

    :param z: the places
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
        places = z[rows]
        squares = np.zeros((len(places), n))
        with np.errstate(over="ignore"):  # so far away that the density is 0
            if inverse is None:
                for j in range(n_latents):
                    squares += ((places[:, j, None] - mean[:, j]) / deviation[:, j]) ** 2
            else:
                white = np.einsum("kab,ikb->ika", inverse, places[:, None] - mean)
                squares += (white**2).sum(axis=2)
        return -0.5 * squares - offset

    return log_mixture(n, log_densities, len(z))
