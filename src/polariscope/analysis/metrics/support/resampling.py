"""Random halves of the samples, for measurements that are too slow for a bootstrap."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from polariscope.analysis.code_table import Table
from polariscope.core.seeds import generator

N_HALVES = 20


def half_samples(
    rows: Int[np.ndarray, " row"], table: Table, stream: str, count: int = N_HALVES
) -> list[Int[np.ndarray, " half"]]:
    """Draw random halves of ``rows`` for :func:`~polariscope.numerics.intervals.interval_from_halves`.

    Unlike resamples of a bootstrap, they contain no sample twice. Duplicates would bias distances of pairs and
    variances within small groups.
    """
    draw = generator(table.seed, "metrics", "halves", stream)
    return [np.sort(draw.permutation(rows)[: max(1, len(rows) // 2)]) for _ in range(count)]
