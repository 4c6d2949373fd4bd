"""Intrinsic dimension: the number of coordinates required to locate a sample on its manifold.

Every estimator takes numbers (sample, feature), or a :class:`~polariscope.numerics.neighbours.NeighbourTable` computed
from them, and returns a :class:`Dimension`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.registry import open_family
from polariscope.core.text import interval

if TYPE_CHECKING:
    import pandas

SHOWN = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128)


@dataclasses.dataclass(frozen=True)
class Curve(AbstractRecord):
    """Estimate at several scales; with k neighbours the radius of a ball is the distance to the k-th."""

    k: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    """Lower ends of the intervals, at the level of the estimate."""
    high: tuple[float, ...]
    stable: tuple[int, int] | None = None
    """Range of k in which the estimate is stable; None if there is none, or it was not computed."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each number of neighbours k: the estimate and its interval."""
        import pandas

        columns = {"value": self.values, "low": self.low, "high": self.high}
        return pandas.DataFrame(columns, index=pandas.Index(self.k, name="k"))

    def __str__(self) -> str:
        from polariscope.core.tables import TextTable

        rows = list(zip(self.k, self.values, self.low, self.high, strict=True))
        # About three rows per octave are enough to read the curve.
        shown = [row for row in rows if row[0] in {*SHOWN, self.k[0], self.k[-1]}]
        cells = [(str(k), f"{value:.2f}", interval((low, high), ".2f")) for k, value, low, high in shown]
        return str(TextTable("k", "estimate", "interval", rows=cells, numbers=("k", "estimate")))


@dataclasses.dataclass(frozen=True)
class Dimension(AbstractStoredRecord, remedy="estimate the dimension again"):
    """Intrinsic dimension with its interval and the evidence."""

    value: float
    interval: tuple[float, float]
    """Percentiles of a bootstrap over neighbourhoods. It covers the draw of the samples, but not the bias from
    curvature, edges, noise or too few samples, which can be larger; see ``curve`` and ``notes``."""
    level: float
    """Nominal coverage of the interval."""
    estimator: str
    variant: str
    """Name of the published version."""
    k: int
    """Number of neighbours around each point."""
    n_points: int
    """Number of distinct samples used."""
    n_duplicates: int
    """Number of duplicates left out, because a distance of 0 has no logarithm."""
    n_features: int
    n_constant: int
    """Number of constant features, which have no effect."""
    pointwise: tuple[float, ...] = dataclasses.field(default=(), repr=False)
    """Estimate around each point; infinite if all its neighbours have the same distance."""
    curve: Curve | None = dataclasses.field(default=None, repr=False)
    """Estimate as a function of the number of neighbours."""
    runs: tuple[float, ...] = ()
    """Estimate of each repetition with other anchors."""
    checks: tuple[Dimension, ...] = dataclasses.field(default=(), repr=False)
    """Results of other estimators for the same points."""
    notes: tuple[str, ...] = ()
    """Limits of the results."""

    @property
    def rounded(self) -> int:
        """Dimension as a number of latents, at least 1."""
        return max(1, round(self.value))

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for this estimate and for each of ``checks``."""
        import pandas

        rows = [
            {
                **{
                    "estimator": result.estimator,
                    "value": result.value,
                    "low": result.interval[0],
                    "high": result.interval[1],
                },
                **{
                    "level": result.level,
                    "k": result.k,
                    "n_points": result.n_points,
                    "variant": result.variant,
                },
            }
            for result in (self, *self.checks)
        ]
        return pandas.DataFrame(rows).set_index("estimator")

    @property
    def headline(self) -> str:
        """Sentence with the estimate and the method."""
        return (
            f"{self.value:.2f} ({interval(self.interval, '.2f')}, {self.level:.0%} interval): {self.estimator}, "
            f"{self.variant}, k = {self.k}, {self.n_points} points with {self.n_features - self.n_constant} features."
        )

    def __str__(self) -> str:
        parts = [self.headline, *([str(self.curve)] if self.curve else [])]
        parts += [f"check: {check.headline}" for check in self.checks]
        parts += [f"- {note}" for note in self.notes]
        return "\n".join(parts)


SHAPE_ONLY = frozenset({"rotation", "scale", "shift", "permutation", "empty_column", "duplicates"})
"""Changes of the data that should not change a dimension."""

estimator = family = open_family(
    __name__, "dimension estimator", traits=("invariant_to", "varies_with", "least_k", "relative_error")
)
