"""Base class of the datasets that consist of rows, from any source."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.errors import Argument, InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.own import Layout
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.factors import known_factors
from polariscope.data.own.support.foreign_frames import check_rows_match, is_frame, read_frame
from polariscope.data.own.support.gaps import without_gaps
from polariscope.data.own.support.layout import (
    Axes,
    arranged,
    axes_of,
    choices_of,
    shape_of,
    white_of,
)
from polariscope.data.own.support.rows import (
    AbstractRows,
    as_rows,
    check_finite,
    check_precision,
    check_whole_numbers,
    extent,
    stored,
)

if TYPE_CHECKING:
    from polariscope.data.grid import FactorGrid


class AbstractRowsDataset(AbstractDataset):
    """Observations that are rows or images in an array, with factors, names of features and names of rows.

    A member is a frozen dataclass that reads its file in ``__post_init__`` and calls :meth:`_fill`. The options
    ``layout``, ``unit_interval``, ``white`` and ``missing`` are used if it has them.
    """

    layout: Layout | None = None
    unit_interval: bool = False
    white: int | None = None
    missing: Missing = "refuse"
    _rows: AbstractRows
    _axes: Axes
    _factors: Shaped[np.ndarray, "sample factor"] | None
    _ids: Shaped[np.ndarray, " sample"] | None
    _aside: Mapping[str, Shaped[np.ndarray, " sample"]]

    def _fill(self, contents: Contents) -> None:
        """Check the contents and store them."""
        if is_frame(contents.array):
            check_rows_match(contents.array, contents.factors)
            framed = read_frame(contents.array, "X")
            names, ids = contents.feature_names or framed.feature_names, contents.ids
            array, ids = framed.array, framed.ids if ids is None else ids
        else:
            names, array, ids = contents.feature_names, contents.array, contents.ids
        rows = as_rows(array, "X")
        names = tuple(map(str, names))
        _check_feature_names(names, rows)
        n_rows, row_numbers, choices = len(rows), None, contents.choices
        if len(rows.shape) == 2:
            complete = without_gaps(rows, self.missing, self._where, names)
            rows, row_numbers, choices = complete.rows, complete.row_numbers, (*choices, *complete.choices)
        elif self.missing != "refuse":
            raise InputError(
                "missing", "be left out for images", got=f"{self.missing!r}", remedy="it is for tables"
            )
        check_finite(rows, "X", names)
        axes = axes_of(rows, self.layout)
        # Images have bytes or values in [0, 1], for which float32 is precise enough.
        if axes == "rows":
            check_whole_numbers(rows, names)
            check_precision(rows, names)
            if self.unit_interval:
                _check_unit_interval(rows)
        # Checked against all rows of the source; rows that lack a value are left out afterwards.
        factors = known_factors(contents, n_rows)
        ids, aside = _checked_ids(ids, n_rows), contents.aside
        if row_numbers is not None:
            # Without names, rows keep the numbers that they have in the file.
            factors, ids = factors.take(row_numbers), row_numbers if ids is None else ids[row_numbers]
            aside = {name: column[row_numbers] for name, column in aside.items()}
        white = white_of(rows, self.white)
        recognised = None if self.white is not None else white
        # The dataclasses of members are frozen.
        for name, value in (
            ("white", white),
            ("_rows", rows),
            ("_axes", axes),
            ("_ids", ids),
            ("_factors", factors.values),
            ("factor_names", factors.names),
            ("factor_sizes", factors.sizes),
            ("factor_kinds", factors.kinds),
            ("factor_classes", factors.classes),
            ("feature_names", names),
            ("_aside", aside),
            ("aside_names", tuple(aside)),
            ("choices", (*choices, *choices_of(rows, axes, self.layout, recognised))),
        ):
            object.__setattr__(self, name, value)

    @property
    def _where(self) -> str:
        """Name of the table in messages: its file, or X if it is in memory."""
        path = getattr(self, "path", None)
        return "X" if path is None else Path(path).name

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self._rows, self._axes)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_unit_interval(self) -> bool:
        return self.unit_interval or len(self.shape) == 3

    @functools.cached_property
    def is_counts(self) -> bool:
        return len(self.shape) == 1 and self._rows.dtype.kind in "iu" and extent(self._rows)[0] >= 0

    def stored_values(self) -> Iterator[Shaped[np.ndarray, "..."]]:
        if len(self.shape) == 3:
            yield from super().stored_values()
        else:
            yield from (chunk for _, chunk in stored(self._rows))

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        if self.white == 255:
            return np.ascontiguousarray(self._take(indices))
        return super().images(indices)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample ..."]:
        values = self._take(indices).astype(np.float32, order="C")
        return values / np.float32(255) if self.white == 255 else values

    def factors(self, indices: ArrayLike | int) -> Shaped[np.ndarray, "sample factor"]:
        return (
            super().factors(indices) if self._factors is None else self._factors[self.check_indices(indices)]
        )

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        has_grid = bool(self.factor_sizes) and 0 not in self.factor_sizes
        return self._grid.index_of(factors) if has_grid else super().index_of(factors)

    @functools.cached_property
    def _grid(self) -> FactorGrid:
        from polariscope.data.grid import FactorGrid

        return FactorGrid.of(self)

    def ids(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"]:
        checked = self.check_indices(indices)
        return checked if self._ids is None else self._ids[checked]

    def aside_columns(self, indices: ArrayLike | int) -> dict[str, Shaped[np.ndarray, " sample"]]:
        checked = self.check_indices(indices)
        return {name: column[checked] for name, column in self._aside.items()}

    def _take(self, indices: ArrayLike | int) -> Shaped[np.ndarray, "sample ..."]:
        return arranged(self._rows.take(self.check_indices(indices)), self._axes)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the observations, the factors, and the columns set aside, which can define the split."""
        factors = None if self._factors is None else files.digest_array(self._factors)
        record: list[object] = [
            self._rows.digest(lambda chunk: arranged(chunk, self._axes)),
            factors,
            self.factor_names,
            self.factor_kinds,
            self.unit_interval,
        ]
        record += [[name, column.tolist()] for name, column in self._aside.items()]
        # If 1 is white, the same bytes are other observations.
        return files.digest([*record, "white is 1"] if self.white == 1 else record)

    def describe(self) -> dict[str, Any]:
        """Return the options, the shape and the hash of the contents, by which changed data are detected."""
        return {**super().describe(), "shape": [len(self), *self.shape], "fingerprint": self.fingerprint}


def _check_feature_names(names: tuple[str, ...], rows: AbstractRows) -> None:
    if names and (len(rows.shape) != 2 or len(names) != rows.shape[1]):
        raise InputError(
            "feature_names",
            "name each column of flat rows",
            got=f"{len(names)} names for X of shape {rows.shape}",
        )
    if len(set(names)) != len(names):
        raise InputError("feature_names", "differ from one another")


def _check_unit_interval(rows: AbstractRows) -> None:
    low, high = extent(rows)
    if low < 0 or high > 1:
        raise InputError(
            problem=(Argument("unit_interval", True), " requires values in [0, 1]"),
            got=f"{low} … {high}",
            remedy="rescale X",
        )


def _checked_ids(ids: object, n_samples: int) -> Shaped[np.ndarray, " sample"] | None:
    if ids is None:
        return None
    array = np.asarray(ids)
    if array.shape != (n_samples,):
        raise InputError(
            "ids", f"identify each of the {n_samples} samples", got=f"an array of shape {array.shape}"
        )
    if array.dtype.kind in "iu":
        return array
    return np.array([str(name) for name in array.tolist()])
