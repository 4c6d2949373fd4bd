"""Counts: non-negative integers."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import Argument, InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.reading import rows_at_once
from polariscope.data.streamed_statistics import merged

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

MAX_ROWS = 10_000
"""Maximum number of observations from which the usual total and the facts about values are computed."""
SAMPLE_VALUES, MIN_ROWS = 2**24, 256
"""Number of values, and minimum number of rows, of the sample in which the values of a table are compared."""


@dataclasses.dataclass(frozen=True)
class ValueFacts(AbstractRecord):
    """Facts about the values of a dataset that determine which likelihood suits them.

    ``largest`` is exact. The others are measured only if all values are non-negative integers, in a sample of
    ``n_rows`` equally spaced rows: at most 10,000, and fewer if a table has more than 1,677 columns.
    """

    is_table: bool
    """If True, observations are rows of a table, not images."""
    is_unit_interval: bool = False
    """If True, the dataset guarantees values in [0, 1]."""
    largest: float | None = None
    """Largest value if every value is a non-negative integer, otherwise None."""
    dispersion: float = 0.0
    """Median over the columns of variance / mean; columns of zeros are excluded."""
    share_at_largest: float = 0.0
    """Share of the values that equal the largest one."""
    is_distinct: bool = False
    """If True, no column that varies contains a value twice."""
    n_rows: int = 0
    """Number of rows in which dispersion, share and repetitions were measured."""
    n_values: int = 0
    """Number of values in these rows."""

    @property
    def is_binary(self) -> bool:
        """True if every value is 0 or 1."""
        return self.is_table and self.largest is not None and self.largest <= 1


def measure_values(data: AbstractDataset) -> ValueFacts:
    """Return the facts about the values of a dataset; images are not read.

    :param data: a dataset.
    """
    if len(data.shape) != 1:
        return ValueFacts(is_table=False, is_unit_interval=data.is_unit_interval)
    rows = _sample_rows(len(data), data.n_features)
    # Most tables that are not counts can be recognised by their first rows.
    if not is_whole(data.values(rows[:MIN_ROWS])) or (largest := largest_count(data)) is None:
        return ValueFacts(is_table=True, is_unit_interval=data.is_unit_interval)
    return dataclasses.replace(_facts(data.values(rows), largest), is_unit_interval=data.is_unit_interval)


def measure_rows(values: Float[np.ndarray, "sample feature"]) -> ValueFacts:
    """Return the facts about a table in memory.

    :param values: the table.
    """
    if not is_whole(values):
        return ValueFacts(is_table=True)
    return _facts(values[_sample_rows(*values.shape)], float(values.max()))


def _sample_rows(n_samples: int, n_features: int) -> Int[np.ndarray, " row"]:
    return _spread(n_samples, min(MAX_ROWS, max(MIN_ROWS, SAMPLE_VALUES // n_features)))


def _facts(sample: Float[np.ndarray, "sample feature"], largest: float) -> ValueFacts:
    """Return the facts about integers, from a sample of rows and the largest value of the whole table."""
    # In steps, because the statistics are computed from copies in float64.
    step = rows_at_once(sample.shape[1])
    statistics = merged(sample[first : first + step] for first in range(0, len(sample), step))
    positive = statistics.mean > 0
    ratios = statistics.deviation[positive] ** 2 / statistics.mean[positive]
    return ValueFacts(
        is_table=True,
        largest=largest,
        dispersion=float(np.median(ratios)) if ratios.size else 0.0,
        # The sample can be float32, to which the largest value must be rounded as well.
        share_at_largest=float(np.mean(sample == sample.dtype.type(largest))),
        is_distinct=_is_distinct(sample[:, statistics.deviation > 0]),
        n_rows=len(sample),
        n_values=sample.size,
    )


def _is_distinct(columns: Float[np.ndarray, "sample feature"]) -> bool:
    """Return whether no column contains a value twice; False for a table without columns."""
    n_samples, n_columns = columns.shape
    return n_columns > 0 and all(
        len(np.unique(columns[:, column])) == n_samples for column in range(n_columns)
    )


def _spread(n_samples: int, max_indices: int) -> Int[np.ndarray, " row"]:
    """Return the equally spaced indices of at most ``max_indices`` observations."""
    return np.linspace(0, n_samples - 1, min(n_samples, max_indices)).astype(np.int64)


def is_whole(values: Shaped[np.ndarray, "..."]) -> bool:
    """Return whether every value is a non-negative integer.

    :param values: values of any shape.
    """
    # Booleans and unsigned integers need not be read.
    return values.dtype.kind in "bu" or bool(
        values.min(initial=0) >= 0 and (values.dtype.kind == "i" or (values == np.rint(values)).all())
    )


def largest_count(data: AbstractDataset) -> float | None:
    """Return the largest value of a dataset; None, as soon as it is read, if a value is negative or not an integer.

    :param data: a dataset.
    """
    largest = 0.0
    for values in data.stored_values():
        if not is_whole(values):
            return None
        largest = max(largest, float(values.max(initial=0)))
    return largest if math.isfinite(largest) else None


def refuse_non_counts(values: Shaped[np.ndarray, "..."], name: str = "values") -> None:
    """Raise an error if a value is negative or not an integer.

    :param values: observations of any shape.
    :param name: (default "values") name of the values in the message.
    """
    if is_whole(values):
        return
    odd = values[(values < 0) | (values != np.rint(values))]
    raise InputError(
        name,
        "be counts, whole numbers from 0, for this likelihood",
        got=f"{odd[0]:g}",
        remedy=(
            "pass raw counts, neither scaled nor transformed, or use ",
            Argument("likelihood", "gaussian"),
        ),
    )


def check_counts(data: AbstractDataset) -> None:
    """Check every value of a dataset that does not guarantee counts, and raise an error at the first that is not one.

    :param data: a dataset.
    """
    if data.is_counts:
        return
    for values in data.stored_values():
        refuse_non_counts(values, f"values of {data.name}")


def totals_of(data: AbstractDataset) -> Float[np.ndarray, " sample"]:
    """Return the totals of up to 10,000 equally spaced observations.

    :param data: a dataset.
    """
    rows_read = _spread(len(data), MAX_ROWS)
    rows = rows_at_once(data.n_features)
    parts = [
        data.values(rows_read[first : first + rows])
        .reshape(-1, data.n_features)
        .sum(axis=1, dtype=np.float64)
        for first in range(0, len(rows_read), rows)
    ]
    return np.concatenate(parts)
