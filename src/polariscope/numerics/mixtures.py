"""Logarithms of sums of densities: a mixture at the draws of its components."""

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
    n: int, log_densities: Callable[[slice], Float[np.ndarray, "row sample"]]
) -> Float[np.ndarray, " sample"]:
    r"""log (1/n) Σ_k q_k(z_i) for each i, a few rows at a time.

    :param n: number of components, and of places z_i
    :param log_densities: gives log q_k(z_i) for some rows i and all k, in an array that may be used up
    """
    found = np.empty(n)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        found[rows] = log_sums(log_densities(rows))
    return found - math.log(n)


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
