"""Normal prior that depends on an auxiliary variable, as in an iVAE."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import Argument, InputError
from polariscope.models.nets import initialise
from polariscope.models.priors import AbstractPrior, AbstractPriorDistribution, AbstractPriorModule, prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SLOPE = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class ConditionalNormal(AbstractPriorDistribution):
    """p(z|u) = N(μ†(u), diag Σ†(u)) of each sample of a batch."""

    mean: Float[Tensor, "sample latent"]
    log_variance: Float[Tensor, "sample latent"]

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        square = (z - self.mean) ** 2 * torch.exp(-self.log_variance)
        return -0.5 * (math.log(2 * math.pi) + self.log_variance + square)

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draw once for each row of u; ``n_samples`` must be their number."""
        if n_samples != len(self.mean):
            raise InputError(
                "n_samples",
                f"be the number of rows of u, {len(self.mean)}",
                got=n_samples,
                remedy="each row has its own prior",
            )
        noise = torch.randn(
            self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device
        )
        return self.mean + torch.exp(0.5 * self.log_variance) * noise

    def normal(self) -> tuple[Float[Tensor, "sample latent"], Float[Tensor, "sample latent"]]:
        return self.mean, self.log_variance


class ConditionalPriorModule(AbstractPriorModule):
    """Networks from u to the log-variances of p(z|u) and, if it is learned, to its mean."""

    def __init__(self, n_latents: int, n_auxiliary: int, widths: tuple[int, ...], learned_mean: bool) -> None:
        super().__init__()
        self.n_latents = n_latents
        centre = "μ(u)" if learned_mean else "0"
        self.meaning_of_passive = (
            f"its posterior is close to the prior N({centre}, Σ(u)) of its own auxiliary values u for every input; the "
            "variance Σ is learned and can be far from 1"
        )
        self.log_variance = dense(n_auxiliary, widths, n_latents)
        self.mean = dense(n_auxiliary, widths, n_latents) if learned_mean else None

    def given(self, auxiliary: Float[Tensor, "sample auxiliary"] | None) -> ConditionalNormal:
        if auxiliary is None:
            self._refuse("a distribution")
        log_variance = self.log_variance(auxiliary)
        mean = torch.zeros_like(log_variance) if self.mean is None else self.mean(auxiliary)
        return ConditionalNormal(mean, log_variance)

    def log_density(self, z: Float[Tensor, "sample latent"]) -> NoReturn:
        self._refuse("a density")

    def sample(self, n_samples: int, generator: torch.Generator) -> NoReturn:
        self._refuse("samples")

    def normal(self) -> NoReturn:
        self._refuse("moments")

    def passive_shape(self) -> NoReturn:
        """Raise an error: each sample has its own, and encoding collects the moments of given(u).normal()."""
        self._refuse("a passive shape")

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            problem=f"a conditional prior has {what} only for a given auxiliary variable",
            remedy="call given(u) with one row per sample and use its result",
        )


def dense(n_in: int, widths: tuple[int, ...], n_out: int) -> nn.Sequential:
    """Build hidden layers with leaky rectifiers (slope 0.1) and an affine output."""
    hidden = [layer for a, b in pairwise((n_in, *widths)) for layer in (nn.Linear(a, b), nn.LeakyReLU(SLOPE))]
    return nn.Sequential(*hidden, nn.Linear(widths[-1] if widths else n_in, n_out))


@prior("conditional")
@dataclasses.dataclass(frozen=True)
class ConditionalPrior(AbstractPrior):
    r"""Normal with independent latents whose variance, and optionally mean, is a function of an auxiliary variable.

    .. math:: p(z|u) = N(\mu^\dagger(u), \mathrm{diag}\, \Sigma^\dagger(u))

    with the auxiliary variable u (the data's factors or labels), a network :math:`\log \Sigma^\dagger` of u, and
    :math:`\mu^\dagger` either 0 or another network. The KL is exact. Each sample has its own prior: the posterior of a
    passive latent is N(μ†(u), Σ†(u)), and Σ† itself is reported to be near 0 in this case, not 1 (bonheme2023 Figs
    5.1–5.4). If u determines x, the prior can follow the posterior of a latent that the decoder uses, so a small KL
    does not make a latent passive.

    Reference: bonheme2023 §4.4.2 and Tab. A.2; Khemakhem et al., Variational Autoencoders and Nonlinear ICA
    (khemakhem2020). The model is identifiable with a fixed or learned mean, but not if only the mean is learned (§5.2),
    so the variance is always learned. The slope 0.1 of the rectifiers and the mean's network (like the variance's) are
    from the authors' code. Difference: weights are initialised Glorot uniform, biases with 0.
    """

    is_conditional = True

    mean: Literal["fixed", "learned"] = "fixed"
    """Mean of the prior: 0, or a network of u."""
    widths: tuple[Annotated[int, Ge(1)], ...] = (50, 50, 50)
    """Widths of the hidden layers of each network."""

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> ConditionalPriorModule:
        if n_auxiliary < 1:
            raise InputError(
                problem="a conditional prior requires auxiliary values",
                got=Argument("n_auxiliary", 0),
                remedy="train on data with factors or labels, or choose another prior",
            )
        module = ConditionalPriorModule(n_latents, n_auxiliary, self.widths, self.mean == "learned")
        initialise(module, "glorot", generator)
        return module
