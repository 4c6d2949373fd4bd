"""Shared nearest neighbours."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int

from polariscope.analysis.layer_checks import check, check_pair
from polariscope.analysis.layer_forms import NeighbourForm
from polariscope.analysis.similarity import similarity
from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances


def compress(
    x: Float[np.ndarray, "sample p"], *, neighbours: Annotated[int, Ge(1)] = 10
) -> Int[np.ndarray, "sample k"]:
    """Return the nearest neighbours of each sample."""
    x = check(x)
    if not 1 <= neighbours < len(x) - 1:
        raise InputError(
            "neighbours",
            f"lie between 1 and {len(x) - 2} for {len(x)} samples",
            got=neighbours,
            remedy="with all other samples as neighbours, any two representations agree",
        )
    distances = squared_distances(x)
    np.fill_diagonal(distances, np.inf)
    # The order among the neighbours does not matter, so a partial sort suffices.
    return np.argpartition(distances, neighbours - 1, axis=1)[:, :neighbours].astype(np.int32)


FORM = NeighbourForm(compress)


@similarity(
    "knn",
    symmetric=True,
    bounds=(0, 1),
    invariant_to={"rotation", "scale", "shift", "sample_order"},
    varies_with={"linear_map"},
    form=FORM,
    too_high_when_wide=False,
)
def knn(
    x: Float[np.ndarray, "sample p"],
    y: Float[np.ndarray, "same q"],
    *,
    neighbours: Annotated[int, Ge(1)] = 10,
) -> float:
    r"""Share of a sample's nearest neighbours in one representation that are also nearest neighbours in the other.

    .. math:: \frac{1}{nk} \sum_i |N_k^X(i) \cap N_k^Y(i)|

    with N_k(i) the k = ``neighbours`` samples nearest to i, by Euclidean distance. It is 1 if all neighbourhoods agree,
    and k / (n − 1) on average for independent representations. It measures only local structure and falls with n at
    fixed k. Ties in distance are broken arbitrarily, so do not use it for data with many duplicates.

    Reference: Huh et al., The Platonic Representation Hypothesis (huh2024; mutual
    k-nearest-neighbour metric, there on normalised features and with an inner product; ours: distances).

    :param x: one representation, a row for each sample.
    :param y: another representation of the same samples.
    :param neighbours: (default 10) number of neighbours of each sample to compare.

    >>> x = np.array([[0.0], [1.0], [2.1], [5.0], [5.5]])
    >>> knn(x, x**2, neighbours=1)
    1.0
    """
    return FORM.measure(*check_pair(x, y), neighbours=neighbours)
