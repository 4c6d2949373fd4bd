"""Observations that are taken by number, wherever they are: in an array, a sparse matrix or somebody's object.

Everything here holds a chunk in memory at a time, so a memory-mapped file is never read as a whole into memory.
"""

from __future__ import annotations

import abc
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from jaxtyping import Int, Shaped

from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import InputError
from polariscope.core.files import digest, digest_array
from polariscope.data.own.support.column_kinds import LARGEST_WHOLE

CHUNK_BYTES = 2**24
"""Held at once while the whole data are looked through."""
MIN_STEPS = 16
"""A column whose range is fewer steps of float32 is looked at closely."""
ROUNDING = 1e-14
"""Range of a column, relative to its values, that float64 leaves when a constant is computed."""
Arrange = Callable[[np.ndarray], np.ndarray]


class AbstractRows(abc.ABC):
    """Observations by number, in the numbers they were given in."""

    shape: tuple[int, ...]
    """Of all observations, the sample first."""
    dtype: np.dtype
    held: tuple[np.ndarray, ...] = ()
    """Arrays that they hold in memory."""

    @abc.abstractmethod
    def take(self, indices: Int[np.ndarray, " chosen"]) -> Shaped[np.ndarray, "chosen ..."]:
        """These observations, dense.

        :param indices: their numbers, in any order, repeated or not.
        """

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "chosen ..."]:
        """Consecutive observations.

        :param start: the first.
        :param stop: the one after the last.
        """
        return self.take(np.arange(start, stop))

    def __len__(self) -> int:
        return self.shape[0]

    def chunks(self) -> Iterator[tuple[int, Shaped[np.ndarray, "chosen ..."]]]:
        """All observations in order, some at a time, each with the number of its first."""
        step = chunk_length(self.shape, self.dtype)
        for start in range(0, len(self), step):
            yield start, self.slice(start, min(start + step, len(self)))

    def digest(self, arrange: Arrange) -> str:
        """Hash of the observations: that of the array they make.

        :param arrange: how they are turned, a chunk at a time, before they are hashed.
        """
        sha: Any = None
        for _, chunk in self.chunks():
            turned = np.ascontiguousarray(arrange(chunk))
            if sha is None:
                sha = hashlib.sha256(f"{turned.dtype.str}{(len(self), *turned.shape[1:])}".encode())
            sha.update(turned.view(np.uint8).data)
        return sha.hexdigest()


class DenseRows(AbstractRows):
    """An array in memory or in a file, not copied."""

    def __init__(self, array: Shaped[np.ndarray, "..."]) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.held = (array,)

    def take(self, indices: Int[np.ndarray, " chosen"]) -> Shaped[np.ndarray, "chosen ..."]:
        return np.asarray(self.array[indices])

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "chosen ..."]:
        return np.asarray(self.array[start:stop])


class SparseRows(AbstractRows):
    """A SciPy sparse matrix by its rows (CSR); only the rows asked for are made dense."""

    def __init__(self, matrix: object) -> None:
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        if not rows.has_canonical_format:  # the owner's matrix stays as it is
            rows = rows.copy()
            rows.sum_duplicates()
        self.matrix, self.shape, self.dtype = rows, tuple(map(int, rows.shape)), rows.dtype
        self.held = (rows.data, rows.indices, rows.indptr)

    def take(self, indices: Int[np.ndarray, " chosen"]) -> Shaped[np.ndarray, "chosen ..."]:
        return self.matrix[indices].toarray()

    def digest(self, arrange: Arrange) -> str:
        parts = (self.matrix.data, self.matrix.indices.astype(np.int64), self.matrix.indptr.astype(np.int64))
        return digest(["sparse", list(self.shape), *map(digest_array, parts)])


