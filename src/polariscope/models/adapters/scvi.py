"""Models of scvi-tools and DRVI."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.adapters.support.calls import ForeignError, call_foreign, quoted, type_name
from polariscope.models.adapters.wrapped import Method, WrappedModel
from polariscope.models.likelihoods import AbstractLikelihoodDistribution
from polariscope.models.posteriors import AbstractPosteriorDistribution

COUNTS = "X"
"""Name of the counts among the tensors of a module."""


@dataclasses.dataclass(frozen=True, eq=False)
class CellDistribution(AbstractLikelihoodDistribution):
    """p(x|z) of a module of scvi-tools, which also depends on the library size of the cell and its covariates."""

    model: ScviModel
    z: Float[Tensor, "sample latent"]
    cells: Float[Tensor, "sample gene"] | None = None
    """Counts of the cells, which determine library sizes; None for a typical cell."""

    def _distribution(self, x: Tensor | None = None) -> Any:
        return self.model.generate(self.z, self.cells if x is None else x)

    @property
    def mean(self) -> Float[Tensor, "sample gene"]:  # type: ignore[override]
        return self._distribution().mean

    def like(self, x: Float[Tensor, "sample gene"]) -> CellDistribution:
        return dataclasses.replace(self, cells=x)

    def log_density(self, x: Float[Tensor, "sample gene"]) -> Float[Tensor, " sample"]:
        return self._distribution(x).log_prob(x).flatten(1).sum(1)

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample gene"]:
        # The distributions of scvi-tools take no generator.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
            distribution = self._distribution()
            try:
                return distribution.sample(torch.Size())
            except NotImplementedError:
                # That of DRVI is a negative binomial distribution: a Poisson one with a rate drawn from a gamma one.
                theta = distribution.theta.expand_as(distribution.mean)
                rate = torch.distributions.Gamma(theta, theta / distribution.mean).sample()
                return torch.poisson(rate)


class ScviModel(WrappedModel):
    """A model of scvi-tools whose covariates are those of the cells it was opened with.

    :param module: the module of the model.
    :param tensors: every registered tensor of all cells, by name, without the counts.
    :param cell: counts of a typical cell.
    :param name: name of the model.
    """

    def __init__(self, module: Foreign, tensors: Mapping[str, Tensor], cell: Tensor, name: str) -> None:
        super().__init__(Method(module, self._infer), Method(module, self._refuse), name=name)
        self.module = module
        # A covariate with a single value is not passed on: the model then does not depend on it.
        self.constants = {key: each[:1] for key, each in tensors.items() if bool((each == each[:1]).all())}
        self.names = [key for key in tensors if key not in self.constants]
        columns = [tensors[key].reshape(len(tensors[key]), -1).float() for key in self.names]
        self.widths = [column.shape[1] for column in columns]
        self.dtypes = {key: tensors[key].dtype for key in self.names}
        self.n_auxiliary = sum(self.widths)
        self.covariates = torch.cat(columns, 1).numpy() if columns else None
        # Without observations, a decoder uses the first cell's covariates and a typical library size.
        self.typical = {**self.constants, **{key: tensors[key][:1] for key in self.names}}
        self.cell = cell
        self.expects((len(cell),))
        self._requested_likelihood = self.likelihood = "of the module"
        self._current: dict[str, Tensor] = {}
        self._encoded_last: tuple[Tensor, dict[str, Tensor]] | None = None
        if self.names:
            self._notes["covariates"] = (
                f"Each cell is encoded with its covariates ({', '.join(self.names)}). Codes without a cell are decoded "
                "with those of the first cell."
            )

    def encode(self, x: Tensor, auxiliary: Tensor | None = None) -> AbstractPosteriorDistribution:
        self._current = self._tensors(len(x), auxiliary)
        try:
            posterior = super().encode(x, auxiliary)
        finally:
            current, self._current = self._current, {}
        # The likelihood of the same cells uses their covariates.
        self._encoded_last = (x, current)
        return posterior

    def _tensors(self, n_cells: int, auxiliary: Tensor | None) -> dict[str, Tensor]:
        """Return the covariates of a batch, by name."""
        tensors = {key: each.expand(n_cells, *each.shape[1:]) for key, each in self.constants.items()}
        if auxiliary is not None:
            parts = torch.split(auxiliary, self.widths, dim=1)
            tensors |= {key: part.to(self.dtypes[key]) for key, part in zip(self.names, parts, strict=True)}
        return tensors

    def _infer(self, x: Tensor) -> object:
        # The repeatability check encodes the first rows of the batch again.
        covariates = {key: each[: len(x)] for key, each in self._current.items()}
        outputs = self._inference({COUNTS: x, **covariates})
        # scvi-tools returns a distribution, and DRVI its mean and variance.
        return outputs.get("qz") or {name: outputs[name] for name in ("qzm", "qzv")}

    def _inference(self, tensors: dict[str, Tensor]) -> Mapping[str, Any]:
        return self.module.inference(**self.module._get_inference_input(tensors))

    def _refuse(self, z: Tensor) -> object:
        raise InputError(problem="the decoder of scvi-tools requires covariates")

    def decode(self, z: Float[Tensor, "sample latent"]) -> CellDistribution:
        return CellDistribution(self, z)

    def generate(self, z: Tensor, x: Tensor | None) -> torch.distributions.Distribution:
        """Return p(x|z) for cells with the library sizes of ``x``.

        Cells that were encoded last have their own covariates, others those of the first cell.

        :param z: codes.
        :param x: counts of the cells; None for a typical cell.
        """
        cells = self.cell.to(z).expand(len(z), -1) if x is None else x
        last = self._encoded_last
        if x is not None and last is not None and last[0] is x:
            covariates = last[1]
        else:
            covariates = {key: each.expand(len(z), *each.shape[1:]) for key, each in self.typical.items()}
        tensors = {COUNTS: cells, **covariates}

        def run(z: Tensor) -> Any:
            outputs = {**self._inference(tensors), "z": z}
            return self.module.generative(**self.module._get_generative_input(tensors, outputs))["px"]

        return call_foreign("decoder", Method(self.module, run), z, "a code")


@adapter("scvi", order=20)
class ScviAdapter(AbstractAdapter):
    """Trained models of scvi-tools and DRVI, with the AnnData object as data.

    The batch and other covariates that were registered are those of each cell. The columns of ``obs`` that were
    registered as labels or batch, and other columns of text, are factors.
    """

    def recognises(self, thing: object) -> bool:
        return is_from(thing, "scvi", "drvi") and hasattr(thing, "module") and hasattr(thing, "adata_manager")

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        if options:
            raise InputError(
                problem=f"the option {next(iter(options))} is for functions and modules",
                remedy="leave it out: a model of scvi-tools has a known posterior and likelihood",
            )
        cells = thing.adata if data is None else data
        if not (hasattr(cells, "obs") and hasattr(cells, "var_names")):
            raise InputError(
                "data",
                f"be the AnnData object of a {type_name(thing)}, which has covariates of each cell",
                got=f"an object of type {type_name(cells)}",
                remedy="pass adata, or leave data out for that of the training",
            )
        if not getattr(thing, "is_trained", True):
            raise InputError(
                "model", "be trained", got=f"a {type_name(thing)} that is not", remedy="call train()"
            )
        _check_genes(thing, cells)
        try:
            counts, tensors = _tables(thing, cells)
        # An exhausted memory is not an error of the data; scvi-tools can raise any other error.
        except (InputError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise ForeignError(
                problem=f"{type_name(thing)} does not accept these data: {quoted(error)}",
                remedy="pass cells with the columns and genes that the model was set up with",
            ) from error
        model = ScviModel(thing.module, tensors, _typical(counts), f"{type_name(thing)} (scvi-tools)")
        return Opened(model, _dataset(cells, counts))


def _check_genes(model: Any, cells: Any) -> None:
    """Raise an error unless the cells have the genes of the training in the same order; scvi-tools ignores names."""
    trained = getattr(model, "adata", None)
    if trained is None or trained is cells:
        return
    expected, names = list(map(str, trained.var_names)), list(map(str, cells.var_names))
    if names == expected:
        return
    missing = sorted(set(expected) - set(names))
    listed = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
    raise InputError(
        "data",
        f"have the {len(expected)} genes of the training (var_names), in the same order",
        got=f"{len(names)} genes, without {listed}" if missing else f"{len(names)} genes in another order",
        remedy=None if missing else "pass adata[:, model.adata.var_names]",
    )


def _tables(model: Any, cells: Any) -> tuple[np.ndarray, dict[str, Tensor]]:
    """Return the counts of all cells, and the other registered tensors by name."""
    adata = model._validate_anndata(cells)
    loader = model._make_data_loader(adata=adata, batch_size=1024, shuffle=False)
    batches = list(loader)
    tensors = {key: torch.cat([batch[key] for batch in batches]).cpu() for key in batches[0]}
    counts = (
        tensors.pop(COUNTS).to_dense() if tensors[COUNTS].layout != torch.strided else tensors.pop(COUNTS)
    )
    tensors.pop(COUNTS, None)
    return counts.float().numpy(), tensors


def _typical(counts: np.ndarray) -> Tensor:
    """Return the mean cell, scaled to the median library size."""
    mean = counts.mean(axis=0, dtype=np.float64)
    total = mean.sum()
    return torch.from_numpy(
        (mean * (np.median(counts.sum(axis=1)) / total if total else 1.0)).astype(np.float32)
    )


def _dataset(cells: Any, counts: np.ndarray) -> Any:
    """Return the counts as a dataset; columns of ``obs`` with few classes are factors."""
    from polariscope.data.own.arrays import from_arrays

    names = [
        str(name)
        for name in cells.obs.columns
        if not str(name).startswith("_") and 1 < cells.obs[name].nunique() <= max(2, len(cells.obs) // 10)
    ]
    factors = {name: np.asarray(cells.obs[name].astype(str)) for name in names}
    columns = (
        np.stack([np.unique(column, return_inverse=True)[1] for column in factors.values()], 1)
        if names
        else None
    )
    return from_arrays(
        counts,
        columns,
        factor_names=names or None,
        feature_names=tuple(map(str, cells.var_names)),
        ids=np.asarray(cells.obs_names).astype(str),
    )
