"""Spike and slab, a prior under which most latents are near 0."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float
from torch import Tensor

from polariscope.core.option_values import Advice
from polariscope.models.priors import AbstractPrior, AbstractPriorModule, prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


class SparsePriorModule(AbstractPriorModule):
    """p(z) = Π (1 − γ) N(z_j; 0, 1) + γ N(z_j; 0, σ₀²)."""

    passive_variance: Tensor

    def __init__(self, n_latents: int, weight: float, scale: float) -> None:
        super().__init__()
        self.n_latents, self.weight, self.scale = n_latents, weight, scale
        nearest, *others = nearest_variances(weight, scale)
        elsewhere = [
            f"; it can also converge to N(0, {variance:.3g}), a worse fit, which does not count as passive"
            for variance in others
        ]
        self.meaning_of_passive = (
            f"its posterior is close to N(0, {nearest:.3g}) for every input, the Gaussian nearest to the "
            "spike-and-slab prior" + "".join(elsewhere)
        )
        self.register_buffer("passive_variance", torch.full((n_latents,), nearest), persistent=False)

    @property
    def is_normal(self) -> bool:
        return self.weight in (0, 1) or self.scale == 1

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        slab = _log_weight(1 - self.weight) - 0.5 * (math.log(2 * math.pi) + z**2)
        square = (z / self.scale) ** 2
        spike = _log_weight(self.weight) - math.log(self.scale) - 0.5 * (math.log(2 * math.pi) + square)
        return torch.logaddexp(slab, spike)

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        like = self.passive_variance
        shape = (n_samples, self.n_latents)
        in_spike = torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device) < self.weight
        noise = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
        return torch.where(in_spike, self.scale * noise, noise)

    def normal(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]] | None:
        if not self.is_normal:
            return None
        return torch.zeros_like(self.passive_variance), torch.log(self.passive_variance)

    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        return torch.zeros_like(self.passive_variance), self.passive_variance


def _log_weight(weight: float) -> float:
    return math.log(weight) if weight > 0 else -math.inf


def nearest_variances(weight: float, scale: float) -> list[float]:
    r"""Return the variances s² at which KL(N(0, s²) ‖ p) has its minima, the deepest first.

    Its derivative in log s is :math:`\mathbb{E}\, z^2 r(z) - 1` for z ~ N(0, s²), with a precision r(z) between 1 and
    1/σ₀², so every minimum has s between σ₀ and 1. There are two minima if the spike is narrow and neither part has
    nearly all the weight (γ = 0.8, σ₀ = 0.05: at 0.053² and 0.69²). The mean is 0, since p is symmetric and decreases
    on both sides (Anderson's inequality).

    The integral is a sum over 2000 points equally spaced in log z, exact to 10 digits or more.
    """
    if weight in (0, 1) or scale == 1:
        return [scale**2 if weight == 1 else 1.0]
    u = np.linspace(math.log(1e-6), math.log(12), 2000)
    noise = np.exp(u)
    # The density of |ε| at e^u, times the derivative e^u of the substitution and the spacing.
    masses = 2 * np.exp(-(noise**2) / 2) / math.sqrt(2 * math.pi) * noise * (u[1] - u[0])

    def parts(s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        z2 = (s * noise) ** 2
        slab = math.log1p(-weight) - z2 / 2
        spike = math.log(weight) - math.log(scale) - z2 / (2 * scale**2)
        return z2, slab, spike

    def slope(log_s: float) -> float:
        z2, slab, spike = parts(math.exp(log_s))
        # The exponential of more than 700 overflows.
        share = 1 / (1 + np.exp(np.clip(slab - spike, -700, 700)))
        return float(masses @ (z2 * (1 - share + share / scale**2))) - 1

    def divergence(log_s: float) -> float:  # up to a constant
        _, slab, spike = parts(math.exp(log_s))
        return -log_s - float(masses @ np.logaddexp(slab, spike))

    grid = np.linspace(math.log(scale), 0.0, 200)
    # At the ends the sign of the slope is known.
    rising = np.array([False, *(slope(x) > 0 for x in grid[1:-1]), True])
    minima = []
    # Intervals in which the slope changes from negative to positive contain a minimum.
    for low, high in zip(
        grid[:-1][~rising[:-1] & rising[1:]], grid[1:][~rising[:-1] & rising[1:]], strict=True
    ):
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        minima.append((low + high) / 2)
    return [math.exp(2 * log_s) for log_s in sorted(minima, key=divergence)]


@prior("sparse")
@dataclasses.dataclass(frozen=True)
class SparsePrior(AbstractPrior):
    r"""Independent latents, each near 0 with probability γ and standard normal otherwise: a spike and a slab.

    .. math:: p(z) = \prod_j (1 - \gamma)\, N(z_j; 0, 1) + \gamma\, N(z_j; 0, \sigma_0^2)

    γ = 0 or σ₀ = 1 is the standard normal, for which the KL is exact; otherwise it is estimated with one draw per
    sample. If γ is large, a passive latent lies in the spike: its posterior variance is about σ₀², not 1. A latent that
    lies in the spike for some inputs and outside it for others is mixed, as expected of a sparse code.

    Reference: mathieu2019 §6.3 and App. B, γ ∈ {0, 0.9} (the authors' repository uses 0.8). They contradict each other:
    the text has a variance of 0.05, the appendix and the code a standard deviation of 0.05, which is used here.
    """

    spike_weight: Annotated[float, Ge(0), Le(1), Advice("it is a probability")] = 0.9
    """Probability γ of the spike, from 0 (the standard normal) to 1."""
    spike_scale: Annotated[
        float, Ge(1e-4), Le(1), Advice("1 is the slab's standard deviation, 0.05 is usual")
    ] = 0.05
    """Standard deviation σ₀ of the spike, at most 1, that of the slab; the paper's text has √0.05 = 0.2236."""

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> SparsePriorModule:
        return SparsePriorModule(n_latents, self.spike_weight, self.spike_scale)
