"""Priors p(z): what a latent variable looks like when the data say nothing about it."""

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
    """A distribution over latents, the same for every sample or one for each."""

    @abc.abstractmethod
    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """log p(z_j | z_1 … z_{j-1}) in nats, one column per latent; a row sums to log p(z).

        For independent latents the columns are the marginals.
        """

    @abc.abstractmethod
    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draws z ~ p(z)."""

    def normal(self) -> tuple[Float[Tensor, "*sample latent"], Float[Tensor, "*sample latent"]] | None:
        """Mean and log-variance if the prior is a Gaussian with independent latents; the KL is then exact."""
        return None


class AbstractPriorModule(AbstractPriorDistribution, nn.Module):
    """A prior with its parameters, if it learns any."""

    n_latents: int
    is_factorised: bool = True
    """Whether the latents are independent, so each has a KL of its own to p(z_j)."""
    meaning_of_passive: str
    """What a passive latent looks like under this prior, in words."""

    def given(self, auxiliary: Float[Tensor, "sample auxiliary"] | None) -> AbstractPriorDistribution:
        """The prior of each sample of a batch, p(z|u); the same for all unless it is conditional."""
        return self

    @abc.abstractmethod
    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        """Mean and variance of a passive latent: of the Gaussian nearest to the prior, argmin KL(q ‖ p).

        The posterior is Gaussian whatever the prior; when the data say nothing, the objective leaves it there.
        """


class AbstractPrior(abc.ABC):
    """A recipe for a prior; its dataclass fields are its options."""

    is_conditional: bool = False
    """Whether p(z|u) needs an auxiliary variable."""

    def check(self, n_latents: int) -> None:  # noqa: B027 (most take any number)
        """Refuse a number of latents that the options do not fit.

        :param n_latents: number of latent variables.
        """

    @abc.abstractmethod
    def build(
        self, n_latents: int, data: AbstractDataset | None, n_auxiliary: int, generator: torch.Generator
    ) -> AbstractPriorModule:
        """The prior over ``n_latents``.

        ``data`` is for priors that start from it, and None when weights are loaded over what is built;
        ``n_auxiliary`` is the width of u for conditional ones; weights are drawn from ``generator``.

        :param n_latents: number of latent variables.
        :param data: what the model is trained on, or None.
        :param n_auxiliary: width of the auxiliary variable u; 0: there is none.
        :param generator: where weights are drawn from.
        """


class AbstractNormalPriorModule(AbstractPriorModule):
    """p(z) = N(0, diag exp log_variance); a member says what the log-variances are."""

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
