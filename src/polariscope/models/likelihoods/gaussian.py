"""Gaussian likelihood with fixed or learned variance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from annotated_types import Gt
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import option
from polariscope.models.likelihoods import (
    AbstractLikelihood,
    AbstractLikelihoodDistribution,
    Fitted,
    Residuals,
    likelihood,
)

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


START = 0.1
"""Where a learned variance starts, relative to the mean variance of the features."""


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianDistribution(AbstractLikelihoodDistribution):
    """Independent values N(mean, exp log_variance); the log-variance is one number or one per value."""

    mean: Float[Tensor, "sample *shape"]
    log_variance: Float[Tensor, "..."]

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        square = ((x - self.mean) ** 2 * torch.exp(-self.log_variance)).flatten(1).sum(1)
        log_variances = self.log_variance.expand_as(x).flatten(1).sum(1)
        return -0.5 * (self.mean[0].numel() * math.log(2 * math.pi) + log_variances + square)

    def at(self, columns: Int[Tensor, " chosen"]) -> GaussianDistribution:
        log_variance = self.log_variance
        if log_variance.ndim:
            log_variance = log_variance.expand_as(self.mean).flatten(1)[:, columns]
        return GaussianDistribution(self.mean.flatten(1)[:, columns], log_variance)

    @property
    def variance(self) -> Float[Tensor, "..."]:
        return torch.exp(self.log_variance)

    def transform(
        self, x: Float[Tensor, "sample value"], noise: Float[Tensor, "sample value"]
    ) -> Float[Tensor, "sample value"]:
        return torch.special.ndtr((x - self.mean) * torch.exp(-0.5 * self.log_variance))

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


PACE = 10.0
"""How many times further than a weight log γ moves in a step of Adam. At a learning rate of 1e-3 it takes 230 steps to
a tenth, and hovers within about 1 % in the end. Saved models depend on it: another pace needs another head."""


class FlooredVarianceHead(nn.Module):
    r"""Raw outputs are means; one variance for all values, trained, that stays above a floor.

    .. math:: \gamma = \mathrm{floor} + (\mathrm{start} - \mathrm{floor})\, e^{10 \theta}

    with the trained number θ, which starts at 0. The derivative is never 0, so γ can leave the floor again.
    """

    floor: Tensor
    above: Tensor

    def __init__(self, variance: float, floor: float) -> None:
        super().__init__()
        self.travel = nn.Parameter(torch.zeros(()))
        self.register_buffer("floor", torch.tensor(floor), persistent=False)
        self.register_buffer("above", torch.tensor(math.log(variance - floor)), persistent=False)

    @property
    def log_variance(self) -> Float[Tensor, ""]:
        """log γ."""
        return torch.logaddexp(self.floor.log(), self.above + PACE * self.travel)

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

    Where an objective with a rate is trained on data that need not lie in [0, 1], and neither ``variance`` nor
    ``learned`` is given, γ is learned, one number for all values: it ends at the mean square error (Rybkin et al.,
    Simple and Effective VAE Training with Calibrated Decoders, rybkin2021), as the noise of probabilistic PCA does
    (lucas2019). It then starts from a tenth of the mean variance of the features, so it does not hide what is to be
    learned, and has a floor at 1e-4 of that: an error of 1 % of a feature's deviation counts as none.
    """

    variance: Annotated[float, Gt(0)] = 1.0
    """Variance γ of every value; the starting point when it is learned."""
    learned: Literal["no", "shared", "per-value"] = "no"
    """Whether γ is trained: not at all, one number for all values, or a decoder output for each value."""
    floor: Annotated[float, Gt(0)] | None = option(None, since="0.2", absent=None)
    """Lowest γ, where one number is learned; with it log γ moves ten times as fast as a weight. None: it moves like any
    weight and has no floor, as in models from before there was one."""

    def __post_init__(self) -> None:
        if self.floor is not None and self.learned != "shared":
            raise InputError(
                problem=(Argument("floor"), " is for a variance that is learned, one number for all values"),
                got=f"learned = {self.learned!r}",
                remedy=("leave it out, or use ", Argument("learned", "shared")),
            )
        if self.floor is not None and not self.floor < self.variance:
            raise InputError(
                "floor",
                ("be below ", Argument("variance"), ", from which it starts"),
                got=f"{self.floor:g} and {self.variance:g}",
            )
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
        floor = "" if self.floor is None else f", not below {self.floor:g}"
        return f"variance of the likelihood learned, {shared}, from {self.variance:g}{floor}"

    @classmethod
    def options_for(cls, data: AbstractDataset, given: Mapping[str, Any]) -> dict[str, Any]:
        """γ learned, from a tenth of the features' mean variance down to 1e-4 of it, unless it was said otherwise.

        :param data: what is trained on.
        :param given: the options that were given, checked.
        """
        from polariscope.analysis.theory import FLOOR
        from polariscope.data.streamed_statistics import mean_variance
        from polariscope.numerics.rounding import significant

        learned = given.get("learned", "no" if "variance" in given else "shared")
        if learned != "shared" or data.is_unit_interval:
            return dict(given)
        usual = mean_variance(data)
        start = given.get("variance", significant(START * usual))
        return {
            "learned": "shared",
            "variance": start,
            "floor": significant(min(FLOOR * usual, start / 10)),
            **given,
        }

    @property
    def rival(self) -> str:
        """The same with another variance, if γ is fixed."""
        return "" if self.fixed_variance is None else "gaussian"

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:
        """Return it with the variance of the residuals."""
        variance = residuals.square / residuals.n_values
        return (
            (variance, GaussianDistribution(mean, torch.tensor(math.log(variance)).to(mean)))
            if variance
            else None
        )

    @property
    def learns_one_variance(self) -> bool:
        return self.learned == "shared"

    @property
    def fixed_variance(self) -> float | None:
        return self.variance if self.learned == "no" else None

    @property
    def n_parameters(self) -> int:
        return 2 if self.learned == "per-value" else 1

    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> nn.Module:
        if self.learned == "per-value":
            return ValueVarianceHead(self.variance)
        if self.floor is not None:
            return FlooredVarianceHead(self.variance, self.floor)
        return SharedVarianceHead(self.variance, learned=self.learned == "shared")

    def gamma_of(self, head: nn.Module) -> float | None:
        """γ now, unless every value has one of its own.

        :param head: what :meth:`head` made.
        """
        if not isinstance(head, FlooredVarianceHead | SharedVarianceHead):
            return None
        return float(head.log_variance.detach().double().exp())
