"""Centred kernel alignment with a linear kernel."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.numerics.distances import centred, gram, gram_product


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, " pair"]:
    """Return the Gram matrix of the centred features as a vector of length 1; entries off the diagonal count twice.

    Products of float32 activations are computed in float32: their rounding error is no larger than that of the
    activations, and changes a score by about 1e-8 in total.
    """
    x = check(x)
    kernel = gram(x, products_in=np.float32 if x.dtype == np.float32 else np.float64)
    # Off-diagonal entries are stored once but count twice; scaling the diagonal keeps the angles.
    diagonal = np.diagonal(kernel) / math.sqrt(2)
    np.fill_diagonal(kernel, diagonal)
    return unit(upper_triangle(kernel, diagonal=True))


@similarity(
    "cka",
    title="CKA",
    symmetric=True,
    bounds=(0, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=VectorForm(compress),
    too_high_when_wide=True,
)
def cka(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"]) -> float:
    r"""Linear centred kernel alignment: share of structure common to two representations of the same samples.

    With centred columns,

    .. math:: \mathrm{CKA}(X, Y) = \|X^\top Y\|_F^2 / (\|X^\top X\|_F \, \|Y^\top Y\|_F)

    It is 1 if Y is a rotated, rescaled, shifted X, and 0 if no feature of X is correlated with one of Y. For
    orthonormal bases sharing r of p and q directions it is r / sqrt(pq). Directions of large variance dominate, and
    changes of small ones have little effect (bonheme2023 §7.2.2). With fewer samples than features it is too high, for
    noise about p / (n + p): see ``cka-debiased``. A constant representation raises an error.

    For many layers, each is stored as its Gram matrix, because ⟨XXᵀ, YYᵀ⟩ = ‖XᵀY‖².

    Reference: Kornblith et al., Similarity of Neural Network Representations Revisited
    (kornblith2019); bonheme2023 Eq. 2.2. Ours: no debiasing.

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.

    >>> round(cka(np.eye(3), 2 * np.eye(3) + 1), 6)
    1.0
    """
    x, y = check_pair(x, y)
    x, y = centred(x), centred(y)
    value = gram_product(x, y) / math.sqrt(gram_product(x, x) * gram_product(y, y))
    return float(np.minimum(value, 1.0))  # rounding
