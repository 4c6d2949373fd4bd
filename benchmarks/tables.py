"""Time to read a table as a dataset over the time of plain ``pandas.read_csv`` for the same file, in one thread.

Ours also checks the rows, the numbers and the names, and prepares the observations; pandas only parses. The two take
turns, and the ratio is that of the fastest rounds, since the machine is shared. The tables are numbers in 10 columns
(19 MB), the same with a column of labels and one of row names, 40,000 columns in two rows, and counts.

    python benchmarks/tables.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from rich.console import Console
from rich.table import Table

from polariscope.data.own.table import TableDataset
from polariscope.training.threads import using_threads

TARGETS = {"numbers": 0.5, "wide": 2.0}
"""Seconds in which a table is to be read."""


def tables(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Write the tables; return the path of each and the options it is read with."""
    draw = np.random.default_rng(0)
    values = draw.normal(size=(100_000, 10))
    names = [f"c{column}" for column in range(10)]
    numbers = pandas.DataFrame(values, columns=names)
    labelled = numbers.assign(
        kind=draw.choice(["owl", "cat"], 100_000), row=[f"{row:07}" for row in range(100_000)]
    )
    wide = pandas.DataFrame(draw.normal(size=(2, 40_000)), columns=[f"c{column}" for column in range(40_000)])
    counts = pandas.DataFrame(
        draw.poisson(20, size=(100_000, 60)), columns=[f"c{column}" for column in range(60)]
    )
    frames: dict[str, tuple[pandas.DataFrame, dict[str, Any]]] = {
        "numbers": (numbers, {}),
        "labelled": (labelled, {"labels": ("kind",), "row_names": "row"}),
        "wide": (wide, {}),
        "counts": (counts, {}),
    }
    for name, (frame, _) in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return {name: (folder / f"{name}.csv", options) for name, (_, options) in frames.items()}


def seconds(function: Callable[[], object]) -> float:
    """Return the time of a call by the clock."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="times that each table is read")
    rounds = parser.parse_args().rounds
    shown = Table("table", "MB", "pandas s", "ours s", "ratio", "target s")
    with tempfile.TemporaryDirectory() as folder, using_threads(1):
        for name, (path, options) in tables(Path(folder)).items():
            plain, ours = [], []
            for _ in range(rounds):
                plain.append(seconds(lambda path=path: pandas.read_csv(path)))  # type: ignore[misc]
                ours.append(seconds(lambda path=path, options=options: TableDataset(str(path), **options)))  # type: ignore[misc]
            ratio = min(ours) / min(plain)
            size = path.stat().st_size / 1e6
            target = f"{TARGETS[name]:g}" if name in TARGETS else ""
            shown.add_row(
                name, f"{size:.1f}", f"{min(plain):.3f}", f"{min(ours):.3f}", f"{ratio:.1f}", target
            )
    Console().print(shown)


if __name__ == "__main__":
    main()
