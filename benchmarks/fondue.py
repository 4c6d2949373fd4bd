"""Sizing with all defaults against models that were trained until nothing changed, on all parts of the panel.

    python benchmarks/fondue.py [NAME …] [--seeds 2] [--minutes M] [--mnist FOLDER] [--fashion FOLDER] [--write]

The reference is ``benchmarks/fondue_reference.csv`` (see ``fondue_reference.py``), for gaussian tables and linear nets
the closed form. Cost is counted in gradient steps,
which do not depend on how busy the machine is. The reference search is the published one (doubling from the data's
intrinsic dimension, then bisection), each of its models trained for as long as the reference's models of that entry
and seed took to settle, on average; "two" counts only the two models that decide, for those who would have known the
answer beforehand. Seconds are of this machine, and of all its cores unless threads are fixed.

With ``--write`` the rows are added to ``benchmarks/fondue.csv``, which replaces older ones of the same data and seed.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import statistics
import time
from pathlib import Path

from fondue_reference import Value, answer_of, read
from panel import CHOSEN_ON, NEW, UNSEEN, Entry, add_options, asked_for
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

import polariscope as ps
from polariscope.analysis.dimension.mle import mle
from polariscope.data.dataset import AbstractDataset
from polariscope.sizing.bisection import grow_and_bisect
from polariscope.sizing.trained import max_latents
from polariscope.training.plan import plan

RESULTS = Path(__file__).with_suffix(".csv")
N_FOR_DIMENSION = 10_000
K = 20
"""Neighbours of the intrinsic dimension at which the published search starts."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One entry and seed, sized in both ways."""

    data: str
    half: str
    seed: int
    reference: int
    settled: str
    answer: int
    low: int
    high: int
    models: str
    steps: int
    reference_steps: int
    two_steps: int
    seconds: float

    @property
    def is_close(self) -> bool:
        """Equal up to one, or up to a tenth above 20."""
        return abs(self.answer - self.reference) <= max(1, self.reference // 10 if self.reference > 20 else 0)

    @property
    def is_inside(self) -> bool:
        return self.low <= self.reference <= self.high

    @property
    def fewer(self) -> float:
        return self.reference_steps / self.steps


def path_of(answer: int, n_init: int) -> list[int]:
    """The models of the published search, where those up to the answer fit."""
    asked: list[int] = []

    def fits(n: int) -> bool:
        asked.append(n)
        return n <= answer

    grow_and_bisect(fits, n_init)
    return asked


def dimension_of(data: AbstractDataset, seed: int) -> int:
    """The intrinsic dimension of some of the data, at which the published search starts."""
    import numpy as np

    chosen = np.random.default_rng(seed).permutation(len(data))[:N_FOR_DIMENSION]
    rows = data.values(chosen).reshape(len(chosen), -1)
    return max(1, round(mle(rows, k=min(K, len(rows) - 2)).value))


def compare(entry: Entry, folder: Path, seed: int, values: list[Value], minutes: float | None) -> Row | None:
    """Size one entry; None where the reference has no answer yet."""
    data = entry.load(folder)
    if entry.is_gaussian:  # known in closed form, so nothing is compared in cost
        known: tuple[int, bool] | None = (ps.size(data, "linear").n_latents, True)
    else:
        job = plan(data, n_latents=1, steps=1, net=entry.net)
        known = answer_of(values, entry.name, seed, max_latents(job))
    if known is None:
        return None
    reference, settled = known
    begin = time.perf_counter()
    options = {} if minutes is None else {"minutes": minutes}
    ours = ps.size(data, seed=seed, net=entry.net, **options)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    longest: dict[int, int] = {}
    for value in values:
        if (value.data, value.seed) == (entry.name, seed):
            longest[value.n_latents] = max(value.steps, longest.get(value.n_latents, 0))
    mean = 0.0 if entry.is_gaussian else statistics.mean(longest.values())
    path = [] if entry.is_gaussian else path_of(reference, dimension_of(data, seed))
    low, high = ours.interval or (0, math.inf)
    return Row(
        data=entry.name,
        half=entry.half,
        seed=seed,
        reference=reference,
        settled="yes" if settled else "no",
        answer=ours.n_latents,
        low=int(low),
        high=int(high),
        models=" ".join(f"{trial.n_latents}:{trial.steps}" for trial in ours.trials),
        steps=ours.n_steps,
        reference_steps=round(mean * len(path)),
        two_steps=sum(steps for n, steps in longest.items() if n in (reference, reference + 1)),
        seconds=round(seconds, 1),
    )


def kept() -> list[Row]:
    """The rows of earlier runs."""
    if not RESULTS.exists():
        return []
    kinds = {"int": int, "float": float, "str": str}
    with RESULTS.open(newline="") as file:
        return [
            Row(**{field.name: kinds[str(field.type)](row[field.name]) for field in dataclasses.fields(Row)})
            for row in csv.DictReader(file)
        ]


def keep(rows: list[Row]) -> None:
    """Write rows, in place of older ones of the same data and seed."""
    merged = {(row.data, row.seed): row for row in (*kept(), *rows)}
    part = RESULTS.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(merged[key]) for key in sorted(merged))
    part.replace(RESULTS)