class IndexedRows(AbstractRows):
    """An array of another library, which is read where it is asked: by sorted numbers, or one by one.

    :param source: what has ``shape`` and is indexed by numbers and slices.
    """

    def __init__(self, source: object) -> None:
        self.source = cast(Any, source)
        self.shape = tuple(map(int, self.source.shape))
        if not self.shape or 0 in self.shape:
            raise InputError("X", "hold at least one sample with one value", got=f"shape {self.shape}")
        first = self.slice(0, 1)
        self.dtype = first.dtype
        if first.shape != (1, *self.shape[1:]):
            raise InputError(
                "X", f"give rows of shape {self.shape[1:]}, as its shape says", got=f"{first.shape[1:]}"
            )
        self._by_arrays = self._takes_arrays()

    def _takes_arrays(self) -> bool:
        """Whether several rows can be asked for at once."""
        wanted = np.array([0, len(self) - 1]) if len(self) > 1 else np.array([0])
        one_by_one = np.stack([self.slice(index, index + 1)[0] for index in wanted.tolist()])
        try:
            together = _dense(self.source[wanted])
        except Exception:  # whatever another library raises where it cannot
            return False
        return together.shape == one_by_one.shape and together.tobytes() == one_by_one.tobytes()

    def take(self, indices: Int[np.ndarray, " chosen"]) -> Shaped[np.ndarray, "chosen ..."]:
        if not len(indices):
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        wanted, places = np.unique(indices, return_inverse=True)  # HDF5 takes increasing numbers only
        if wanted[-1] - wanted[0] + 1 == len(wanted):
            return self.slice(int(wanted[0]), int(wanted[-1]) + 1)[places]
        if self._by_arrays:
            return _dense(self.source[wanted])[places]
        return np.concatenate([self.slice(index, index + 1) for index in wanted.tolist()])[places]

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "chosen ..."]:
        return _dense(self.source[start:stop])


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def chunk_length(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """How many observations are held at once.

    :param shape: of all observations, the sample first.
    :param dtype: of their numbers.
    """
    return max(1, CHUNK_BYTES // max(1, math.prod(shape[1:]) * dtype.itemsize))


def in_memory(rows: AbstractRows, megabytes: int) -> AbstractRows:
    """The rows in an array, where they fit; else as they are.

    :param rows: rows that are slow to ask for.
    :param megabytes: the largest array that is made.
    """
    if math.prod(rows.shape) * rows.dtype.itemsize > megabytes * 2**20:
        return rows
    array = np.empty(rows.shape, dtype=rows.dtype)
    for start, chunk in rows.chunks():
        array[start : start + len(chunk)] = chunk
    return DenseRows(array)


def as_rows(values: object, name: str) -> AbstractRows:
    """Rows of numbers from an array, a tensor, a sparse matrix or nested lists; anything else is refused.

    :param values: what the user has.
    :param name: how messages call it.
    """
    rows = values if isinstance(values, AbstractRows) else _rows_of(values, name)
    if rows.dtype.kind not in "biuf":
        raise InputError(
            name, "hold numbers", got=f"dtype {rows.dtype}", remedy="convert it, e.g. with astype(float)"
        )
    if len(rows.shape) == 0 or 0 in rows.shape:
        raise InputError(name, "hold at least one sample with one value", got=f"shape {rows.shape}")
    return rows


def _rows_of(values: Any, name: str) -> AbstractRows:
    refuse_masked(values, name)
    if hasattr(values, "tocsr"):
        return SparseRows(values)
    if hasattr(values, "collect_schema"):
        raise InputError(
            name,
            "be in memory",
            got=f"a {type(values).__name__}",
            remedy="collect it first, with its collect()",
        )
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return DenseRows(np.asarray(values))
    except ValueError as error:
        raise InputError(name, "be one array", got=f"rows that do not fit together ({error})") from None
    except TypeError as error:  # a sparse tensor, or a type of number that NumPy does not have
        raise InputError(
            name,
            "be something NumPy can read",
            got=f"a {type(values).__name__} ({str(error).rstrip('.')})",
            remedy="convert it, e.g. with tensor.to_dense().float(), or pass a sparse matrix of SciPy",
        ) from None


def check_finite(rows: AbstractRows, name: str, feature_names: tuple[str, ...] = ()) -> None:
    """Refuse NaN, infinity and what float32 cannot hold. Whole numbers are finite and are not read.

    :param rows: the observations.
    :param name: how messages call them.
    :param feature_names: (default none) names of their columns.
    """
    if rows.dtype.kind != "f":
        return
    count, first = 0, ""
    low, high = np.inf, -np.inf
    for start, chunk in stored(rows):
        # minimum and maximum pass NaN on, without a temporary array as large as the chunk
        least, most = float(chunk.min()), float(chunk.max())
        if np.isfinite(least) and np.isfinite(most):
            low, high = min(low, least), max(high, most)
            continue
        bad = ~np.isfinite(chunk)
        first = first or _describe_position(bad, start, feature_names)
        count += int(bad.sum())
    if count:
        raise InputError(
            name,
            "be finite",
            got=f"{count} NaN or infinite of {math.prod(rows.shape)} values{first}",
            remedy="drop or fill those samples",
        )
    if max(-low, high) > float(np.finfo(np.float32).max):
        raise InputError(name, "fit float32", got=f"values {low:.3g} … {high:.3g}", remedy="rescale it")


def _describe_position(bad: np.ndarray, start: int, feature_names: tuple[str, ...]) -> str:
    """Where the first bad value is, in words; of sparse values nobody knows."""
    if bad.ndim < 2:
        return ""
    row, *rest = (int(position[0]) for position in np.nonzero(bad))
    where = f", first in row {start + row}"
    if len(rest) != 1:
        return where
    return f"{where}, column {repr(feature_names[rest[0]]) if feature_names else rest[0]}"


def stored(rows: AbstractRows) -> Iterator[tuple[int, np.ndarray]]:
    """The numbers that are written down, with the number of their first row; what a sparse matrix leaves out is 0.

    :param rows: the observations.
    """
    if isinstance(rows, SparseRows):
        if rows.matrix.nnz:
            yield 0, rows.matrix.data
    else:
        yield from rows.chunks()


def extent(rows: AbstractRows) -> tuple[float, float]:
    """The least and the largest value.

    :param rows: the observations.
    """
    low, high = np.inf, -np.inf
    for _, chunk in stored(rows):
        low, high = min(low, float(chunk.min())), max(high, float(chunk.max()))
    if isinstance(rows, SparseRows) and rows.matrix.nnz < math.prod(rows.shape):
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high


def exceeds(rows: AbstractRows, limit: int) -> bool:
    """Whether any value is above a limit; stops reading at the first.

    :param rows: the observations.
    :param limit: the limit.
    """
    return any(chunk.max() > limit for _, chunk in stored(rows))


def check_whole_numbers(rows: AbstractRows, feature_names: tuple[str, ...] = ()) -> None:
    """Refuse whole numbers beyond 2^53: as floats they would be equal to their neighbours.

    :param rows: flat observations.
    :param feature_names: (default none) names of their columns.
    """
    if rows.dtype.kind not in "iu" or rows.dtype.itemsize < 8:
        return
    for start, chunk in stored(rows):
        if int(chunk.max()) <= LARGEST_WHOLE and int(chunk.min()) >= -LARGEST_WHOLE:
            continue
        large = (chunk > LARGEST_WHOLE) | (chunk < -LARGEST_WHOLE)
        if isinstance(rows, SparseRows):
            at = int(np.flatnonzero(large)[0])
            row, column = (
                int(np.searchsorted(rows.matrix.indptr, at, "right")) - 1,
                int(rows.matrix.indices[at]),
            )
            value = chunk[at]
        else:
            row, column = (int(position) for position in np.argwhere(large)[0])
            value = chunk[row, column]
        name = repr(feature_names[column]) if feature_names else column
        raise InputError(
            "X",
            "contain no whole numbers beyond 2^53, which floats cannot tell from their neighbours",
            got=f"{value} in row {start + row}, column {name}",
            remedy="leave this column out, subtract a constant, or pass it as ids",
        )


def check_precision(rows: AbstractRows, feature_names: tuple[str, ...] = ()) -> None:
    """Refuse rows with a column that float32, which networks see, makes coarse: little variation far from 0.

    :param rows: flat observations.
    :param feature_names: (default none) names of their columns.
    """
    if rows.dtype.itemsize <= (4 if rows.dtype.kind == "f" else 2):
        return
    low, high = _column_extents(rows)
    size = np.maximum(np.abs(low), np.abs(high))
    step = np.spacing(size.astype(np.float32)).astype(np.float64)
    # Less than ROUNDING is a constant that was computed, and constants are welcome.
    doubtful = (high - low < MIN_STEPS * step) & (high - low > ROUNDING * size)
    for column in np.flatnonzero(doubtful).tolist():
        values = np.unique(np.concatenate([chunk[:, column] for _, chunk in rows.chunks()]))
        left = len(np.unique(values.astype(np.float32)))
        if left < len(values):
            called = repr(feature_names[column]) if feature_names else column
            raise InputError(
                "X",
                (
                    f"vary by more than float32 can hold, which networks compute in: column {called} lies "
                    f"between {values[0]:.15g} and {values[-1]:.15g}, and of its {len(values)} different "
                    f"values {left} would be left"
                ),
                remedy="subtract the mean of each column first",
            )


def _column_extents(rows: AbstractRows) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column."""
    if isinstance(rows, SparseRows):
        by_column = rows.matrix.tocsc()
        extents = (by_column.min(axis=0), by_column.max(axis=0))
        low, high = (np.asarray(each.todense(), dtype=np.float64).reshape(-1) for each in extents)
        return low, high
    low, high = np.full(rows.shape[1], np.inf), np.full(rows.shape[1], -np.inf)
    for _, chunk in rows.chunks():
        low = np.minimum(low, chunk.min(axis=0))
        high = np.maximum(high, chunk.max(axis=0))
    return low, high
