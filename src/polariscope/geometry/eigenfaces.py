"""Non-linear eigenfaces: effect of the most precise latents on the average observation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float

from polariscope.core.errors import Argument, InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.data_like import DataLike
from polariscope.geometry.decoder_function import decode, opened
from polariscope.geometry.traversals import traverse_code
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import WholeModel

if TYPE_CHECKING:
    import pandas

Centre = Literal["mean-of-codes", "code-of-mean"]


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenfaces(AbstractRecord):
    """Outputs of the decoder at the average code, and with one latent at a time moved down and up."""

    mean: Float[np.ndarray, "*shape"]
    """Decoder mean at the average code."""
    faces: Float[np.ndarray, "face 2 *shape"]
    """Decoder mean with the latent at −reach and +reach from the average code."""
    latents: tuple[int, ...]
    """Latents by mean posterior standard deviation, smallest first, the order of principal components."""
    deviations: Float[np.ndarray, " face"]
    """Mean posterior standard deviation of these latents."""
    code: Float[np.ndarray, " latent"]
    """Average code."""
    reach: float

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with the mean posterior standard deviation of each latent that is moved."""
        import pandas

        index = pandas.Index(self.latents, name="latent")
        return pandas.DataFrame({"deviation": self.deviations}, index=index)


def eigenfaces(
    model: WholeModel,
    data: DataLike,
    *,
    n_faces: int = 5,
    n_samples: int | None = 300,
    reach: float = 2.5,
    centre: Centre = "mean-of-codes",
    seed: int = 0,
) -> Eigenfaces:
    r"""Decode the average code z̄ and z̄ ± ``reach`` · e_j for the latents with the smallest mean σ_j.

    The posterior is most precise for latents whose errors are most costly, so the order by E[σ_j(x)], smallest first,
    is that of principal components by variance. In a linear model the faces are ± multiples of the principal
    directions. z̄ is the mean of the posterior means of ``n_samples`` observations, or, with ``centre="code-of-mean"``,
    the posterior mean of their mean.

    Reference: zietlow2022 §3.3.5: 300 observations, 5 latents, reach 2.5. "The latent representation of the mean
    face" can mean either centre; ours is the first, because a mean image might not resemble the data.
    """
    if n_faces < 1 or not reach > 0:
        raise InputError("n_faces", "be at least 1 and reach positive", got=f"{n_faces} and {reach}")
    model, data = opened(model, data)
    dataset, indices = choose_observations(model, data, n_samples, seed)
    if not model.has_density:
        raise InputError(
            problem="a deterministic encoder has no posterior deviations by which to sort latents"
        )
    if centre == "code-of-mean" and model.n_auxiliary:
        raise InputError(
            problem=(Argument("centre", "code-of-mean"), " has no auxiliary value to condition on"),
            remedy="use 'mean-of-codes'",
        )
    if centre not in ("mean-of-codes", "code-of-mean"):
        raise InputError("centre", "be 'mean-of-codes' or 'code-of-mean'", got=f"{centre!r}")
    means, deviations, pixels = [], [], []
    with inference_mode(model):
        for encoded in encode_batches(model, dataset, indices):
            x, q = encoded.x, encoded.posterior
            means.append(q.mean.double().cpu().numpy())
            deviations.append(q.variance.double().sqrt().cpu().numpy())
            # In float64, because a sum of many float32 images would lose digits.
            pixels.append(x.double().sum(dim=0))
        code = np.concatenate(means).mean(axis=0)
        if centre == "code-of-mean":
            average = torch.stack(pixels).sum(dim=0) / len(indices)
            code = model.encode(model.place(average[None])).mean[0].double().cpu().numpy()
    deviation = np.concatenate(deviations).mean(axis=0)
    # A stable sort keeps the order of equal latents on every machine.
    latents = tuple(int(j) for j in np.argsort(deviation, kind="stable")[:n_faces])
    faces = traverse_code(model, code, latents, np.array([-reach, reach]), centre=code)
    return Eigenfaces(decode(model, code[None])[0], faces, latents, deviation[list(latents)], code, reach)
