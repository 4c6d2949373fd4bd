"""Diagnosis of the codes of an AnnData object, written back to the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from polariscope.analysis.code_files import codes_from_arrays
from polariscope.analysis.code_names import Second
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.arrays import real_numbers
from polariscope.core.errors import Argument, InputError, unknown
from polariscope.data.codes import code_pair

if TYPE_CHECKING:
    from polariscope.core.types import OptionValue
    from polariscope.models.protocol import ModelLike

    CellsLike: TypeAlias = object
    """An AnnData object, recognised by its attributes."""
else:
    CellsLike = ModelLike = object


def diagnose_cells(
    cells: CellsLike,
    model: ModelLike | None = None,
    *,
    mean: str | None = None,
    variance: str | None = None,
    key: str = "polariscope",
    seed: int = 0,
    **options: OptionValue,
) -> Regime:
    """Diagnose the codes of an AnnData object, and write the result into the object.

    The codes are encoded from all cells with ``model``, or read from ``obsm``. The posterior means of the latents in
    use are written to ``obsm["X_KEY"]``. ``uns["KEY"]`` contains the types of all latents, the latents in use (the
    columns of ``X_KEY``, in this order), the KL of each latent in nats and the verdict. Both can be saved in an .h5ad
    file. Existing entries with these names are replaced.

    :param cells: the AnnData object.
    :param model: (default None: codes are read from ``obsm``) a model that encodes the cells.
    :param mean: (default: recognised) name in ``obsm`` of the posterior means.
    :param variance: (default: recognised) name in ``obsm`` of the posterior variances σ².
    :param key: (default "polariscope") name of the entries that are written.
    :param seed: (default 0) seed of the sampled codes and of the resamples.
    :param options: further options of :func:`polariscope.diagnose`.
    """
    anndata: Any = cells
    if not isinstance(key, str) or not key or "/" in key:
        raise InputError("key", "be a name without a slash", got=f"{key!r}")
    if model is None:
        codes = codes_of_cells(anndata.obsm, mean, variance, seed)
    else:
        codes = _encode(anndata, model, mean, variance, seed)
    regime = diagnose(codes, seed=seed, **options)  # type: ignore[arg-type]
    columns = regime.select("in-use")
    anndata.obsm[f"X_{key}"] = np.ascontiguousarray(codes.mean[:, columns])
    anndata.uns[key] = {
        "types": np.array(regime.types),
        "in_use": np.array(columns, dtype=np.int64),
        "kl": np.array([latent.kl for latent in regime.latents]),
        "verdict": str(regime.verdict),
    }
    return regime


def codes_of_cells(
    obsm: Mapping[str, object], mean: str | None = None, variance: str | None = None, seed: int = 0
) -> Representation:
    """Read codes from the multidimensional annotations of cells.

    :param obsm: arrays by name, one row per cell.
    :param mean: (default: recognised by its ending) name of the posterior means.
    :param variance: (default: recognised by its ending) name of the posterior variances.
    :param seed: (default 0) seed of the sampled codes.
    """
    names = [str(name) for name in obsm]
    for name in (mean, variance):
        if name is not None and name not in names:
            raise unknown("array of obsm", name, names)
    if (mean is None) != (variance is None):
        raise InputError(
            problem=(Argument("mean"), " and ", Argument("variance"), " must be passed together"),
            got=f"no {'variance' if variance is None else 'mean'}",
            remedy="name both arrays of obsm, or neither",
        )
    kind: Second = "variance"
    if mean is None or variance is None:
        mean, variance, kind = code_pair(names, "obsm")
    arrays = {
        name: real_numbers(obsm[stored], f"obsm[{stored!r}]")
        for name, stored in (("mean", mean), (kind, variance))
    }
    return codes_from_arrays(arrays, seed, where="obsm")


def _encode(cells: Any, model: Any, mean: str | None, variance: str | None, seed: int) -> Representation:
    """Encode all cells in their order, because the codes become an array of the object."""
    if mean is not None or variance is not None:
        raise InputError(
            problem=(
                Argument("mean"),
                " and ",
                Argument("variance"),
                " name codes in obsm, but ",
                Argument("model"),
                " encodes the cells",
            ),
            remedy="leave out one of them",
        )
    from polariscope.runs.encode import encode  # imports torch, which codes in obsm do not require

    return encode(model, cells, n_samples=None, seed=seed)
