"""What a model shows: traversals, reconstructions and draws from its prior."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.seeds import derive, generator
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.latents import Scale, range_of
from polariscope.geometry.traversals import (
    MOST_VALUES,
    Plane,
    Traversals,
    central_sample,
    traverse,
    traverse_plane,
)
from polariscope.models.inference import Seen, auxiliary_of, batch_size, chunks, collect, looking
from polariscope.models.protocol import AbstractModel

N_SHOWN = 10
N_SAMPLES = 30
N_JUDGED = 1000
N_STEPS = 9


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstructions:
    """Held-out observations, and the decoder's mean at their posterior means."""

    indices: Int[np.ndarray, " sample"]
    inputs: Float[np.ndarray, "sample *shape"]
    outputs: Float[np.ndarray, "sample *shape"]

    @property
    def r_squared(self) -> float | None:
        """Share of the data's variance that is reconstructed; None when the data do not vary."""
        errors, spread = self._sums()
        return float(1 - errors.sum() / spread.sum()) if spread.sum() > 0 else None

    @property
    def r_squared_by_value(self) -> Float[np.ndarray, " varying"]:
        """The same for each value of an observation, leaving out those that do not vary."""
        errors, spread = self._sums()
        return 1 - errors[spread > 0] / spread[spread > 0]

    def _sums(self) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " value"]]:
        inputs, outputs = (array.reshape(len(array), -1) for array in (self.inputs, self.outputs))
        centre = inputs.mean(axis=0, dtype=np.float64).astype(np.float32)
        return tuple(((inputs - other) ** 2).sum(axis=0, dtype=np.float64) for other in (outputs, centre))


@dataclasses.dataclass(frozen=True, eq=False)
class PriorSamples:
    """Draws of z from the prior; from a conditional one, given the auxiliary values of random observations."""

    means: Float[np.ndarray, "sample *shape"]
    """The decoder's mean for the first of them."""
    deviations: Float[np.ndarray, " feature"] | None
    """Standard deviation of each feature over draws x ~ p(x|z), as data from this model have; flat data only."""


@dataclasses.dataclass(frozen=True, eq=False)
class Views:
    """All that is shown of a model's decoder."""

    traversals: Traversals
    reconstructions: Reconstructions
    prior_samples: PriorSamples
    display_range: tuple[float, float]
    """Values drawn as black and white."""
    plane: Plane | None
    """Two latents that say most, moved over a grid; None for flat data and with fewer than two latents in use."""
    scale: Scale
    """In whose standard deviations the plane is measured."""


def views(
    model: AbstractModel,
    dataset: AbstractDataset,
    held_out: Int[np.ndarray, " sample"],
    representation: Representation,
    regime: Regime,
    seed: int,
) -> Views | None:
    """What the decoder makes of moved codes, of held-out observations and of the prior; None without a decoder."""
    if not model.has_decoder:
        return None
    judged = min(N_JUDGED, max(N_SHOWN, MOST_VALUES // dataset.n_features))
    reconstructions = reconstruct(model, dataset, held_out[:judged])
    low, high = float(reconstructions.inputs.min()), float(reconstructions.inputs.max())
    plane, scale = move_two(model, dataset, representation, regime, seed)
    return Views(
        traversals=traverse(model, representation, regime, reconstructions.inputs, seed),
        reconstructions=reconstructions,
        prior_samples=sample_prior(model, dataset, seed),
        display_range=(0.0, 1.0) if dataset.is_unit_interval else (low, high),
        plane=plane,
        scale=scale,
    )


def move_two(
    model: AbstractModel, dataset: AbstractDataset, representation: Representation, regime: Regime, seed: int
) -> tuple[Plane | None, Scale]:
    """Images of the two latents that say most, moved together from the most typical observation."""
    in_use = [j for j in regime.order if regime.types[j] != "passive"]
    centre, deviation, scale = range_of(model, representation, seed)
    if len(in_use) < 2 or len(model.shape) != 3:
        return None, scale
    code = representation.mean[central_sample(representation, centre, deviation)]
    n_steps = max(3, min(N_STEPS, math.isqrt(MOST_VALUES // dataset.n_features)))
    pair = (in_use[0], in_use[1])
    return traverse_plane(model, code, pair, n_steps=n_steps, centre=centre, deviation=deviation), scale


def reconstruct(
    model: AbstractModel, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Reconstructions:
    """Observations and the decoder's mean at their posterior means."""

    def compute(seen: Seen) -> dict[str, Tensor]:
        return {"inputs": seen.x, "outputs": model.decode(seen.posterior.mean).mean}

    found = collect(model, dataset, indices, compute)
    return Reconstructions(indices, found["inputs"], found["outputs"])


def sample_prior(model: AbstractModel, dataset: AbstractDataset, seed: int) -> PriorSamples:
    """Draws from the prior through the decoder."""
    noise = torch.Generator(model.device).manual_seed(derive(seed, "report", "prior samples"))
    chosen = generator(seed, "report", "auxiliary values")
    means, draws = [], []
    n_draws = N_SAMPLES if len(model.shape) == 3 else N_JUDGED
    with looking(model):
        for rows in chunks(n_draws, batch_size(dataset.n_features)):
            count = rows.stop - rows.start
            u = auxiliary_of(model, dataset, chosen.integers(len(dataset), size=count))
            likelihood = model.decode(model.prior.given(u).sample(count, noise).to(model.dtype))
            if rows.start < N_SAMPLES:
                means.append(likelihood.mean.float().cpu().numpy())
            if len(model.shape) == 1:
                draws.append(likelihood.sample(noise).float().cpu().numpy())
    deviations = np.concatenate(draws).std(axis=0) if draws else None
    return PriorSamples(np.concatenate(means)[:N_SAMPLES], deviations)
