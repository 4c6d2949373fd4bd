"""Poisson likelihood of counts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.models.likelihoods import Fitted, Residuals, likelihood
from polariscope.models.likelihoods.support.count_parameters import (
    AbstractCountDistribution,
    AbstractCountLikelihood,
    CountHead,
    SizeFactor,
    log_means,
)

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@dataclasses.dataclass(frozen=True, eq=False)
class PoissonDistribution(AbstractCountDistribution):
    """Independent counts whose variance equals their mean."""

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        log_mean = self.of_observations(x)
        return (x * log_mean - torch.exp(log_mean) - torch.lgamma(x + 1)).flatten(1).sum(1)

    @property
    def variance(self) -> Float[Tensor, "sample *shape"]:
        return self.mean

    def cumulative(self, x: Float[np.ndarray, "sample value"]) -> Float[np.ndarray, "sample value"]:
        from scipy import special

        mean = self.mean.double().cpu().numpy()
        # Both branches are computed, and pdtr is not defined for negative x.
        return np.where(x < 0, 0.0, special.pdtr(np.maximum(x, 0), mean))

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        return torch.poisson(self.mean.detach(), generator=generator)


class PoissonHead(CountHead):
    """A head whose raw outputs are logits of proportions, or logarithms of rates."""

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> PoissonDistribution:
        return PoissonDistribution(*self.shares(raw), has_sizes=self.has_sizes)


@likelihood("poisson")
@dataclasses.dataclass(frozen=True)
class PoissonLikelihood(AbstractCountLikelihood):
    r"""Counts without overdispersion: the variance of each equals its mean.

    .. math:: x_p \sim \mathrm{Poisson}(\ell \rho_p), \quad \rho = \mathrm{softmax}(f(z)), \quad
        \log p(x|z, \ell) = \sum_p x_p \log \ell\rho_p - \ell\rho_p - \log x_p!

    with the size ℓ of the sample. By default it is the sample's total, ℓ = Σₚ xₚ, so the latents describe proportions
    and not totals; the density is then that of x given its total. An empty sample has ℓ = 1. The decoder's mean and
    draws have the usual size, the median total of the data; reconstructions have the size of their observation. The
    encoder's input is log(1 + x). Real counts usually vary more; see negative-binomial.

    Reference: Lopez et al., Deep generative modeling for single-cell transcriptomics (lopez2018), for sizes,
    softmax and log(1 + x).
    """

    size_factor: SizeFactor = "total"
    """Size ℓ of a sample: "total" for its total; "none" for a decoder of rates, exp f(z) times the usual mean."""

    @property
    def rival(self) -> str:
        """The likelihood of overdispersed counts."""
        return "negative-binomial"

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:  # noqa: ARG003
        """Return the likelihood with these means; it has no other parameter."""
        return 0.0, PoissonDistribution(log_means(mean), torch.ones_like(mean[0, 0]), has_sizes=False)

    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> PoissonHead:
        return PoissonHead(self.size_factor, shape, data)
