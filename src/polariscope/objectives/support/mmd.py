"""The maximum mean discrepancy as a term of objectives."""

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
    """σ_z: root of the mean variance of a normal prior's latents, 1 for any other prior."""
    normal = prior.normal()
    return 1.0 if normal is None else normal[1].detach().exp().mean().sqrt()


@dataclasses.dataclass(frozen=True)
class AbstractMmdObjective(AbstractObjective):
    """An objective that holds q(z) to the prior by the maximum mean discrepancy of a batch and as many draws."""

    kernel: Kernel = "imq"
    """Kernel: inverse multiquadratic of the distance squared, of each latent alone, or unsquared; or Gaussian."""
    kernel_width: Annotated[float, Gt(0), Advice("leave it out to use the prior's")] | None = None
    """Width σ of the kernel; none: the prior's (1 unless it is normal), and for rbf the median distance."""
    kernel_scales: tuple[Annotated[float, Gt(0)], ...] = SCALES
    """Multiples of the base width C over which inverse multiquadratics are added; rbf has none."""
    estimator: Estimator = "unbiased"
    """Leave pairs of a point with itself out, so the value is right on average and may be negative, or not."""

    def __post_init__(self) -> None:
        if not self.kernel_scales:
            raise InputError(
                "kernel_scales",
                "be one or more positive numbers",
                got=self.kernel_scales,
                remedy="a single 1 is one kernel of the base width",
            )

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if self.estimator == "unbiased":
            refuse_single_samples(
                batch_size, "the unbiased discrepancy compares different samples of a batch"
            )

    def discrepancy(self, step: Step, z: Float[Tensor, "sample latent"]) -> Float[Tensor, ""]:
        """MMD² between z ~ q(z|x) of a batch and as many draws from the prior.

        A batch of one, as the last of a validation pass may be, has the biased value only.

        :param step: the model, whose prior is compared with, and the batch that z was drawn for.
        :param z: one draw per sample from the posterior.
        :param generator: where the prior's draws come from.
        """
        prior = step.model.prior.given(step.batch.auxiliary)
        width: Width | None = self.kernel_width
        if width is None and self.kernel != "rbf":
            width = prior_width(prior)
        estimator = self.estimator if len(z) > 1 else "biased"
        draws = prior.sample(len(z), step.generator)
        return mmd(z, draws, self.kernel, width, self.kernel_scales, estimator)
