"""Traversals: one latent at a time moved through its range, or two at once over a grid."""

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
from polariscope.geometry.decoder_function import check_codes, decode
from polariscope.geometry.steps_of_latents import Scale, kept_latents, prior_of, range_of
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import AbstractModel, ModelLike

if TYPE_CHECKING:
    import pandas

N_STEPS = 10
REACH = 3.0  # prior standard deviations to either side
MOST_IN_USE, MOST_PASSIVE = 32, 8  # rows of traversals: a page, not an atlas
MOST_VALUES = 2**24  # held at once, whatever the size of an observation


@dataclasses.dataclass(frozen=True, eq=False)
class Traversals(AbstractRecord):
    """One observation's code with one latent at a time moved through the prior's range."""

    start: int
    """Index in the dataset of the observation that is encoded."""
    original: Float[np.ndarray, "*shape"]
    """The decoder's mean at its code, with nothing moved."""
    values: Float[np.ndarray, " step"]
    """Where the latent is put, in standard deviations of ``scale`` from its mean."""
    scale: Scale
    """What these are: the prior, a conditional prior over all its auxiliary values, or the codes themselves."""
    latents: tuple[int, ...]
    """The latent of each row, by KL, largest first."""
    outputs: Float[np.ndarray, "row step *shape"]
    """The decoder's mean."""
    effects: Float[np.ndarray, " row"] | None
    """Variance of the outputs along the row over the variance of the data, both summed over values."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each latent: its effect on the output."""
        import pandas

        effects = [np.nan] * len(self.latents) if self.effects is None else self.effects
        return pandas.DataFrame({"effect": effects}, index=pandas.Index(self.latents, name="latent"))


@dataclasses.dataclass(frozen=True, eq=False)
class Plane(AbstractRecord):
    """A code with two latents moved over a grid."""

    outputs: Float[np.ndarray, "row column *shape"]
    """The decoder's mean; the first latent changes along rows, the second along columns."""
    latents: tuple[int, int]
    values: Float[np.ndarray, " step"]
    """Where each of the two is put, in standard deviations from its centre."""


def traverse(
    model: AbstractModel,
    representation: Representation,
    regime: Regime,
    observed: Float[np.ndarray, "sample *shape"],
    seed: int,
) -> Traversals:
    """Move each latent through 10 values, equally spaced over ±3 standard deviations of the prior.

    The other latents stay at the posterior means of one observation: the one whose code is nearest the centre
    of the prior, so the decoder is looked at where it was trained. Rows are sorted by KL; at most 32
    latents in use and 8 others, fewer for very large observations. A conditional prior is taken over the
    auxiliary values of all samples; a deterministic encoder need not follow the prior, so the range is that
    of its own codes.

    Reference: mushom2020 §5.3, [−3, 3] for the standard normal prior.
    """
    centre, deviation, scale = range_of(model, representation, seed)
    start = central_sample(representation, centre, deviation)
    code = representation.mean[start]
    room = max(4, MOST_VALUES // (N_STEPS * observed[0].size))
    in_use = regime.in_use[: min(MOST_IN_USE, room)]
    unused = [j for j in regime.order if j not in regime.in_use][: min(MOST_PASSIVE, room)]
    latents = tuple(j for j in regime.order if j in {*in_use, *unused})
    values = np.linspace(-REACH, REACH, N_STEPS)
    outputs = traverse_code(model, code, latents, values, centre=centre, deviation=deviation)
    total = observed.reshape(len(observed), -1).astype(np.float64).var(axis=0).sum()
    moved = outputs.reshape(len(latents), N_STEPS, -1).astype(np.float64).var(axis=1).sum(axis=1)
    return Traversals(
        start=start if representation.indices is None else int(representation.indices[start]),
        original=decode(model, code[None])[0],
        values=values,
        scale=scale,
        latents=latents,
        outputs=outputs,
        effects=moved / total if total > 0 else None,
    )


def central_sample(
    representation: Representation,
    centre: Float[np.ndarray, " latent"],
    deviation: Float[np.ndarray, " latent"],
) -> int:
    """Row of the code nearest the centre, in standard deviations."""
    # A code that never varies is at its centre, whatever its deviation of 0.
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
) -> Float[np.ndarray, "row step *shape"]:
    """The decoder's mean at ``code`` with each of ``latents`` in turn at centre + value · deviation."""
    latents = kept_latents(len(code), keep=latents, name="latents")
    places = np.broadcast_to(centre, code.shape) + values[:, None] * np.broadcast_to(deviation, code.shape)
    codes = np.tile(check_codes(model, code[None])[0], (len(latents), len(values), 1))
    for row, latent in enumerate(latents):
        codes[row, :, latent] = places[:, latent]
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
    """Encode one observation, of the data or not, and move each of ``latents`` over ±``reach`` prior deviations.

    For looking at corrupted or foreign observations: when their traversals are all alike, the encoder puts them in
    one place and the decoder ignores what they show. ``regime.order`` sorts the rows by KL. An image is given in bytes
    or in floats from 0 to 1.

    Reference: mushom2020 §5.6, Figs 5.17–5.18.
    """
    if not isinstance(model, AbstractModel) or model.n_auxiliary:
        raise InputError(
            "model", "be a model of ours that encodes observations alone, without auxiliary values"
        )
    refuse_masked(observation, "observation")
    dataset, indices = choose_observations(model, np.asarray(observation)[None], None, seed)
    with inference_mode(model):
        (seen,) = encode_batches(model, dataset, indices)
        q = seen.posterior
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
    """The decoder's mean with two latents on a grid of ``n_steps`` values each, over ±``reach`` deviations.

    A pair that codes two factors in Cartesian coordinates changes one along rows and the other along columns; in
    polar ones, one changes around the middle and the other away from it. ``centre`` and ``deviation`` are the
    prior's: :func:`polariscope.geometry.steps_of_latents.range_of` gives them for a model; here those of N(0, I).

    Reference: zietlow2022 §4.3.6, Figs 4.10–4.11.

    >>> grid = traverse_plane(lambda z: z[:, :2], np.zeros(3), (0, 2), n_steps=3, reach=2.0)
    >>> grid.outputs[:, 0, 0].tolist()
    [-2.0, 0.0, 2.0]
    """
    if n_steps < 2 or not reach > 0:
        raise InputError("n_steps", "be at least 2 and reach positive", got=f"{n_steps} and {reach}")
    if len(latents) != 2:
        raise InputError("latents", "be two latents", got=len(latents))
    first, second = kept_latents(len(code), keep=latents, name="latents")
    values = np.linspace(-reach, reach, n_steps)
    places = np.broadcast_to(centre, code.shape) + values[:, None] * np.broadcast_to(deviation, code.shape)
    codes = np.tile(check_codes(model, code[None])[0], (n_steps, n_steps, 1))
    codes[:, :, first] = places[:, first, None]
    codes[:, :, second] = places[None, :, second]
    outputs = decode(model, codes.reshape(-1, len(code)))
    return Plane(outputs.reshape(n_steps, n_steps, *outputs.shape[1:]), (first, second), values)
