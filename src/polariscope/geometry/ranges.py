"""How far a latent is moved: the moments of its prior, or of its codes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from polariscope.analysis.representation import Representation
from polariscope.core.seeds import derive
from polariscope.models.model import Model

Scale = Literal["prior", "prior over all u", "codes"]


def range_of(
    model: Model, representation: Representation, seed: int = 0
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"], Scale]:
    """Mean and standard deviation by which latents are moved, and of what they are.

    Those of the prior; of a conditional prior over the auxiliary values of all samples; of the codes themselves
    for a deterministic encoder, which need not follow the prior.
    """
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


def prior_moments(
    representation: Representation,
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"]]:
    """Mean and variance of the prior of each latent; of a conditional one, over all samples.

    By the law of total variance, the second is the mean of its variances and the variance of its means.
    """
    shape = representation.mean.shape
    mean = np.zeros(1) if representation.prior_mean is None else representation.prior_mean
    variance = np.ones(1) if representation.prior_variance is None else representation.prior_variance
    mean, variance = (np.broadcast_to(moment.astype(np.float64), shape) for moment in (mean, variance))
    return mean.mean(axis=0), variance.mean(axis=0) + mean.var(axis=0)
