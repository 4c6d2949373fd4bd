"""Single-cell files and objects, in the layout that AnnData writes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse

from polariscope.core.errors import InputError
from polariscope.data.own.anndata import AnndataDataset
from polariscope.data.own.arrays import from_dataset
from polariscope.data.sources import load_dataset, load_recorded

COUNTS = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 7], [2, 0, 5]], dtype=np.float32)
CELLS, GENES = ["c1", "c2", "c3", "c4"], ["g1", "g2", "g3"]
TYPES = ["T", "B", "T", "B"]


def write(path, form="csr", lacking=False) -> str:
    """An .h5ad file as anndata 0.12 lays it out."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:

        def matrix(group, name, values, form):
            if form == "dense":
                group.create_dataset(name, data=values).attrs["encoding-type"] = "array"
                return
            sparse = getattr(scipy.sparse, f"{form}_matrix")(values)
            made = group.create_group(name)
            made.attrs["encoding-type"], made.attrs["shape"] = f"{form}_matrix", values.shape
            for part in ("data", "indices", "indptr"):
                made.create_dataset(part, data=getattr(sparse, part))

        matrix(file, "X", COUNTS, form)
        matrix(file.create_group("layers"), "doubled", 2 * COUNTS, form)
        for axis, names in (("obs", CELLS), ("var", GENES)):
            group = file.create_group(axis)
            group.attrs["_index"] = "_index"
            group.create_dataset("_index", data=names, dtype=text)
        categories = file["obs"].create_group("type")
        categories.create_dataset("categories", data=["B", "T"], dtype=text)
        categories.create_dataset("codes", data=np.array([1, 0, -1 if lacking else 1, 0], dtype=np.int8))
        file["obs"].create_dataset("quality", data=[0.5, 0.25, 0.125, 1.0])
        file["obs"].create_dataset("batch", data=["x", "y", "x", "x"], dtype=text)
        nullable = file["obs"].create_group("age")
        nullable.create_dataset("values", data=[1, 2, 3, 4])
        nullable.create_dataset("mask", data=[False, lacking, False, False])
    return str(path)


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
def test_cells_genes_and_classes_are_read(tmp_path, form):
    path = write(tmp_path / "cells.h5ad", form)
    data = load_dataset(path, labels=["type", "quality", "batch", "age"])
    np.testing.assert_array_equal(data.values([3, 0, 0]), COUNTS[[3, 0, 0]])
    assert data.feature_names == tuple(GENES)
    assert data.ids([2, 0]).tolist() == ["c3", "c1"]
    assert data.factor_names == ("type", "quality", "batch", "age")
    assert data.factor_kinds == ("categorical", "continuous", "categorical", "categorical")
    assert data.factors([0, 1]).tolist() == [[1, 0.5, 0, 1], [0, 0.25, 1, 2]]
    assert data.factor_classes == {"type": ("B", "T"), "batch": ("x", "y")}
    np.testing.assert_array_equal(AnndataDataset(path, layer="doubled").values([2]), 2 * COUNTS[[2]])
    assert load_recorded(data.describe()).fingerprint == data.fingerprint
    assert AnndataDataset(path).factor_names == ()


def test_dense_values_that_do_not_fit_memory_are_read_from_the_file(tmp_path):
    path = write(tmp_path / "cells.h5ad", "dense")
    lazy, kept = AnndataDataset(path, cache_megabytes=0), AnndataDataset(path)
    assert type(lazy._rows).__name__ == "IndexedRows"
    assert type(kept._rows).__name__ == "DenseRows"
    for indices in ([3, 0, 0, 2], [1], [], [0, 1, 2, 3]):
        np.testing.assert_array_equal(lazy.values(indices), COUNTS[np.array(indices, dtype=int)])
    assert lazy.fingerprint == kept.fingerprint


def test_what_the_file_does_not_have_is_refused(tmp_path):
    path = write(tmp_path / "cells.h5ad", lacking=True)
    with pytest.raises(
        InputError, match=r"column 'type' lacks 1 value, first in row 2; column 'age' .* row 1"
    ):
        AnndataDataset(path, labels=("type", "age"))
    with pytest.raises(InputError, match=r"no column of obs named 'tipe'; .* Did you mean 'type'"):
        AnndataDataset(path, labels=("tipe",))
    with pytest.raises(InputError, match="no layer named 'halved'; there are doubled"):
        AnndataDataset(path, layer="halved")
    with pytest.raises(InputError, match="there is no file"):
        AnndataDataset(str(tmp_path / "none.h5ad"))
    (tmp_path / "text.h5ad").write_text("hello")
    with pytest.raises(InputError, match="damaged or not an HDF5 file"):
        AnndataDataset(str(tmp_path / "text.h5ad"))
    whole = (tmp_path / "cells.h5ad").read_bytes()
    (tmp_path / "cut.h5ad").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        AnndataDataset(str(tmp_path / "cut.h5ad"))
    with h5py.File(tmp_path / "empty.h5ad", "w") as file:
        file.create_group("obs")
    with pytest.raises(InputError, match="has no X"):
        AnndataDataset(str(tmp_path / "empty.h5ad"))
    with h5py.File(tmp_path / "half.h5ad", "w") as file:
        file.create_dataset("X", data=COUNTS)
    with pytest.raises(InputError, match="not as AnnData writes it"):
        AnndataDataset(str(tmp_path / "half.h5ad"))


def test_without_h5py_the_message_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "cells.h5ad")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"requires h5py.*pip install 'polariscope\[hdf5\]'"):
        AnndataDataset(path)


