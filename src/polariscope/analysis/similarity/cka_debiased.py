"""Centred kernel alignment without the bias of few samples."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import centred, gram, gram_product

AT_LEAST = 4  # samples: the correction divides by n − 3
NOTHING_LEFT = 1e-24  # of ‖XᵀX‖²: rounding, squared, of the entries whose differences are taken


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, " pair"]:
    """The U-centred Gram matrix as a vector of length 1."""
    kernel = gram(check(x, at_least=AT_LEAST))
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
    HSIC. That can be negative, and so can the score; ‖K̃‖² cannot, being a sum of squares, so nothing negative is put
    under a root. With centred columns it needs no n × n matrix: if d and e are the squared lengths of the rows,

    .. math:: \langle \tilde K, \tilde L \rangle = \|X^\top Y\|_F^2 - \frac{n}{n - 2} \, d \cdot e
        + \frac{(\sum d)(\sum e)}{(n - 1)(n - 2)}

    1 for a rotated, rescaled, shifted copy. Numerator and denominator are unbiased, their ratio nearly so. Samples
    that are all equally far from each other leave K̃ = 0, and are refused.

    Reference: Song et al., Feature Selection via Dependence Maximization (song2012, Eq. 4); Nguyen et al., Do Wide and
    Deep Networks Learn the Same Things? (nguyen2021).

    :param x: one representation, a row for each sample.
    :param y: another one of the same samples.

    >>> x = np.array([[0.0], [1.0], [2.0], [5.0], [3.0]])
    >>> round(cka_debiased(x, 1 - 3 * x), 6)
    1.0
    """
    x, y = check_pair(x, y, AT_LEAST)
    x, y = centred(x), centred(y)
    own_x, own_y = _product(x, x), _product(y, y)
    check_not_degenerate(own_x, float(gram_product(x, x)))
    check_not_degenerate(own_y, float(gram_product(y, y)))
    return float(np.clip(_product(x, y) / math.sqrt(own_x * own_y), -1, 1))  # rounding


def _product(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "sample q"]) -> float:
    n = len(x)
    d, e = np.sum(x**2, axis=1), np.sum(y**2, axis=1)
    return float(gram_product(x, y) - n / (n - 2) * (d @ e) + d.sum() * e.sum() / ((n - 1) * (n - 2)))


def check_not_degenerate(left: float, size: float) -> None:
    """Refuse a representation of which U-centring leaves nothing but rounding."""
    if left <= NOTHING_LEFT * size:
        raise InputError(
            problem=("all samples are equally far from each other, so nothing is left without the diagonal"),
            remedy="use more samples, or measure 'cka'",
        )
