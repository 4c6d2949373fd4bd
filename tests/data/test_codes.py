"""Codes in obsm of .h5ad files."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.data.codes import open_codes

MEAN = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
VARIANCE = np.full((50, 3), 0.25, dtype=np.float32)


def write(path, **obsm):
    """Write a file as AnnData does."""
    with h5py.File(path, "w") as file:
        obs = file.create_group("obs")
        obs.attrs["_index"] = "_index"
        obs["_index"] = [f"cell-{number}" for number in range(50)]
        kind = obs.create_group("kind")
        kind["codes"], kind["categories"] = (np.arange(50) % 3).astype(np.int8), ["a", "b", "c"]
        each = obs.create_group("barcode")
        each["codes"], each["categories"] = np.arange(50, dtype=np.int8), [str(i) for i in range(50)]
        group = file.create_group("obsm")
        for name, array in obsm.items():
            group[name] = array
    return path


@pytest.mark.parametrize(
    ("names", "second"),
    [
        (("X_scVI_qzm", "X_scVI_qzv"), VARIANCE),
        (("mu", "logvar"), np.log(VARIANCE)),
        (("X_mean", "X_std"), VARIANCE**0.5),
    ],
)
def test_mean_and_variance_are_found_by_their_names(tmp_path, names, second):
    file = write(tmp_path / "x.h5ad", X_pca=MEAN, **dict(zip(names, (MEAN, second), strict=True)))
    codes = open_codes(file)
    np.testing.assert_array_equal(codes.mean, MEAN)
    np.testing.assert_allclose(codes.variance, VARIANCE, rtol=1e-6)
    assert codes.factor_names == ("kind",)
    assert codes.ids[1] == "cell-1"
    assert ps.report(file).name == "x.html"


def test_files_without_codes_are_refused(tmp_path):
    with pytest.raises(InputError, match="got no pair among X_pca; store the mean and the variance"):
        open_codes(write(tmp_path / "x.h5ad", X_pca=MEAN))
    with pytest.raises(InputError, match="got 2 pairs among"):
        open_codes(write(tmp_path / "x.h5ad", a_mu=MEAN, a_var=VARIANCE, b_mu=MEAN, b_var=VARIANCE))
    (tmp_path / "x.h5ad").write_bytes(b"no")
    with pytest.raises(InputError, match="is damaged or not an HDF5 file"):
        open_codes(tmp_path / "x.h5ad")


def test_codes_that_anndata_wrote_with_pandas_3_are_read():
    """Its names of cells and categories are arrays with a mask (tests/fixtures/make_cells.py)."""
    codes = open_codes(Path(__file__).parents[1] / "fixtures" / "cells-pandas-3.h5ad")
    assert codes.mean.shape == (4, 2)
    assert codes.variance[:, 0].tolist() == [0.01, 0.02, 0.01, 0.03]
    assert codes.ids.tolist() == ["c1", "c2", "c3", "c4"]
