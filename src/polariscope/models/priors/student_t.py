"""Product of Student-t priors."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument
from polariscope.core.option_values import Advice
from polariscope.models.priors import AbstractPrior, AbstractPriorModule, prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

MIN_DEGREES = 0.5  # below it, draws and their squares overflow single precision
OF_LIMITS = (
    "1 is the Cauchy distribution, and for the limit, the normal, use ",
    Argument("prior", "isotropic"),
)
NEARLY_NORMAL = 1e5


class StudentPriorModule(AbstractPriorModule):
    """p(z) = Π t_ν(z_j)."""

    passive_variance: Tensor

    def __init__(self, n_latents: int, degrees: float) -> None:
        super().__init__()
        self.n_latents, self.degrees = n_latents, degrees
        variance = nearest_variance(degrees)
        self.meaning_of_passive = (
            f"its posterior is close to N(0, {variance:.3g}) for every input, the Gaussian nearest to the prior, a "
            f"Student-t with {degrees:g} degrees of freedom"
        )
        self.log_normaliser = (
            math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
        )
        self.register_buffer("passive_variance", torch.full((n_latents,), variance), persistent=False)

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        return self.log_normaliser - (self.degrees + 1) / 2 * torch.log1p(z**2 / self.degrees)

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draw by Box & Muller's method for a t: the first coordinate of a bivariate t in polar coordinates.

        Its radius exceeds r with probability (1 + r²/ν)^(−ν/2) and its angle is uniform, which is exact for every ν.
        Reference: Bailey, Polar generation of random variates with the t-distribution (bailey1994).
        """
        radial, angular = (
            torch.rand(
                (n_samples, self.n_latents),
                generator=generator,
                dtype=self.passive_variance.dtype,
                device=self.passive_variance.device,
            )
            for _ in range(2)
        )
        exponent = (
            -2 / self.degrees * torch.log1p(-radial)
        )  # 1 − radial lies in (0, 1], so no draw is infinite
        radius = torch.sqrt(self.degrees * torch.expm1(exponent))
        return radius * torch.cos(2 * math.pi * angular)

    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        return torch.zeros_like(self.passive_variance), self.passive_variance


def nearest_variance(degrees: float) -> float:
    r"""Return the variance s² of the Gaussian with the smallest KL(N(0, s²) ‖ t_ν).

    The derivative in log s vanishes if :math:`(\nu + 1)\, \mathbb{E}\, \epsilon^2 / (a + \epsilon^2) = 1` for
    ε ~ N(0, 1) and a = ν/s², that is, if

    .. math:: \sqrt\pi\, t\, e^{t^2} \mathrm{erfc}(t) = \nu / (\nu + 1), \qquad t = \sqrt{a/2},

    whose left side grows from 0 to 1, so there is one minimum. Its mean is 0, since t_ν is symmetric and decreases on
    both sides (Anderson's inequality). The variance of t_ν exists only for ν > 2, but s² exists for all ν.

    >>> round(nearest_variance(1.0), 4), round(nearest_variance(1e6), 6)
    (2.6699, 1.000002)
    """
    if degrees > NEARLY_NORMAL:  # 1 + 2/ν + O(ν⁻²), because rounding dominates the equation itself
        return 1 + 2 / degrees
    low, high = math.log(1e-3), math.log(1e3)
    for _ in range(100):
        middle = (low + high) / 2
        t = math.exp(middle)
        # erfcx(t) = e^(t²) erfc(t), whose factors alone would overflow and underflow.
        left = math.sqrt(math.pi) * t * float(torch.special.erfcx(torch.tensor(t, dtype=torch.float64)))
        low, high = (middle, high) if left < degrees / (degrees + 1) else (low, middle)
    return degrees / (2 * math.exp(low + high))


@prior("student-t")
@dataclasses.dataclass(frozen=True)
class StudentPrior(AbstractPrior):
    r"""Independent latents with heavy tails, which make the axes preferred directions: rotating the latents has a cost.

    .. math:: p(z) = \prod_j \frac{\Gamma(\frac{\nu+1}{2})}{\sqrt{\nu\pi}\,\Gamma(\frac\nu2)}
        \left( 1 + \frac{z_j^2}{\nu} \right)^{-\frac{\nu+1}{2}}

    ν → ∞ is the standard normal, ν = 1 the Cauchy distribution. The KL to it is estimated with one draw per sample. The
    posterior of a passive latent is not N(0, 1) but the Gaussian nearest to t_ν, with variance 1 + 2/ν for large ν and
    2.67 for ν = 1.

    Reference: mathieu2019 Fig. 2 and App. B, with β = 1; the authors' repository uses ν = 9.
    """

    degrees_of_freedom: Annotated[float, Ge(MIN_DEGREES), Advice(OF_LIMITS)] = 9.0
    """Degrees of freedom ν, at least 0.5; fewer give heavier tails, 2 or less an infinite variance."""

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> StudentPriorModule:
        return StudentPriorModule(n_latents, self.degrees_of_freedom)
