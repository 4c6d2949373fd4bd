"""Observations by index from any source: an array, a sparse matrix or an object of another library.

Only one chunk is in memory at a time, so a memory-mapped file is never read into memory as a whole.
"""

from __future__ import annotations

import abc
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from jaxtyping import Int, Shaped

from polariscope.core.arrays import LARGEST_WHOLE, refuse_masked
from polariscope.core.errors import InputError
from polariscope.core.files import digest, digest_array

CHUNK_BYTES = 2**24
"""Maximum size of a chunk in a pass over all data."""
MIN_STEPS = 16
"""Range of a column, in steps of float32, below which its values are checked one by one."""
ROUNDING = 1e-14
"""Range of a computed constant, relative to its values, that rounding in float64 can cause."""
Arrange = Callable[[np.ndarray], np.ndarray]


class AbstractRows(abc.ABC):
    """Observations by index, in their original type."""

    shape: tuple[int, ...]
    """Shape of all observations, the sample axis first."""
    dtype: np.dtype
    held: tuple[np.ndarray, ...] = ()
    """Arrays in memory that the rows refer to."""

    @abc.abstractmethod
    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        """Return these observations as a dense array.

        :param indices: their indices, in any order, possibly repeated.
        """

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "row ..."]:
        """Return consecutive observations.

        :param start: index of the first.
        :param stop: index after the last.
        """
        return self.take(np.arange(start, stop))

    def __len__(self) -> int:
        return self.shape[0]

    def chunks(self) -> Iterator[tuple[int, Shaped[np.ndarray, "row ..."]]]:
        """Yield all observations in order, in chunks, each with the index of its first row."""
        step = chunk_length(self.shape, self.dtype)
        for start in range(0, len(self), step):
            yield start, self.slice(start, min(start + step, len(self)))

    def digest(self, arrange: Arrange) -> str:
        """Return the hash of the observations, equal to that of the array they form.

        :param arrange: function that rearranges the axes of each chunk before hashing.
        """
        sha: Any = None
        for _, chunk in self.chunks():
            arranged = np.ascontiguousarray(arrange(chunk))
            if sha is None:
                # The length of all rows, so the hash equals that of the whole array.
                sha = hashlib.sha256(f"{arranged.dtype.str}{(len(self), *arranged.shape[1:])}".encode())
            sha.update(arranged.view(np.uint8).data)
        return sha.hexdigest()


class DenseRows(AbstractRows):
    """An array in memory or in a file, not copied."""

    def __init__(self, array: Shaped[np.ndarray, "..."]) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.held = (array,)

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        return np.asarray(self.array[indices])

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "row ..."]:
        return np.asarray(self.array[start:stop])


class SparseRows(AbstractRows):
    """A SciPy sparse matrix by rows (CSR); only requested rows are made dense."""

    def __init__(self, matrix: object) -> None:
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        if not rows.has_canonical_format:  # the user's matrix must not change
            rows = rows.copy()
            rows.sum_duplicates()
        self.matrix, self.shape, self.dtype = rows, tuple(map(int, rows.shape)), rows.dtype
        self.held = (rows.data, rows.indices, rows.indptr)

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        return self.matrix[indices].toarray()

    def digest(self, arrange: Arrange) -> str:
        parts = (self.matrix.data, self.matrix.indices.astype(np.int64), self.matrix.indptr.astype(np.int64))
        return digest(["sparse", list(self.shape), *map(digest_array, parts)])


