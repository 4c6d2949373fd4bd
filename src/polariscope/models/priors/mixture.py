"""Mixture of Gaussians, a prior with clusters."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError
from polariscope.models.priors import AbstractPrior, AbstractPriorModule, prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

Layout = Literal["cross", "square"]
LAYOUTS: dict[str, tuple[tuple[float, ...], ...]] = {
    "cross": ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)),
    "square": ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)),
}


class MixturePriorModule(AbstractPriorModule):
    """p(z) = Σ π_c N(z; μ_c, v I)."""

    means: Tensor
    weights: Tensor
    passive_mean: Tensor
    passive_variance: Tensor

    def __init__(
        self, means: tuple[tuple[float, ...], ...], weights: tuple[float, ...], variance: float
    ) -> None:
        super().__init__()
        self.n_latents = len(means[0])
        self.is_factorised = len(means) == 1 or len(means[0]) == 1
        self.variance = variance
        centre, spread = passive_gaussian(means, weights, variance)
        low, high = (f"{float(edge):.3g}" for edge in (spread.min(), spread.max()))
        self.meaning_of_passive = (
            f"its posterior is close to the prior, a normal of variance {variance:g}, for every input"
            if len(means) == 1
            else "its posterior is close to a Gaussian over the whole mixture for every input, with a variance of "
            f"{low if low == high else f'{low} to {high}'}; one that stays inside a single component is narrower "
            "and is not called passive: check whether its mean moves"
        )
        self.register_buffer("means", torch.tensor(means), persistent=False)
        self.register_buffer("weights", torch.tensor(weights), persistent=False)
        # Copies, because the tensors are cached and shared by all models with this prior.
        self.register_buffer("passive_mean", centre.to(self.means.dtype, copy=True), persistent=False)
        self.register_buffer("passive_variance", spread.to(self.means.dtype, copy=True), persistent=False)

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """Return log p(z_j | z_1 … z_{j−1}): the mixture's density with weights conditioned on the latents before j."""
        densities = -0.5 * (
            math.log(2 * math.pi * self.variance) + (z[:, None] - self.means) ** 2 / self.variance
        )
        # The sum of the densities of all earlier latents.
        before = torch.cumsum(densities, dim=2) - densities
        # The components are weighted by how well they explain the earlier latents.
        log_weights = torch.log_softmax(torch.log(self.weights)[:, None] + before, dim=1)
        return torch.logsumexp(log_weights + densities, dim=1)

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        components = torch.multinomial(self.weights, n_samples, replacement=True, generator=generator)
        noise = torch.randn(
            (n_samples, self.n_latents),
            generator=generator,
            dtype=self.means.dtype,
            device=self.means.device,
        )
        return self.means[components] + math.sqrt(self.variance) * noise

    def normal(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]] | None:
        if len(self.means) > 1:
            return None
        return self.means[0], torch.full_like(self.means[0], math.log(self.variance))

    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        return self.passive_mean, self.passive_variance


@functools.lru_cache(maxsize=64)
def passive_gaussian(
    centres: tuple[tuple[float, ...], ...], weights: tuple[float, ...], variance: float
) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
    r"""Return the mean m of the mixture, and variances s² that minimise KL(N(m, diag s²) ‖ p), from its own downwards.

    The derivative in log s_j² is :math:`-\tfrac12 (1 + \mathbb{E}\, (z_j - m_j)\, \partial_j \log p(z))`. For one or
    two latents, the expectation is a sum over a grid, exact to three digits for the layouts. For more, it is a sum over
    a fixed Sobol set, exact to a few per cent. A single component has its own variance.
    """
    means, shares = torch.tensor(centres, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)
    mean = shares @ means
    log_spread = torch.log(variance + shares @ (means - mean) ** 2)
    if len(means) == 1:
        return mean, log_spread.exp()
    noise, masses = _standard_normal(means.shape[1], means.numel())

    def divergence_and_slope(log_spread: Tensor) -> tuple[Tensor, Tensor]:  # the first up to a constant
        offset = torch.exp(0.5 * log_spread) * noise
        z = mean + offset
        logits = torch.log(shares) - (z[:, None] - means).square().sum(2) / (2 * variance)
        pull = (z - torch.softmax(logits, dim=1) @ means) / variance  # −∂ log p
        divergence = -masses @ torch.logsumexp(logits, dim=1) - 0.5 * log_spread.sum()
        return divergence, 0.5 * (masses @ (offset * pull) - 1)

    step = 1.0
    divergence, slope = divergence_and_slope(log_spread)
    for _ in range(200):
        if slope.abs().max() < 1e-5 or step < 1e-9:
            break
        trial = log_spread - step * slope
        trial_divergence = divergence_and_slope(trial)
        # The step grows while the divergence falls, and is halved otherwise.
        if trial_divergence[0] < divergence:
            log_spread, (divergence, slope), step = trial, trial_divergence, 1.5 * step
        else:
            step /= 2
    return mean, log_spread.exp()


