"""Negative binomial likelihood of counts."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float, Int
from torch import Tensor, nn

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

NEARLY_POISSON = 1e6
"""Dispersion from which counts are practically Poisson."""
LARGE = 16.0
"""Dispersion from which log Γ is computed by Stirling's series, whose remainder is then below 10⁻¹¹."""


@dataclasses.dataclass(frozen=True, eq=False)
class NegativeBinomialDistribution(AbstractCountDistribution):
    """Independent counts with variance μ + μ²/θ."""

    log_dispersion: Float[Tensor, "..."] = dataclasses.field(kw_only=True)
    """log θ, shared by all values or for each feature."""

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        log_mean = self.of_observations(x)
        log_theta = self.log_dispersion.expand_as(log_mean)
        log_ratio = log_mean - log_theta
        # θ log(θ/(θ + μ)) and x log(μ/(θ + μ)) computed from μ/θ neither overflow nor cancel.
        never = -torch.exp(log_theta) * nn.functional.softplus(log_ratio)
        counted = x * nn.functional.logsigmoid(log_ratio)
        ways = log_rising(torch.exp(log_theta), x) - torch.lgamma(x + 1)
        return (ways + never + counted).flatten(1).sum(1)

    def at(self, columns: Int[Tensor, " column"]) -> NegativeBinomialDistribution:
        selected = super().at(columns)
        assert isinstance(selected, NegativeBinomialDistribution)
        if not self.log_dispersion.ndim:
            return selected
        per_value = self.log_dispersion.expand_as(self.log_share).flatten(1)[:, columns]
        return dataclasses.replace(selected, log_dispersion=per_value)

    @property
    def variance(self) -> Float[Tensor, "sample *shape"]:
        return self.mean + self.mean**2 * torch.exp(-self.log_dispersion)

    def cumulative(self, x: Float[np.ndarray, "sample value"]) -> Float[np.ndarray, "sample value"]:
        from scipy import special

        mean = self.mean.double().cpu().numpy()
        theta = torch.exp(self.log_dispersion).double().cpu().numpy()
        # The cumulative distribution is an incomplete beta function; negative x are outside its domain.
        return np.where(x < 0, 0.0, special.betainc(theta, np.maximum(x, 0) + 1, theta / (theta + mean)))

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        """Draw a Poisson count whose rate is drawn from a gamma distribution of shape θ and mean μ."""
        mean = self.mean.detach()
        theta = torch.exp(self.log_dispersion.detach()).expand_as(mean).contiguous()
        # The public gamma distribution accepts no generator.
        rate = torch._standard_gamma(theta, generator=generator) * mean / theta
        return torch.poisson(rate, generator=generator)


def log_rising(theta: Float[Tensor, "*shape"], x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""Return log Γ(θ + x) − log Γ(θ), without cancellation if θ is large.

    For large θ Stirling's series is used: x log(θ + x) + (θ − ½) log(1 + x/θ) − x + s(θ + x) − s(θ), with
    s(u) = 1/12u − 1/360u³ + 1/1260u⁵.

    :param theta: θ, positive.
    :param x: x, at least 0.
    """
    # Both branches of where are computed and differentiated, so each gets values that suit it.
    large = theta.clamp(min=LARGE)
    total = large + x
    series = x * torch.log(total) + (large - 0.5) * torch.log1p(x / large) - x + _rest(total) - _rest(large)
    small = theta.clamp(max=LARGE)
    return torch.where(theta >= LARGE, series, torch.lgamma(small + x) - torch.lgamma(small))


def _rest(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    inverse = 1 / u
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


class NegativeBinomialHead(CountHead):
    """A head whose raw outputs are logits of proportions, or logarithms of rates; θ is fixed or trained."""

    log_dispersion: Tensor

    def __init__(
        self, recipe: NegativeBinomialLikelihood, shape: tuple[int, ...], data: AbstractDataset | None
    ) -> None:
        super().__init__(recipe.size_factor, shape, data)
        start = torch.full(shape if recipe.learned == "per-feature" else (), math.log(recipe.dispersion))
        if recipe.learned == "no":
            self.register_buffer("log_dispersion", start, persistent=False)
        else:
            self.log_dispersion = nn.Parameter(start)

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> NegativeBinomialDistribution:
        return NegativeBinomialDistribution(
            *self.shares(raw), has_sizes=self.has_sizes, log_dispersion=self.log_dispersion
        )


@likelihood("negative-binomial")
@dataclasses.dataclass(frozen=True)
class NegativeBinomialLikelihood(AbstractCountLikelihood):
    r"""Overdispersed counts: Poisson counts whose rate itself follows a gamma distribution.

    .. math:: x_p \sim \mathrm{NB}(\mu_p = \ell \rho_p, \theta_p), \quad \rho = \mathrm{softmax}(f(z)), \quad
        \log p(x|z, \ell) = \sum_p \log \frac{\Gamma(x_p + \theta_p)}{\Gamma(\theta_p)\, x_p!}
        + \theta_p \log \frac{\theta_p}{\theta_p + \mu_p} + x_p \log \frac{\mu_p}{\theta_p + \mu_p}

    with variance μ + μ²/θ: a larger dispersion θ is nearer to Poisson. ℓ is the size of the sample. By default it is
    the sample's total, ℓ = Σₚ xₚ, so the latents describe proportions and not totals; the density is then that of x
    given its total. An empty sample has ℓ = 1. The decoder's mean and draws have the usual size, the median total of
    the data; reconstructions have the size of their observation. The encoder's input is log(1 + x).

    Reference: Lopez et al., Deep generative modeling for single-cell transcriptomics (lopez2018), with observed sizes
    and without zero inflation. Difference: θ starts at 1.
    """

    dispersion: Annotated[float, Gt(0)] = 1.0
    """Dispersion θ; the initial value if it is learned."""
    learned: Literal["no", "shared", "per-feature"] = "per-feature"
    """Kind of training of θ: not trained, one number for all values, or one for each feature."""
    size_factor: SizeFactor = "total"
    """Size ℓ of a sample: "total" for its total; "none" for a decoder of rates, exp f(z) times the usual mean."""

    @property
    def scale_in_words(self) -> str:
        if self.learned == "no":
            return f"dispersion fixed at {self.dispersion:g}"
        shared = "one for all values" if self.learned == "shared" else "one for each feature"
        return f"dispersion learned, {shared} (initially {self.dispersion:g})"

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:
        """Return the likelihood with θ = Σ μ² / Σ ((x − μ)² − μ), practically Poisson without overdispersion."""
        # Without overdispersion the estimate would be negative or infinite.
        excess = max(residuals.square - residuals.mean, residuals.mean_square / NEARLY_POISSON)
        theta = residuals.mean_square / excess if excess else NEARLY_POISSON
        unit = torch.ones_like(mean[0, 0])
        log_dispersion = torch.full_like(unit, math.log(theta))
        return theta, NegativeBinomialDistribution(
            log_means(mean), unit, has_sizes=False, log_dispersion=log_dispersion
        )

    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> NegativeBinomialHead:
        return NegativeBinomialHead(self, shape, data)
