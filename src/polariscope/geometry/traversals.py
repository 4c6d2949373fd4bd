"""Traversals: one latent at a time moved over its range, or two over a grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.geometry.decoder_function import check_codes, decode, opened
from polariscope.geometry.steps_of_latents import Scale, prior_of, range_of, selected_latents
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import AbstractModel, ModelLike

if TYPE_CHECKING:
    import pandas

N_STEPS = 10
REACH = 3.0  # range to either side, in prior standard deviations
MAX_IN_USE, MAX_PASSIVE = 32, 8  # rows of traversals on a page
MAX_VALUES = 2**24  # output values in memory at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Traversals(AbstractRecord):
    """Outputs for the code of one observation, with one latent at a time moved over the prior's range."""

    start: int
    """Index of the encoded observation in the dataset."""
    original: Float[np.ndarray, "*shape"]
    """Decoder mean at the code itself."""
    values: Float[np.ndarray, " step"]
    """Values of the latent, in standard deviations of ``scale`` from its mean."""
    scale: Scale
    """Origin of the standard deviations: the prior, a conditional prior over all auxiliary values, or the codes."""
    latents: tuple[int, ...]
    """Latent of each row, by KL, largest first."""
    outputs: Float[np.ndarray, "row step *shape"]
    """Decoder mean at each step."""
    effects: Float[np.ndarray, " row"] | None
    """Variance of the outputs along the row divided by the variance of the data, both summed over values."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with the effect of each latent on the output."""
        import pandas

        effects = [np.nan] * len(self.latents) if self.effects is None else self.effects
        return pandas.DataFrame({"effect": effects}, index=pandas.Index(self.latents, name="latent"))


@dataclasses.dataclass(frozen=True, eq=False)
class Plane(AbstractRecord):
    """Outputs for a code with two latents moved over a grid."""

    outputs: Float[np.ndarray, "row column *shape"]
    """Decoder mean; the first latent changes along rows, the second along columns."""
    latents: tuple[int, int]
    values: Float[np.ndarray, " step"]
    """Values of the two latents, in standard deviations from their centres."""


