"""How probable a model finds an observation."""

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
    r"""Importance-weighted estimate of log p(x) in nats, for each observation; of log p(x|u) under a conditional prior.

    .. math:: \log \frac1K \sum_{k=1}^K \frac{p(x|z_k)\, p(z_k)}{q(z_k|x)}, \qquad z_k = \mu(x) + L(x)\, \varepsilon_k

    with K draws from the posterior q(z|x) of mean μ and covariance LLᵀ. Before the logarithm it is unbiased;
    after it, it is log p(x) at most in expectation, and closer with every draw: K = 1 is the evidence lower
    bound, and where q(z|x) is the true posterior every K gives log p(x) exactly.

    The noise ε_k ~ N(0, I) is drawn from ``seed`` and is the same for all observations, so the estimate of
    one does not depend on which others are asked for with it. The errors of different observations are therefore
    not independent, and their mean is not much surer than each of them: what helps is a larger K.

    Under a likelihood of counts with a size factor it is log p(x|ℓ), given the total ℓ of the observation.

    An observation so far out that the model finds it impossible in floating point has −∞, never NaN.

    :param model: a model whose posterior has a density
    :param x: observations as the network sees them, on the model's device
    :param n_draws: K
    :param seed: of the noise
    :param auxiliary: (default None) u of each observation, which a conditional prior and its encoder need, as
        :func:`polariscope.models.inference.auxiliary_values` makes it of a dataset's factors

    Reference: Burda et al., Importance Weighted Autoencoders (burda2016), Eq. 8.
    """
    if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise InputError(
            "n_draws", "be an integer from 1", got=f"{n_draws!r}", remedy="a hundred or more are usual"
        )
    if not model.has_density:
        raise InputError(
            problem="a deterministic encoder has no density, so there is nothing to weight",
            remedy=("use ", Argument("posterior", "diagonal")),
        )
    if model.n_auxiliary and auxiliary is None:
        raise InputError(
            "auxiliary",
            f"hold the {model.n_auxiliary} values of u for each observation: a conditional prior gives log p(x|u)",
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
            problem="a Bernoulli likelihood needs observations in [0, 1]",
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
        # log q(z|x) from the noise itself: of an outlier σ² may be so small, or so large, that z no longer tells it.
        log_q = -0.5 * (constant + epsilon.square().sum())
        weights.append(model.decode(z).log_density(x) + prior.log_density(z).sum(1) - log_q)
    # Not a number where z or x̂ is beyond all numbers: prior and likelihood are 0 there, and so is the weight.
    log_weights = torch.stack(weights).nan_to_num(nan=-math.inf, posinf=-math.inf, neginf=-math.inf)
    return torch.logsumexp(log_weights, dim=0) - math.log(n_draws)
