"""What a model makes of observations from elsewhere."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.data_like import DataLike
from polariscope.geometry.robustness.reconstructions import encode_values, spread_ratio, square_error
from polariscope.models.inference import choose_observations
from polariscope.models.protocol import AbstractModel, WholeModel


@dataclasses.dataclass(frozen=True, eq=False)
class Shifted(AbstractRecord):
    """Observations from elsewhere against those of the training distribution."""

    error_ratio: float
    """Square reconstruction error over that of the known data, both relative to their own variance about the
    known data's mean observation: 1 when both are reconstructed equally well, larger when these are not."""
    error: float
    """Mean square error, summed over values."""
    known_error: float
    spread: float
    """Tr Var[μ'] / Tr Var[μ]: near 0 when all get one code, and the input is ignored."""
    distance: float
    """Root mean square distance of the codes from the known codes' mean, in their standard deviations, averaged
    over latents that vary: 1 for codes like the known ones."""
    rate: Float[np.ndarray, " latent"] | None
    """Mean KL from the prior, nats; None for a deterministic encoder."""
    known_rate: Float[np.ndarray, " latent"] | None


def shift_probe(
    model: WholeModel, data: DataLike, others: DataLike, *, n_samples: int | None = 500, seed: int = 0
) -> Shifted:
    """Encode observations from another domain, and compare with those the model knows.

    ``others`` is a dataset or an array like ``data``, as
    :func:`polariscope.geometry.robustness.corruptions.triangles` draws.
    Reference: mushom2020 §5.6: a shape not in the data, and inverted colours; the numbers are ours.
    """
    if isinstance(model, AbstractModel) and model.n_auxiliary:
        raise InputError(
            problem="other observations have no auxiliary values, which this model needs to encode them"
        )
    dataset, indices = choose_observations(model, data, n_samples, seed)
    foreign, rows = choose_observations(model, others, n_samples, seed)
    if min(len(indices), len(rows)) < 2:
        raise InputError(
            problem="at least two observations of each are needed", got=f"{len(indices)} and {len(rows)}"
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
                "the observations do not vary, or are reconstructed exactly: there is no ratio of errors"
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
