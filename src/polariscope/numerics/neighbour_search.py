"""Exact nearest neighbours of every point, by matrix products."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

MIN_ROWS, MAX_ROWS = 128, 1024  # rows of a block of the distance matrix
SMALL = 8192  # numbers in a temporary array; allocating larger ones takes longer than computing with them
N_EXTRA = 8  # candidates beyond k
TIE = 1e-9  # relative difference of squared distances below which neighbours count as equally near


def nearest(
    points: Float[np.ndarray, "point feature"], k: int
) -> tuple[Float[np.ndarray, "point k"], Int[np.ndarray, "point k"]]:
    r"""Return the distances and indices of the k nearest other points, nearest first; all points must be distinct.

    A matrix product gives approximate squared distances, :math:`\|c_i\|^2 + \|c_j\|^2 - 2 c_i \cdot c_j` with c the
    centred points, in float32. The k + 8 nearest of each row are candidates, whose distances are computed again as
    :math:`\|x_i - x_j\|` in float64, so close points do not lose digits. A row is finished if no other point can be
    nearer than its k-th neighbour: the rounding error of an approximation is at most

    .. math:: (p + 16) \, u \, (\|c_i\| + \|c_j\|)^2

    (p features, unit roundoff u; Higham, Accuracy and Stability of Numerical Algorithms, 2002, §3.1), and a nearer
    point has :math:`\|c_j\| \le \|c_i\| + r_k`. Rows that remain undecided, because of ties or of very small clusters,
    are computed again with the product in float64, and then without it.
    """
    n_points = len(points)
    distances, indices = np.empty((n_points, k)), np.empty((n_points, k), dtype=np.intp)
    centre = points.mean(axis=0, dtype=np.float64)
    rows = np.arange(n_points)
    for dtype in (np.float32, np.float64):
        if rows.size:
            # Centre before rounding: values far from 0 would lose their differences.
            wide = np.promote_types(points.dtype, dtype)
            centred = np.subtract(points, centre.astype(wide), dtype=wide).astype(dtype, copy=False)
            rows = rows[~_by_product(points, centred, rows, k, distances, indices)]
    for row in rows.tolist():
        others = np.delete(np.arange(n_points), row)
        distances[row], indices[row] = _closest(points, row, others, k)
    return distances, indices


def _by_product(
    points: Float[np.ndarray, "point feature"],
    centred: Float[np.ndarray, "point feature"],
    rows: Int[np.ndarray, " row"],
    k: int,
    distances: Float[np.ndarray, "point k"],
    indices: Int[np.ndarray, "point k"],
) -> Bool[np.ndarray, " row"]:
    """Fill in the neighbours of some rows, and return a mask of the rows for which they are certain."""
    n_points, n_features = centred.shape
    squares = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
    approximate_squares = squares.astype(centred.dtype)
    n_candidates = min(k + N_EXTRA, n_points - 1)
    horizon = np.empty(len(rows))
    # With few features, products should fit in the cache; with many, each block reads all points again.
    n_rows = min(max(n_features, MIN_ROWS), MAX_ROWS)
    product = np.empty((n_rows, n_points), dtype=centred.dtype)
    for start in range(0, len(rows), n_rows):
        block = rows[start : start + n_rows]
        # The square of the row's own point is the same for all others, so it is added to the horizon only.
        approximate = np.matmul(-2 * centred[block], centred.T, out=product[: len(block)])
        approximate += approximate_squares
        for position, row in enumerate(block.tolist()):
            approximate[position, row] = np.inf
            near = np.argpartition(approximate[position], n_candidates)
            horizon[start + position] = approximate[position, near[n_candidates]] + squares[row]
            # Sorted by index, so ties go to the first point.
            candidates = np.sort(near[:n_candidates])
            distances[row], indices[row] = _closest(points, row, candidates, k)
    farthest = distances[rows, -1]
    unit = np.finfo(centred.dtype).eps / 2
    # The error bound of the docstring with ‖c_j‖ ≤ ‖c_i‖ + r_k.
    error = (n_features + 16) * unit * (2 * np.sqrt(squares[rows]) + farthest) ** 2
    return farthest**2 * (1 - TIE) <= horizon - error


def _closest(points: np.ndarray, row: int, candidates: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k candidates nearest to a point, computed from differences; ties go to the first.

    It is called for every row, so shapes are not checked.
    """
    point = points[row].astype(np.float64)
    step = max(1, SMALL // len(point))
    squares = np.empty(len(candidates))
    for start in range(0, len(candidates), step):
        difference = points[candidates[start : start + step]] - point
        squares[start : start + step] = np.vecdot(difference, difference)
    distance = np.sqrt(squares)
    order = np.argsort(distance, kind="stable")[:k]
    return distance[order], candidates[order]
