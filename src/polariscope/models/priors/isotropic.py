"""The isotropic normal prior."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Gt
from torch import Tensor

from polariscope.core.option_values import Advice
from polariscope.models.priors import AbstractNormalPriorModule, AbstractPrior, prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


class IsotropicPriorModule(AbstractNormalPriorModule):
    """p(z) = N(0, s² I)."""

    log_variance: Tensor

    def __init__(self, n_latents: int, scale: float) -> None:
        super().__init__()
        self.n_latents = n_latents
        self.meaning_of_passive = f"its posterior is close to the prior N(0, {scale**2:g}) for every input"
        self.register_buffer("log_variance", torch.full((n_latents,), 2 * math.log(scale)), persistent=False)


@prior("isotropic")
@dataclasses.dataclass(frozen=True)
class IsotropicPrior(AbstractPrior):
    """N(0, s² I), the default prior: it is the same in every direction, so rotating the latents costs nothing.

    Reference: mathieu2019 Thm 2, which requires a posterior that can be rotated as well; the diagonal one cannot.
    """

    scale: Annotated[float, Gt(0), Advice("1 is the standard normal")] = 1.0
    """Standard deviation s of every latent."""

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> IsotropicPriorModule:
        return IsotropicPriorModule(n_latents, self.scale)
