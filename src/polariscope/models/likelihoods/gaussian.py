"""Gaussian likelihood with fixed or learned variance."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.models.likelihoods import AbstractLikelihood, AbstractLikelihoodDistribution, likelihood

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianDistribution(AbstractLikelihoodDistribution):
    """Independent values N(mean, exp log_variance); the log-variance is one number or one per value."""

    mean: Float[Tensor, "sample *shape"]
    log_variance: Float[Tensor, "..."]

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        square = ((x - self.mean) ** 2 * torch.exp(-self.log_variance)).flatten(1).sum(1)
        log_variances = self.log_variance.expand_as(x).flatten(1).sum(1)
        return -0.5 * (self.mean[0].numel() * math.log(2 * math.pi) + log_variances + square)

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        noise = torch.randn(
            self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device
        )
        return self.mean + torch.exp(0.5 * self.log_variance) * noise


class SharedVarianceHead(nn.Module):
    """Raw outputs are means; one variance for all values, fixed or trained."""

    log_variance: Tensor

    def __init__(self, variance: float, learned: bool) -> None:
        super().__init__()
        start = torch.tensor(math.log(variance))
        if learned:
            self.log_variance = nn.Parameter(start)
        else:
            self.register_buffer("log_variance", start, persistent=False)

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> GaussianDistribution:
        return GaussianDistribution(raw, self.log_variance)


SMALLEST_SCALE = 1e-3


class ValueVarianceHead(nn.Module):
    """Raw outputs are means and pre-scales: the scale of each value is softplus(raw + offset) + 10⁻³.

    The offset makes a raw output of 0 the starting variance; the floor keeps a value that the decoder predicts
    exactly from an infinite density.
    """

    def __init__(self, variance: float) -> None:
        super().__init__()
        above = math.sqrt(variance) - SMALLEST_SCALE
        self.offset = above + math.log(-math.expm1(-above))  # softplus(offset) = above

    def forward(self, raw: Float[Tensor, "sample *double"]) -> GaussianDistribution:
        mean, scale = raw.chunk(2, dim=1)
        return GaussianDistribution(
            mean, 2 * torch.log(nn.functional.softplus(scale + self.offset) + SMALLEST_SCALE)
        )


@likelihood("gaussian")
@dataclasses.dataclass(frozen=True)
class GaussianLikelihood(AbstractLikelihood):
    r"""Square error in nats: independent values around the decoder's output.

    .. math:: -\log p(x|z) = \tfrac12 \left( m \log 2\pi\gamma + \|x - f(z)\|^2 / \gamma \right)

    for m values and variance γ (bonheme2023 Eq. 4.3). A plain sum of squares is γ = ½, half of it γ = 1: state
    γ beside every β, since only β·γ counts against the variance of the data.
    """

    variance: Annotated[float, Gt(0)] = 1.0
    """Variance γ of every value; the starting point when it is learned."""
    learned: Literal["no", "shared", "per-value"] = "no"
    """Whether γ is trained: not at all, one number for all values, or a decoder output for each value."""

    def __post_init__(self) -> None:
        if self.learned == "per-value" and not self.variance > SMALLEST_SCALE**2:
            raise InputError(
                "variance",
                f"exceed {SMALLEST_SCALE**2:g} when it is learned per value",
                got=self.variance,
                remedy="that is its floor",
            )

    @property
    def scale_in_words(self) -> str:
        if self.learned == "no":
            return f"variance of the likelihood {self.variance:g}, fixed"
        shared = "one for all values" if self.learned == "shared" else "one for each value"
        return f"variance of the likelihood learned, {shared}, from {self.variance:g}"

    @property
    def learns_one_variance(self) -> bool:
        return self.learned == "shared"

    @property
    def n_parameters(self) -> int:
        return 2 if self.learned == "per-value" else 1

    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> nn.Module:
        if self.learned == "per-value":
            return ValueVarianceHead(self.variance)
        return SharedVarianceHead(self.variance, learned=self.learned == "shared")
