"""Effect of domain shift: observations of other data."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.data_like import DataLike
from polariscope.geometry.decoder_function import opened
from polariscope.geometry.robustness.reconstructions import encode_values, spread_ratio, square_error
from polariscope.models.inference import choose_observations
from polariscope.models.protocol import AbstractModel, WholeModel


@dataclasses.dataclass(frozen=True, eq=False)
class Shifted(AbstractRecord):
    """Comparison of observations of other data with those of the training distribution."""

    error_ratio: float
    """Squared reconstruction error divided by that of the known data, both relative to their own variance about the
    mean of the known data: 1 if both are reconstructed equally well, larger if the others are reconstructed worse."""
    error: float
    """Mean squared error, summed over values."""
    known_error: float
    spread: float
    """Tr Var[μ'] / Tr Var[μ]: near 0 if all have the same code, so the input is ignored."""
    distance: float
    """Root mean square distance of the codes from the known codes' mean, in their standard deviations, averaged
    over latents that vary: 1 for codes like the known ones."""
    rate: Float[np.ndarray, " latent"] | None
    """Mean KL from the prior, in nats; None for a deterministic encoder."""
    known_rate: Float[np.ndarray, " latent"] | None


def shift_probe(
    model: WholeModel, data: DataLike, others: DataLike, *, n_samples: int | None = 500, seed: int = 0
) -> Shifted:
    """Encode observations of another domain, and compare them with observations of the training data.

    ``others`` is a dataset or an array like ``data``, for example
    :func:`polariscope.geometry.robustness.corruptions.triangles`.
    Reference: mushom2020 §5.6: a shape not in the data, and inverted colours; the numbers are ours.
    """
    model, data = opened(model, data)
    if isinstance(model, AbstractModel) and model.n_auxiliary:
        raise InputError(
            problem="this model requires auxiliary values to encode observations, and the others have none"
        )
    dataset, indices = choose_observations(model, data, n_samples, seed)
    foreign, rows = choose_observations(model, others, n_samples, seed)
    if min(len(indices), len(rows)) < 2:
        raise InputError(
            problem="a shift probe requires at least 2 observations of each",
            got=f"{len(indices)} and {len(rows)}",
        )
    x, y = dataset.values(indices), foreign.values(rows)
    known, other = (
        encode_values(model, dataset, indices, x, seed),
        encode_values(model, foreign, rows, y, seed),
    )
    errors = square_error(other.outputs, y), square_error(known.outputs, x)
    centre = x.mean(axis=0)
    powers = [float(((values - centre) ** 2).sum(dtype=np.float64)) / len(values) for values in (y, x)]
    if min(powers) == 0 or errors[1] == 0:
        raise InputError(
            problem=(
                "the observations are constant or reconstructed exactly, so the ratio of errors is not defined"
            )
        )
    scale = known.mean.std(axis=0)
    offsets = (other.mean - known.mean.mean(axis=0))[:, scale > 0] / scale[scale > 0]
    return Shifted(
        error_ratio=(errors[0] / powers[0]) / (errors[1] / powers[1]),
        error=errors[0],
        known_error=errors[1],
        spread=spread_ratio(other.mean, known.mean),
        distance=float(np.sqrt((offsets**2).mean())) if offsets.size else 0.0,
        rate=other.rate,
        known_rate=known.rate,
    )
