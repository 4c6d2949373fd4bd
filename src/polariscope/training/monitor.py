"""Monitoring of the latents while the model trains."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.analysis.regime.criteria import polarisation
from polariscope.analysis.regime.latent_types import TYPES, types_of
from polariscope.analysis.regime.latent_types import moments as moments_of
from polariscope.analysis.regime.posterior import in_units_of_prior
from polariscope.analysis.regime.rule import TypeRule
from polariscope.core.seeds import derive
from polariscope.models.inference import batch_size, chunks, evaluating
from polariscope.models.model import Model
from polariscope.models.posteriors import kl
from polariscope.models.priors import AbstractPriorDistribution
from polariscope.objectives import AbstractObjective, Batch, Step
from polariscope.training.feed import Feed


class Probe:
    """Evaluation of a model on fixed validation samples, with separate noise.

    It does not use the generators of the training, so the frequency of evaluation does not change any weight.
    """

    def __init__(
        self, feed: Feed, indices: Int[np.ndarray, " sample"], companion: nn.Module | None = None
    ) -> None:
        self.feed = feed
        self.indices = indices
        self.companion = companion
        self._batches: dict[tuple[int, int], Batch] = {}

    def _batch(self, start: int, stop: int, step: int) -> Batch:
        """Return a batch, which is rendered or read once and cached."""
        if (start, stop) not in self._batches:
            # The position takes the place of the step, so the partners in pairs are the same in every evaluation.
            self._batches[start, stop] = self.feed.batch(self.indices[start:stop], start, stream="probe")
        return dataclasses.replace(self._batches[start, stop], step=step)

    def _chunks(self, n_samples: int) -> Iterator[slice]:
        return chunks(n_samples, batch_size(self.feed.data.n_features))

    def _generator(self, name: str) -> torch.Generator:
        return torch.Generator(self.feed.model.device).manual_seed(derive(self.feed.seed, name))

    @torch.no_grad()
    def latents(self, n_samples: int) -> dict[str, Any]:
        """Return KL, mean posterior variance and std μ of each latent, Σ E[σ²], Δ_KL, the count of each type, and γ.

        Types and Δ_KL are those of :func:`polariscope.diagnose` with its default α, also for conditional priors. Δ_KL
        is None if it is not defined (a point mass as posterior). Δ_KL and std μ are None if they are not finite.
        """
        model = self.feed.model
        noise = self._generator("probe")
        moments, rates = [], []
        n_samples = min(n_samples, len(self.indices))
        for rows in self._chunks(n_samples):
            # No objective is evaluated here, so the step does not matter.
            batch = self._batch(rows.start, rows.stop, 0)
            q = model.encode(batch.x, batch.auxiliary)
            prior = model.prior.given(batch.auxiliary)
            # The prior's moments need not have a row per sample, but the chunks are concatenated below.
            shape = torch.broadcast_tensors(q.mean, q.variance, *passive_shape(model, prior))
            moments.append([part.cpu().double() for part in shape])
            if model.has_density:
                rates.append(kl(q, prior, q.sample(noise)))
        mean, variance, *prior_moments = (torch.cat(parts).numpy() for parts in zip(*moments, strict=True))
        with np.errstate(all="ignore"):  # a diverging model has such values
            relative = in_units_of_prior(mean, variance, *prior_moments)
            types = types_of(moments_of(relative), TypeRule.alpha).tolist()
            delta, spread = polarisation(relative).delta, mean.std(axis=0).tolist()
        gamma = model.gamma
        return {
            **({} if gamma is None else {"gamma": gamma}),
            "kl": torch.cat(rates).double().mean(0).tolist() if rates else None,
            "variance": variance.mean(0).tolist(),
            "std": [_finite(value) for value in spread],
            "trace": float(variance.mean(0).sum()),
            "delta_kl": _finite(delta),
            **{kind: types.count(kind) for kind in TYPES},
        }

    @torch.no_grad()
    def validation(self, objective: AbstractObjective, step: int) -> dict[str, float]:
        """Return the mean of each term of the loss over all samples of the probe, in evaluation mode."""
        noise = self._generator("validation")
        sums: dict[str, float] = {}
        for rows in self._chunks(len(self.indices)):
            start, stop = rows.start, rows.stop
            batch = self._batch(start, stop, step)
            with evaluating(self.feed.model):
                terms = objective.terms(Step(self.feed.model, batch, noise, self.companion))
            for name, term in terms.items():
                # The last chunk can be shorter, so the mean of each chunk is weighted by its size.
                sums[name] = sums.get(name, 0.0) + float(term.per_batch) * (stop - start) / len(self.indices)
        return sums


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can represent; None for others."""
    return value if value is not None and math.isfinite(value) else None


def passive_shape(
    model: Model, prior: AbstractPriorDistribution
) -> tuple[Float[Tensor, "*sample latent"], Float[Tensor, "*sample latent"]]:
    """Return mean and variance of a passive latent: those of the prior, or of the nearest Gaussian."""
    normal = prior.normal()
    return model.prior.passive_shape() if normal is None else (normal[0], torch.exp(normal[1]))
