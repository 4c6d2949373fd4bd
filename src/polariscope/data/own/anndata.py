"""Dataset of single-cell data in an .h5ad file, read with h5py."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt

from polariscope.core.archives import too_large, unpacked_limit
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import option
from polariscope.core.paths import resolved_path
from polariscope.data.dataset import dataset
from polariscope.data.hdf5 import index_name, open_cells, texts_of
from polariscope.data.missing import Missing
from polariscope.data.own.support.column_kinds import Troubles
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.foreign_frames import frame_columns
from polariscope.data.own.support.observed import AbstractRowsDataset
from polariscope.data.own.support.rows import IndexedRows, SparseRows, in_memory


@dataset("anndata", endings=(".h5ad",))
@dataclasses.dataclass(frozen=True, eq=False)
class AnndataDataset(AbstractRowsDataset):
    """Cells by genes from an .h5ad file, with their names and classes of cells; requires h5py.

    X or a layer is dense or sparse. A sparse matrix stays sparse in memory, and only the rows of a batch are made
    dense. A dense one is read into memory if it fits ``cache_megabytes``, and otherwise read from the file as needed.
    The fingerprint is a hash of the data in use.
    """

    path: str
    """The .h5ad file."""
    layer: str | None = None
    """Layer that contains the observations; None for X."""
    labels: tuple[str, ...] = ()
    """Columns of obs that are factors: categories, text or numbers."""
    aside: tuple[str, ...] = ()
    """Columns of obs that are not factors but are used by split_column or group_column."""
    unit_interval: bool = False
    """If True, values lie in [0, 1] and a Bernoulli likelihood is allowed."""
    cache_megabytes: Annotated[int, Ge(0)] = 1024
    """Maximum size in megabytes of dense values that are kept in memory."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Maximum size in gigabytes of a sparse matrix; None for 200 times the size of the file, but at least 4."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """Treatment of missing values of a table: refuse them, drop rows with a missing value, or fill in the median of the
    column over all rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(resolved_path(self.path, "path")))
        self._fill(self._read(Path(self.path)))

    def _read(self, path: Path) -> Contents:
        with open_cells(path) as file:  # stays open, because rows can be read from it later
            return self._contents(file)

    def _contents(self, file: Any) -> Contents:
        if self.layer is None:
            matrix = file.get("X")
        else:
            layers = file.get("layers", {})
            if self.layer not in layers:
                raise unknown("layer", self.layer, layers)
            matrix = layers[self.layer]
        if matrix is None:
            raise InputError(
                problem=f"{Path(self.path).name} has no X",
                remedy=f"choose a layer: {list(file.get('layers', ()))}",
            )
        rows = (
            self._sparse(matrix)
            # A sparse matrix is stored as a group of arrays, a dense one as an array.
            if hasattr(matrix, "keys")
            else in_memory(IndexedRows(matrix), self.cache_megabytes)
        )
        obs, var = file["obs"], file["var"]
        columns = [str(name) for name in obs if name not in (index_name(obs), "__categories")]
        for name in (*self.labels, *self.aside):
            if name not in columns:
                raise unknown("column of obs", name, columns)
        read = _columns(obs, (*self.labels, *self.aside))
        return Contents(
            rows,
            {name: read[name] for name in self.labels} or None,
            feature_names=tuple(texts_of(var[index_name(var)])),
            ids=np.array(texts_of(obs[index_name(obs)])),
            aside={name: read[name] for name in self.aside},
        )

    def _sparse(self, group: Any) -> SparseRows:
        """Read a sparse matrix: its values, their columns (or rows) and the start of each row (or column)."""
        from scipy.sparse import csc_array, csr_array

        kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", ""))
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        make = {"csr": csr_array, "csc": csc_array}.get(kind.removesuffix("_matrix").removesuffix("_array"))
        if make is None:
            raise InputError(
                problem=f"the matrix is stored as {kind!r}",
                remedy="store it dense, or sparse by rows (csr_matrix)",
            )
        # A few bytes of HDF5 can declare arrays of any size.
        parts = [group[name] for name in ("data", "indices", "indptr")]
        size = sum(int(part.size) * part.dtype.itemsize for part in parts)
        path = Path(self.path)
        if size > (limit := unpacked_limit(path, self.max_unpacked)):
            raise too_large(path, limit, size)
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        matrix = make(tuple(part[:] for part in parts), shape=tuple(map(int, shape)))
        matrix.check_format(full_check=True)  # an index outside the matrix would corrupt memory
        return SparseRows(matrix)


def _columns(obs: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read columns of obs, through AnnData if it is installed; columns with missing values are refused."""
    troubles = Troubles()
    read = _read_with_anndata(obs, names, troubles) if names else {}
    if read is None:
        read = {name: _column(obs, name, troubles) for name in names}
    troubles.refuse("obs", "choose other labels, or fill in the values")
    return read


def _read_with_anndata(obs: Any, names: Sequence[str], troubles: Troubles) -> dict[str, np.ndarray] | None:
    """Read columns with AnnData, which supports all its encodings; None if it is not installed or the file is old."""
    try:
        from anndata.io import read_elem
    except ImportError:
        return None
    # Versions before 0.7 stored the categories of all columns in one group, which a single column does not include.
    if any("encoding-type" not in obs[name].attrs for name in names):
        return None
    import pandas

    columns = {}
    for name in names:
        try:
            columns[name] = pandas.Series(read_elem(obs[name]))
        except Exception as error:  # AnnData wraps errors of damaged files in several types of its own
            raise InputError(
                problem=f"AnnData cannot read column {name!r} of obs ({type(error).__name__})",
                remedy="write the file again, or choose other labels",
            ) from error
    return frame_columns(pandas.DataFrame(columns), "obs", troubles)


def _column(obs: Any, name: str, troubles: Troubles) -> np.ndarray:
    """Read a column of obs: categories as their text or numbers. Missing values are recorded in ``troubles``."""
    stored = obs[name]
    if hasattr(stored, "keys") and "categories" in stored:
        codes, categories = stored["codes"][:], stored["categories"]
    elif hasattr(stored, "keys"):  # values with a mask of the missing ones
        lacking = np.flatnonzero(stored["mask"][:])
        if len(lacking):
            troubles.missing(name, lacking.tolist())
        return _values(stored)
    elif "categories" in stored.attrs:  # as older versions wrote them
        codes, categories = stored[:], obs[stored.attrs["categories"]]
    else:
        return _values(stored)
    # The code −1 marks a missing value.
    if (codes < 0).any():
        troubles.missing(name, np.flatnonzero(codes < 0).tolist())
        return codes
    return _values(categories)[codes]


def _values(stored: Any) -> np.ndarray:
    """Read an array, or the values of an array with a mask; with pandas 3, text and categories have one too."""
    values = (stored["values"] if hasattr(stored, "keys") else stored)[:]
    return values if values.dtype.kind in "biuf" else np.array(texts_of(stored))
