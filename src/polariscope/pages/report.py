"""One page about one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polariscope.core import files
from polariscope.pages.page import render
from polariscope.pages.record import Newest, make_record
from polariscope.storage.layout import report_file


def report(
    run: str | Path,
    data: Any = None,
    *,
    n_samples: int | Newest | None = "newest",
    seed: int | Newest = "newest",
    alpha: float | Newest = "newest",
    step: int | None = None,
) -> Path:
    """Write one self-contained page about a run into its folder, and return its path.

    The page shows the newest of each thing that was measured of the model: diagnosis, decomposition, scores,
    comparison. Without a diagnosis, or without the one asked for, it is made first and kept. What else is kept with
    the run is listed at the end. The same arguments give the same bytes; nothing half-written is left when it fails.

    :param run: the run's folder.
    :param data: needed when the run was trained on arrays in memory: the same dataset or arrays.
    :param n_samples: (default: those of the newest diagnosis, else 10,000) observations to diagnose; None for all.
    :param seed: (default: likewise, else 0) seed of their choice and of the noise.
    :param alpha: (default: likewise, else 0.1) tolerance of the rule that names the types.
    :param step: (default None: the finished model) report on the checkpoint of this step.
    """
    record = make_record(run, data, n_samples=n_samples, seed=seed, alpha=alpha, step=step)
    path = report_file(run)
    files.write_text(path, render(record))
    return path
