"""Tables of neighbours with distances chosen by the test."""

from __future__ import annotations

import numpy as np

from polariscope.numerics.neighbours import NeighbourTable


def table_of_distances(distances: np.ndarray) -> NeighbourTable:
    """Points known by their neighbours' distances only; whose neighbours those are is left to chance."""
    n, k = distances.shape
    return NeighbourTable(
        distances=distances,
        indices=np.random.default_rng(1).integers(n, size=(n, k)),
        points=np.zeros((n, 1)),
        rows=np.arange(n),
        n_duplicates=0,
        n_features=1,
        n_constant=0,
    )


def poisson_distances(n: int, k: int, d: float, seed: int = 0) -> np.ndarray:
    """Distances to the first k points of a Poisson process in d dimensions, independently n times.

    The volumes of the balls up to each point, proportional to T_j^d, grow by independent exponential amounts.
    """
    volumes = np.cumsum(np.random.default_rng(seed).exponential(size=(n, k)), axis=1)
    return volumes ** (1 / d)
