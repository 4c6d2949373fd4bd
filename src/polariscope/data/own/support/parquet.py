"""Tables in Parquet files, read with pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.core.archives import too_large, unpacked_limit
from polariscope.core.errors import InputError, not_installed
from polariscope.data.own.support.columns import Troubles, check_names
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.tables import REMEDY, VALUE_BYTES, contents_of, select

INDEX = "__index_level_0__"
"""The column in which pandas keeps an index without a name."""


def read_parquet(
    path: Path,
    *,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    row_names: str | None = None,
    aside: Sequence[str] = (),
    max_unpacked: float | None = None,
) -> Contents:
    """The features, labels and row names of a Parquet file; only the columns that are used are read.

    :param path: the file.
    :param columns: (default: all that are neither labels nor names) the features.
    :param labels: (default none) columns that are factors.
    :param row_names: (default: the index that pandas wrote, if there is one) the column that identifies rows.
    :param aside: (default none) columns that are neither features nor factors.
    :param max_unpacked: (default: as :mod:`polariscope.core.archives` has it) gigabytes that the columns may take.
    """
    if not path.is_file():
        raise InputError(problem=f"there is no file {path}")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise not_installed(f"reading {path.name}", "pyarrow", "parquet", "save the table as CSV") from None
    try:
        # One with-statement for all of it: the footer says what is there, the columns are read after that.
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            check_names(names, path.name)
            row_names = INDEX if row_names is None and INDEX in names else row_names
            selection = select(names, path.name, columns, labels, row_names, aside)
            _check_size(path, len(selection.features) + len(selection.texts), file.metadata, max_unpacked)
            table = file.read(columns=[*selection.features, *selection.texts])
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            problem=f"{path} is damaged or no Parquet file ({error})", remedy="write it again"
        ) from None
    if not table.num_rows:
        raise InputError(problem=f"{path.name} has no rows", remedy="add some")
    troubles = Troubles()
    numbers = {name: _array(table[name], name, troubles, text=False) for name in selection.features}
    texts = {name: _array(table[name], name, troubles, text=True) for name in selection.texts}
    troubles.refuse(path.name, REMEDY)
    choices = ("the index that pandas wrote identifies rows",) if row_names == INDEX else ()
    return contents_of(selection, numbers, texts, choices)


def _check_size(path: Path, n_columns: int, footer: Any, max_unpacked: float | None) -> None:
    """Refuse columns that take more memory than is allowed: a value that repeats takes no room in the file."""
    packed = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
    size = max(packed, footer.num_rows * n_columns * VALUE_BYTES)
    if size > (limit := unpacked_limit(path, max_unpacked)):
        raise too_large(path, limit, size)


def _array(column: Any, name: str, troubles: Troubles, text: bool) -> np.ndarray:
    """A column as an array; missing values, and texts where numbers are needed, are noted."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if column.null_count:
        troubles.missing(name, np.flatnonzero(np.asarray(column.is_null())).tolist())
        return np.zeros(len(column))
    if not (is_number or (text and is_text)):
        troubles.text(name, str(column[0].as_py()), 0)
        return np.zeros(len(column))
    return np.array(column.to_pylist(), dtype=str) if is_text else np.asarray(column.to_numpy())
