"""Representational similarity analysis."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair, upper_triangle
from polariscope.analysis.layer_forms import VectorForm, unit
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances

ROUNDED = 22  # bits of the 52 of a squared distance that are rounded off: 1e-9 of it
MIN_SAMPLES = 3  # a correlation requires two distances, and two samples have only one


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, " pair"]:
    """Return the centred ranks of the distances between samples, as a vector of length 1."""
    from scipy.stats import rankdata

    distances = upper_triangle(squared_distances(check(x, at_least=MIN_SAMPLES)), diagonal=False)
    # Squares have the same ranks. Distances that should be equal differ by rounding errors, which must not order them.
    # Rounding is relative to each distance, because an outlier would make all others look equal. It is done on the
    # bits, because the bits of non-negative floats have the same order as their values.
    bits = distances.view(np.int64)
    # Half a unit is added before the shift, so values are rounded and not truncated.
    bits += 1 << (ROUNDED - 1)
    bits >>= ROUNDED
    ranks = rankdata(bits)
    ranks -= ranks.mean()
    if not ranks.any():
        raise InputError(
            problem="all samples have the same distance from each other, so distances have no order",
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

    It is 1 if both representations order the pairs of samples by distance in the same way, 0 on average for independent
    representations, and negative if samples that are near in one are far in the other. Ties share their mean rank;
    squared distances whose relative difference is below about 1e-9 are ties.

    Reference: Kriegeskorte et al., Representational similarity analysis (kriegeskorte2008). Ours: Euclidean distance
    instead of 1 − correlation over features, which is not meaningful for two latents; Spearman's correlation as theirs.

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.

    >>> x = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> round(rsa(x, 2 * x - 1), 6)
    1.0
    """
    return FORM.measure(*check_pair(x, y))
