"""A file of single-cell data (.h5ad) as a dataset, read with h5py."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt

from polariscope.core.archives import too_large, unpacked_limit
from polariscope.core.errors import InputError, not_installed, unknown
from polariscope.core.options import option
from polariscope.data.dataset import dataset
from polariscope.data.missing import Missing
from polariscope.data.own.support.column_kinds import Troubles
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.observed import AbstractRowsDataset
from polariscope.data.own.support.rows import IndexedRows, SparseRows, in_memory


@dataset("anndata", endings=(".h5ad",))
@dataclasses.dataclass(frozen=True, eq=False)
class AnndataDataset(AbstractRowsDataset):
    """Cells by genes from an .h5ad file, with names of both and classes of cells; needs h5py.

    X or a layer is dense or sparse. A sparse one stays sparse in memory, and only the rows of a batch are made dense.
    A dense one is read into memory if it fits ``cache_megabytes``, and otherwise read from the file as needed. The
    fingerprint is a hash of what is used.
    """

    path: str
    """The .h5ad file."""
    layer: str | None = None
    """The layer with the observations; none: X."""
    labels: tuple[str, ...] = ()
    """Columns of obs that are factors: categories, texts or numbers."""
    aside: tuple[str, ...] = ()
    """Columns of obs that are no factors but named by split_column or group_column."""
    unit_interval: bool = False
    """Values lie in [0, 1] and may be given to a Bernoulli likelihood."""
    cache_megabytes: Annotated[int, Ge(0)] = 1024
    """Keep dense values in memory up to this size."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Gigabytes that a sparse matrix may take; none: 4, or 200 times the file where that is more."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """What is done about missing values of a table: refuse them, drop rows that lack one, or fill in the median of the
    column over all rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
        self._fill(self._read(Path(self.path)))

    def _read(self, path: Path) -> Contents:
        if not path.is_file():
            raise InputError(problem=f"there is no file {path}")
        try:
            import h5py
        except ImportError:
            raise not_installed(f"reading {path.name}", "h5py", "hdf5") from None
        try:
            file = h5py.File(path, "r")  # stays open: rows may be read from it later
        except OSError as error:
            raise InputError(
                problem=f"{path} is damaged or no HDF5 file ({error})", remedy="get or write it again"
            ) from None
        try:
            return self._contents(file)
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                problem=f"{path} is damaged or not as AnnData writes it ({error})", remedy="write it again"
            ) from None

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
                remedy=f"name a layer: {list(file.get('layers', ()))}",
            )
        rows = (
            self._sparse(matrix)
            if hasattr(matrix, "keys")
            else in_memory(IndexedRows(matrix), self.cache_megabytes)
        )
        obs, var = file["obs"], file["var"]
        columns = [str(name) for name in obs if name not in (_index(obs), "__categories")]
        troubles = Troubles()
        read = {}
        for name in (*self.labels, *self.aside):
            if name not in columns:
                raise unknown("column of obs", name, columns)
            read[name] = _column(obs, name, troubles)
        troubles.refuse("obs", "choose other labels, or fill the values in")
        return Contents(
            rows,
            {name: read[name] for name in self.labels} or None,
            feature_names=tuple(_texts(var[_index(var)])),
            ids=np.array(_texts(obs[_index(obs)])),
            aside={name: read[name] for name in self.aside},
        )

    def _sparse(self, group: Any) -> SparseRows:
        """A sparse matrix: its values, their columns (or rows) and where each row (or column) begins."""
        from scipy.sparse import csc_array, csr_array

        kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", ""))
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        make = {"csr": csr_array, "csc": csc_array}.get(kind.removesuffix("_matrix").removesuffix("_array"))
        if make is None:
            raise InputError(
                problem=f"the matrix is stored as {kind!r}",
                remedy="store it dense, or sparse by rows (csr_matrix)",
            )
        # A few bytes of HDF5 may declare arrays of any size.
        parts = [group[name] for name in ("data", "indices", "indptr")]
        size = sum(int(part.size) * part.dtype.itemsize for part in parts)
        path = Path(self.path)
        if size > (limit := unpacked_limit(path, self.max_unpacked)):
            raise too_large(path, limit, size)
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        matrix = make(tuple(part[:] for part in parts), shape=tuple(map(int, shape)))
        matrix.check_format(full_check=True)  # an index outside the matrix would be written to memory
        return SparseRows(matrix)


def _index(group: Any) -> str:
    """The column that names the rows."""
    name = group.attrs.get("_index", "_index")
    return name.decode() if isinstance(name, bytes) else str(name)


def _texts(stored: Any) -> list[str]:
    values = (
        stored["values"] if hasattr(stored, "keys") else stored
    )  # newer files may have a mask beside them
    return [text.decode() if isinstance(text, bytes) else str(text) for text in values[:].tolist()]


def _column(obs: Any, name: str, troubles: Troubles) -> np.ndarray:
    """A column of obs: categories as their texts or numbers; missing values are noted."""
    stored = obs[name]
    if hasattr(stored, "keys") and "categories" in stored:
        codes, categories = stored["codes"][:], stored["categories"]
    elif hasattr(stored, "keys"):  # values beside a mask of those that are missing
        lacking = np.flatnonzero(stored["mask"][:])
        if len(lacking):
            troubles.missing(name, lacking.tolist())
        return _values(stored["values"])
    elif "categories" in stored.attrs:  # as older versions wrote them
        codes, categories = stored[:], obs[stored.attrs["categories"]]
    else:
        return _values(stored)
    if (codes < 0).any():
        troubles.missing(name, np.flatnonzero(codes < 0).tolist())
        return codes
    return _values(categories)[codes]


def _values(stored: Any) -> np.ndarray:
    values = stored[:]
    return values if values.dtype.kind in "biuf" else np.array(_texts(stored))
