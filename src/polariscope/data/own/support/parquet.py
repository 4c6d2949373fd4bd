"""Tables in Parquet files, read with pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.core.archives import too_large, unpacked_limit
from polariscope.core.errors import InputError, not_installed
from polariscope.core.paths import check_regular
from polariscope.data.own.support.column_kinds import Troubles, check_names
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.foreign_frames import check_feature, frame_columns, stacked
from polariscope.data.own.support.table_files import REMEDY, VALUE_BYTES, contents_of, select

INDEX = "__index_level_0__"
"""The column in which pandas stores an index without a name."""


def read_parquet(
    path: Path,
    *,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    row_names: str | None = None,
    aside: Sequence[str] = (),
    max_unpacked: float | None = None,
) -> Contents:
    """Read the features, labels and row names of a Parquet file; only the columns in use are read.

    :param path: the file.
    :param columns: (default: all that are neither labels nor names) the features.
    :param labels: (default none) columns that are factors.
    :param row_names: (default: the index that pandas wrote, if there is one) the column that identifies rows.
    :param aside: (default none) columns that are neither features nor factors.
    :param max_unpacked: (default: that of :mod:`polariscope.core.archives`) maximum gigabytes of the columns.
    """
    if not check_regular(path).is_file():
        raise InputError(problem=f"there is no file {path}")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise not_installed(f"reading {path.name}", "pyarrow", "parquet", "save the table as CSV") from None
    try:
        # One with-statement for both: the footer lists the columns, which are read afterwards.
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            check_names(names, path.name)
            row_names = INDEX if row_names is None and INDEX in names else row_names
            selection = select(names, path.name, columns, labels, row_names, aside)
            _check_size(path, len(selection.features) + len(selection.texts), file.metadata, max_unpacked)
            # The index that pandas describes in the metadata is an ordinary column here.
            frame = file.read(columns=[*selection.features, *selection.texts]).to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            problem=f"{path} is damaged or not a Parquet file ({error})", remedy="write it again"
        ) from None
    if not len(frame):
        raise InputError(problem=f"{path.name} has no rows", remedy="add rows")
    troubles = Troubles()
    values = frame_columns(frame, path.name, troubles, selection.features)
    for name in selection.features:
        if name not in troubles:
            check_feature(name, values[name], troubles)
    texts = {name: _texts(name, values[name], troubles) for name in selection.texts}
    troubles.refuse(path.name, REMEDY)
    array = stacked({name: values[name] for name in selection.features})
    choices = ("the index that pandas wrote identifies rows",) if row_names == INDEX else ()
    return contents_of(selection, array, texts, choices)


def _check_size(path: Path, n_columns: int, footer: Any, max_unpacked: float | None) -> None:
    """Raise an error if columns exceed the memory limit: a repeated value takes no space in the file, but in memory."""
    packed = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
    size = max(packed, footer.num_rows * n_columns * VALUE_BYTES)
    if size > (limit := unpacked_limit(path, max_unpacked)):
        raise too_large(path, limit, size)


def _texts(name: str, values: np.ndarray, troubles: Troubles) -> np.ndarray:
    """Return a label or name of rows, as numbers or as text exactly as written; other values are recorded."""
    if name in troubles or values.dtype.kind in "biuf":
        return values
    strange = [row for row, value in enumerate(values.tolist()) if not isinstance(value, str)]
    if strange:
        troubles.text(name, str(values[strange[0]]), strange[0], "which is neither a number nor a text")
        return values
    return values.astype(str)
