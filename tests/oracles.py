"""Known answers: closed forms and quadratures for comparison, written without the package's mathematics.

The linear β-VAE is the most useful one. With decoder N(Wz + b, γI), posterior N(V(x − b), diag σ²) and β on the
KL, the loss is quadratic in the data and in the noise, so an average over ±√n e_j (which has mean 0 and
covariance I) is its exact expectation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch

from polariscope.data.dataset import AbstractDataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import AbstractObjective, Batch, Step, total
from polariscope.testing.manifolds import random_rotation as random_rotation  # tests import these from here
from polariscope.testing.members import (
    STANDARD_ERRORS as STANDARD_ERRORS,
)
from polariscope.testing.members import (
    assert_is_a_good_member as assert_is_a_good_member,
)
from polariscope.testing.members import (
    assert_mean_is as assert_mean_is,
)
from polariscope.testing.members import (
    directional_derivatives as directional_derivatives,
)
from polariscope.testing.members import (
    label as label,
)
from polariscope.testing.members import (
    real_line as real_line,
)
from polariscope.testing.members import (
    variants as variants,
)


# Statistical tests allow this many standard errors: a wrong alarm once in a million draws, and seeds are fixed.
@dataclasses.dataclass(frozen=True)
class TinyDataset(AbstractDataset):
    """Observations of any shape, in [0, 1]; not registered, for tests only."""

    observation: tuple[int, ...] = (5,)
    n_samples: int = 12

    @property
    def shape(self) -> tuple[int, ...]:
        return self.observation

    def __len__(self) -> int:
        return self.n_samples

    def values(self, indices: Any) -> np.ndarray:
        everything = np.random.default_rng(0).random((self.n_samples, *self.observation), dtype=np.float32)
        return everything[self.check_indices(indices)]


def normal_kl_by_quadrature(mean: float, variance: float, prior_mean: float, prior_variance: float) -> float:
    """Compute ∫ q log(q/p) on a fine grid over ±12 standard deviations of q; exact to about 1e-12."""
    std = math.sqrt(variance)
    z = np.linspace(mean - 12 * std, mean + 12 * std, 20_001)
    log_q = -0.5 * (np.log(2 * np.pi * variance) + (z - mean) ** 2 / variance)
    log_p = -0.5 * (np.log(2 * np.pi * prior_variance) + (z - prior_mean) ** 2 / prior_variance)
    return float(np.trapezoid(np.exp(log_q) * (log_q - log_p), z))


def symmetric_points(covariance: np.ndarray) -> np.ndarray:
    """Return 2n rows with mean exactly 0 and the given covariance: ±√n times the columns of a square root of it."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0) * len(values))
    return np.concatenate([root.T, -root.T])


@contextlib.contextmanager
def standard_normal_draws(*draws: torch.Tensor) -> Iterator[None]:
    """Make successive calls of ``torch.randn`` return ``draws``, so the test chooses the noise."""
    waiting = list(draws)

    def randn(shape: Any, **_: Any) -> torch.Tensor:
        draw = waiting.pop(0)
        assert tuple(shape) == tuple(draw.shape)
        return draw

    with mock.patch.object(torch, "randn", randn):
        yield
    assert not waiting, "not all of the prepared noise was used"


def expected_loss(objective: AbstractObjective, model: Model, covariance: np.ndarray) -> torch.Tensor:
    """Return the exact expected loss of a linear model over centred data of this covariance and over the noise."""
    x = torch.from_numpy(symmetric_points(covariance))
    noise = torch.from_numpy(symmetric_points(np.eye(model.n_latents)))
    with standard_normal_draws(noise.repeat(len(x), 1)):
        batch = Batch(x.repeat_interleave(len(noise), 0), step=0)
        return total(objective.terms(Step(model, batch, torch.Generator())))


def linear_model(n_features: int, n_latents: int, gamma: float, seed: int = 0) -> Model:
    """Return a linear VAE in float64 with decoder variance γ."""
    blueprint = Blueprint(
        net=LinearNet(),
        posterior=DiagonalPosterior(),
        prior=IsotropicPrior(),
        likelihood=GaussianLikelihood(variance=gamma),
        n_latents=n_latents,
        shape=(n_features,),
    )
    model = blueprint.build(seed).double()
    model.decoder.head.log_variance.fill_(math.log(gamma))  # made in float32, off by 1e-8
    return model


