"""Intrinsic dimension: how many numbers it takes to say where a sample lies. Functions of an array.

Every estimator takes (sample, feature) numbers, or a :class:`~polariscope.numerics.neighbours.NeighbourTable` that
was made from them once, and returns a :class:`Dimension`.
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
    """An estimate at several scales: with k neighbours a ball reaches as far as the k-th."""

    k: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    """Lower ends of the intervals, at the level of the estimate."""
    high: tuple[float, ...]
    stable: tuple[int, int] | None = None
    """The range of k in which the estimate is stable; None when there is none, or none was looked for."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each number of neighbours k: the estimate and its interval."""
        import pandas

        columns = {"value": self.values, "low": self.low, "high": self.high}
        return pandas.DataFrame(columns, index=pandas.Index(self.k, name="k"))

    def __str__(self) -> str:
        from polariscope.core.tables import TextTable

        rows = list(zip(self.k, self.values, self.low, self.high, strict=True))
        # About three to an octave are enough to read.
        shown = [row for row in rows if row[0] in {*SHOWN, self.k[0], self.k[-1]}]
        cells = [(str(k), f"{value:.2f}", interval((low, high), ".2f")) for k, value, low, high in shown]
        return str(TextTable("k", "estimate", "interval", rows=cells, numbers=("k", "estimate")))


@dataclasses.dataclass(frozen=True)
class Dimension(AbstractStoredRecord, remedy="estimate the dimension again"):
    """An intrinsic dimension: the number, how sure it is, and the evidence behind it."""

    value: float
    interval: tuple[float, float]
    """Percentiles of a bootstrap over neighbourhoods. It holds the luck of the draw of samples, and not the bias
    from curvature, edges, noise or too few samples, which can be larger; ``curve`` and ``notes`` tell of those."""
    level: float
    """Probability that the interval is meant to have."""
    estimator: str
    variant: str
    """Which of the published versions, in words."""
    k: int
    """Neighbours used around each point."""
    n_points: int
    """Different samples used, without duplicates."""
    n_duplicates: int
    """Samples left out, since the same one came before: a distance of 0 has no logarithm."""
    n_features: int
    n_constant: int
    """Features that never vary (collapsed), which say nothing."""
    pointwise: tuple[float, ...] = dataclasses.field(default=(), repr=False)
    """The estimate around each point; infinite where all its neighbours are equally far."""
    curve: Curve | None = dataclasses.field(default=None, repr=False)
    """The estimate against the number of neighbours."""
    runs: tuple[float, ...] = ()
    """The estimate of each repetition with other anchors."""
    checks: tuple[Dimension, ...] = dataclasses.field(default=(), repr=False)
    """What other estimators say about the same points."""
    notes: tuple[str, ...] = ()
    """Where it should be read with care."""

    @property
    def rounded(self) -> int:
        """As a number of latents, at least 1."""
        return max(1, round(self.value))

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for this estimate and one for each estimator that checks it."""
        import pandas

        rows = [
            {
                **{
                    "estimator": one.estimator,
                    "value": one.value,
                    "low": one.interval[0],
                    "high": one.interval[1],
                },
                **{"level": one.level, "k": one.k, "n_points": one.n_points, "variant": one.variant},
            }
            for one in (self, *self.checks)
        ]
        return pandas.DataFrame(rows).set_index("estimator")

    @property
    def headline(self) -> str:
        """The answer and how it was found, in a sentence."""
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
"""What a dimension should not depend on."""

estimator = family = open_family(
    __name__, "dimension estimator", traits=("invariant_to", "varies_with", "least_k", "relative_error")
)