def show(rows: list[Row], half: str, console: Console) -> None:
    """A half as a table, and its figures in words."""
    rows = [row for row in rows if row.half == half]
    if not rows:
        return
    table = Table(title=f"{half}, all defaults")
    for heading in ("data", "seed", "reference", "ours", "models", "steps", "fewer", "than two", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        mark = "" if row.settled == "yes" else "?"
        table.add_row(
            row.data,
            str(row.seed),
            f"{row.reference}{mark}",
            f"{row.answer} ({row.low}–{row.high}){'' if row.is_close else ' far'}{'' if row.is_inside else ' outside'}",
            row.models,
            f"{row.steps:,}",
            f"{row.fewer:.1f}x" if row.reference_steps else "",
            f"{row.two_steps / row.steps:.1f}x" if row.reference_steps else "",
            f"{row.seconds:.0f}",
        )
    console.print(table)
    console.print(figures(rows))


def figures(rows: list[Row]) -> str:
    """How rows do, in words. The width of 8–12 is 4, and five numbers are in it."""
    widths = [row.high - row.low for row in rows]
    words = (
        f"{share([row.is_close for row in rows])} equal up to one (a tenth above 20); reference inside the interval in "
        f"{share([row.is_inside for row in rows])}; median width {statistics.median(widths):g}"
    )
    if ratios := [row.fewer for row in rows if row.reference_steps]:
        mean = statistics.geometric_mean(ratios)
        words += f"; geometric mean {mean:.1f}x fewer steps, least {min(ratios):.1f}x"
    return words


def share(hits: list[bool]) -> str:
    """k of n with its 95 % interval (Clopper and Pearson's).

    >>> share([True] * 9 + [False])
    '9 of 10 (55–100 %)'
    """
    found = binomtest(sum(hits), len(hits)).proportion_ci()
    return f"{sum(hits)} of {len(hits)} ({100 * found.low:.0f}–{100 * found.high:.0f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="time for each answer (default: as long as it takes)")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/fondue.csv")
    parser.add_argument("--show", action="store_true", help="only show the rows that are kept")
    options = parser.parse_args()
    console = Console(width=200)
    rows = kept() if options.show else []
    values = read()
    for entry, folder in [] if options.show else asked_for(options):
        for seed in range(options.seeds):
            row = compare(entry, folder, seed, values, options.minutes)
            if row is None:
                console.print(f"{entry.name}, seed {seed}: the reference has no answer yet")
                continue
            console.print(
                f"{row.data}, seed {seed}: {row.answer} ({row.low}–{row.high}), reference {row.reference}"
            )
            rows.append(row)
            if options.write:
                keep([row])
    for half in (CHOSEN_ON, UNSEEN, NEW):
        show(rows, half, console)
    if unchosen := [row for row in rows if row.half != CHOSEN_ON]:
        console.print(f"{UNSEEN} and {NEW}: {figures(unchosen)}")


if __name__ == "__main__":
    main()
