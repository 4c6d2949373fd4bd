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
"""Initial value of a learned variance, relative to the mean variance of the features."""


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianDistribution(AbstractLikelihoodDistribution):
    """Independent values N(mean, exp log_variance), with a log-variance shared by all values or for each value."""

    mean: Float[Tensor, "sample *shape"]
    log_variance: Float[Tensor, "..."]

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        square = ((x - self.mean) ** 2 * torch.exp(-self.log_variance)).flatten(1).sum(1)
        # One shared log-variance counts once for every value.
        log_variances = self.log_variance.expand_as(x).flatten(1).sum(1)
        return -0.5 * (self.mean[0].numel() * math.log(2 * math.pi) + log_variances + square)

    def at(self, columns: Int[Tensor, " column"]) -> GaussianDistribution:
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
    """A head whose raw outputs are means, with one fixed or trained variance for all values."""

    log_variance: Tensor

    def __init__(self, variance: float, learned: bool) -> None:
        super().__init__()
        start = torch.tensor(math.log(variance))
        if learned:
            self.log_variance = nn.Parameter(start)
        else:
            # A fixed variance is part of the blueprint, so files of weights do not contain it.
            self.register_buffer("log_variance", start, persistent=False)

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> GaussianDistribution:
        return GaussianDistribution(raw, self.log_variance)


PACE = 10.0
"""Ratio of the movement of log γ to that of a weight in a step of Adam. At a learning rate of 1e-3, γ needs 230 steps
to fall to a tenth, and finally fluctuates by about 1 %. Saved models depend on it: another pace needs another head."""


class FlooredVarianceHead(nn.Module):
    r"""A head whose raw outputs are means, with one trained variance for all values that stays above a floor.

    .. math:: \gamma = \mathrm{floor} + (\mathrm{start} - \mathrm{floor})\, e^{10 \theta}

    with the trained number θ, initially 0. The derivative is never 0, so γ can leave the floor again.
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
        # The logarithm of the sum, without overflow.
        return torch.logaddexp(self.floor.log(), self.above + PACE * self.travel)

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> GaussianDistribution:
        return GaussianDistribution(raw, self.log_variance)


SMALLEST_SCALE = 1e-3


class ValueVarianceHead(nn.Module):
    """A head whose raw outputs are means and pre-scales: the scale of each value is softplus(raw + offset) + 10⁻³.

    With the offset, a raw output of 0 gives the initial variance. The floor prevents an infinite density of values that
    the decoder predicts exactly.
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
    r"""Squared error in nats: independent values around the decoder's output.

    .. math:: -\log p(x|z) = \tfrac12 \left( m \log 2\pi\gamma + \|x - f(z)\|^2 / \gamma \right)

    for m values and variance γ (bonheme2023 Eq. 4.3). A plain sum of squares is γ = ½, half of it γ = 1. Report γ with
    every β, since only β·γ is compared with the variance of the data.

    If an objective with a rate is trained on data outside [0, 1], and neither ``variance`` nor ``learned`` is passed, γ
    is learned as one number for all values. It converges to the mean squared error (Rybkin et al., Simple and Effective
    VAE Training with Calibrated Decoders, rybkin2021), like the noise of probabilistic PCA (lucas2019). It starts at a
    tenth of the mean variance of the features, so the initial noise does not hide the signal. Its floor is 1e-4 of the
    mean variance: an error below 1 % of a feature's standard deviation is ignored.
    """

    variance: Annotated[float, Gt(0)] = 1.0
    """Variance γ of every value; the initial value if it is learned."""
    learned: Literal["no", "shared", "per-value"] = "no"
    """Kind of training of γ: not trained, one number for all values, or a decoder output for each value."""
    floor: Annotated[float, Gt(0)] | None = option(None, since="0.2", absent=None)
    """Lower bound of γ, if one number is learned; log γ then has ten times the learning rate of the weights. None: γ
    has no lower bound and the learning rate of the weights."""

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
                ("be below ", Argument("variance"), ", its initial value"),
                got=f"{self.floor:g} and {self.variance:g}",
            )
        if self.learned == "per-value" and not self.variance > SMALLEST_SCALE**2:
            raise InputError(
                "variance",
                f"exceed {SMALLEST_SCALE**2:g} if it is learned per value",
                got=self.variance,
                remedy="that is its floor",
            )

    @property
    def scale_in_words(self) -> str:
        if self.learned == "no":
            return f"decoder variance fixed at {self.variance:g}"
        shared = "one for all values" if self.learned == "shared" else "one for each value"
        floor = "" if self.floor is None else f", at least {self.floor:g}"
        return f"decoder variance learned, {shared} (initially {self.variance:g}{floor})"

    @classmethod
    def options_for(cls, data: AbstractDataset, options: Mapping[str, Any]) -> dict[str, Any]:
        """Learn γ from a tenth of the features' mean variance down to 1e-4 of it, unless options were passed.

        :param data: the training data.
        :param options: the checked options of the caller.
        """
        from polariscope.analysis.theory import FLOOR
        from polariscope.data.streamed_statistics import mean_variance
        from polariscope.numerics.rounding import significant

        learned = options.get("learned", "no" if "variance" in options else "shared")
        if learned != "shared" or data.is_unit_interval:
            return dict(options)
        data_variance = mean_variance(data)
        start = options.get("variance", significant(START * data_variance))
        return {
            "learned": "shared",
            "variance": start,
            # The floor must be below the start, which the caller can have passed.
            "floor": significant(min(FLOOR * data_variance, start / 10)),
            **options,
        }

    @property
    def rival(self) -> str:
        """The same likelihood with another variance, if γ is fixed."""
        return "" if self.fixed_variance is None else "gaussian"

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:
        """Return the likelihood with the variance of the residuals."""
        # The variance that maximises the likelihood.
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
        """Return the current γ; None if every value has its own.

        :param head: the result of :meth:`head`.
        """
        if not isinstance(head, FlooredVarianceHead | SharedVarianceHead):
            return None
        return float(head.log_variance.detach().double().exp())
