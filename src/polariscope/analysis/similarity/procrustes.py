"""Procrustes similarity."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair
from polariscope.analysis.layer_forms import FactorForm
from polariscope.analysis.similarity import similarity
from polariscope.numerics.distances import centred, gram

DROPPED = 1e-14
"""Share of the variance of a layer that may be dropped; by Hölder's inequality a score loses at most its root."""


def compress(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, "sample rank"]:
    """A matrix F of norm 1 with FFᵀ = ẊẊᵀ and at most as many columns as samples.

    With fewer features than samples it is Ẋ itself. Else any factor of the Gram matrix will do, since those differ by
    a rotation, which leaves singular values as they are: Cholesky's, with pivots, as a rank below n must not stop it.
    """
    x = check(x)
    if x.shape[1] <= len(x):
        deviations = centred(x)
        return deviations / np.linalg.norm(deviations)
    from scipy.linalg.lapack import dpstrf

    kernel = gram(x)
    n, trace = len(kernel), np.trace(kernel)
    packed, pivots, rank, _ = dpstrf(kernel / trace, tol=DROPPED / n, lower=1)
    factor = np.empty((n, rank))
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
    r"""Procrustes similarity: how well one representation can be rotated onto the other.

    With :math:`\dot X` the centred X divided by its Frobenius norm (Eq. 7.7),

    .. math:: P_s(X, Y) = 1 - \tfrac12 \min_Q \|\dot X - \dot Y Q\|_F^2 = \|\dot Y^\top \dot X\|_*

    where Q has orthonormal columns or rows and ‖·‖_* is the sum of the singular values. 1 for a rotated, rescaled,
    shifted copy; 0 when no feature of X is correlated with one of Y. Small directions count as their standard
    deviation, not their variance as in CKA. With few samples for the number of features it is far too high:
    independent noise scores near 1 when features far exceed samples (bonheme2023 Fig. 7.1c). Where the two disagree,
    bonheme2023 trusts the smaller.

    SciPy's ``procrustes`` gives the disparity 1 − P_s².

    Reference: bonheme2023 Eqs 7.4–7.8; Ding et al., Grounding Representation Similarity with Statistical Testing
    (ding2021).

    :param x: one representation, a row for each sample.
    :param y: another one of the same samples.

    >>> round(procrustes(np.eye(3), 2 * np.eye(3) + 1), 6)
    1.0
    """
    return FORM.measure(*check_pair(x, y))
