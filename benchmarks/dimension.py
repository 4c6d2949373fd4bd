"""Intrinsic dimension against scikit-dimension, in one run: MLE at k = 3, 5, 10, 20 and TwoNN of the same points.

Both give the same numbers, which is checked. Ours finds the neighbours once and reads every estimate from the table,
with bootstrap intervals; scikit-dimension searches for each estimate. The two are timed in turn, and the best round of
each counts: wall time, and processor time of all threads, which counts on a machine that is shared. The points lie on a
bent surface of 10 dimensions, as images do.

Target: at least 4x at 10 000 × 4096. scikit-dimension is no dependency of ours (it brings numba):

    pip install scikit-dimension==0.5
    OMP_NUM_THREADS=2 python benchmarks/dimension.py [--samples 3000] [--features 1024] [--rounds 1] [--full]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from polariscope.analysis.dimension.mle import mle
from polariscope.analysis.dimension.twonn import twonn
from polariscope.numerics.neighbours import neighbours

K = (3, 5, 10, 20)
TARGET = 4.0
FULL = (10_000, 4096)
Values = dict[str, float]
Times = dict[str, np.ndarray]  # wall and processor time by name


def surface(n_samples: int, n_features: int, n_dimensions: int = 10) -> np.ndarray:
    """Samples in float32 on a smooth surface, between -1 and 1."""
    rng = np.random.default_rng(0)
    position = rng.normal(size=(n_samples, n_dimensions))
    bent = np.tanh(position @ rng.normal(size=(n_dimensions, 50)) / np.sqrt(n_dimensions))
    return np.tanh(bent @ rng.normal(size=(50, n_features)) / np.sqrt(50)).astype(np.float32)


def timed(step: Callable[[], Values], seconds: Times, name: str) -> Values:
    start = np.array([time.perf_counter(), time.process_time()])
    found = step()
    spent = np.array([time.perf_counter(), time.process_time()]) - start
    seconds[name] = np.minimum(seconds.get(name, np.inf), spent)
    return found


def ours(x: np.ndarray, seconds: Times) -> Values:
    found: Values = {}
    tables = []

    def search() -> Values:
        tables.append(neighbours(x, k=max(K)))
        return {}

    timed(search, seconds, "neighbours")
    for k in K:

        def estimate(k: int = k) -> Values:
            return {f"mle {k}": mle(tables[0], k=k, normaliser="k-1").value}

        found |= timed(estimate, seconds, f"mle {k}")
    return found | timed(lambda: {"twonn": twonn(tables[0]).value}, seconds, "twonn")


def theirs(x: np.ndarray, seconds: Times) -> Values:
    import skdim

    found: Values = {}
    for k in K:

        def estimate(k: int = k) -> Values:
            return {f"mle {k}": float(skdim.id.MLE().fit(x, n_neighbors=k).dimension_)}

        found |= timed(estimate, seconds, f"mle {k}")
    return found | timed(lambda: {"twonn": float(skdim.id.TwoNN().fit(x).dimension_)}, seconds, "twonn")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--full", action="store_true", help=f"{FULL[0]} x {FULL[1]}")
    arguments = parser.parse_args()
    n_samples, n_features = FULL if arguments.full else (arguments.samples, arguments.features)
    console = Console()
    if importlib.util.find_spec("skdim") is None:
        console.print(
            "scikit-dimension is not installed, so that there is nothing to compare with: see the top of this file."
        )
        sys.exit(1)

    x = surface(n_samples, n_features)
    small = x[:200, :30]
    theirs(small, {})  # imports and compiles
    ours(small, {})
    seconds: dict[str, Times] = {"ours": {}, "theirs": {}}
    for _ in range(arguments.rounds):
        found, reference = ours(x, seconds["ours"]), theirs(x, seconds["theirs"])
    table = Table(
        title=f"{n_samples} x {n_features} float32, {os.environ.get('OMP_NUM_THREADS', 'all')} threads"
    )
    for column in (
        "",
        "ours",
        "scikit-dimension",
        "ours: wall, cpu s",
        "scikit-dimension: wall, cpu s",
        "ratio: wall, cpu",
    ):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("neighbours", "", "", pair(seconds["ours"]["neighbours"]), "", "")
    for name, value in reference.items():
        times = [pair(seconds[side][name]) for side in ("ours", "theirs")]
        table.add_row(name, f"{found[name]:.4f}", f"{value:.4f}", *times, "")
    totals = [np.sum(list(seconds[side].values()), axis=0) for side in ("ours", "theirs")]
    ratio = totals[1] / totals[0]
    table.add_row("in all", "", "", *map(pair, totals), pair(ratio))
    console.print(table)
    difference = max(abs(found[name] / value - 1) for name, value in reference.items())
    console.print(
        f"largest relative difference {difference:.1e}; speed ratio {pair(ratio)}, target {TARGET:.0f}"
    )


def pair(times: np.ndarray) -> str:
    return ", ".join(f"{each:.2f}" for each in times)


if __name__ == "__main__":
    main()
