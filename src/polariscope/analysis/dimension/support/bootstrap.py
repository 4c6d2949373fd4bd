"""How far an estimate would move had other samples been drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import percentile_interval
from polariscope.numerics.neighbours import NeighbourTable

Weights = Float[np.ndarray, "resample point"]
Estimate = Callable[[Weights], Float[np.ndarray, " resample"]]
"""An estimator as a function of how often each point counts, for many resamples at once."""

N_BOOTSTRAP = 200


def check_bootstrap(level: float, n_bootstrap: int) -> None:
    if not 0 < level < 1:
        raise InputError("level", "lie between 0 and 1", got=level, remedy="0.95 is the default")
    if n_bootstrap < 20:
        raise InputError(
            "n_bootstrap", "be at least 20 resamples", got=n_bootstrap, remedy="200 is the default"
        )


def neighbourhood_resamples(table: NeighbourTable, k: int, n_bootstrap: int, seed: int) -> Weights:
    """How often each point counts in each resample; whole neighbourhoods are drawn, with replacement.

    Points that share neighbours have like estimates. Drawn one by one they would count as independent, and an
    interval would be too narrow by a factor of 1.1 to 1.5 (uniform points in 2 to 10 dimensions, k = 2 to 20).
    So each of the n/(k + 1) draws is a centre j and brings all points that have j among themselves and their k
    neighbours, as the block bootstrap of time series does; the factor is then 0.85 to 1.2. Each point belongs to
    k + 1 such blocks, so all of them count equally on average.

    Assumes that samples were drawn independently, and that many neighbourhoods fit into them, n ≫ k.

    Reference: Künsch, The Jackknife and the Bootstrap for General Stationary Observations (kunsch1989).
    """
    n_points = table.n_points
    n_blocks = max(2, round(n_points / (k + 1)))
    centres = generator(seed, "dimension", "bootstrap").integers(n_points, size=(n_bootstrap, n_blocks))
    places = (n_bootstrap * centres + np.arange(n_bootstrap)[:, None]).ravel()
    # Points along the rows, in small numbers: neighbours are then looked up as whole rows.
    drawn = (
        np.bincount(places, minlength=n_points * n_bootstrap).reshape(n_points, n_bootstrap).astype(np.int32)
    )
    weights = drawn.copy()
    for column in table.indices[:, :k].T:
        weights += drawn[column]
    return weights.T.astype(np.float64, order="C")


def value_and_interval(
    estimate: Estimate, table: NeighbourTable, k: int, level: float, n_bootstrap: int, seed: int
) -> tuple[float, tuple[float, float]]:
    """The estimate with every point counted once, and its interval, which always holds it."""
    value = float(estimate(np.ones((1, table.n_points)))[0])
    estimates = estimate(neighbourhood_resamples(table, k, n_bootstrap, seed))
    return value, percentile_interval(value, estimates, level, interpolate=False)
