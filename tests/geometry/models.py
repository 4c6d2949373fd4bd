"""Models whose geometry is known or can be worked out by other means."""

from __future__ import annotations

import numpy as np

from oracles import linear_model, linear_posterior, optimal_decoder, random_rotation, set_linear
from polariscope.models.likelihoods import AbstractLikelihood
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior


def curved_model(
    n_latents: int = 3,
    shape: tuple[int, ...] = (7,),
    likelihood: AbstractLikelihood | None = None,
    decodes: bool = True,
) -> Model:
    """A random tanh network in float64."""
    blueprint = Blueprint(
        MlpNet((9,), (9,), "tanh"),
        DiagonalPosterior(),
        IsotropicPrior(),
        likelihood or BernoulliLikelihood(),
        n_latents,
        shape,
        decodes=decodes,
    )
    return blueprint.build(seed=1).double()


def optimal_model(
    eigenvalues: np.ndarray, n_latents: int, gamma: float = 1.0, seed: int = 0, turn: np.ndarray | None = None
) -> tuple[Model, np.ndarray, np.ndarray]:
    """A linear VAE at its optimum for data of these eigenvalues; with W and the principal directions.

    ``turn`` rotates the latents of decoder and encoder, which a linear autoencoder would not notice.
    """
    m = len(eigenvalues)
    directions = random_rotation(m, seed)
    W = optimal_decoder(eigenvalues, directions, n_latents, 1.0, gamma)
    W = W if turn is None else W @ turn
    V, variance = linear_posterior(W, 1.0, gamma)
    model = linear_model(m, n_latents, gamma)
    set_linear(model, W, V, variance)
    return model, W, directions


def codes(n_samples: int, n_latents: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n_samples, n_latents))
