"""Random halves of the samples, where a measurement is too long to be repeated as often as a bootstrap asks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from polariscope.analysis.code_table import Table
from polariscope.core.seeds import generator

N_HALVES = 20


def half_samples(
    rows: Int[np.ndarray, " row"], table: Table, stream: str, count: int = N_HALVES
) -> list[Int[np.ndarray, " half"]]:
    """Random halves of ``rows``, without replacement, for :func:`~polariscope.numerics.intervals.interval_from_halves`.

    Unlike a bootstrap's resamples, they hold no sample twice, which a pair or a variance within a small group would
    notice.
    """
    draw = generator(table.seed, "metrics", "halves", stream)
    return [np.sort(draw.permutation(rows)[: max(1, len(rows) // 2)]) for _ in range(count)]
