"""Local principal components: the number of directions in which a neighbourhood extends."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt
from jaxtyping import Float

from polariscope.analysis.dimension import SHAPE_ONLY, Dimension, estimator
from polariscope.analysis.dimension.support.bootstrap import N_BOOTSTRAP, check_bootstrap, value_and_interval
from polariscope.core.errors import InputError
from polariscope.numerics.neighbours import NeighbourTable, Samples, table_of

BLOCK = 2**22  # maximum size of the neighbourhoods in memory, in numbers
Criterion = Literal["fo", "participation", "kaiser", "broken-stick", "variance"]


@estimator(
    "lpca",
    invariant_to=SHAPE_ONLY,
    varies_with={"stretch"},
    least_k=3,
    relative_error=0.16,
)
def lpca(
    x: Samples,
    *,
    k: Annotated[int, Ge(3)] = 100,
    criterion: Criterion = "fo",
    threshold: Annotated[float, Gt(0), Lt(1)] | None = None,
    level: Annotated[float, Gt(0), Lt(1)] = 0.95,
    n_bootstrap: Annotated[int, Ge(20)] = N_BOOTSTRAP,
    seed: int = 0,
) -> Dimension:
    r"""Number of large eigenvalues of the covariance of a point's k neighbours, averaged over points.

    With the eigenvalues λ₁ ≥ … ≥ λ_m of a neighbourhood, of which m = min(k − 1, number of features) can differ
    from 0, the ``criterion`` counts

    ==============  =========================================================================================
    fo              λ_i > α λ₁ (Fukunaga and Olsen); ``threshold`` is α, 0.05
    participation   the ratio (Σ λ)² / Σ λ² instead, which is d for d equal eigenvalues, less for unequal ones
    kaiser          λ_i above their mean
    broken-stick    leading λ_i/Σ λ above (1/m) Σ_{j≥i} 1/j, the mean i-th longest of m pieces of a stick
    variance        leading λ_i that explain a share of Σ λ; ``threshold`` is this share, 0.95
    ==============  =========================================================================================

    At most k − 1 directions can be detected. Curvature within a neighbourhood, and noise, add directions. kaiser and
    broken-stick select eigenvalues that are larger than others, so d equal ones in d features count as 0.

    Reference: Fukunaga and Olsen, An Algorithm for Finding Intrinsic Dimensionality of Data (fukunaga1971);
    Jackson, Stopping Rules in Principal Components Analysis (jackson1993), for kaiser and broken-stick.

    :param x: points, one per row.
    :param k: (default 100) number of neighbours around each point.
    :param criterion: (default "fo") rule that selects eigenvalues.
    :param threshold: (default: 0.05 for fo, 0.95 for variance) threshold of the criterion.
    :param level: (default 0.95) nominal coverage of the interval.
    :param n_bootstrap: (default 200) number of resamples for the interval.
    :param seed: (default 0) seed of the resamples.

    >>> plane = np.random.default_rng(0).random((300, 2)) @ np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
    >>> lpca(plane, k=30).value
    2.0
    """
    check_bootstrap(level, n_bootstrap)
    limit = _threshold(criterion, threshold)
    table = table_of(x, k, 3)
    local = count(local_spectra(table, k), criterion, limit)

    def estimate(weights: Float[np.ndarray, "resample point"]) -> Float[np.ndarray, " resample"]:
        return weights @ local / weights.sum(axis=1)

    value, interval = value_and_interval(estimate, table, k, level, n_bootstrap, seed)
    notes = list(table.notes)
    if value > (k - 1) / 2:
        notes.append(
            f"With k = {k} neighbours at most {k - 1} directions can be detected; use more neighbours."
        )
    return Dimension(
        value=value,
        interval=interval,
        level=level,
        estimator="lpca",
        variant=criterion + ("" if limit is None else f" {limit:g}"),
        k=k,
        **table.counts,
        pointwise=tuple(local.tolist()),
        notes=tuple(notes),
    )


def local_spectra(table: NeighbourTable, k: int) -> Float[np.ndarray, "point eigenvalue"]:
    """Return the eigenvalues of the covariance of every point's k neighbours, largest first, up to a factor."""
    n_features = table.points.shape[1]
    n_eigenvalues = min(k - 1, n_features)
    rows = max(1, BLOCK // (k * n_features))
    spectra = []
    for start in range(0, table.n_points, rows):
        # Subtract the point first: far from the origin, a mean over neighbours would lose digits.
        centre = table.points[start : start + rows, None].astype(np.float64)
        local = table.points[table.indices[start : start + rows, :k]] - centre
        # Neighbourhoods of radius 1: squares neither overflow nor underflow.
        local /= table.distances[start : start + rows, [k - 1], None]
        local -= local.mean(axis=1, keepdims=True)
        # Both products have the same non-zero eigenvalues; the smaller one is used.
        gram = local.swapaxes(1, 2) @ local if n_features < k else local @ local.swapaxes(1, 2)
        # eigvalsh returns ascending order; the slice reverses it and drops the zeros.
        spectra.append(np.linalg.eigvalsh(gram)[:, : -n_eigenvalues - 1 : -1])
    return np.maximum(np.concatenate(spectra), 0.0)


def count(
    spectra: Float[np.ndarray, "point eigenvalue"], criterion: Criterion, threshold: float | None
) -> Float[np.ndarray, " point"]:
    """Return the dimension of every spectrum (largest eigenvalue first) by a criterion."""
    total = spectra.sum(axis=1)
    if criterion == "participation":
        return total**2 / (spectra**2).sum(axis=1)
    if criterion == "fo":
        large = spectra > threshold * spectra[:, :1]
    elif criterion == "kaiser":
        large = spectra > spectra.mean(axis=1, keepdims=True)
    elif criterion == "broken-stick":
        m = spectra.shape[1]
        # The i-th piece is the sum of 1/j over j from i to m, so sums run from the end.
        pieces = np.cumsum(1 / np.arange(m, 0, -1))[::-1] / m
        # Only leading eigenvalues count: after the first that fails, all others are excluded.
        large = np.logical_and.accumulate(spectra > pieces * total[:, None], axis=1)
    else:
        # Share that is explained without the eigenvalue itself.
        before = np.cumsum(spectra, axis=1) - spectra
        large = before < threshold * total[:, None] * (1 - 1e-12)  # allow for rounding
    return large.sum(axis=1).astype(np.float64)


def _threshold(criterion: Criterion, threshold: float | None) -> float | None:
    default = {"fo": 0.05, "variance": 0.95}.get(criterion)
    if threshold is None:
        return default
    if default is None:
        raise InputError(problem=f"criterion {criterion!r} has no threshold", got=threshold, remedy="omit it")
    if not 0 < threshold < 1:
        raise InputError(
            "threshold", "lie between 0 and 1", got=threshold, remedy=f"the default is {default}"
        )
    return threshold