def _standard_normal(
    n_latents: int, n_values: int
) -> tuple[Float[Tensor, "point latent"], Float[Tensor, " point"]]:
    """Return points and masses that approximate N(0, I), with fewer points if each is compared with more values."""
    if n_latents <= 2:
        line = torch.linspace(-5, 5, 101, dtype=torch.float64)
        grid = torch.cartesian_prod(*[line] * n_latents).reshape(-1, n_latents)
        return grid, torch.softmax(-grid.square().sum(1) / 2, dim=0)
    n_points = max(256, min(4096, 2**19 // n_values))
    points = torch.quasirandom.SobolEngine(n_latents, scramble=True, seed=0).draw(n_points).double()
    # The quantiles of 0 and 1 are infinite.
    noise = torch.special.ndtri(points.clamp(1e-9, 1 - 1e-9))
    # With each point its opposite, so all odd moments are exactly 0.
    return torch.cat([noise, -noise]), torch.full((2 * n_points,), 0.5 / n_points, dtype=torch.float64)


@prior("mixture")
@dataclasses.dataclass(frozen=True)
class MixturePrior(AbstractPrior):
    r"""Clusters: a weighted sum of Gaussians with a common variance.

    .. math:: p(z) = \sum_c \pi_c\, N(z; \mu_c, v I)

    with weights π, means μ_c and variance v. A single component is a normal with an exact KL. For more components the
    KL is estimated with one draw per sample. The latents are not independent: the rate is split over them by the
    chain rule, log p(z_j | z_1 … z_{j−1}), so its sum is correct, but a single column depends on the order.

    The definition of passive is a convention, since the Gaussian nearest to a mixture, by KL(q ‖ p), is not unique: any
    separate component is a minimum. Here it is the nearest Gaussian with the mixture's mean. For the two layouts, a
    posterior that starts wide, as encoders do, and carries no information converges to it. It is narrower than the
    mixture. A posterior inside a component is not passive by this definition, because it identifies the component.

    Reference: mathieu2019 Eq. 9, four components of equal weight with v = 0.03 for two latents. In the paper they are
    at the corners of the unit square (``square``), in the authors' code at (0, ±1) and (±1, 0) (``cross``), which is
    the default.
    """

    layout: Layout = "cross"
    """Positions of the four components of two latents: on the axes, or at the corners of the unit square."""
    means: tuple[tuple[float, ...], ...] | None = None
    """Means of the components, one number per latent each, instead of a layout; typed as 0,1;1,0."""
    weights: tuple[float, ...] | None = None
    """Weights of the components, which sum to 1; None for equal weights."""
    component_variance: Annotated[float, Gt(0)] = 0.03
    """Variance v of every component in every latent."""

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.centres}
        if len(lengths) != 1 or 0 in lengths:
            raise InputError(
                "means", "be one or more rows of equal length, one number per latent", got=self.means
            )
        if self.weights is None:
            return
        if len(self.weights) != len(self.centres):
            raise InputError(
                "weights",
                "be one per component",
                got=f"{len(self.weights)} for {len(self.centres)} components",
            )
        if not all(weight > 0 for weight in self.weights) or abs(math.fsum(self.weights) - 1) > 1e-6:
            raise InputError(
                "weights",
                "be positive and sum to 1",
                got=f"{self.weights}, which sum to {math.fsum(self.weights):g}",
                remedy="divide each by the sum",
            )

    @property
    def centres(self) -> tuple[tuple[float, ...], ...]:
        """Means of the components, from ``means`` or the layout."""
        return LAYOUTS[self.layout] if self.means is None else self.means

    def check(self, n_latents: int) -> None:
        width = len(self.centres[0])
        if width == n_latents:
            return
        if self.means is None:
            raise InputError(
                problem=f"layout {self.layout!r} of the mixture prior has 2 latents",
                got=Argument("n_latents", n_latents),
                remedy=(
                    "set ",
                    Argument("n_latents", 2),
                    f" or pass means, a row of {n_latents} numbers per component",
                ),
            )
        raise InputError(
            "means",
            "have one number per latent",
            got=f"rows of {width} for {n_latents} latents",
            remedy=("set ", Argument("n_latents", width), f" or pass rows of {n_latents}"),
        )

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> MixturePriorModule:
        self.check(n_latents)
        weights = self.weights or (1.0,) * len(self.centres)
        # The weights add up to 1 only up to the tolerance of the check.
        shares = tuple(weight / math.fsum(weights) for weight in weights)
        return MixturePriorModule(self.centres, shares, self.component_variance)
