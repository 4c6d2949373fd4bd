"""Priors p(z): the distributions of a latent variable that carries no information about the data."""

from __future__ import annotations

import abc
import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.registry import open_family

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


class AbstractPriorDistribution(abc.ABC):
    """A distribution over latents, either the same for every sample or one for each."""

    @abc.abstractmethod
    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """Return log p(z_j | z_1 … z_{j-1}) in nats, one column per latent; a row sums to log p(z).

        If latents are independent, the columns are the marginals.
        """

    @abc.abstractmethod
    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draw z ~ p(z)."""

    def normal(self) -> tuple[Float[Tensor, "*sample latent"], Float[Tensor, "*sample latent"]] | None:
        """Return mean and log-variance if the prior is a Gaussian with independent latents; the KL is then exact."""
        return None


class AbstractPriorModule(AbstractPriorDistribution, nn.Module):
    """A prior with its parameters, if any are learned."""

    n_latents: int
    is_factorised: bool = True
    """If True, latents are independent, so each has its own KL to p(z_j)."""
    meaning_of_passive: str
    """Description of a passive latent under this prior."""

    def given(self, auxiliary: Float[Tensor, "sample auxiliary"] | None) -> AbstractPriorDistribution:
        """Return the prior of each sample of a batch, p(z|u); it is the same for all unless it is conditional."""
        return self

    @abc.abstractmethod
    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        """Return mean and variance of a passive latent: those of the Gaussian nearest to the prior, argmin KL(q ‖ p).

        The posterior is Gaussian for any prior, and that of a latent without information converges to this one.
        """


class AbstractPrior(abc.ABC):
    """A recipe for a prior; its dataclass fields are its options."""

    is_conditional: bool = False
    """If True, p(z|u) requires an auxiliary variable."""

    def check(self, n_latents: int) -> None:  # noqa: B027 (most accept any number)
        """Raise an error if the options do not fit the number of latents.

        :param n_latents: number of latent variables.
        """

    @abc.abstractmethod
    def build(
        self, n_latents: int, data: AbstractDataset | None, n_auxiliary: int, generator: torch.Generator
    ) -> AbstractPriorModule:
        """Build the prior over ``n_latents``.

        :param n_latents: number of latent variables.
        :param data: the training data, for priors that are initialised from it; None if weights will be loaded.
        :param n_auxiliary: width of the auxiliary variable u of conditional priors; 0 if there is none.
        :param generator: source of random weights.
        """


class AbstractNormalPriorModule(AbstractPriorModule):
    """p(z) = N(0, diag exp log_variance); a member defines the log-variances."""

    log_variance: Float[Tensor, " latent"]

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        log_variance = self.log_variance
        return -0.5 * (math.log(2 * math.pi) + log_variance + z**2 * torch.exp(-log_variance))

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        log_variance = self.log_variance
        noise = torch.randn(
            (n_samples, self.n_latents),
            generator=generator,
            dtype=log_variance.dtype,
            device=log_variance.device,
        )
        return noise * torch.exp(0.5 * log_variance)

    def normal(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        log_variance = self.log_variance
        return torch.zeros_like(log_variance), log_variance

    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        mean, log_variance = self.normal()
        return mean, torch.exp(log_variance)


prior = family = open_family(__name__, "prior")
