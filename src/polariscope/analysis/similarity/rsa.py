"""Representational similarity analysis."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances

ROUNDED = 22  # of the 52 bits of a squared distance: 1e-9 of it
AT_LEAST = 3  # samples: two have one distance, and a correlation needs two


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, " pair"]:
    """Centred ranks of the distances between samples, as a vector of length 1."""
    from scipy.stats import rankdata

    distances = upper_triangle(squared_distances(check(x, at_least=AT_LEAST)), diagonal=False)
    # Squares have the same ranks. Those that should be equal differ by rounding, which must not order them. Each is
    # rounded by its own size, for beside one sample that lies far out all others are near 0; as an integer, since
    # floats that are not negative are ordered as their bits are.
    bits = distances.view(np.int64)
    bits += 1 << (ROUNDED - 1)
    bits >>= ROUNDED
    ranks = rankdata(bits)
    ranks -= ranks.mean()
    if not ranks.any():
        raise InputError(
            problem="all samples are equally far from each other, so their distances have no order",
            remedy="use more samples",
        )
    return unit(ranks)


FORM = VectorForm(compress)


@similarity(
    "rsa",
    symmetric=True,
    bounds=(-1, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=FORM,
    too_high_when_wide=False,
)
def rsa(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"]) -> float:
    r"""Rank correlation of the distances between samples in one representation and in the other.

    .. math:: \mathrm{corr}(\mathrm{rank}\, d^X_{ij}, \mathrm{rank}\, d^Y_{ij})_{i < j}, \qquad
        d^X_{ij} = \|x_i - x_j\|

    1 when both put the pairs of samples in the same order of distance, 0 on average for independent representations,
    negative when near in one is far in the other. Ties share their mean rank; squared distances that differ by less
    than about 1e-9 of themselves are ties.

    Reference: Kriegeskorte et al., Representational similarity analysis
    (kriegeskorte2008). Ours: Euclidean distance where they take 1 − correlation over features,
    which two latents do not have; Spearman's correlation as they do.

    :param x: one representation, a row for each sample.
    :param y: another one of the same samples.

    >>> x = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> round(rsa(x, 2 * x - 1), 6)
    1.0
    """
    return FORM.measure(*check_pair(x, y))
