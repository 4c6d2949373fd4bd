"""Centred kernel alignment with a Gaussian kernel."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Gt
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances


def compress(
    x: Float[np.ndarray, "sample p"], *, bandwidth: Annotated[float, Gt(0)] = 0.8
) -> Float[np.ndarray, " pair"]:
    """Return the centred kernel matrix as a vector of length 1; entries off the diagonal count twice."""
    if not 0 < bandwidth < math.inf:
        raise InputError("bandwidth", "be positive", got=bandwidth, remedy="common values are 0.2 to 0.8")
    kernel = squared_distances(check(x))
    # Take roots first: the median of an even number of squares is not the square of the median.
    median = float(np.median(np.sqrt(upper_triangle(kernel, diagonal=False))))
    if median == 0:
        raise InputError(
            problem=(
                "more than half of the pairs of samples are equal, so their median distance "
                "is 0 and defines no bandwidth"
            ),
            remedy="drop duplicates, or use measure 'cka'",
        )
    kernel /= -2 * (bandwidth * median) ** 2
    # Centring removes the constant 1, and expm1 is exact if the bandwidth is large.
    np.expm1(kernel, out=kernel)
    means = kernel.mean(axis=0)
    kernel -= means
    kernel -= means[:, None] - means.mean()
    # Off-diagonal entries are stored once but count twice; scaling the diagonal keeps the angles.
    diagonal = np.diagonal(kernel) / math.sqrt(2)
    np.fill_diagonal(kernel, diagonal)
    return unit(upper_triangle(kernel, diagonal=True))


FORM = VectorForm(compress)


@similarity(
    "cka-rbf",
    title="RBF CKA",
    symmetric=True,
    bounds=(0, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=FORM,
    too_high_when_wide=False,
)
def cka_rbf(
    x: Float[np.ndarray, "sample p"],
    y: Float[np.ndarray, "same q"],
    *,
    bandwidth: Annotated[float, Gt(0)] = 0.8,
) -> float:
    r"""Centred kernel alignment with a Gaussian kernel: common structure among nearby samples.

    .. math:: \frac{\langle HKH, HLH \rangle}{\|HKH\| \, \|HLH\|}, \qquad
        K_{ij} = \exp\left(-\frac{\|x_i - x_j\|^2}{2 (b \, m)^2}\right), \qquad H = I - \tfrac1n 1 1^\top

    with m the median distance between samples, which makes it invariant to scale, and b the ``bandwidth``. It tends to
    linear CKA as b grows. As b goes to 0, every sample is isolated and any two representations score 1, so a small
    bandwidth is not informative. Kornblith et al. use b from 0.2 to 0.8; the largest, our default, is the safest.

    Reference: Kornblith et al., Similarity of Neural Network Representations Revisited
    (kornblith2019).

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.
    :param bandwidth: (default 0.8) width of the kernel, in median distances between samples.

    >>> x = np.array([[0.0], [1.0], [2.0], [5.0], [3.0]])
    >>> round(cka_rbf(x, 1 - 3 * x), 6)
    1.0
    """
    x, y = check_pair(x, y)
    return float(np.maximum(FORM.measure(x, y, bandwidth=bandwidth), 0.0))  # rounding
