"""Sizing of simulated tables of known rank, in two halves: rules are chosen on one, and the other is only reported.

    python benchmarks/small_tables.py [--half "chosen on"|unseen] [--n-samples 100,1000] [--write] [--show]

A table is x = s(z) + ε: r independent factors z, which a linear or mildly curved map s turns into m features, and noise
ε of variance 1 in each feature. Direction i of the signal has variance l_i: the covariance has r eigenvalues l_i + 1,
and the others are 1. A factor with l_i below √(m/n) cannot be detected from n samples, and FONDUE counts a factor only
if Σ 1/(1 + l_i) stays within its threshold, 1. Every table is well beyond both limits: min l_i ≥ 4 (1 + √(m/n)) and
Σ 1/(1 + l_i) ≤ 1/2. Curved maps add a third of the noise's variance to a feature.

The halves differ in families. They were fixed before any rule was changed. With ``--write`` rows are kept in
``benchmarks/small_tables.csv``; ``--show`` prints those that are there. Seconds are of one thread.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fondue import share
from jaxtyping import Float
from panel import CHOSEN_ON, UNSEEN

import polariscope as ps

RESULTS = Path(__file__).with_suffix(".csv")
N_SAMPLES = (100, 200, 500, 1000, 3000, 10_000)
N_SEEDS = 2
"""Tables of each family and number of samples."""
CURVED = 1 / 3
"""Variance that curvature adds to a feature, in units of the noise."""

Draw = Callable[[np.random.Generator, tuple[int, int]], Float[np.ndarray, "sample factor"]]


@dataclasses.dataclass(frozen=True)
class Family:
    """One way to make tables."""

    name: str
    half: str
    strengths: Callable[[int], np.ndarray]
    """Variances of the factors, relative to the weakest, by their number."""
    draw: Draw
    """Factors of variance 1."""
    curve: Callable[[np.ndarray], np.ndarray] | None = None
    """What is added to a factor's linear part, a function of the factor; None: nothing."""


