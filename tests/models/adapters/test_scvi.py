"""Models with the interface of scvi-tools."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import torch
from torch import nn

import polariscope as ps
from foreign_models import of_library
from polariscope.core.errors import InputError
from polariscope.models.open_model import open_model

N, GENES = 120, 5
COUNTS = np.random.default_rng(0).poisson(4, size=(N, GENES)).astype(np.float32)
BATCH = np.arange(N) % 2


class Cells:
    """As AnnData."""

    def __init__(self):
        self.X = COUNTS
        self.obs = pandas.DataFrame(
            {"batch": np.where(BATCH, "b", "a"), "id": np.arange(N)}, index=map(str, range(N))
        )
        self.obs_names, self.var_names = self.obs.index, pandas.Index([f"gene-{i}" for i in range(GENES)])


class Module(nn.Module):
    """Encoder and decoder depend on the batch; the decoder also on the library size."""

    def __init__(self, names=True):
        super().__init__()
        torch.manual_seed(0)
        self.names = names
        self.body, self.last = nn.Linear(GENES + 1, 4), nn.Linear(3, GENES)

    def _get_inference_input(self, tensors):
        return {"x": tensors["X"], "batch": tensors["batch"]}

    def inference(self, x, batch):
        mean, log_variance = self.body(torch.cat([torch.log1p(x), batch.to(x)], 1)).chunk(2, dim=1)
        variance = torch.exp(log_variance)
        named = {"qzm": mean, "qzv": variance}
        return {"z": mean, "library": x.sum(1, keepdim=True)} | (
            named if self.names else {"qz": torch.distributions.Normal(mean, variance.sqrt())}
        )

    def _get_generative_input(self, tensors, outputs):
        return {"z": outputs["z"], "library": outputs["library"], "batch": tensors["batch"]}

    def generative(self, z, library, batch):
        share = torch.softmax(self.last(torch.cat([z, batch.to(z)], 1)), 1)
        return {"px": torch.distributions.Poisson(library * share)}


class SCVI:
    is_trained = True

    def __init__(self, names=True, batch=BATCH):
        self.module, self.adata, self.adata_manager, self.batch = Module(names), Cells(), None, batch

    def _validate_anndata(self, adata):
        return adata

    def _make_data_loader(self, adata, batch_size, shuffle):
        tensors = {"X": torch.from_numpy(adata.X), "batch": torch.from_numpy(self.batch)[:, None]}
        return [
            {key: each[:50] for key, each in tensors.items()},
            {key: each[50:] for key, each in tensors.items()},
        ]

    def __repr__(self):
        raise AssertionError("the repr prints")


def of_scvi(**options):
    return of_library(SCVI, "scvi")(**options)


@pytest.mark.parametrize("names", [True, False])
def test_each_cell_is_encoded_with_its_batch(names):
    model = of_scvi(names=names)
    rep = ps.encode(model, Cells(), n_samples=None)
    with torch.inference_mode():
        outputs = model.module.inference(torch.from_numpy(COUNTS), torch.from_numpy(BATCH)[:, None])
    expected = outputs["qzm"] if names else outputs["qz"].mean
    np.testing.assert_allclose(rep.mean, expected.numpy(), atol=1e-6)
    assert rep.factor_names == ("batch",)  # each cell has another id
    assert list(rep.ids[:2]) == ["0", "1"]
    subset = ps.encode(model, Cells(), 30)
    np.testing.assert_allclose(subset.mean, expected.numpy()[subset.indices], atol=1e-6)
    assert any("its covariates (batch)" in note for note in rep.notes)


def test_the_likelihood_uses_library_size_and_batch_of_each_cell():
    model, dataset = open_model(of_scvi(), Cells())
    x, batch = torch.from_numpy(COUNTS[:10]), torch.from_numpy(BATCH[:10]).float()[:, None]
    with torch.inference_mode():
        z = model.encode(x, batch).mean
        found = model.decode(z).like(x).log_density(x)
        share = torch.softmax(model.module.last(torch.cat([z, batch], 1)), 1)
        expected = torch.distributions.Poisson(x.sum(1, keepdim=True) * share).log_prob(x).sum(1)
        torch.testing.assert_close(found, expected)
        typical = model.decode(z).mean.sum(1)
    np.testing.assert_allclose(typical, np.median(COUNTS.sum(1)), rtol=1e-5)
    assert len(dataset) == N


def test_a_single_batch_is_no_covariate(tmp_path):
    model, _ = open_model(of_scvi(batch=np.zeros(N, dtype=np.int64)), Cells())
    assert model.n_auxiliary == 0
    page = ps.report(of_scvi(), Cells(), out=tmp_path / "page.html")
    assert "SCVI (scvi-tools)" in page.read_text(encoding="utf-8")


def test_other_data_are_refused():
    with pytest.raises(InputError, match=r"data must be the AnnData object of a SCVI, .* type ndarray"):
        ps.encode(of_scvi(), COUNTS)
    model = of_scvi()
    model.is_trained = False
    with pytest.raises(InputError, match="model must be trained, got a SCVI that is not"):
        ps.encode(model, Cells())
    model, _ = open_model(of_scvi(), Cells())
    with pytest.raises(InputError, match="be those that the model was opened with, 120 observations"):
        ps.encode(model, COUNTS[:50])


def test_genes_in_another_order_are_refused():
    cells = Cells()
    cells.var_names = cells.var_names[::-1]
    with pytest.raises(
        InputError, match=r"got 5 genes in another order; pass adata\[:, model.adata.var_names\]"
    ):
        ps.encode(of_scvi(), cells)
    cells.var_names = pandas.Index(["other", *Cells().var_names[1:]])
    with pytest.raises(InputError, match=r"data must have the 5 genes of the training .*without gene-0"):
        ps.encode(of_scvi(), cells)


def test_errors_of_the_library_are_quoted():
    for error in (KeyError("batch"), ValueError("Number of vars differs")):

        def refuse(adata, error=error):
            raise error

        model = of_scvi()
        model._validate_anndata = refuse
        with pytest.raises(
            InputError, match=rf"SCVI does not accept these data: {type(error).__name__}: .*(batch|vars)"
        ) as raised:
            ps.encode(model, Cells())
        assert raised.value.__cause__ is error