class IndexedRows(AbstractRows):
    """An array of another library, which is read on request: by sorted indices, or row by row.

    :param source: object with a ``shape`` that supports indices and slices.
    """

    def __init__(self, source: object) -> None:
        self.source = cast(Any, source)
        self.shape = tuple(map(int, self.source.shape))
        if not self.shape or 0 in self.shape:
            raise InputError("X", "contain at least one sample with one value", got=f"shape {self.shape}")
        first = self.slice(0, 1)
        self.dtype = first.dtype
        if first.shape != (1, *self.shape[1:]):
            raise InputError("X", f"return rows of its shape, {self.shape[1:]}", got=f"{first.shape[1:]}")
        self._by_arrays = self._takes_arrays()

    def _takes_arrays(self) -> bool:
        """Return whether several rows can be read at once."""
        # The first and the last row show whether indices select rows and not elements.
        wanted = np.array([0, len(self) - 1]) if len(self) > 1 else np.array([0])
        one_by_one = np.stack([self.slice(index, index + 1)[0] for index in wanted.tolist()])
        try:
            together = _dense(self.source[wanted])
        except Exception:  # other libraries raise various errors if it is not supported
            return False
        return together.shape == one_by_one.shape and together.tobytes() == one_by_one.tobytes()

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        if not len(indices):
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        wanted, inverse = np.unique(indices, return_inverse=True)  # HDF5 accepts increasing indices only
        # Consecutive rows are read as a slice, which is faster for files.
        if wanted[-1] - wanted[0] + 1 == len(wanted):
            return self.slice(int(wanted[0]), int(wanted[-1]) + 1)[inverse]
        if self._by_arrays:
            return _dense(self.source[wanted])[inverse]
        return np.concatenate([self.slice(index, index + 1) for index in wanted.tolist()])[inverse]

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "row ..."]:
        return _dense(self.source[start:stop])


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def chunk_length(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Return the number of observations in a chunk.

    :param shape: shape of all observations, the sample axis first.
    :param dtype: type of their numbers.
    """
    return max(1, CHUNK_BYTES // max(1, math.prod(shape[1:]) * dtype.itemsize))


def in_memory(rows: AbstractRows, megabytes: int) -> AbstractRows:
    """Read rows into an array if they fit, otherwise return them unchanged.

    :param rows: rows that are slow to read.
    :param megabytes: maximum size of the array.
    """
    if math.prod(rows.shape) * rows.dtype.itemsize > megabytes * 2**20:
        return rows
    array = np.empty(rows.shape, dtype=rows.dtype)
    for start, chunk in rows.chunks():
        array[start : start + len(chunk)] = chunk
    return DenseRows(array)


def as_rows(values: object, name: str) -> AbstractRows:
    """Return rows of numbers from an array, a tensor, a sparse matrix or nested lists.

    :param values: the user's object.
    :param name: its name in messages.
    """
    rows = values if isinstance(values, AbstractRows) else _rows_of(values, name)
    if rows.dtype.kind not in "biuf":
        raise InputError(
            name, "contain numbers", got=f"dtype {rows.dtype}", remedy="convert it, e.g. with astype(float)"
        )
    if len(rows.shape) == 0 or 0 in rows.shape:
        raise InputError(name, "contain at least one sample with one value", got=f"shape {rows.shape}")
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
    if getattr(values, "is_meta", False):
        raise InputError(name, "contain numbers", got="a tensor on the meta device, which has none")
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return DenseRows(np.asarray(values))
    except ValueError as error:
        raise InputError(name, "be one array", got=f"rows that do not fit together ({error})") from None
    except Exception as error:  # a sparse tensor or another type of number; __array__ can raise anything
        raise InputError(
            name,
            "be convertible to a NumPy array",
            got=f"a {type(values).__name__} ({str(error).rstrip('.')})",
            remedy="convert it, e.g. with tensor.to_dense().float(), or pass a sparse matrix of SciPy",
        ) from None


def check_finite(rows: AbstractRows, name: str, feature_names: tuple[str, ...] = ()) -> None:
    """Raise an error at NaN, infinity and values beyond the range of float32. Integers are finite and are not read.

    :param rows: the observations.
    :param name: their name in messages.
    :param feature_names: (default none) names of their columns.
    """
    if rows.dtype.kind != "f":
        return
    count, first = 0, ""
    low, high = np.inf, -np.inf
    for start, chunk in stored(rows):
        # Minimum and maximum propagate NaN, without a temporary array as large as the chunk.
        chunk_low, chunk_high = float(chunk.min()), float(chunk.max())
        if np.isfinite(chunk_low) and np.isfinite(chunk_high):
            low, high = min(low, chunk_low), max(high, chunk_high)
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
    """Describe the position of the first bad value; the positions of sparse values are not known."""
    if bad.ndim < 2:
        return ""
    row, *rest = (int(position[0]) for position in np.nonzero(bad))
    where = f", first in row {start + row}"
    if len(rest) != 1:
        return where
    return f"{where}, column {repr(feature_names[rest[0]]) if feature_names else rest[0]}"


def stored(rows: AbstractRows) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the stored numbers in chunks, with the number of their first row; a sparse matrix does not store zeros.

    :param rows: the observations.
    """
    if isinstance(rows, SparseRows):
        if rows.matrix.nnz:
            yield 0, rows.matrix.data
    else:
        yield from rows.chunks()


def extent(rows: AbstractRows) -> tuple[float, float]:
    """Return the smallest and the largest value.

    :param rows: the observations.
    """
    low, high = np.inf, -np.inf
    for _, chunk in stored(rows):
        low, high = min(low, float(chunk.min())), max(high, float(chunk.max()))
    # Zeros that are not stored are values too.
    if isinstance(rows, SparseRows) and rows.matrix.nnz < math.prod(rows.shape):
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high


def exceeds(rows: AbstractRows, limit: int) -> bool:
    """Return whether any value exceeds a limit; reading stops at the first.

    :param rows: the observations.
    :param limit: the limit.
    """
    return any(chunk.max() > limit for _, chunk in stored(rows))


def check_whole_numbers(rows: AbstractRows, feature_names: tuple[str, ...] = ()) -> None:
    """Raise an error at integers beyond 2^53, which as floats would equal their neighbours.

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
            index = int(np.flatnonzero(large)[0])
            row, column = (
                # indptr contains the first entry of each row, so the row of an entry is found by bisection.
                int(np.searchsorted(rows.matrix.indptr, index, "right")) - 1,
                int(rows.matrix.indices[index]),
            )
            value = chunk[index]
        else:
            row, column = (int(position) for position in np.argwhere(large)[0])
            value = chunk[row, column]
        name = repr(feature_names[column]) if feature_names else column
        raise InputError(
            "X",
            "contain no integers beyond 2^53, which floats cannot distinguish from their neighbours",
            got=f"{value} in row {start + row}, column {name}",
            remedy="leave out this column, subtract a constant, or pass it as ids",
        )


def check_precision(rows: AbstractRows, feature_names: tuple[str, ...] = ()) -> None:
    """Raise an error if float32, the precision of networks, is too coarse for a column: little variation far from 0.

    :param rows: flat observations.
    :param feature_names: (default none) names of their columns.
    """
    if rows.dtype.itemsize <= (4 if rows.dtype.kind == "f" else 2):
        return
    low, high = _column_extents(rows)
    size = np.maximum(np.abs(low), np.abs(high))
    # Distance from the largest value to the next float32.
    step = np.spacing(size.astype(np.float32)).astype(np.float64)
    # A range below ROUNDING is a computed constant, and constant columns are allowed. Beyond 2^53, where floats skip
    # integers, such a range is that of identifiers or times in nanoseconds.
    is_constant = high - low <= np.where(size > LARGEST_WHOLE, 0.0, ROUNDING * size)
    doubtful = (high - low < MIN_STEPS * step) & ~is_constant
    for column in np.flatnonzero(doubtful).tolist():
        # Few columns are doubtful, so each is read on its own.
        values = np.unique(np.concatenate([chunk[:, column] for _, chunk in rows.chunks()]))
        n_distinct = len(np.unique(values.astype(np.float32)))
        if n_distinct < len(values):
            column_name = repr(feature_names[column]) if feature_names else column
            raise InputError(
                "X",
                (
                    f"vary by more than the precision of float32, in which networks compute: column {column_name} "
                    f"lies between {values[0]:.17g} and {values[-1]:.17g}, and only {n_distinct} of its "
                    f"{len(values)} different values would remain distinct"
                ),
                remedy=(
                    "leave out this column, or subtract a constant from it before it is converted to floats"
                    if size[column] > LARGEST_WHOLE
                    else "subtract the mean of each column first"
                ),
            )


def _column_extents(rows: AbstractRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column."""
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
