"""Bernoulli likelihood of pixels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.models.likelihoods import (
    AbstractLikelihood,
    AbstractLikelihoodDistribution,
    Fitted,
    Residuals,
    likelihood,
)

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@dataclasses.dataclass(frozen=True, eq=False)
class BernoulliDistribution(AbstractLikelihoodDistribution):
    """Independent pixels with these logits."""

    logits: Float[Tensor, "sample *shape"]

    @property
    def mean(self) -> Float[Tensor, "sample *shape"]:  # type: ignore[override]
        return torch.sigmoid(self.logits)

    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        losses = nn.functional.binary_cross_entropy_with_logits(self.logits, x, reduction="none")
        return -losses.flatten(1).sum(1)

    def at(self, columns: Int[Tensor, " column"]) -> BernoulliDistribution:
        return BernoulliDistribution(self.logits.flatten(1)[:, columns])

    @property
    def variance(self) -> Float[Tensor, "sample *shape"]:
        return self.mean * (1 - self.mean)

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        return torch.bernoulli(self.mean, generator=generator)


class BernoulliHead(nn.Module):
    """A head whose raw outputs are logits."""

    def forward(self, raw: Float[Tensor, "sample *shape"]) -> BernoulliDistribution:
        return BernoulliDistribution(raw)


@likelihood("bernoulli")
@dataclasses.dataclass(frozen=True)
class BernoulliLikelihood(AbstractLikelihood):
    r"""Cross-entropy of pixels in [0, 1], used as soft targets.

    .. math:: \log p(x|z) = \sum_p x_p \log \pi_p + (1 - x_p) \log(1 - \pi_p), \quad \pi = \mathrm{sigmoid}(\ell)

    This is the likelihood of the literature for every image dataset, including colour (bonheme2023 Tabs A.1, C.1, D.1).
    For grey values its minimum is the entropy of the data, not 0.
    """

    needs_unit_interval = True

    @property
    def n_parameters(self) -> int:
        return 1

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:  # noqa: ARG003
        """Return the likelihood with these means, clipped to 0.01 … 0.99; it has no other parameter."""
        # A probability of 0 or 1 would make a single value infinitely unlikely.
        return 0.0, BernoulliDistribution(torch.logit(mean.clamp(0.01, 0.99)))

    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> BernoulliHead:
        return BernoulliHead()
