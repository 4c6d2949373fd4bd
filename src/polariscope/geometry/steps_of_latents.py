"""Selection of latents, and the range over which each is moved: moments of its prior, or of its codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import TYPES, VariableType
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError, unknown
from polariscope.core.seeds import derive
from polariscope.models.protocol import AbstractModel

Scale = Literal["prior", "prior over all u", "codes"]


def range_of(
    model: AbstractModel, representation: Representation, seed: int = 0
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"], Scale]:
    """Return the mean and standard deviation that define the range of each latent, and their origin.

    They are those of the prior, of a conditional prior over the auxiliary values of all samples, or, for a
    deterministic encoder, which might not follow the prior, of the codes.
    """
    if not model.has_density:
        return representation.mean.mean(axis=0), representation.mean.std(axis=0), "codes"
    if model.has_conditional_prior:
        mean, variance = prior_moments(representation)
        return mean.astype(np.float32), np.sqrt(variance).astype(np.float32), "prior over all u"
    return *prior_of(model, seed), "prior"


def prior_of(
    model: AbstractModel, seed: int
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"]]:
    """Return the mean and standard deviation of the prior, from 4096 draws if there is no closed form."""
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
    """Return the mean and variance of the prior of each latent; for a conditional prior, over all samples.

    By the law of total variance, the variance is the mean of its variances plus the variance of its means.
    """
    shape = representation.mean.shape
    mean = np.zeros(1) if representation.prior_mean is None else representation.prior_mean
    variance = np.ones(1) if representation.prior_variance is None else representation.prior_variance
    mean, variance = (np.broadcast_to(moment.astype(np.float64), shape) for moment in (mean, variance))
    return mean.mean(axis=0), variance.mean(axis=0) + mean.var(axis=0)


def selected_latents(
    n_latents: int,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
    name: str = "keep",
) -> tuple[int, ...]:
    """Return the latents that are not passive by ``types``, or those in ``keep``; all if both are None.

    ``name`` is the name of ``keep`` in error messages.

    >>> selected_latents(3, types=["active", "passive", "mixed"])
    (0, 2)
    """
    if types is not None and keep is not None:
        raise InputError(
            problem="types and keep were both passed",
            remedy="pass one: types drops passive latents, keep lists the latents to use",
        )
    if types is not None:
        if len(types) != n_latents:
            raise InputError("types", f"have one entry for each of the {n_latents} latents", got=len(types))
        for name in types:
            if name not in TYPES:
                raise unknown("variable type", str(name), TYPES)
        latents = [j for j, name in enumerate(types) if name != "passive"]
        if not latents:
            raise InputError(
                problem=f"all {n_latents} latents are passive, so there is no direction to analyse",
                remedy="train with a smaller beta",
            )
        return tuple(latents)
    if keep is None:
        return tuple(range(n_latents))
    latents = [int(j) for j in np.asarray(keep).ravel()]
    if not latents or len(set(latents)) != len(latents) or min(latents) < 0 or max(latents) >= n_latents:
        raise InputError(
            name, f"contain distinct latents from 0 to {n_latents - 1}, at least one", got=latents
        )
    return tuple(latents)
