"""Correlation between two factors."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float, Int

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.core.seeds import uniforms
from polariscope.data.variants import variant
from polariscope.data.variants.support.subsets import AbstractSelection, column_of, factors_of


@variant("correlated", of="anything", example="correlated:first=scale,second=x")
@dataclasses.dataclass(frozen=True)
class CorrelatedVariant(AbstractSelection):
    r"""Observations resampled with replacement, such that two factors are correlated.

    An observation whose factors have the values i of n_i and j of n_j, counted from 0, is drawn with probability

    .. math:: p \propto \exp\left(-\frac{1}{2 s^2}\left(\frac{i}{n_i - 1} - \frac{j}{n_j - 1}\right)^2\right)

    On a full grid of factors this is the joint distribution of the two, and all others are uniform and independent of
    them. On other data it is relative to the frequency of each combination. s → ∞ leaves the data unchanged, and s → 0
    keeps only the diagonal. The observation at index k is a function of k and the seed. The same observation can be
    drawn several times, and then be in both the training and the test split.

    Reference: Träuble et al., On Disentangled Representations Learned from Correlated Data (traeuble2021), Eq. 1, with
    positions relative to the largest value, as in its α; s = 0.2 is strong, 0.7 weak.
    """

    first: str
    """Name of a factor."""
    second: str
    """Name of the factor that is correlated with it."""
    spread: Annotated[float, Gt(0), Advice("0.2 is a strong correlation")] = 0.2
    """Width s of the band around the diagonal."""
    n: Annotated[int, Ge(1)] | None = None
    """Number of draws; None for the size of the base."""
    seed: int = 0
    """Seed of the draws."""

    def check(self) -> None:
        if self.first == self.second:
            raise InputError("first and second", "be two factors", got=f"{self.first!r} twice")
        for name in (self.first, self.second):
            if self.base.factor_sizes[column_of(self.base, name)] < 2:
                raise InputError(
                    f"factor {name!r}",
                    "have two values or more, since they are counted",
                    got="a continuous factor or a constant",
                )

    @functools.cached_property
    def probabilities(self) -> Float[np.ndarray, " sample"]:
        """Probability with which each observation of the base is drawn."""
        columns = [column_of(self.base, name) for name in (self.first, self.second)]
        last = np.array([self.base.factor_sizes[column] - 1 for column in columns])
        positions = factors_of(self.base, columns) / last
        gap = positions[:, 0] - positions[:, 1]
        # Relative to the smallest gap, since otherwise all weights are 0 if no observation lies in a narrow band.
        weights = np.exp(-(gap**2 - (gap**2).min()) / (2 * self.spread**2))
        return weights / weights.sum()

    def __len__(self) -> int:
        return len(self.base) if self.n is None else self.n

    def choose(self) -> Int[np.ndarray, " sample"]:
        cumulative = np.cumsum(self.probabilities)
        draws = uniforms(self.seed, "correlated", indices=np.arange(len(self)), width=1)[:, 0]
        # Rounding can leave the sum slightly below 1, so draws are scaled to it.
        return np.searchsorted(cumulative, draws * cumulative[-1], side="right")
