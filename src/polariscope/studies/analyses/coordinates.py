"""Test if two latents encode two factors along their axes, or as radius and angle."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from polariscope.core.errors import InputError, unknown
from polariscope.core.records import AbstractStoredRecord
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset
    from polariscope.runs.run import Run


@dataclasses.dataclass(frozen=True)
class Coordinates(AbstractStoredRecord, remedy="measure the coordinates again"):
    """Coordinates in which a pair of latents encodes a pair of factors."""

    verdict: str
    """cartesian, polar or undecided; "none" if there are fewer than two latents or two factors."""
    value: float | None = None
    """Polar minus Cartesian score."""
    interval: tuple[float, float] | None = None
    """95 % interval of the value."""
    cartesian: float | None = None
    """Share of the factors' variance that the axes explain."""
    polar: float | None = None
    """Share of the factors' variance that radius and angle explain."""
    latents: tuple[int, ...] = ()
    """The pair of latents."""
    factors: tuple[str, ...] = ()
    """The pair of factors."""


@analysis(
    "coordinates",
    scope="each",
    gives={
        "coordinates": Column("coordinates of the best explained pair of factors"),
        "coordinates.value": Column("polar minus Cartesian score"),
        "coordinates.*": Column("of the best explained pair of factors"),
    },
)
@dataclasses.dataclass(frozen=True)
class CoordinatesAnalysis(AbstractAnalysis[Coordinates]):
    """Test if a pair of latents encodes a pair of factors in Cartesian or in polar coordinates.

    All pairs of latents and of ordered factors are compared, and the pair that is explained best in either coordinates
    is tested by :func:`polariscope.geometry.polar.polar_test`; cyclic factors are mapped to a circle. Reference:
    zietlow2022 §4.3.6 and Figs 4.10–4.11, where pairs were selected by hand.
    """

    factors: str = ""
    """Two factors, joined by a comma; by default the pair that is explained best."""
    n_points: Annotated[int, Ge(200)] = 2000
    """Number of encoded observations to use."""

    kind = "coordinates"
    record = Coordinates

    def measure(self, run: Run, step: int | None = None) -> Coordinates:
        settings = {"factors": self.factors, "n_points": self.n_points}

        def compute() -> Coordinates:
            return self._compute(run, step)

        return run.measurement(self.kind, Coordinates, compute, settings, **self.where, step=step)

    def _compute(self, run: Run, step: int | None) -> Coordinates:
        from polariscope.geometry.polar import PolarTest, polar_test

        codes = run.representation(**self.where, step=step)
        data = run.data()
        pairs = self._pairs(data)
        mean, rows = codes.mean[: self.n_points], slice(self.n_points)
        # polar_test refuses an axis that is constant.
        latents = [j for j in range(mean.shape[1]) if np.ptp(mean[:, j]) > 0]
        planes = list(itertools.combinations(latents, 2))
        # 200 is the minimum that polar_test accepts.
        if not pairs or not planes or len(mean) < 200:
            return Coordinates("none")
        assert codes.factors is not None

        def test(plane: tuple[int, int], pair: tuple[int, int], n_bootstrap: int) -> PolarTest:
            targets = codes.factors[rows, list(pair)]  # type: ignore[index]
            periods = [
                float(data.factor_sizes[k]) if data.factor_kinds[k] == "cyclic" else None for k in pair
            ]
            return polar_test(
                mean[:, list(plane)], targets, periods=periods, n_bootstrap=n_bootstrap, seed=self.seed
            )

        def explained(choice: tuple[tuple[int, int], tuple[int, int]]) -> float:
            # Only the scores are used here, and the interval costs most of the time.
            alignment = test(*choice, n_bootstrap=1)
            return max(alignment.cartesian, alignment.polar)

        plane, pair = max(itertools.product(planes, pairs), key=explained)
        alignment = test(plane, pair, n_bootstrap=200)
        return Coordinates(
            verdict=alignment.verdict,
            value=alignment.value,
            interval=alignment.interval,
            cartesian=alignment.cartesian,
            polar=alignment.polar,
            latents=plane,
            factors=tuple(data.factor_names[k] for k in pair),
        )

    def _pairs(self, data: AbstractDataset) -> list[tuple[int, int]]:
        """Return the indices of the factors of each pair."""
        if not self.factors:
            ordered = [
                k
                for k, kind in enumerate(data.factor_kinds)
                if kind != "categorical" and data.factor_sizes[k] != 1
            ]
            return list(itertools.combinations(ordered, 2))
        names = [name.strip() for name in self.factors.split(",")]
        for name in names:
            if name not in data.factor_names:
                raise unknown("factor", name, data.factor_names)
        if len(names) != 2 or names[0] == names[1]:
            raise InputError("factors", "be two names joined by a comma", got=f"{self.factors!r}")
        first, second = (data.factor_names.index(name) for name in names)
        return [(first, second)]

    def columns(self, measured: Coordinates) -> Columns:
        low, high = measured.interval or (None, None)
        return {
            "coordinates": measured.verdict,
            "coordinates.value": measured.value,
            "coordinates.low": low,
            "coordinates.high": high,
            "coordinates.latents": "+".join(map(str, measured.latents)),
            "coordinates.factors": "+".join(measured.factors),
        }
