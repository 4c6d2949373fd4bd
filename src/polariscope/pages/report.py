"""One page about one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polariscope.core import files
from polariscope.pages.page import render
from polariscope.pages.record import make_record


def report(
    run: str | Path, data: Any = None, *, n_samples: int | None = 10_000, seed: int = 0, alpha: float = 0.1
) -> Path:
    """Write ``RUN/report.html``, one self-contained page about a finished run, and return its path.

    ``data`` is needed when the run was trained on arrays in memory: the same dataset or arrays. The diagnosis
    is made on ``n_samples`` observations drawn with ``seed`` (None: all), with the rule's tolerance ``alpha``,
    and kept as ``RUN/regime.json``. The
    same arguments give the same bytes; nothing half-written is left when it fails.
    """
    page = render(make_record(run, data, n_samples=n_samples, seed=seed, alpha=alpha))
    path = Path(run) / "report.html"
    files.write_text(path, page)
    return path
