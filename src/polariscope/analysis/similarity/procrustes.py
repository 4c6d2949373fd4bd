"""Procrustes similarity."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair
from polariscope.analysis.layer_forms import FactorForm
from polariscope.analysis.similarity import similarity
from polariscope.numerics.distances import centred, gram

DROPPED = 1e-14
"""Share of the variance of a layer that can be dropped; by Hölder's inequality a score changes by at most its root."""


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, "sample rank"]:
    """Return a matrix F of norm 1 with FFᵀ = ẊẊᵀ and at most as many columns as samples.

    With at most as many features as samples it is Ẋ itself. Otherwise it is a Cholesky factor of the Gram matrix; any
    factor would do, because they differ by a rotation, which does not change singular values. Pivoting handles a rank
    below n.
    """
    x = check(x)
    if x.shape[1] <= len(x):
        deviations = centred(x)
        return deviations / np.linalg.norm(deviations)
    from scipy.linalg.lapack import dpstrf

    kernel = gram(x)
    n, trace = len(kernel), np.trace(kernel)
    # A trace of 1 gives a factor of norm 1, and makes the tolerance a share of the variance.
    packed, pivots, rank, _ = dpstrf(kernel / trace, tol=DROPPED / n, lower=1)
    factor = np.empty((n, rank))
    # LAPACK counts pivots from 1.
    factor[pivots - 1] = np.tril(packed)[:, :rank]
    return factor


FORM = FactorForm(compress)


@similarity(
    "procrustes",
    title="Procrustes",
    symmetric=True,
    bounds=(0, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=FORM,
    too_high_when_wide=True,
)
def procrustes(x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"]) -> float:
    r"""Procrustes similarity: agreement of two representations after the best rotation.

    With :math:`\dot X` the centred X divided by its Frobenius norm (Eq. 7.7),

    .. math:: P_s(X, Y) = 1 - \tfrac12 \min_Q \|\dot X - \dot Y Q\|_F^2 = \|\dot Y^\top \dot X\|_*

    where Q has orthonormal columns or rows and ‖·‖_* is the sum of the singular values. It is 1 for a rotated,
    rescaled, shifted copy, and 0 if no feature of X is correlated with one of Y. Directions are weighted by their
    standard deviation, not by their variance as in CKA. With few samples for the number of features it is far too high:
    independent noise scores near 1 if features far exceed samples (bonheme2023 Fig. 7.1c). If CKA and Procrustes
    disagree, bonheme2023 trusts the smaller.

    SciPy's ``procrustes`` returns the disparity 1 − P_s².

    Reference: bonheme2023 Eqs 7.4–7.8; Ding et al., Grounding Representation Similarity with Statistical Testing
    (ding2021).

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.

    >>> round(procrustes(np.eye(3), 2 * np.eye(3) + 1), 6)
    1.0
    """
    return FORM.measure(*check_pair(x, y))
