"""Shared parts of the likelihoods of counts: proportions, sizes and the usual total."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.data.counts import totals_of
from polariscope.models.likelihoods import AbstractLikelihood, AbstractLikelihoodDistribution

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SizeFactor = Literal["total", "none"]


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractCountDistribution(AbstractLikelihoodDistribution):
    """Independent counts with means ℓρ: a size ℓ for each sample, and the share ρ of each value."""

    log_share: Float[Tensor, "sample *shape"]
    """log ρ: logarithms of proportions that add up to 1, or of rates if samples have no sizes."""
    usual_size: Float[Tensor, ""]
    """ℓ without observations, for the decoder's mean and for draws."""
    has_sizes: bool
    """If True, ℓ is the total of the observation."""
    size: Float[Tensor, " sample"] | None = None
    """ℓ of each sample, if it is fixed."""

    def like(self, x: Float[Tensor, "sample *shape"]) -> AbstractCountDistribution:
        """Return the distribution with the sizes of these observations."""
        return dataclasses.replace(self, size=sizes_of(x)) if self.has_sizes else self

    def at(self, columns: Int[Tensor, " column"]) -> AbstractCountDistribution:
        """Return the distribution of some values; sizes must be fixed or absent."""
        return dataclasses.replace(
            self,
            # Sizes are included here, because the total of some columns is not that of the observation.
            log_share=self.log_mean.flatten(1)[:, columns],
            usual_size=torch.ones_like(self.usual_size),
            has_sizes=False,
            size=None,
        )

    def cumulative(self, x: Float[np.ndarray, "sample value"]) -> Float[np.ndarray, "sample value"]:
        """Return P(X ≤ x); 0 for negative x.

        :param x: integers.
        """
        raise NotImplementedError

    def transform(
        self, x: Float[Tensor, "sample value"], noise: Float[Tensor, "sample value"]
    ) -> Float[Tensor, "sample value"]:
        counts = x.double().cpu().numpy()
        below, upto = self.cumulative(counts - 1), self.cumulative(counts)
        return torch.from_numpy(below + noise.double().cpu().numpy() * (upto - below)).to(x)

    @property
    def log_mean(self) -> Float[Tensor, "sample *shape"]:
        """log ℓρ."""
        size = self.usual_size.expand(len(self.log_share)) if self.size is None else self.size
        # The size of each sample is broadcast over its values.
        return self.log_share + torch.log(size).reshape(-1, *(1 for _ in self.log_share.shape[1:]))

    @property
    def mean(self) -> Float[Tensor, "sample *shape"]:  # type: ignore[override]
        return torch.exp(self.log_mean)

    def of_observations(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """Return log ℓρ with the fixed sizes, or with those of the observations."""
        return self.log_mean if self.size is not None else self.like(x).log_mean


SMALLEST_MEAN = 1e-8
"""Mean that replaces smaller and negative means, which have no finite logarithm."""


def log_means(mean: Float[Tensor, "sample value"]) -> Float[Tensor, "sample value"]:
    """Return the logarithm of means.

    :param mean: means from another model.
    """
    return torch.log(mean.clamp(min=SMALLEST_MEAN))


def sizes_of(x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
    """Return the total of each observation; 1 for an empty one, which has no proportions.

    :param x: counts.
    """
    # The logarithm of 0 would be −∞.
    return x.flatten(1).sum(1).clamp(min=1)


class AbstractCountLikelihood(AbstractLikelihood):
    """A likelihood of counts, with one raw output for each value and log(1 + x) as input of the encoder."""

    needs_counts = True

    @property
    def n_parameters(self) -> int:
        return 1

    def encoder_input(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        return torch.log1p(x)


class CountHead(nn.Module):
    """A head that computes log ρ from raw outputs: a softmax over all values or, without sizes, rates."""

    usual_total: Tensor

    def __init__(self, size_factor: SizeFactor, shape: tuple[int, ...], data: AbstractDataset | None) -> None:
        super().__init__()
        self.has_sizes = size_factor == "total"
        # Without data, the total is loaded from a file later.
        default_total = (
            float(math.prod(shape)) if data is None else max(1.0, float(np.median(totals_of(data))))
        )
        self.register_buffer("usual_total", torch.tensor(default_total))

    def shares(
        self, raw: Float[Tensor, "sample *shape"]
    ) -> tuple[Float[Tensor, "sample *shape"], Float[Tensor, ""]]:
        """Return log ρ and the usual size.

        :param raw: outputs of the decoder.
        """
        flat = raw.flatten(1)
        if self.has_sizes:
            return torch.log_softmax(flat, dim=1).reshape(raw.shape), self.usual_total
        # With rates, the usual size is the mean of a value instead of the total.
        return raw, self.usual_total / flat.shape[1]
