"""What a model shows: traversals, reconstructions and draws from its prior."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from polariscope.data import AbstractDataset
from polariscope.model import Model
from polariscope.regime.regime import Regime
from polariscope.report.histograms import prior_moments
from polariscope.representations import Representation
from polariscope.seeds import derive, generator
from polariscope.training.feed import auxiliary_values

Scale = Literal["prior", "prior over all u", "codes"]
BATCH = 64
N_STEPS = 10
REACH = 3.0  # prior standard deviations to either side
MOST_IN_USE, MOST_PASSIVE = 32, 8  # rows of traversals: a page, not an atlas
MOST_VALUES = 2**24  # held at once, whatever the size of an observation
N_SHOWN = 10
N_SAMPLES = 30
N_JUDGED = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class Traversals:
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


def views(
    model: Model,
    dataset: AbstractDataset,
    held_out: Int[np.ndarray, " sample"],
    representation: Representation,
    regime: Regime,
    seed: int,
) -> Views | None:
    """What the decoder makes of moved codes, of held-out observations and of the prior; None without a decoder."""
    if model.decoder is None:
        return None
    judged = min(N_JUDGED, max(N_SHOWN, MOST_VALUES // dataset.n_features))
    reconstructions = reconstruct(model, dataset, held_out[:judged])
    low, high = float(reconstructions.inputs.min()), float(reconstructions.inputs.max())
    return Views(
        traversals=traverse(model, representation, regime, reconstructions.inputs, seed),
        reconstructions=reconstructions,
        prior_samples=sample_prior(model, dataset, seed),
        display_range=(0.0, 1.0) if dataset.is_unit_interval else (low, high),
    )


def traverse(
    model: Model,
    representation: Representation,
    regime: Regime,
    observed: Float[np.ndarray, "sample *shape"],
    seed: int,
) -> Traversals:
    """Move each latent through 10 values, equally spaced over ±3 standard deviations of the prior.

    The other latents stay at the posterior means of one observation: the one whose code is nearest the centre
    of the prior, so that the decoder is looked at where it was trained. Rows are sorted by KL; at most 32
    latents in use and 8 passive ones, fewer for very large observations. A conditional prior is taken over the
    auxiliary values of all samples; a deterministic encoder need not follow the prior, so that the range is that
    of its own codes.

    Reference: mushom2020 §5.3, [−3, 3] for the standard normal prior.
    """
    centre, deviation, scale = range_of(model, representation, seed)
    # A code that never varies is at its centre, whatever its deviation of 0.
    offsets = (representation.mean - centre) / np.where(deviation > 0, deviation, 1)
    start = int((offsets**2).sum(axis=1).argmin())
    code = representation.mean[start]
    room = max(4, MOST_VALUES // (N_STEPS * observed[0].size))
    in_use = [j for j in regime.order if regime.types[j] != "passive"][: min(MOST_IN_USE, room)]
    passive = [j for j in regime.order if regime.types[j] == "passive"][: min(MOST_PASSIVE, room)]
    latents = tuple(j for j in regime.order if j in {*in_use, *passive})
    values = np.linspace(-REACH, REACH, N_STEPS)
    codes = np.tile(code, (len(latents), N_STEPS, 1))
    for row, latent in enumerate(latents):
        codes[row, :, latent] = centre[latent] + values * deviation[latent]
    outputs = decode(model, codes.reshape(-1, len(code)))
    outputs = outputs.reshape(len(latents), N_STEPS, *outputs.shape[1:])
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


def reconstruct(
    model: Model, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Reconstructions:
    """Observations and the decoder's mean at their posterior means."""
    inputs, outputs = [], []
    with torch.inference_mode():
        for first in range(0, len(indices), BATCH):
            rows = indices[first : first + BATCH]
            values = dataset.values(rows)
            posterior = model.encode(
                model.place(torch.from_numpy(values)), auxiliary_of(model, dataset, rows)
            )
            inputs.append(values.astype(np.float32, copy=False))
            outputs.append(model.decode(posterior.mean).mean.float().cpu().numpy())
    return Reconstructions(indices, np.concatenate(inputs), np.concatenate(outputs))


def auxiliary_of(
    model: Model, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[torch.Tensor, "sample auxiliary"] | None:
    """What encoder and prior are given beside the observations; mostly nothing."""
    if not model.blueprint.n_auxiliary:
        return None
    return auxiliary_values(dataset, indices).to(model.device, model.dtype)


def sample_prior(model: Model, dataset: AbstractDataset, seed: int) -> PriorSamples:
    """Draws from the prior through the decoder."""
    noise = torch.Generator(model.device).manual_seed(derive(seed, "report", "prior samples"))
    chosen = generator(seed, "report", "auxiliary values")
    means, draws = [], []
    with torch.inference_mode():
        for first in range(0, N_SAMPLES if len(model.blueprint.shape) == 3 else N_JUDGED, BATCH):
            u = auxiliary_of(model, dataset, chosen.integers(len(dataset), size=BATCH))
            likelihood = model.decode(model.prior.given(u).sample(BATCH, noise).to(model.dtype))
            if first < N_SAMPLES:
                means.append(likelihood.mean.float().cpu().numpy())
            if len(model.blueprint.shape) == 1:
                draws.append(likelihood.sample(noise).float().cpu().numpy())
    deviations = np.concatenate(draws).std(axis=0) if draws else None
    return PriorSamples(np.concatenate(means)[:N_SAMPLES], deviations)


def decode(model: Model, codes: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "sample *shape"]:
    """The decoder's mean at each code."""
    outputs = []
    with torch.inference_mode():
        for first in range(0, len(codes), BATCH):
            z = torch.from_numpy(codes[first : first + BATCH]).to(device=model.device, dtype=model.dtype)
            outputs.append(model.decode(z).mean.float().cpu().numpy())
    return np.concatenate(outputs)


def range_of(
    model: Model, representation: Representation, seed: int
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"], Scale]:
    """Mean and standard deviation by which latents are moved, and of what they are."""
    if not model.blueprint.posterior.has_density:
        return representation.mean.mean(axis=0), representation.mean.std(axis=0), "codes"
    if model.blueprint.n_auxiliary:
        mean, variance = prior_moments(representation)
        return mean.astype(np.float32), np.sqrt(variance).astype(np.float32), "prior over all u"
    return *prior_of(model, seed), "prior"


def prior_of(model: Model, seed: int) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"]]:
    """Mean and standard deviation of the prior; from 4096 of its draws where they have no closed form."""
    normal = model.prior.normal()
    with torch.inference_mode():
        if normal is not None:
            mean, log_variance = (moment.detach().float().cpu().numpy() for moment in normal)
            return mean, np.exp(log_variance / 2)
        noise = torch.Generator(model.device).manual_seed(derive(seed, "report", "prior moments"))
        draws = model.prior.sample(4096, noise).float().cpu().numpy()
    return draws.mean(axis=0), draws.std(axis=0)
