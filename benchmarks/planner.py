"""Pace of tables: held-out losses of several rates, batches and lengths, in nats.

    python benchmarks/planner.py

Digits and wine were chosen on; breast cancer and diabetes are only reported. Takes about ten minutes of one core.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

import polariscope as ps
from polariscope.analysis.convergence import held_out_loss
from polariscope.storage.folder import read_log

LATENTS = {"digits": 15, "wine": 5, "breast_cancer": 8, "diabetes": 6}
PACES: list[dict[str, Any]] = [
    {"learning_rate": 1e-3, "batch_size": 64, "steps": 2_000},
    {"learning_rate": 1e-3, "batch_size": 64, "steps": 3_000, "schedule": "cosine"},
    {"learning_rate": 1e-3, "batch_size": 64, "steps": 5_000},
    {"learning_rate": 1e-3, "batch_size": 64, "steps": 5_000, "schedule": "cosine"},
    {"learning_rate": 1e-3, "batch_size": 64, "steps": 10_000},
    {"learning_rate": 1e-4, "batch_size": 64, "steps": 20_000},
    {"learning_rate": 3e-3, "batch_size": 128, "steps": 2_000, "schedule": "cosine"},
]
SEEDS = (0, 1)


def loss_of(name: str, seed: int, pace: dict[str, Any]) -> float:
    """Return the held-out loss at the end of a training on seven tenths of a table."""
    rows = np.asarray(getattr(sklearn.datasets, f"load_{name}")().data, dtype=np.float32)
    every = pace["steps"] // 50
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        ps.train(
            ps.from_arrays(rows),
            n_latents=LATENTS[name],
            standardise=name != "digits",
            likelihood="gaussian",
            train_fraction=0.7,
            seed=seed,
            out=run,
            threads=1,
            log_every=every,
            validate_every=every,
            **pace,
        )
        return held_out_loss(read_log(run)[-1])


def main() -> None:
    """Print the table."""
    print(f"| rate, batch, steps | {' | '.join(LATENTS)} |")
    print(f"| --- |{' --- |' * len(LATENTS)}")
    for pace in PACES:
        losses = [np.mean([loss_of(name, seed, pace) for seed in SEEDS]) for name in LATENTS]
        cells = " | ".join(f"{loss:.1f}" for loss in losses)
        print(f"| {', '.join(map(str, pace.values()))} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
