"""Maximum mean discrepancy as a term of objectives."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.data.dataset import AbstractDataset
from polariscope.models.kernels import SCALES, Estimator, Kernel, Width, mmd
from polariscope.models.model import Blueprint
from polariscope.models.priors import AbstractPriorDistribution
from polariscope.objectives import AbstractObjective, Step
from polariscope.objectives.support.refusals import refuse_single_samples


def prior_width(prior: AbstractPriorDistribution) -> Width:
    """Return σ_z, the root of the mean variance of a normal prior's latents, or 1 for any other prior."""
    normal = prior.normal()
    # Detached, because the width of a kernel must not be trained through the prior.
    return 1.0 if normal is None else normal[1].detach().exp().mean().sqrt()


@dataclasses.dataclass(frozen=True)
class AbstractMmdObjective(AbstractObjective):
    """Objective that matches q(z) to the prior by the maximum mean discrepancy between a batch and prior draws."""

    kernel: Kernel = "imq"
    """Kernel: inverse multiquadratic of the squared distance (imq), of each latent alone (imq-per-latent) or of the
    distance (imq-unsquared), or Gaussian (rbf)."""
    kernel_width: Annotated[float, Gt(0), Advice("omit it to use the prior's")] | None = None
    """Width σ of the kernel; by default that of the prior (1 if it is not normal), and the median distance for rbf."""
    kernel_scales: tuple[Annotated[float, Gt(0)], ...] = SCALES
    """Multiples of the base width C whose inverse multiquadratics are added; unused by rbf."""
    estimator: Estimator = "unbiased"
    """Estimator: "unbiased" omits pairs of a point with itself and can be negative; "biased" includes them."""

    def __post_init__(self) -> None:
        if not self.kernel_scales:
            raise InputError(
                "kernel_scales",
                "be one or more positive numbers",
                got=self.kernel_scales,
                remedy="use a single 1 for one kernel of the base width",
            )

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if self.estimator == "unbiased":
            refuse_single_samples(
                batch_size, "the unbiased discrepancy compares different samples of a batch"
            )

    def discrepancy(self, step: Step, z: Float[Tensor, "sample latent"]) -> Float[Tensor, ""]:
        """Return MMD² between z ~ q(z|x) of a batch and as many draws from the prior.

        For a batch of one sample, which can occur at the end of a validation pass, the biased value is used.

        :param step: step with the model, the batch and the generator of the prior's draws.
        :param z: one draw per sample from the posterior.
        """
        prior = step.model.prior.given(step.batch.auxiliary)
        width: Width | None = self.kernel_width
        if width is None and self.kernel != "rbf":
            width = prior_width(prior)
        estimator = self.estimator if len(z) > 1 else "biased"
        draws = prior.sample(len(z), step.generator)
        return mmd(z, draws, self.kernel, width, self.kernel_scales, estimator)