def traverse(
    model: AbstractModel,
    representation: Representation,
    regime: Regime,
    observed: Float[np.ndarray, "sample *shape"],
    seed: int,
) -> Traversals:
    """Move each latent through 10 values, equally spaced over ±3 standard deviations of the prior.

    The other latents are fixed at the posterior means of the observation whose code is nearest to the centre of the
    prior, where the decoder was trained. Rows are sorted by KL, with at most 32 latents in use and 8 others, fewer for
    very large observations. The moments of a conditional prior are computed over the auxiliary values of all samples. A
    deterministic encoder might not follow the prior, so the range is that of its codes. A channel is moved as a whole:
    its mean over positions takes the values, and its differences between positions stay.

    Reference: mushom2020 §5.3, [−3, 3] for the standard normal prior.
    """
    centre, deviation, scale = range_of(model, representation, seed)
    start = central_sample(representation, centre, deviation)
    code = representation.mean[start]
    # At least 4 rows, even if they exceed the limit for very large observations.
    max_rows = max(4, MAX_VALUES // (N_STEPS * observed[0].size))
    in_use = regime.in_use[: min(MAX_IN_USE, max_rows)]
    unused = [j for j in regime.order if j not in regime.in_use][: min(MAX_PASSIVE, max_rows)]
    # Sorted by KL again, because both groups were cut separately.
    latents = tuple(j for j in regime.order if j in {*in_use, *unused})
    values = np.linspace(-REACH, REACH, N_STEPS)
    outputs = traverse_code(
        model,
        code,
        latents,
        values,
        centre=centre,
        deviation=deviation,
        n_positions=representation.n_positions,
    )
    total = observed.reshape(len(observed), -1).astype(np.float64).var(axis=0).sum()
    variances = outputs.reshape(len(latents), N_STEPS, -1).astype(np.float64).var(axis=1).sum(axis=1)
    return Traversals(
        # The row of the representation is not the index in the dataset if samples were drawn.
        start=start if representation.indices is None else int(representation.indices[start]),
        original=decode(model, code[None])[0],
        values=values,
        scale=scale,
        latents=latents,
        outputs=outputs,
        effects=variances / total if total > 0 else None,
    )


def central_sample(
    representation: Representation,
    centre: Float[np.ndarray, " latent"],
    deviation: Float[np.ndarray, " latent"],
) -> int:
    """Return the row of the code nearest to the centre, in standard deviations."""
    # A constant latent is at its centre, so its deviation of 0 can be replaced by any number.
    offsets = (representation.mean - centre) / np.where(deviation > 0, deviation, 1)
    return int((offsets**2).sum(axis=1).argmin())


def traverse_code(
    model: ModelLike,
    code: Float[np.ndarray, " latent"],
    latents: Sequence[int],
    values: Float[np.ndarray, " step"],
    *,
    centre: Float[np.ndarray, " latent"] | float = 0.0,
    deviation: Float[np.ndarray, " latent"] | float = 1.0,
    n_positions: int = 1,
) -> Float[np.ndarray, "row step *shape"]:
    """Return the decoder's mean at ``code`` with each of ``latents`` in turn at centre + value · deviation.

    With ``n_positions`` above 1, latents are channels of so many consecutive values, whose mean takes these values.
    """
    latents = selected_latents(len(code) // n_positions, keep=latents, name="latents")
    positions = np.broadcast_to(centre, code.shape) + values[:, None] * np.broadcast_to(deviation, code.shape)
    codes = np.tile(check_codes(model, code[None])[0], (len(latents), len(values), 1))
    for row, latent in enumerate(latents):
        columns = slice(latent * n_positions, (latent + 1) * n_positions)
        moved = positions[:, columns].mean(axis=1, keepdims=True)
        codes[row, :, columns] = moved + (code[columns] - code[columns].mean())
    outputs = decode(model, codes.reshape(-1, len(code)))
    return outputs.reshape(len(latents), len(values), *outputs.shape[1:])


def traverse_observation(
    model: ModelLike,
    observation: Shaped[np.ndarray, "*shape"],
    latents: Sequence[int],
    *,
    n_steps: int = N_STEPS,
    reach: float = REACH,
    seed: int = 0,
) -> Float[np.ndarray, "row step *output"]:
    """Encode one observation, in the data or not, and move each of ``latents`` over ±``reach`` prior deviations.

    Use it for corrupted observations and for those of other data: if their traversals are all similar, the encoder maps
    them to the same code and the decoder ignores their content. ``regime.order`` sorts the rows by KL. An image is an
    array of bytes or of floats from 0 to 1.

    Reference: mushom2020 §5.6, Figs 5.17–5.18.
    """
    refuse_masked(observation, "observation")
    model, data = opened(model, np.asarray(observation)[None])
    if model.n_auxiliary:
        raise InputError("model", "be one that encodes observations without auxiliary values")
    dataset, indices = choose_observations(model, data, None, seed)
    with inference_mode(model):
        (encoded,) = encode_batches(model, dataset, indices)
        q = encoded.posterior
        code = q.mean[0].cpu().numpy()
    centre, deviation = prior_of(model, seed)
    values = np.linspace(-reach, reach, n_steps)
    return traverse_code(model, code, latents, values, centre=centre, deviation=deviation)


def traverse_plane(
    model: ModelLike,
    code: Float[np.ndarray, " latent"],
    latents: tuple[int, int],
    *,
    n_steps: int = 9,
    reach: float = REACH,
    centre: Float[np.ndarray, " latent"] | float = 0.0,
    deviation: Float[np.ndarray, " latent"] | float = 1.0,
) -> Plane:
    """Return the decoder's mean with two latents on a grid of ``n_steps`` values each, over ±``reach`` deviations.

    If a pair encodes two factors in Cartesian coordinates, one factor changes along rows and the other along columns.
    In polar coordinates, one changes around the centre and the other with the distance from it. ``centre`` and
    ``deviation`` are those of the prior, by default N(0, I).
    :func:`polariscope.geometry.steps_of_latents.range_of` returns them
    for a model.

    Reference: zietlow2022 §4.3.6, Figs 4.10–4.11.

    >>> grid = traverse_plane(lambda z: z[:, :2], np.zeros(3), (0, 2), n_steps=3, reach=2.0)
    >>> grid.outputs[:, 0, 0].tolist()
    [-2.0, 0.0, 2.0]
    """
    if n_steps < 2 or not reach > 0:
        raise InputError("n_steps", "be at least 2 and reach positive", got=f"{n_steps} and {reach}")
    if len(latents) != 2:
        raise InputError("latents", "contain two latents", got=len(latents))
    first, second = selected_latents(len(code), keep=latents, name="latents")
    values = np.linspace(-reach, reach, n_steps)
    positions = np.broadcast_to(centre, code.shape) + values[:, None] * np.broadcast_to(deviation, code.shape)
    codes = np.tile(check_codes(model, code[None])[0], (n_steps, n_steps, 1))
    codes[:, :, first] = positions[:, first, None]
    codes[:, :, second] = positions[None, :, second]
    outputs = decode(model, codes.reshape(-1, len(code)))
    return Plane(outputs.reshape(n_steps, n_steps, *outputs.shape[1:]), (first, second), values)
