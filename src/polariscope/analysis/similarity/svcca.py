"""Canonical correlations of the principal components."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Gt, Le
from jaxtyping import Float

from polariscope.analysis.layer_checks import check, check_pair
from polariscope.analysis.layer_forms import FactorForm
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import centred, gram

SMALLEST = 1e-12  # relative to the largest variance; directions below it are rounding errors


def compress(
    x: Float[np.ndarray, "sample p"], *, variance: Annotated[float, Gt(0), Le(1)] = 0.99
) -> Float[np.ndarray, "sample rank"]:
    """Return an orthonormal basis of the principal components that explain ``variance`` of the variance."""
    if not 0 < variance <= 1:
        raise InputError(
            "variance", "be a share between 0 and 1", got=variance, remedy="a common value is 0.99"
        )
    x = check(x)
    wide = x.shape[1] > len(x)
    deviations = np.empty((len(x), 0)) if wide else centred(x)
    # Eigenvectors of the Gram matrix are the components themselves. With few features, those of the smaller
    # covariance are projected below.
    values, vectors = np.linalg.eigh(gram(x) if wide else deviations.T @ deviations)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > SMALLEST * values[0]
    # The tolerance avoids an additional component because of rounding in the cumulative sum.
    enough = int(np.searchsorted(np.cumsum(values[real]), variance * values[real].sum() * (1 - 1e-12))) + 1
    directions = vectors[:, : min(enough, int(real.sum()))]
    # Rounding makes directions of small variance slightly oblique; QR restores an orthonormal basis.
    return np.linalg.qr(directions if wide else deviations @ directions)[0]


FORM = FactorForm(compress, of_smaller=True)


@similarity(
    "svcca",
    symmetric=True,
    bounds=(0, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=FORM,
    too_high_when_wide=True,
)
def svcca(
    x: Float[np.ndarray, "sample p"],
    y: Float[np.ndarray, "same q"],
    *,
    variance: Annotated[float, Gt(0), Le(1)] = 0.99,
) -> float:
    r"""Mean canonical correlation of the leading principal components.

    .. math:: \frac{1}{\min(r, s)} \|U_x^\top U_y\|_*

    with U_x an orthonormal basis of the first r principal components of X, which explain the share ``variance`` of its
    variance, and likewise U_y of s. It is 1 if the smaller space lies in the larger one, whatever the weights of the
    directions, and 0 if no component of X is correlated with one of Y. With ``variance=1`` it is the mean of all
    canonical correlations, which no invertible linear map changes; for smaller values, such a map changes the selection
    of components. With r + s components on n samples, noise alone gives about √(max(r, s)/n), and 1 if r or s reaches
    n − 1.

    Reference: Raghu et al., SVCCA (raghu2017).

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.
    :param variance: (default 0.99) share of the variance that the principal components explain.

    >>> round(svcca(np.eye(4)[:, :2], np.eye(4)[:, :2] @ np.array([[2.0, 1.0], [0.0, 1.0]]), variance=1.0), 6)
    1.0
    """
    return FORM.measure(*check_pair(x, y), variance=variance)
