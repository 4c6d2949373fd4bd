"""Codes of AnnData objects: which arrays are taken, and the entries that are written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.runs.cells import codes_of_cells

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(500, 3)) * [1.0, 0.001, 0.9]
VARIANCE = np.broadcast_to([0.01, 1.0, 0.02], MEAN.shape)


def cells(**obsm) -> SimpleNamespace:
    """An object with the attributes of AnnData."""
    frame = pandas.DataFrame(index=[f"c{row}" for row in range(len(MEAN))])
    return SimpleNamespace(
        X=RNG.normal(size=(len(MEAN), 4)).astype(np.float32),
        obs=frame,
        layers={},
        obsm=dict(obsm),
        uns={},
        obs_names=frame.index,
        var_names=list("abcd"),
    )


@pytest.mark.parametrize("names", [("X_latent_qzm", "X_latent_qzv"), ("qz_m", "qz_v"), ("mean", "variance")])
def test_codes_in_use_and_types_are_written(names):
    adata = cells(X_pca=MEAN, **dict(zip(names, (MEAN, VARIANCE), strict=True)))
    regime = ps.diagnose(adata)
    assert regime.types == ps.diagnose(mean=MEAN, variance=VARIANCE).types == ["active", "passive", "active"]
    np.testing.assert_array_equal(adata.obsm["X_polariscope"], MEAN[:, [0, 2]])
    written = adata.uns["polariscope"]
    assert written["types"].tolist() == regime.types
    assert written["in_use"].tolist() == [0, 2]
    np.testing.assert_allclose(written["kl"], [latent.kl for latent in regime.latents])
    assert written["verdict"] == str(regime.verdict)


def test_arrays_and_entries_can_be_chosen():
    adata = cells(first=MEAN, second=VARIANCE, a_mean=MEAN, a_variance=VARIANCE)
    ps.diagnose(adata, mean="first", variance="second", key="mine", alpha=0.2)
    assert {"X_mine"} == adata.obsm.keys() - {"first", "second", "a_mean", "a_variance"}
    assert list(adata.uns) == ["mine"]


def test_all_cells_are_encoded_in_their_order_by_a_model():
    adata = cells()

    def encoder(x):
        return 2 * x[:, :2], x[:, :2] * 0 - 5

    regime = ps.diagnose(adata, model=encoder)
    assert regime.n_samples == len(MEAN)
    np.testing.assert_allclose(adata.obsm["X_polariscope"], 2 * adata.X[:, :2], rtol=1e-6)
    # As data of a model, the object is not changed.
    other = cells()
    ps.diagnose(encoder, other)
    assert not other.obsm
    assert not other.uns


@pytest.mark.parametrize(
    ("obsm", "options", "message"),
    [
        ({"X_pca": MEAN}, {}, "contain one posterior mean and its variance.*got no pair among X_pca"),
        ({}, {}, "got no pair among nothing"),
        (
            {"a_mean": MEAN, "a_var": VARIANCE, "b_qzm": MEAN, "b_qzv": VARIANCE},
            {},
            "got 2 pairs among a_mean, a_var, b_qzm, b_qzv",
        ),
        ({"mean": MEAN, "variance": VARIANCE}, {"mean": "maen"}, "Did you mean 'mean'"),
        ({"mean": MEAN, "variance": VARIANCE}, {"mean": "mean"}, "must be passed together, got no variance"),
        (
            {"mean": MEAN, "variance": VARIANCE},
            {"mean": "mean", "variance": "variance", "model": lambda x: (x, x)},
            "leave out one of them",
        ),
        ({"mean": MEAN, "variance": -VARIANCE}, {}, "not be negative"),
        ({"mean": MEAN, "variance": VARIANCE}, {"key": ""}, "key must be a name"),
        ({"mean": MEAN.astype(str), "variance": VARIANCE}, {}, r"obsm\['mean'\] must be an array of real"),
    ],
)
def test_unclear_codes_are_refused_and_nothing_is_written(obsm, options, message):
    adata = cells(**obsm)
    with pytest.raises(InputError, match=message):
        ps.diagnose(adata, **options)
    assert not adata.uns
    assert adata.obsm.keys() == obsm.keys()


def test_half_floats_are_widened():
    codes = codes_of_cells({"mu": MEAN.astype(np.float16), "var": VARIANCE})
    assert codes.mean.dtype == np.float32
    assert codes.variance.dtype == np.float64


@pytest.mark.filterwarnings("ignore")  # deprecations of anndata's dependencies
def test_the_entries_survive_an_h5ad_file(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(np.zeros((500, 4), dtype=np.float32))
    adata.obsm["X_latent_qzm"], adata.obsm["X_latent_qzv"] = MEAN, VARIANCE.copy()
    ps.diagnose(adata)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert read.uns["polariscope"]["types"].tolist() == ["active", "passive", "active"]
    np.testing.assert_array_equal(read.obsm["X_polariscope"], MEAN[:, [0, 2]])


def test_files_of_codes_are_accepted_by_their_path(tmp_path):
    np.savez(tmp_path / "codes.npz", mean=MEAN, variance=VARIANCE, factors=np.arange(500)[:, None] % 3)
    path = tmp_path / "codes.npz"
    assert ps.diagnose(str(path)).types == ps.diagnose(path).types == ["active", "passive", "active"]
    assert ps.score(path, "mig").n_samples == 500
    assert ps.decompose(path, 100).n_samples == 100
    with pytest.raises(InputError, match="data requires a model as the first argument"):
        ps.diagnose(path, data=MEAN)