def set_linear(model: Model, W: np.ndarray, V: np.ndarray, variance: np.ndarray) -> None:
    """Set the decoder to Wz, the posterior to N(Vx, diag variance), and all biases to 0."""
    head, output = model.encoder.head, model.decoder.trunk.layers[0][0]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        output.weight.copy_(torch.from_numpy(W))
        head.mean.weight.copy_(torch.from_numpy(V))
        head.log_variance.bias.copy_(torch.from_numpy(np.log(variance)))


def linear_posterior(W: np.ndarray, beta: float, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the best mean map V = Wᵀ(WWᵀ + βγI)⁻¹ and diagonal variance for a decoder W (objectives.md §12.1)."""
    m, n = W.shape
    V = W.T @ np.linalg.inv(W @ W.T + beta * gamma * np.eye(m))
    return V, 1 / (np.diag(W.T @ W) / (beta * gamma) + np.ones(n))


def optimal_decoder(
    eigenvalues: np.ndarray, directions: np.ndarray, n_latents: int, beta: float, gamma: float
) -> np.ndarray:
    """Return W = UΛ with Λ² = max(0, λ − βγ) for the n largest eigenvalues λ (objectives.md §12.2)."""
    order = np.argsort(eigenvalues)[::-1][:n_latents]
    W = directions[:, order] * np.sqrt(np.maximum(0, eigenvalues[order] - beta * gamma))
    return np.pad(W, ((0, 0), (0, n_latents - W.shape[1])))


def optimal_linear_loss(eigenvalues: np.ndarray, n_latents: int, beta: float, gamma: float) -> float:
    """Return the loss of the linear β-VAE at its optimum.

    A kept direction leaves the error min(λ, βγ) and costs the rate ½ log max(1, λ/βγ); a dropped one leaves λ.
    """
    values = np.sort(eigenvalues)[::-1]
    kept = np.arange(len(values)) < n_latents
    errors = np.where(kept, np.minimum(values, beta * gamma), values)
    rates = 0.5 * np.log(np.maximum(1, values / (beta * gamma))) * kept
    return float(0.5 * (len(values) * np.log(2 * np.pi * gamma) + errors.sum() / gamma) + beta * rates.sum())


def full_covariance_loss(W: np.ndarray, covariance: np.ndarray, beta: float, gamma: float) -> float:
    """Return the expected linear β-VAE loss with the best full-covariance posterior Σ = A⁻¹, A = WᵀW/(βγ) + I."""
    A = W.T @ W / (beta * gamma) + np.eye(W.shape[1])
    V, _ = linear_posterior(W, beta, gamma)
    return _linear_loss(W, V, np.linalg.inv(A), covariance, beta, gamma)


def diagonal_loss(W: np.ndarray, covariance: np.ndarray, beta: float, gamma: float) -> float:
    """Return the expected linear β-VAE loss with the best diagonal posterior."""
    V, variance = linear_posterior(W, beta, gamma)
    return _linear_loss(W, V, np.diag(variance), covariance, beta, gamma)


def _linear_loss(
    W: np.ndarray, V: np.ndarray, S: np.ndarray, covariance: np.ndarray, beta: float, gamma: float
) -> float:
    m, n = W.shape
    residual = np.eye(m) - W @ V
    error = np.trace(residual @ covariance @ residual.T) + np.trace(W @ S @ W.T)
    rate = 0.5 * (np.trace(V @ covariance @ V.T) + np.trace(S) - np.linalg.slogdet(S)[1] - n)
    return float(0.5 * (m * np.log(2 * np.pi * gamma) + error / gamma) + beta * rate)


def minimise(
    loss: Callable[[], torch.Tensor], parameters: list[torch.Tensor], n_iterations: int = 2000
) -> float:
    """Minimise ``loss`` to a stationary point (L-BFGS, no early stop), and return the largest remaining gradient."""
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=n_iterations,
        tolerance_grad=1e-10,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)
    return max(float(parameter.grad.abs().max()) for parameter in parameters if parameter.grad is not None)