@pytest.mark.parametrize("matrix", [COUNTS, scipy.sparse.csr_matrix(COUNTS)])
def test_an_anndata_object_is_known_by_what_it_offers(matrix):
    obs = pandas.DataFrame({"type": pandas.Categorical(TYPES), "age": [1, 2, 3, 4]}, index=CELLS)
    cells = SimpleNamespace(
        X=matrix, obs=obs, layers={"doubled": 2 * matrix}, obs_names=obs.index, var_names=pandas.Index(GENES)
    )
    data = from_dataset(cells, labels=["type", "age"])
    np.testing.assert_array_equal(data.values([3, 1]), COUNTS[[3, 1]])
    assert data.factors([0, 1]).tolist() == [[1, 1], [0, 2]]
    assert data.factor_classes == {"type": ("B", "T")}
    assert (data.feature_names, data.ids([1]).tolist()) == (tuple(GENES), ["c2"])
    assert from_dataset(cells, layer="doubled").values([0]).tolist() == [[0, 6, 0]]
    with pytest.raises(InputError, match="no layer named 'x'"):
        from_dataset(cells, layer="x")
    with pytest.raises(InputError, match="no column of obs named 'kind'"):
        from_dataset(cells, labels=["kind"])
    cells.X = None
    with pytest.raises(InputError, match="the AnnData has no X; choose a layer with layer"):
        from_dataset(cells)


PANDAS_3 = Path(__file__).parents[2] / "fixtures" / "cells-pandas-3.h5ad"
"""Written by anndata 0.12.6 with pandas 3.1.1 (tests/fixtures/make_cells.py)."""


def test_text_and_categories_that_pandas_3_wrote_as_nullable_are_read():
    data = load_dataset(PANDAS_3, labels=["type", "batch", "age", "quality", "healthy"])
    assert data.factor_classes == {"type": ("B", "T"), "batch": ("x", "y")}
    assert data.factors([0, 1]).tolist() == [[1, 0, 1, 0.5, 1], [0, 1, 2, 0.25, 0]]
    assert data.ids([1, 3]).tolist() == ["c2", "c4"]
    np.testing.assert_array_equal(data.values([0, 3]), COUNTS[[0, 3]])
    with pytest.raises(
        InputError, match=r"column 'donor' lacks 1 value, first in row 1; column 'dose' .* row 2"
    ):
        load_dataset(PANDAS_3, labels=["donor", "dose"])


def read_elem(stored):
    """A stand-in for ``anndata.io.read_elem`` that reads the column ``type`` of the fixture."""
    if stored.name.endswith("age"):
        raise RuntimeError("IOSpec")
    return pandas.Categorical(TYPES)


def test_columns_are_read_through_anndata_if_it_is_installed(monkeypatch, tmp_path):
    ours = load_dataset(PANDAS_3, labels=["type"])
    module = ModuleType("anndata.io")
    module.read_elem = read_elem
    monkeypatch.setitem(sys.modules, "anndata", ModuleType("anndata"))
    monkeypatch.setitem(sys.modules, "anndata.io", module)
    assert load_dataset(PANDAS_3, labels=["type"]).fingerprint == ours.fingerprint
    with pytest.raises(InputError, match=r"AnnData cannot read column 'age' of obs \(RuntimeError\); write"):
        load_dataset(PANDAS_3, labels=["age"])
    # A file without encodings is older than the function, which would return codes instead of categories.
    old = load_dataset(write(tmp_path / "old.h5ad"), labels=["type", "age"])
    assert old.factors([0]).tolist() == [[1, 1]]


@pytest.mark.filterwarnings("ignore")  # what anndata says of its own dependencies
def test_the_real_anndata_gives_the_same(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pandas.DataFrame({"type": pandas.Categorical(TYPES)}, index=CELLS)
    cells = anndata.AnnData(scipy.sparse.csr_matrix(COUNTS), obs=obs, var=pandas.DataFrame(index=GENES))
    with anndata.settings.override(allow_write_nullable_strings=True):
        cells.write_h5ad(tmp_path / "cells.h5ad")
    data = from_dataset(cells, labels=["type"])
    assert data.fingerprint == load_dataset(tmp_path / "cells.h5ad", labels=["type"]).fingerprint
    backed = from_dataset(anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"), labels=["type"])
    np.testing.assert_array_equal(backed.values([3, 1, 3]), COUNTS[[3, 1, 3]])


def test_a_sparse_matrix_that_is_not_what_it_says_is_refused(tmp_path):
    """A place outside the matrix would be written to memory when a row is made dense."""
    path = write(tmp_path / "cells.h5ad")
    with h5py.File(path, "r+") as file:
        file["X/indices"][0] = 99
    with pytest.raises(InputError, match="damaged or not as AnnData writes it"):
        AnndataDataset(path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][0] = 0
        del file["X"].attrs["shape"]
    with pytest.raises(InputError, match="damaged or not as AnnData writes it"):
        AnndataDataset(path)


def test_a_sparse_matrix_beyond_its_limit_is_refused_before_it_is_read(tmp_path):
    """HDF5 declares 800 GB in a few bytes."""
    path = write(tmp_path / "cells.h5ad")
    with h5py.File(path, "r+") as file:
        for part, kind in (("data", np.float32), ("indices", np.int32)):
            del file["X"][part]
            file["X"].create_dataset(part, shape=(10**11,), dtype=kind, chunks=(10**6,))
    with pytest.raises(InputError, match=r"would unpack to 800\.0 GB.*max_unpacked"):
        AnndataDataset(path)


def test_columns_of_obs_may_be_set_aside(tmp_path):
    data = load_dataset(write(tmp_path / "cells.h5ad"), labels=["type"], aside=["batch"])
    assert data.factor_names == ("type",)
    assert data.column("batch").tolist() == ["x", "y", "x", "x"]