def gaussian(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal factors."""
    return generator.normal(size=shape)


def uniform(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Factors that are equally likely in an interval."""
    return generator.uniform(-np.sqrt(3), np.sqrt(3), size=shape)


FAMILIES = (
    Family("equal", CHOSEN_ON, np.ones, gaussian),
    Family("geometric", CHOSEN_ON, lambda r: 1.5 ** np.arange(r), gaussian),
    Family("quadratic", CHOSEN_ON, lambda r: np.linspace(1, 2, r), gaussian, lambda z: z**2 - 1),
    Family("power law", UNSEEN, lambda r: np.arange(1, r + 1) ** 1.5, gaussian),
    Family("uniform", UNSEEN, lambda r: np.linspace(1, 3, r), uniform),
    Family("sine", UNSEEN, lambda r: np.linspace(1, 2, r), uniform, lambda z: np.sin(2 * z)),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A table and its answer."""

    family: str
    half: str
    n_samples: int
    seed: int
    n_features: int
    rank: int
    answer: int
    low: int
    high: int
    steps: int
    seconds: float

    @property
    def is_close(self) -> bool:
        return abs(self.answer - self.rank) <= 1

    @property
    def is_inside(self) -> bool:
        return self.low <= self.rank <= self.high


def make(family: Family, n_samples: int, seed: int) -> tuple[Float[np.ndarray, "sample feature"], int]:
    """Return a table and its rank.

    :param family: how its factors are made.
    :param n_samples: number of rows.
    :param seed: of everything that is drawn.
    """
    number = [each.name for each in FAMILIES].index(family.name)
    generator = np.random.default_rng([number, n_samples, seed])
    n_features = int(generator.integers(10, 61))
    rank = int(generator.integers(1, min(10, n_features // 3) + 1))
    strengths = np.asarray(family.strengths(rank), dtype=float)
    weakest = 4 * (1 + np.sqrt(n_features / n_samples))
    # All strengths grow together until the sum of FONDUE is at most one half.
    while (1 / (1 + weakest * strengths)).sum() > 0.5:
        weakest *= 1.1
    directions = np.linalg.qr(generator.normal(size=(n_features, n_features)))[0]
    factors = family.draw(generator, (n_samples, rank))
    rows = (factors * np.sqrt(weakest * strengths)) @ directions[:, :rank].T
    if family.curve is not None:
        bend = family.curve(factors)
        mixing = generator.normal(size=(rank, n_features))
        bent = bend @ mixing
        rows += bent * np.sqrt(CURVED / bent.var(axis=0))
    rows += generator.normal(size=rows.shape)
    return rows.astype(np.float32), rank


def measure(family: Family, n_samples: int, seed: int) -> Row:
    """Return one table and the answer with all defaults."""
    rows, rank = make(family, n_samples, seed)
    begin = time.perf_counter()
    size = ps.size(ps.from_arrays(rows), seed=seed, threads=1)
    low, high = size.interval or (0, 0)
    return Row(
        family=family.name,
        half=family.half,
        n_samples=n_samples,
        seed=seed,
        n_features=rows.shape[1],
        rank=rank,
        answer=size.n_latents,
        low=int(low),
        high=int(high),
        steps=size.n_steps,
        seconds=round(time.perf_counter() - begin, 1),
    )


def read() -> list[Row]:
    """Return the rows of earlier runs."""
    if not RESULTS.exists():
        return []
    kinds = {"int": int, "float": float, "str": str}
    with RESULTS.open(newline="") as file:
        return [
            Row(**{field.name: kinds[str(field.type)](row[field.name]) for field in dataclasses.fields(Row)})
            for row in csv.DictReader(file)
        ]


def write(rows: list[Row]) -> None:
    """Keep rows, in place of older ones of the same table."""
    merged = {(row.half, row.family, row.n_samples, row.seed): row for row in (*read(), *rows)}
    part = RESULTS.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(merged[key]) for key in sorted(merged))
    part.replace(RESULTS)


def show(rows: list[Row]) -> None:
    """Print how each half does, by family and number of samples."""
    for half in (CHOSEN_ON, UNSEEN):
        of_half = [row for row in rows if row.half == half]
        if not of_half:
            continue
        close, inside = (share([getattr(row, name) for row in of_half]) for name in ("is_close", "is_inside"))
        longest = max(row.seconds for row in of_half)
        print(
            f"{half}: {close} equal up to one; rank inside the interval in {inside}; longest {longest:.0f} s"
        )
        for name in dict.fromkeys(row.family for row in of_half):
            own = [row for row in of_half if row.family == name]
            print(f"  {name}: {sum(row.is_close for row in own)} of {len(own)}")
        for n_samples in sorted({row.n_samples for row in of_half}):
            own = [row for row in of_half if row.n_samples == n_samples]
            print(f"  {n_samples:,} samples: {sum(row.is_close for row in own)} of {len(own)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=(CHOSEN_ON, UNSEEN), help="only this half (default: both)")
    parser.add_argument("--n-samples", default=",".join(map(str, N_SAMPLES)), help="numbers of rows")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/small_tables.csv")
    parser.add_argument("--show", action="store_true", help="only show the rows that are kept")
    options = parser.parse_args()
    rows = read() if options.show else []
    for family in () if options.show else FAMILIES:
        if options.half not in (None, family.half):
            continue
        for n_samples in map(int, options.n_samples.split(",")):
            for seed in range(N_SEEDS):
                row = measure(family, n_samples, seed)
                rows.append(row)
                table = f"{row.family}, {n_samples:,} × {row.n_features}, seed {seed}"
                answer = (
                    f"{row.answer} ({row.low}–{row.high}), rank {row.rank}{'' if row.is_close else ', far'}"
                )
                print(f"{table}: {answer}, {row.steps:,} steps, {row.seconds:.0f} s", flush=True)
                if options.write:
                    write([row])
    show(rows)


if __name__ == "__main__":
    main()
