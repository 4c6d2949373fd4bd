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
    """For each sample, which others are nearest."""
    x = check(x)
    if not 1 <= neighbours < len(x) - 1:
        raise InputError(
            "neighbours",
            f"lie between 1 and {len(x) - 2} for {len(x)} samples",
            got=neighbours,
            remedy="with all others as neighbours every two representations agree",
        )
    distances = squared_distances(x)
    np.fill_diagonal(distances, np.inf)
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
    r"""Share of a sample's nearest neighbours in one representation that are so in the other too.

    .. math:: \frac{1}{nk} \sum_i |N_k^X(i) \cap N_k^Y(i)|

    with N_k(i) the k = ``neighbours`` samples nearest to i, by Euclidean distance. 1 when all neighbourhoods agree;
    k / (n − 1) on average for independent representations. It sees local structure only and falls with n at fixed k.
    Where several samples are equally far, which of them counts is arbitrary: with many duplicates do not use it.

    Reference: Huh et al., The Platonic Representation Hypothesis (huh2024; mutual
    k-nearest-neighbour metric, there on normalised features and with an inner product; ours: distances).

    :param x: one representation, a row for each sample.
    :param y: another one of the same samples.
    :param neighbours: (default 10) how many neighbours of each sample are compared.

    >>> x = np.array([[0.0], [1.0], [2.1], [5.0], [5.5]])
    >>> knn(x, x**2, neighbours=1)
    1.0
    """
    return FORM.measure(*check_pair(x, y), neighbours=neighbours)
