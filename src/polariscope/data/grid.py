"""Combinations of discrete factors in a dataset and their observations: a full grid, part of one, or with repeats."""

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
"""Number of observations that are drawn at once in search of a matching one."""


@dataclasses.dataclass(frozen=True, eq=False)
class FactorGrid:
    """The combinations of factors that occur, called *cells*, and the observations in each.

    The *codes* of a factor with n values are 0 … n − 1: the values themselves if they are these numbers, otherwise
    their ranks among the values that occur.
    """

    names: tuple[str, ...]
    values: tuple[Int[np.ndarray, " _"], ...]
    """The values of each factor, in order."""
    codes: Int[np.ndarray, "observation factor"]
    """Codes of every observation."""
    keys: Int[np.ndarray, " cell"]
    """Index in the full grid of each combination that occurs, in ascending order; the last factor varies fastest."""
    order: Int[np.ndarray, " observation"]
    """The observations, cell by cell."""
    starts: Int[np.ndarray, " cell_and_end"]
    """Position in ``order`` of the first observation of each cell, and the end of the last one."""

    @staticmethod
    def of(data: AbstractDataset) -> FactorGrid:
        """Build the grid of a dataset whose factors are all discrete.

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
        cell_keys = np.ravel_multi_index(tuple(codes.T), tuple(map(len, values)))
        order = np.argsort(cell_keys, kind="stable")
        keys, starts = np.unique(cell_keys[order], return_index=True)
        return FactorGrid(tuple(data.factor_names), values, codes, keys, order, np.append(starts, len(order)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each factor."""
        return tuple(map(len, self.values))

    @property
    def is_full(self) -> bool:
        """True if every combination occurs exactly once."""
        return len(self.keys) == len(self.order) == math.prod(self.sizes)

    @functools.cached_property
    def cell_codes(self) -> Int[np.ndarray, "cell factor"]:
        """The codes of each cell."""
        return self.codes[self.order[self.starts[:-1]]]

    @functools.cached_property
    def _by_value(self) -> tuple[Int[np.ndarray, "factor observation"], Int[np.ndarray, "factor _"]]:
        """The observations sorted by the value of each factor, and the start of each value; padded at the end."""
        order = np.argsort(self.codes, axis=0, kind="stable").T
        # Factors with fewer values are padded: their further starts are all the end.
        values = np.arange(max(self.sizes) + 1)
        starts = [
            np.searchsorted(column[rows], values) for column, rows in zip(self.codes.T, order, strict=True)
        ]
        return np.ascontiguousarray(order), np.stack(starts)

    def cells(self, codes: Int[np.ndarray, "sample factor"]) -> Int[np.ndarray, " sample"]:
        """Return the number of the cell with these codes; −1 if the combination does not occur.

        :param codes: codes of combinations.
        """
        keys = np.ravel_multi_index(tuple(codes.T), self.sizes)
        # A key beyond the last one would be outside the array; the comparison below rejects it.
        cells = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[cells] == keys, cells, -1)

    def cells_sharing(self, columns: Bool[np.ndarray, " factor"]) -> Int[np.ndarray, " cell"]:
        """Count the cells that have the same codes as each cell in these factors, including the cell itself.

        :param columns: mask of the factors to compare; if it selects none, all cells match.
        """
        if not columns.any():
            return np.full(len(self.keys), len(self.keys))
        sizes = tuple(np.array(self.sizes)[columns])
        keys = np.ravel_multi_index(tuple(self.cell_codes[:, columns].T), sizes)
        _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return counts[group.reshape(-1)]

    def sample_from(
        self, cells: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> Int[np.ndarray, " sample"]:
        """Return an observation of each cell, at random if a cell has several.

        The generator is not used if every cell has one observation.

        :param cells: numbers of cells.
        :param generator: source of randomness.
        """
        counts = self.starts[cells + 1] - self.starts[cells]
        offset = generator.integers(0, counts) if (counts > 1).any() else 0
        return self.order[self.starts[cells] + offset]

    def sample_matching(
        self,
        codes: Int[np.ndarray, "sample factor"],
        shared: Bool[np.ndarray, "sample factor"],
        generator: np.random.Generator,
    ) -> Int[np.ndarray, " sample"]:
        """Return, for each row, a random observation with the same codes in the shared factors.

        Observations that match in the rarest of these values are drawn first. If none of them matches in all, the
        row is compared with every candidate.

        :param codes: codes of combinations that occur.
        :param shared: mask of the shared factors, at least one in each row.
        :param generator: source of randomness.
        """
        order, starts = self._by_value
        columns = np.arange(codes.shape[1])
        first, last = starts[columns, codes], starts[columns, codes + 1]
        # Factors that are not shared get a number above all counts, so they are never the rarest.
        rarest = np.where(shared, last - first, len(order[0]) + 1).argmin(axis=1)
        rows = np.arange(len(codes))
        first, last = first[rows, rarest], last[rows, rarest]
        tried = order[
            rarest[:, None], generator.integers(first[:, None], last[:, None], size=(len(codes), TRIES))
        ]
        matches = ((self.codes[tried] == codes[:, None]) | ~shared[:, None]).all(axis=2)
        # argmax is the first match; rows without a match are replaced below.
        indices = tried[rows, matches.argmax(axis=1)]
        for row in np.flatnonzero(~matches.any(axis=1)):
            pool = self._all_matching(codes[row], shared[row], order[rarest[row], first[row] : last[row]])
            indices[row] = pool[generator.integers(len(pool))]
        return indices

    def _all_matching(
        self,
        code: Int[np.ndarray, " factor"],
        shared: Bool[np.ndarray, " factor"],
        pool: Int[np.ndarray, " some"],
    ) -> Int[np.ndarray, " matching"]:
        """Return every observation with the code's values in the shared factors.

        Either the combinations of the other factors are enumerated or the pool is scanned, whichever is less work.

        :param pool: observations that include all matching ones.
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
        """Return the index of the observation with these factor values; each must occur exactly once.

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
        # For a missing cell, −1, the difference has no meaning; the mask below excludes it.
        counts = self.starts[cells + 1] - self.starts[cells]
        if (wrong := (cells < 0) | (counts != 1)).any():
            row = int(np.flatnonzero(wrong)[0])
            combination = ", ".join(
                f"{name} {value}" for name, value in zip(self.names, array[row].tolist(), strict=True)
            )
            number = 0 if cells[row] < 0 else int(counts[row])
            raise InputError(
                "factors",
                "belong to exactly one observation",
                got=f"{combination}, which {_of_how_many(number)}",
            )
        return self.order[self.starts[cells]]


def _coded(
    column: Shaped[np.ndarray, " observation"], size: int
) -> tuple[Int[np.ndarray, " value"], Int[np.ndarray, " observation"]]:
    """Return the values of a factor and the code of each observation."""
    column = column.astype(np.int64)
    # The declared values 0 … n − 1 are kept, even if some do not occur.
    if column.min() >= 0 and column.max() < size:
        return np.arange(size), column
    values, codes = np.unique(column, return_inverse=True)
    return values, codes.reshape(-1)


def _of_how_many(number: int) -> str:
    return "no observation has" if number == 0 else f"{number} observations have"
