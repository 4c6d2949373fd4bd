"""Batches of samples that share the value of one factor, drawn from a table that was encoded once.

The usual implementation draws images with one factor fixed and encodes 64 of them for each of 15 000 votes. Here the
images are rows of the encoded table: rows are sorted once by the value of each factor, after which a batch is a gather
of indices. The factors can have any distribution. On a full grid the other factors are drawn independently, as the
published metrics assume. On partial or correlated data they vary as they do among the samples with that value;
:func:`assumptions` adds a note.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.support.resampling import half_samples
from polariscope.core.errors import InputError
from polariscope.core.text import plural

BLOCK_BYTES = 2**24  # size of a block of gathered codes; larger blocks do not fit in the processor's cache


def check_several(table: Table) -> None:
    """Raise an error if there is a single factor, because any codes would score 1."""
    if table.n_factors < 2:
        raise InputError(
            problem="the metric predicts which factor was fixed, so with a single factor any codes would score 1"
        )


class Groups:
    """Rows of a table grouped by the value of each factor; values that occur once are left out."""

    def __init__(self, classes: Int[np.ndarray, "sample factor"], names: tuple[str, ...]) -> None:
        n_samples, n_factors = classes.shape
        self.names = names
        self.order = np.argsort(classes, axis=0, kind="stable").T
        """Rows sorted by value, for each factor."""
        self.rank, self.count = np.empty((2, n_factors, n_samples), dtype=np.intp)
        self.candidates, self.n_candidates = np.zeros_like(self.order), np.zeros(n_factors, dtype=np.intp)
        self.seen_once = np.zeros(n_factors, dtype=np.intp)
        """Number of values that occur in a single row, for each factor."""
        for k, (order, column) in enumerate(zip(self.order, classes.T, strict=True)):
            counts = np.bincount(column)
            self.rank[k, order] = np.arange(n_samples)
            self.count[k] = counts[column]
            repeated = np.flatnonzero(self.count[k] > 1)
            self.candidates[k, : len(repeated)] = repeated
            self.n_candidates[k] = len(repeated)
            self.seen_once[k] = (counts == 1).sum()
        # Position of the first row with the same value, in the sorted order of each factor.
        self.start = np.stack([(np.cumsum(c := np.bincount(x)) - c)[x] for x in classes.T])
        for name, usable in zip(names, self.n_candidates, strict=True):
            if usable == 0:
                raise InputError(
                    problem=(
                        f"factor {name!r} has a different value in each of these {n_samples} samples, so "
                        "it cannot be fixed"
                    ),
                    remedy="draw more samples or drop it",
                )

    def anchors(
        self, factor: Int[np.ndarray, "*shape"], draw: np.random.Generator
    ) -> Int[np.ndarray, "*shape"]:
        """Draw a row for each entry of ``factor``, whose value is fixed; values are drawn by frequency."""
        return self.candidates[factor, _below(self.n_candidates[factor], draw)]

    def batches(
        self, factor: Int[np.ndarray, " batch"], size: int, draw: np.random.Generator
    ) -> Int[np.ndarray, "batch size"]:
        """Draw rows that share the value of the batch's factor, with replacement."""
        anchor = self.anchors(factor, draw)
        # The number of rows with the value of the anchor, for each member of the batch.
        count = np.broadcast_to(self.count[factor, anchor][:, None], (len(factor), size))
        return self.order[factor[:, None], self.start[factor, anchor][:, None] + _below(count, draw)]

    def pairs(
        self, factor: Int[np.ndarray, "*shape"], draw: np.random.Generator
    ) -> tuple[Int[np.ndarray, "*shape"], Int[np.ndarray, "*shape"]]:
        """Draw two different rows for each entry, which share the value of its factor."""
        first = self.anchors(factor, draw)
        start, count = self.start[factor, first], self.count[factor, first]
        # The step is between 1 and count − 1 places within the group, so it never ends at the row itself.
        further = self.rank[factor, first] - start + 1 + _below(count - 1, draw)
        return first, self.order[factor, start + further % count]


def _below(limit: Int[np.ndarray, "*shape"], draw: np.random.Generator) -> Int[np.ndarray, "*shape"]:
    """Draw an integer from 0 to below each limit, uniformly (to 2⁻⁵³)."""
    return (draw.random(np.shape(limit)) * limit).astype(np.intp)


def halves(table: Table, stream: str) -> list[tuple[Int[np.ndarray, " half"], Groups]]:
    """Return random halves of the table with their groups; empty if a half is too small to fix some factor."""
    halves_of_batches = []
    for rows in half_samples(np.arange(table.n_samples), table, stream):
        try:
            halves_of_batches.append((rows, Groups(table.classes[rows], table.factor_names)))
        except InputError:
            # Intervals need all halves, so one that fails leaves none.
            return []
    return halves_of_batches


def blocks(n_batches: int, size: int, n_latents: int) -> Iterator[slice]:
    """Yield slices of the batches whose gathered codes fit into :data:`BLOCK_BYTES`."""
    step = max(1, BLOCK_BYTES // (8 * size * n_latents))
    yield from (slice(start, min(start + step, n_batches)) for start in range(0, n_batches, step))


def assumptions(table: Table, groups: Groups) -> tuple[str, ...]:
    """Return notes about the assumptions of a score from such batches."""
    notes = [
        f"Batches are drawn from these {table.n_samples} samples: a value is fixed as often as it occurs, and the "
        "other factors vary as they do among the samples that have it."
    ]
    for name, values in zip(groups.names, groups.seen_once, strict=True):
        if values:
            notes.append(
                f"Factor {name!r} has {plural(int(values), 'value')} with a single sample, left out because a single "
                "sample has no variation. Draw more samples to include them."
            )
    return (*notes, *table.grid_notes)


def mean_by(
    factor: Int[np.ndarray, " batch"], values: Shaped[np.ndarray, " batch"], n_factors: int
) -> Float[np.ndarray, " factor"]:
    """Return the mean value of the batches in which each factor was fixed; 0 if there are none."""
    return np.bincount(factor, values, n_factors) / np.maximum(1, np.bincount(factor, minlength=n_factors))
