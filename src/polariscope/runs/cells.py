"""Diagnosis of the codes of an AnnData object, written back to the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation, draw_sampled
from polariscope.core.arrays import real_numbers
from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.text import listed

if TYPE_CHECKING:
    from polariscope.core.types import OptionValue
    from polariscope.models.protocol import ModelLike

    CellsLike: TypeAlias = object
    """An AnnData object, recognised by its attributes."""
else:
    CellsLike = ModelLike = object

PAIRS = (("qzm", "qzv"), ("qz_m", "qz_v"), ("mean", "variance"), ("mean", "var"), ("mu", "var"))
"""Endings of the names in ``obsm`` of posterior means and variances, as scvi-tools and others write them."""


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
    mean_name, variance_name = _choose_names(names, mean, variance)
    arrays: dict[str, Any] = {}
    for name, stored in (("mean", mean_name), ("variance", variance_name)):
        array = real_numbers(obsm[stored], f"obsm[{stored!r}]")
        # Integers and half floats become float32 or wider; float64 stays.
        arrays[name] = array.astype(np.result_type(array.dtype, np.float32), copy=False)
    # Representation validates its arrays before the draw takes the root of the variance.
    valid = Representation(**arrays, sampled=arrays["mean"])
    drawn = draw_sampled(valid.mean, valid.variance, seed)
    return Representation(**arrays, sampled=drawn, sampled_was_drawn=True)


def _choose_names(names: list[str], mean: str | None, variance: str | None) -> tuple[str, str]:
    """Return the names of the means and variances: those of the caller, or the only pair with known endings."""
    for name in (mean, variance):
        if name is not None and name not in names:
            raise unknown("array of obsm", name, names)
    if (mean is None) != (variance is None):
        missing = "variance" if variance is None else "mean"
        raise InputError(
            problem=(Argument("mean"), " and ", Argument("variance"), " must be passed together"),
            got=f"no {missing}",
            remedy="name both arrays of obsm, or neither",
        )
    if mean is not None and variance is not None:
        return mean, variance
    pairs = [
        (name, other)
        for first, second in PAIRS
        for name in names
        if name.lower().endswith(first) and (other := name[: len(name) - len(first)] + second) in names
    ]
    if len(pairs) == 1:
        return pairs[0]
    known = f"{len(pairs)} pairs: " if pairs else ""
    arrays = [name for pair in pairs for name in pair] or names
    raise InputError(
        "obsm",
        "contain one pair of posterior means and variances, such as X_latent_qzm and X_latent_qzv",
        got=f"{known}{listed(arrays, quoted=True) or 'no arrays'}",
        remedy=(
            "choose them with ",
            Argument("mean"),
            " and ",
            Argument("variance"),
            ", or pass the model that encodes the cells: ",
            Argument("model"),
        ),
    )


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
