"""Importance-weighted estimate of the log evidence log p(x)."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError
from polariscope.core.seeds import derive
from polariscope.data.counts import refuse_non_counts
from polariscope.models.inference import evaluating
from polariscope.models.likelihoods.bernoulli import BernoulliDistribution
from polariscope.models.protocol import AbstractModel


def log_evidence(
    model: AbstractModel,
    x: Float[Tensor, "sample *shape"],
    n_draws: object,
    seed: int,
    auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
) -> Float[Tensor, " sample"]:
    r"""Estimate log p(x) of each observation in nats by importance weighting, or log p(x|u) with a conditional prior.

    .. math:: \log \frac1K \sum_{k=1}^K \frac{p(x|z_k)\, p(z_k)}{q(z_k|x)}, \qquad z_k = \mu(x) + L(x)\, \varepsilon_k

    with K samples from the posterior q(z|x) of mean μ and covariance LLᵀ. The estimate is unbiased before the
    logarithm. After it, the expectation is at most log p(x) and increases with K: K = 1 gives the evidence lower bound,
    and if q(z|x) is the true posterior, every K gives log p(x) exactly.

    The noise ε_k ~ N(0, I) depends only on ``seed`` and is the same for all observations, so the estimate of an
    observation does not depend on the others in the call. As a consequence, the errors of different observations are
    not independent, and averaging over observations hardly reduces them; a larger K does.

    With a likelihood of counts that has a size factor, the estimate is log p(x|ℓ), given the total ℓ of the
    observation.

    If the probability of an observation underflows, the estimate is −∞, never NaN.

    :param model: a model whose posterior has a density.
    :param x: observations in the units of the network, on the model's device.
    :param n_draws: number of samples K.
    :param seed: seed of the noise.
    :param auxiliary: (default None) auxiliary variable u of each observation, required by a conditional prior and its
        encoder; see :func:`polariscope.models.inference.auxiliary_values`.

    Reference: Burda et al., Importance Weighted Autoencoders (burda2016), Eq. 8.
    """
    if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise InputError(
            "n_draws", "be an integer of at least 1", got=f"{n_draws!r}", remedy="use 100 or more"
        )
    if not model.has_density:
        raise InputError(
            problem="log p(x) requires a posterior with a density, and this encoder is deterministic",
            remedy=("use ", Argument("posterior", "diagonal")),
        )
    if model.n_auxiliary and auxiliary is None:
        raise InputError(
            "auxiliary",
            f"contain {model.n_auxiliary} values of u for each observation, since the prior is conditional",
            got=None,
            remedy="pass them",
        )
    with evaluating(model):
        return _weighted(model, model.place(x), int(n_draws), seed, auxiliary)


def _weighted(
    model: AbstractModel,
    x: Float[Tensor, "sample *shape"],
    n_draws: int,
    seed: int,
    auxiliary: Float[Tensor, "sample auxiliary"] | None,
) -> Float[Tensor, " sample"]:
    q, prior = model.encode(x, auxiliary), model.prior.given(auxiliary)
    generator = torch.Generator(x.device).manual_seed(derive(seed, "evidence"))
    noise = torch.randn((n_draws, model.n_latents), generator=generator, dtype=x.dtype, device=x.device)
    if isinstance(model.decode(q.mean[:1]), BernoulliDistribution) and not ((x >= 0) & (x <= 1)).all():
        raise InputError(
            problem="a Bernoulli likelihood requires observations in [0, 1]",
            got=f"{float(x.min()):.3g} to {float(x.max()):.3g}",
            remedy="scale them, or wrap the model with a Gaussian likelihood",
        )
    if model.needs_counts:
        refuse_non_counts(x.detach().cpu().numpy(), "observations")
    diagonal = model.is_diagonal
    scale = torch.exp(0.5 * q.log_variance) if diagonal else q.factor
    constant = model.n_latents * math.log(2 * math.pi) + q.log_determinant
    weights = []
    for epsilon in noise:
        z = q.mean + (scale * epsilon if diagonal else scale @ epsilon)
        # log q(z|x) is computed from the noise, because for outliers σ² can be so small or large that rounding of z
        # loses the noise.
        log_q = -0.5 * (constant + epsilon.square().sum())
        weights.append(model.decode(z).log_density(x) + prior.log_density(z).sum(1) - log_q)
    # NaN occurs if z or x̂ overflows. Prior and likelihood are then 0, and so is the weight.
    log_weights = torch.stack(weights).nan_to_num(nan=-math.inf, posinf=-math.inf, neginf=-math.inf)
    return torch.logsumexp(log_weights, dim=0) - math.log(n_draws)
