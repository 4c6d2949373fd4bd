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

MAX_CELLS = 2**62
"""Combinations that can be numbered."""
TRIES = 32
"""Observations that are tried at once for one that agrees."""


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
    """One number for each combination that occurs, in order: its index in the full grid, the last factor fastest."""
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
            if math.prod(len(values) for values, _ in columns) >= MAX_CELLS:
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
    def _by_value(self) -> tuple[Int[np.ndarray, "factor observation"], Int[np.ndarray, "factor _"]]:
        """For each factor the observations, value by value, and where those of each value begin; padded at the end."""
        order = np.argsort(self.codes, axis=0, kind="stable").T
        values = np.arange(max(self.sizes) + 1)
        starts = [
            np.searchsorted(column[rows], values) for column, rows in zip(self.codes.T, order, strict=True)
        ]
        return np.ascontiguousarray(order), np.stack(starts)

    def cells(self, codes: Int[np.ndarray, "sample factor"]) -> Int[np.ndarray, " sample"]:
        """Number of the cell with these codes; −1 where the combination does not occur.

        :param codes: codes of combinations.
        """
        keys = np.ravel_multi_index(tuple(codes.T), self.sizes)
        cells = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[cells] == keys, cells, -1)

    def cells_sharing(self, columns: Bool[np.ndarray, " factor"]) -> Int[np.ndarray, " cell"]:
        """How many cells have the same codes as each in these factors, itself included.

        :param columns: which factors count; none: all cells agree.
        """
        if not columns.any():
            return np.full(len(self.keys), len(self.keys))
        sizes = tuple(np.array(self.sizes)[columns])
        keys = np.ravel_multi_index(tuple(self.cell_codes[:, columns].T), sizes)
        _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return counts[group.reshape(-1)]

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

    def one_agreeing(
        self,
        codes: Int[np.ndarray, "sample factor"],
        shared: Bool[np.ndarray, "sample factor"],
        generator: np.random.Generator,
    ) -> Int[np.ndarray, " sample"]:
        """For each row one of the observations that have its codes in the factors that are shared, at random.

        Observations that agree in the rarest of these values are tried; a row that finds none so looks at all of them.

        :param codes: codes of combinations that occur.
        :param shared: which factors count, at least one in each row.
        :param generator: decides.
        """
        order, starts = self._by_value
        columns = np.arange(codes.shape[1])
        first, last = starts[columns, codes], starts[columns, codes + 1]
        rarest = np.where(shared, last - first, len(order[0]) + 1).argmin(axis=1)
        rows = np.arange(len(codes))
        first, last = first[rows, rarest], last[rows, rarest]
        tried = order[
            rarest[:, None], generator.integers(first[:, None], last[:, None], size=(len(codes), TRIES))
        ]
        agree = ((self.codes[tried] == codes[:, None]) | ~shared[:, None]).all(axis=2)
        indices = tried[rows, agree.argmax(axis=1)]
        for row in np.flatnonzero(~agree.any(axis=1)):
            pool = self._all_agreeing(codes[row], shared[row], order[rarest[row], first[row] : last[row]])
            indices[row] = pool[generator.integers(len(pool))]
        return indices

    def _all_agreeing(
        self,
        code: Int[np.ndarray, " factor"],
        shared: Bool[np.ndarray, " factor"],
        pool: Int[np.ndarray, " some"],
    ) -> Int[np.ndarray, " agreeing"]:
        """Every observation with the code's values in the factors that are shared: by what others can be, or by a scan.

        :param pool: observations among which these are.
        """
        free = np.flatnonzero(~shared)
        sizes = tuple(self.sizes[column] for column in free)
        if math.prod(sizes) < len(pool):
            possible = np.repeat(code[np.newaxis], math.prod(sizes), axis=0)
            for column, values in zip(free, np.indices(sizes), strict=True):
                possible[:, column] = values.ravel()
            cells = self.cells(possible)
            return np.concatenate(
                [self.order[self.starts[cell] : self.starts[cell + 1]] for cell in cells[cells >= 0]]
            )
        for column in np.flatnonzero(shared):
            pool = pool[self.codes[pool, column] == code[column]]
        return pool

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
