"""One table of nearest neighbours, which serves every estimator, every k, every set of anchors and the bootstrap."""

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
    """The k nearest neighbours of every different sample, nearest first. Made by :func:`neighbours`."""

    distances: Float[np.ndarray, "point k"]
    """Euclidean, in float64; never 0."""
    indices: Int[np.ndarray, "point k"]
    """Rows of ``points``."""
    points: Float[np.ndarray, "point varying"] = dataclasses.field(repr=False)
    """The different samples without the features that never vary, scaled by a power of two."""
    rows: Int[np.ndarray, " point"] = dataclasses.field(repr=False)
    """Where each point stands among the samples that were given."""
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
        """What was left out."""
        notes = []
        if self.n_duplicates:
            total = self.n_points + self.n_duplicates
            notes.append(f"{self.n_duplicates} of {total} samples were duplicates and were left out.")
        if self.n_constant:
            notes.append(f"{self.n_constant} of {self.n_features} features never vary and were dropped.")
        return tuple(notes)

    @property
    def counts(self) -> dict[str, Any]:
        """How many points and features there are, as a result records them."""
        names = ("n_points", "n_duplicates", "n_features", "n_constant")
        return {name: getattr(self, name) for name in names}

    def too_few_for(self, dimension: float) -> tuple[str, ...]:
        """A note when a dimension is larger than this many points can show.

        Reference: Eckmann and Ruelle, Fundamental limitations for estimating dimensions and Lyapunov exponents in
        dynamical systems (eckmann1992): d ≤ 2 log₁₀ n when balls shall be at most a tenth of the data's extent.
        """
        limit = 2 * math.log10(self.n_points)
        if dimension <= limit:
            return ()
        return (
            f"{self.n_points} points can show about 2 log₁₀ n = {limit:.1f} dimensions; beyond that, estimates from "
            "neighbours' distances tend to be too low.",
        )

    def __repr__(self) -> str:
        return f"<{self.k} neighbours of {self.n_points} points>"


Samples: TypeAlias = Any
"""What estimators take: an array (sample, feature) of any real type, or a table made from one; checked inside."""


def neighbours(x: object, k: int = 20) -> NeighbourTable:
    """The table of the ``k`` nearest neighbours of samples (sample, feature), exactly.

    Duplicates and features that never vary are left out, and counted. Hand it to estimators in place of x:
    finding neighbours is nearly all of their work.

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
    """The table meant, with up to ``k`` neighbours: fewer when there are not so many points."""
    return x if isinstance(x, NeighbourTable) else _table(x, k, 1)


def table_of(x: Samples, k: int, least: int) -> NeighbourTable:
    """The table meant, with at least ``k`` neighbours, where an estimator needs ``least``."""
    _check_number(k)
    if k < least:
        raise InputError("k", f"be at least {least} neighbours for this estimator", got=k)
    if not isinstance(x, NeighbourTable):
        return neighbours(x, k)
    if x.k < k:
        raise InputError(
            problem=f"the table has {x.k} neighbours, but k = {k}",
            remedy=("make it with neighbours(x, ", Argument("k", k), ")"),
        )
    return x


def _check_number(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError("k", "be a whole number of neighbours", got=f"{k!r}")


def _table(x: Any, most: int, least: int) -> NeighbourTable:
    points = points_of(x)
    n_points = len(points.values)
    if n_points <= least:
        removed = f" ({points.n_duplicates} duplicates left out)" if points.n_duplicates else ""
        raise InputError(
            problem=f"k = {least} neighbours need at least {least + 1} different samples",
            got=f"{n_points}{removed}",
            remedy="give more samples or choose a smaller k",
        )
    distances, indices = nearest(points.values, min(most, n_points - 1))
    return NeighbourTable(
        distances=np.ldexp(distances, points.exponent),
        indices=indices,
        points=points.values,
        rows=points.rows,
        n_duplicates=points.n_duplicates,
        n_features=points.n_features,
        n_constant=points.n_constant,
    )
