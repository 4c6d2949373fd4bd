"""Table of nearest neighbours, shared by all estimators, all k, all sets of anchors and the bootstrap."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import Argument, InputError
from polariscope.numerics.neighbour_search import nearest
from polariscope.numerics.points import points_of


@dataclasses.dataclass(frozen=True, eq=False)
class NeighbourTable:
    """The k nearest neighbours of every distinct sample, nearest first, computed by :func:`neighbours`."""

    distances: Float[np.ndarray, "point k"]
    """Euclidean distances in float64; never 0."""
    indices: Int[np.ndarray, "point k"]
    """Rows of ``points``."""
    points: Float[np.ndarray, "point varying"] = dataclasses.field(repr=False)
    """Distinct samples without constant features, scaled by a power of two."""
    rows: Int[np.ndarray, " point"] = dataclasses.field(repr=False)
    """Index of each point in the samples."""
    n_duplicates: int
    n_features: int
    n_constant: int

    @property
    def k(self) -> int:
        return self.distances.shape[1]

    @property
    def n_points(self) -> int:
        return len(self.distances)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about duplicates and constant features that were left out."""
        notes = []
        if self.n_duplicates:
            total = self.n_points + self.n_duplicates
            notes.append(f"{self.n_duplicates} of {total} samples were duplicates and were left out.")
        if self.n_constant:
            notes.append(f"{self.n_constant} of {self.n_features} features are constant and were dropped.")
        return tuple(notes)

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers of points and features, as fields of a result."""
        names = ("n_points", "n_duplicates", "n_features", "n_constant")
        return {name: getattr(self, name) for name in names}

    def too_few_for(self, dimension: float) -> tuple[str, ...]:
        """Return a note if a dimension is larger than can be detected with this number of points.

        Reference: Eckmann and Ruelle, Fundamental limitations for estimating dimensions and Lyapunov exponents in
        dynamical systems (eckmann1992): d ≤ 2 log₁₀ n if the size of balls is at most a tenth of the data's extent.
        """
        limit = 2 * math.log10(self.n_points)
        if dimension <= limit:
            return ()
        return (
            f"At most about 2 log₁₀ n = {limit:.1f} dimensions can be detected with {self.n_points} points; beyond "
            "that, estimates from distances to neighbours tend to be too low.",
        )

    def __repr__(self) -> str:
        return f"<{self.k} neighbours of {self.n_points} points>"


Samples: TypeAlias = Any
"""Input of estimators: an array (sample, feature) of any real type, or a table computed from one."""


def neighbours(x: object, k: int = 20) -> NeighbourTable:
    """Return the exact table of the ``k`` nearest neighbours of samples (sample, feature).

    Duplicates and constant features are left out, and counted. Pass the table to several estimators instead of x,
    because most of their time is the search for neighbours.

    >>> table = neighbours(np.array([[0.0, 7.0], [1.0, 7.0], [3.0, 7.0], [3.0, 7.0]]), k=2)
    >>> table.distances
    array([[1., 3.],
           [1., 2.],
           [2., 3.]])
    >>> table.n_duplicates, table.n_constant
    (1, 1)
    """
    _check_number(k)
    if k < 1:
        raise InputError("k", "be at least 1 neighbour", got=k)
    return _table(x, k, k)


def at_most(x: Samples, k: int) -> NeighbourTable:
    """Return the table, or compute one with up to ``k`` neighbours; fewer if there are not enough points."""
    return x if isinstance(x, NeighbourTable) else _table(x, k, 1)


def table_of(x: Samples, k: int, min_k: int) -> NeighbourTable:
    """Return the table, or compute one, with at least ``k`` neighbours; the estimator requires ``min_k``."""
    _check_number(k)
    if k < min_k:
        raise InputError("k", f"be at least {min_k} neighbours for this estimator", got=k)
    if not isinstance(x, NeighbourTable):
        return neighbours(x, k)
    if x.k < k:
        raise InputError(
            problem=f"the table has {x.k} neighbours, but k = {k}",
            remedy=("compute it with neighbours(x, ", Argument("k", k), ")"),
        )
    return x


def _check_number(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError("k", "be an integer number of neighbours", got=f"{k!r}")


def _table(x: Any, max_k: int, min_k: int) -> NeighbourTable:
    points = points_of(x)
    n_points = len(points.values)
    if n_points <= min_k:
        removed = f" ({points.n_duplicates} duplicates left out)" if points.n_duplicates else ""
        raise InputError(
            problem=f"k = {min_k} neighbours require at least {min_k + 1} different samples",
            got=f"{n_points}{removed}",
            remedy="pass more samples or a smaller k",
        )
    distances, indices = nearest(points.values, min(max_k, n_points - 1))
    return NeighbourTable(
        # Undo the scaling of the points, which is exact.
        distances=np.ldexp(distances, points.exponent),
        indices=indices,
        points=points.values,
        rows=points.rows,
        n_duplicates=points.n_duplicates,
        n_features=points.n_features,
        n_constant=points.n_constant,
    )
