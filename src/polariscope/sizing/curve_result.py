"""Records of curves over the number of latents: points, bands over seeds and tables."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from polariscope.analysis.regime.latent_types import TYPES
from polariscope.core.errors import InputError
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.tables import TextTable
from polariscope.core.text import plural
from polariscope.data.observations import Part, Subset
from polariscope.numerics.intervals import t_interval
from polariscope.sizing.result import TRACE, Size

if TYPE_CHECKING:
    import pandas

DIGITS = {"probe": 3, "active": 1, "mixed": 1, "passive": 1}
"""Decimals in a printed table, if not 2."""
LABELS: dict[str, str] = {
    "loss": "loss",
    "reconstruction": "reconstruction",
    "rate": "KL",
    "probe": "probe",
    "trace_mean": "Tr Var[μ]",
    "trace_sampled": "Tr Var[z]",
    "trace": TRACE,
    "dimension_mean": "ID[μ]",
    "dimension_sampled": "ID[z]",
    **{str(kind): str(kind) for kind in TYPES},
}
"""Labels of the quantities that are measured for each model, in the order of the tables."""


@dataclasses.dataclass(frozen=True)
class CurvePoint(AbstractRecord):
    """Measurements of one model of a curve: held-out losses and properties of its codes."""

    n_latents: int
    seed: int
    steps: int
    """Gradient steps of the training."""
    loss: float
    """Training objective, nats per held-out sample."""
    reconstruction: float
    """Reconstruction loss, nats per held-out sample."""
    rate: float | None
    """KL, nats per held-out sample; None if the encoder is deterministic."""
    probe: float | None
    """Held-out accuracy (R² for continuous factors) of boosted trees on the mean representation, averaged over factors;
    None if no factor is known."""
    trace_mean: float
    """Tr Var[μ], the variance of the mean representation."""
    trace_sampled: float | None
    """Tr Var[z], the variance of the sampled representation; None if the encoder is deterministic."""
    trace: float | None
    """Σ E[σ²], FONDUE's statistic: the expected difference between ``trace_sampled`` and ``trace_mean``."""
    dimension_mean: float | None
    """Intrinsic dimension of the mean representation (maximum likelihood, k = 20); None if it cannot be estimated."""
    dimension_sampled: float | None
    """The same for the sampled representation."""
    active: int | None
    """Number of active latents; like the next two, None if the encoder is deterministic."""
    mixed: int | None
    passive: int | None


@dataclasses.dataclass(frozen=True)
class Band(AbstractRecord):
    """One quantity over the seeds of one number of latents."""

    quantity: str
    n_latents: int
    n: int
    """Number of models with a value."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n − 1); None for one seed."""
    low: float | None
    """Lower end of the 95 % interval of the mean by Student's t; None for one seed."""
    high: float | None


@dataclasses.dataclass(frozen=True)
class SizeCurve(AbstractStoredRecord, remedy="make the curves again"):
    """Models of several widths and seeds, all trained equally long, and the answers of sizing methods."""

    points: tuple[CurvePoint, ...]
    """Points, sorted by number of latents, then by seed."""
    answers: tuple[Size, ...]
    """Answers of the methods."""
    objective: str
    steps: int
    """Gradient steps of each model."""
    epochs: float
    """The same in passes over the training data."""
    n_samples: int
    """Number of observations that each model encoded."""
    part: Part = Subset.part
    """Part of the split that contains these observations."""
    notes: tuple[str, ...] = ()
    """Quantities that were left out, with the reason."""

    @property
    def n_latents(self) -> tuple[int, ...]:
        """The numbers of latents, ascending."""
        return tuple(sorted({point.n_latents for point in self.points}))

    @property
    def n_seeds(self) -> int:
        """Number of seeds."""
        return len({point.seed for point in self.points})

    @property
    def quantities(self) -> tuple[str, ...]:
        """Measured quantities: fields of :class:`CurvePoint` that have a value for at least one model."""
        return tuple(
            name for name in LABELS if any(getattr(point, name) is not None for point in self.points)
        )

    def bands(self, quantity: str) -> list[Band]:
        """Return the mean over seeds and its 95 % interval by Student's t for each number of latents with a value.

        :param quantity: a name of :attr:`quantities`.
        """
        if quantity not in LABELS:
            raise InputError("quantity", f"be one of {', '.join(LABELS)}", got=f"{quantity!r}")
        bands = []
        for n in self.n_latents:
            all_values = [getattr(point, quantity) for point in self.points if point.n_latents == n]
            values = np.array([value for value in all_values if value is not None], dtype=np.float64)
            if not len(values):
                continue
            # Losses are unbounded below, and no more than all n latents can be of one type.
            lowest = -math.inf if quantity in ("loss", "reconstruction") else 0.0
            bounds = (lowest, float(n) if quantity in TYPES else math.inf)
            low, high = t_interval(values, bounds=bounds) or (None, None)
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            bands.append(Band(quantity, n, len(values), float(values.mean()), deviation, low, high))
        return bands

    def to_csv(self) -> str:
        """Return the plotted numbers: a row for each quantity and number of latents, then one for each answer.

        The row of an answer contains its value in the column ``mean``, and its interval.
        """
        columns = [field.name for field in dataclasses.fields(Band)]
        rows = [dataclasses.asdict(band) for name in self.quantities for band in self.bands(name)]
        for size in self.answers:
            low, high = size.interval or (None, None)
            rows.append({"quantity": f"answer of {size.method}", "n": len(size.per_seed), "mean": size.value})
            rows[-1] |= {"low": low, "high": high}
        return csv_of(frame_of(rows, columns))

    def models_csv(self) -> str:
        """Return a row for each model; cells of quantities that do not apply to it are empty."""
        columns = [field.name for field in dataclasses.fields(CurvePoint)]
        return csv_of(frame_of([dataclasses.asdict(point) for point in self.points], columns))

    @property
    def headline(self) -> str:
        """A sentence about the models and the bands."""
        seeds = plural(self.n_seeds, "seed")
        band = "mean ± half of the 95 % interval by Student's t" if self.n_seeds > 1 else "no interval"
        return (
            f"Objective {self.objective}, {len(self.points)} models of {self.steps:,} gradient steps each "
            f"({self.epochs:.3g} passes over the training data); {seeds}: {band}."
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return a heading and a row for each number of latents: means with half the width of their intervals."""
        bands = {
            (band.quantity, band.n_latents): band for name in self.quantities for band in self.bands(name)
        }
        rows = [("latents", *(LABELS[name] for name in self.quantities))]
        rows += [(str(n), *(_cell(bands.get((name, n))) for name in self.quantities)) for n in self.n_latents]
        return rows

    def __str__(self) -> str:
        heading, *rows = self.table()
        table = TextTable(*heading, rows=rows, numbers=heading)
        answers = [f"{size.method}: {size.answer}." for size in self.answers]
        return "\n".join([self.headline, "", str(table), "", *answers, *self.notes]).rstrip()

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each model, indexed by number of latents and seed."""
        import pandas

        rows = [dataclasses.asdict(point) for point in self.points]
        return pandas.DataFrame(rows).set_index(["n_latents", "seed"])


def _cell(band: Band | None) -> str:
    if band is None:
        return "–"
    digits = DIGITS.get(band.quantity, 2)
    if band.low is None:
        return f"{band.mean:.{digits}f}"
    return f"{band.mean:.{digits}f} ± {band.mean - band.low:.{digits}f}"
