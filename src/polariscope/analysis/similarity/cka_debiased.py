"""Centred kernel alignment without the bias from few samples."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import centred, gram, gram_product

MIN_SAMPLES = 4  # the correction divides by n − 3
ROUNDING = 1e-24  # relative to ‖XᵀX‖²: squared rounding error of differences of its entries


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, " pair"]:
    """Return the U-centred Gram matrix as a vector of length 1."""
    kernel = gram(check(x, at_least=MIN_SAMPLES))
    # The size is that of the kernel before centring, to which rounding errors are relative.
    n, size = len(kernel), np.sum(kernel**2)
    np.fill_diagonal(kernel, 0)
    sums = kernel.sum(axis=1)
    kernel -= sums[:, None] / (n - 2)
    kernel -= sums / (n - 2)
    kernel += sums.sum() / ((n - 1) * (n - 2))
    vector = upper_triangle(kernel, diagonal=False)
    check_not_degenerate(float(vector @ vector), float(size))
    return unit(vector)


@similarity(
    "cka-debiased",
    title="Debiased CKA",
    symmetric=True,
    bounds=(-1, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=VectorForm(compress),
    too_high_when_wide=False,
)
def cka_debiased(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"]) -> float:
    r"""Linear centred kernel alignment from unbiased estimates, so independent noise scores 0 on average.

    .. math:: \frac{\langle \tilde K, \tilde L \rangle}{\|\tilde K\| \, \|\tilde L\|}, \qquad
        \tilde K_{ij} = K_{ij} - \frac{r_i + r_j}{n - 2} + \frac{\sum_k r_k}{(n - 1)(n - 2)} \quad (i \neq j)

    with K = XXᵀ, its diagonal set to 0, r its row sums, and K̃ zero on the diagonal: ⟨K̃, L̃⟩ / n(n − 3) is the unbiased
    HSIC. It can be negative, and so can the score. ‖K̃‖² is a sum of squares and never negative. With centred columns no
    n × n matrix is required: if d and e are the squared lengths of the rows,

    .. math:: \langle \tilde K, \tilde L \rangle = \|X^\top Y\|_F^2 - \frac{n}{n - 2} \, d \cdot e
        + \frac{(\sum d)(\sum e)}{(n - 1)(n - 2)}

    It is 1 for a rotated, rescaled, shifted copy. Numerator and denominator are unbiased, and their ratio nearly so. If
    all distances between samples are equal, K̃ = 0, which raises an error.

    Reference: Song et al., Feature Selection via Dependence Maximization (song2012, Eq. 4); Nguyen et al., Do Wide and
    Deep Networks Learn the Same Things? (nguyen2021).

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.

    >>> x = np.array([[0.0], [1.0], [2.0], [5.0], [3.0]])
    >>> round(cka_debiased(x, 1 - 3 * x), 6)
    1.0
    """
    x, y = check_pair(x, y, MIN_SAMPLES)
    x, y = centred(x), centred(y)
    norm_x, norm_y = _product(x, x), _product(y, y)
    check_not_degenerate(norm_x, float(gram_product(x, x)))
    check_not_degenerate(norm_y, float(gram_product(y, y)))
    return float(np.clip(_product(x, y) / math.sqrt(norm_x * norm_y), -1, 1))  # rounding


def _product(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "sample q"]) -> float:
    n = len(x)
    d, e = np.sum(x**2, axis=1), np.sum(y**2, axis=1)
    return float(gram_product(x, y) - n / (n - 2) * (d @ e) + d.sum() * e.sum() / ((n - 1) * (n - 2)))


def check_not_degenerate(left: float, size: float) -> None:
    """Raise an error if only rounding errors are left of a representation after U-centring."""
    if left <= ROUNDING * size:
        raise InputError(
            problem="all samples have the same distance from each other, so the debiased kernel is 0",
            remedy="use more samples, or measure 'cka'",
        )
