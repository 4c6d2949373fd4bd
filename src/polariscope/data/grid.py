"""Which combinations of discrete factors a dataset holds, and where: a full grid, a part of one, or repeated."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Bool, Int, Shaped
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset

MOST_CELLS = 2**62


@dataclasses.dataclass(frozen=True, eq=False)
class FactorGrid:
    """The combinations of factors that occur, each a *cell*, and the observations in each.

    The *codes* of a factor of n values are 0 … n − 1: its values themselves where they are that, else their ranks among
    the values that occur.
    """

    names: tuple[str, ...]
    values: tuple[Int[np.ndarray, " _"], ...]
    """The values of each factor, in order."""
    codes: Int[np.ndarray, "observation factor"]
    """Of every observation."""
    keys: Int[np.ndarray, " cell"]
    """One number for each combination that occurs, in order: its place in the full grid, the last factor fastest."""
    order: Int[np.ndarray, " observation"]
    """The observations, cell by cell."""
    starts: Int[np.ndarray, " cell_and_end"]
    """Where those of each cell begin in ``order``."""

    @staticmethod
    def of(data: AbstractDataset) -> FactorGrid:
        """The grid of a dataset whose factors are all discrete.

        :param data: a dataset.
        """
        reason = None
        if not data.factor_sizes:
            reason = "has no factors"
        elif 0 in data.factor_sizes:
            reason = "has continuous factors"
        if reason is None:
            factors = data.factors(np.arange(len(data)))
            columns = [_coded(*pair) for pair in zip(factors.T, data.factor_sizes, strict=True)]
            if math.prod(len(values) for values, _ in columns) >= MOST_CELLS:
                reason = "has factors with more combinations than can be numbered"
        if reason is not None:
            raise InputError(
                problem="a grid needs discrete factors, such as those of sprites",
                remedy=f"{data.name} {reason}",
            )
        codes = np.stack([code for _, code in columns], axis=1)
        values = tuple(values for values, _ in columns)
        places = np.ravel_multi_index(tuple(codes.T), tuple(map(len, values)))
        order = np.argsort(places, kind="stable")
        keys, starts = np.unique(places[order], return_index=True)
        return FactorGrid(tuple(data.factor_names), values, codes, keys, order, np.append(starts, len(order)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each factor."""
        return tuple(map(len, self.values))

    @property
    def is_full(self) -> bool:
        """Whether every combination occurs exactly once."""
        return len(self.keys) == len(self.order) == math.prod(self.sizes)

    @functools.cached_property
    def cell_codes(self) -> Int[np.ndarray, "cell factor"]:
        """The codes of each cell."""
        return self.codes[self.order[self.starts[:-1]]]

    @functools.cached_property
    def _by_value(self) -> list[tuple[Int[np.ndarray, " observation"], Int[np.ndarray, " _"]]]:
        """For each factor the observations, value by value, and where those of each value begin."""
        found = []
        for column, size in zip(self.codes.T, self.sizes, strict=True):
            order = np.argsort(column, kind="stable")
            found.append((order, np.searchsorted(column[order], np.arange(size + 1))))
        return found

    def cells(self, codes: Int[np.ndarray, "sample factor"]) -> Int[np.ndarray, " sample"]:
        """Number of the cell with these codes; −1 where the combination does not occur.

        :param codes: codes of combinations.
        """
        places = np.ravel_multi_index(tuple(codes.T), self.sizes)
        found = np.minimum(np.searchsorted(self.keys, places), len(self.keys) - 1)
        return np.where(self.keys[found] == places, found, -1)

    def one_of(
        self, cells: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> Int[np.ndarray, " sample"]:
        """An observation of each cell, at random where it has several; without a draw where none has.

        :param cells: numbers of cells.
        :param generator: decides.
        """
        counts = self.starts[cells + 1] - self.starts[cells]
        offset = generator.integers(0, counts) if (counts > 1).any() else 0
        return self.order[self.starts[cells] + offset]

    def agreeing(
        self, codes: Int[np.ndarray, " factor"], kept: Bool[np.ndarray, " factor"]
    ) -> Int[np.ndarray, " observation"]:
        """Every observation that has these codes in the factors that are kept.

        :param codes: codes of one combination.
        :param kept: which of its factors count; at least one.
        """
        lists = {}
        for column in np.flatnonzero(kept):
            order, starts = self._by_value[column]
            lists[column] = order[starts[codes[column]] : starts[codes[column] + 1]]
        first = min(lists, key=lambda column: len(lists[column]))
        found = lists[first]
        for column in lists:
            if column != first:
                found = found[self.codes[found, column] == codes[column]]
        return found

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        """Where the observations with these factor values are: each must be there exactly once.

        :param factors: values of the factors, (sample, factor).
        """
        array = np.atleast_2d(np.asarray(factors))
        if array.ndim != 2 or array.shape[1] != len(self.sizes) or not np.issubdtype(array.dtype, np.integer):
            raise InputError(
                "factors",
                f"be integers of shape (sample, {len(self.sizes)}) for {', '.join(self.names)}",
                got=f"{array.dtype} of shape {array.shape}",
            )
        columns = []
        for name, values, column in zip(self.names, self.values, array.T, strict=True):
            code = np.minimum(np.searchsorted(values, column), len(values) - 1)
            if (strange := column[values[code] != column]).size:
                raise InputError(f"factor {name!r}", "have a value that occurs in the data", got=strange[0])
            columns.append(code)
        cells = self.cells(np.stack(columns, axis=1))
        counts = self.starts[cells + 1] - self.starts[cells]
        if (wrong := (cells < 0) | (counts != 1)).any():
            row = int(np.flatnonzero(wrong)[0])
            words = ", ".join(
                f"{name} {value}" for name, value in zip(self.names, array[row].tolist(), strict=True)
            )
            number = 0 if cells[row] < 0 else int(counts[row])
            raise InputError(
                "factors", "belong to exactly one observation", got=f"{words}, which {_of_how_many(number)}"
            )
        return self.order[self.starts[cells]]


def _coded(
    column: Shaped[np.ndarray, " observation"], size: int
) -> tuple[Int[np.ndarray, " value"], Int[np.ndarray, " observation"]]:
    """The values of a factor, and the code of each observation."""
    column = column.astype(np.int64)
    if column.min() >= 0 and column.max() < size:
        return np.arange(size), column
    values, codes = np.unique(column, return_inverse=True)
    return values, codes.reshape(-1)


def _of_how_many(number: int) -> str:
    return "no observation has" if number == 0 else f"{number} observations have"


def rows_sharing(
    codes: Shaped[np.ndarray, "cell factor"], columns: Bool[np.ndarray, " factor"]
) -> Int[np.ndarray, " cell"]:
    """How many rows have the same values as each in these columns, itself included.

    :param codes: rows.
    :param columns: which columns count; none: all rows agree.
    """
    if not columns.any():
        return np.full(len(codes), len(codes))
    _, group, counts = np.unique(codes[:, columns], axis=0, return_inverse=True, return_counts=True)
    return counts[group.reshape(-1)]
