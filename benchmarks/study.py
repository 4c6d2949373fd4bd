"""How much two workers gain over one: the same study, made by one worker and by two, on the cores of this machine.

Both start from nothing, take turns, and make the same bytes; workers of their own open the package first, which is
part of their time. On a machine that others use as well the ratio measures the others too.

    python benchmarks/study.py [--runs 4] [--steps 300] [--turns 2]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from polariscope.runs.run import Run
from polariscope.studies.ledger import Ledger
from polariscope.studies.study import Study
from polariscope.studies.workers.local import run_locally


def seconds(out: Path, n_runs: int, steps: int, workers: int) -> tuple[float, list[str]]:
    """How long a study takes, and the digests of its models."""
    study = Study(
        data={"name": "sprites", "image_size": 32},
        objective="beta",
        settings={"net": "conv", "steps": steps, "checkpoint_every": steps},
        seeds=n_runs,
        threads=1,
        out=str(out),
    )
    ledger = Ledger(study)
    begun = time.perf_counter()
    counts = run_locally(ledger, workers)
    passed = time.perf_counter() - begun
    assert counts["done"] == n_runs
    return passed, [Run(run.folder).digest() for run in ledger.runs]


def main() -> None:
    """Print the seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    times: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(given.turns):
            made = {}
            for workers in times:
                out = Path(folder) / f"{turn}-{workers}"
                passed, made[workers] = seconds(out, given.runs, given.steps, workers)
                times[workers].append(passed)
            assert made[1] == made[2], "one worker and two must make the same models"
    one, two = (statistics.median(times[workers]) for workers in (1, 2))
    print(
        f"{given.runs} runs of {given.steps} steps: 1 worker {one:.1f} s, 2 workers {two:.1f} s, ratio {one / two:.2f}"
    )


if __name__ == "__main__":
    main()
