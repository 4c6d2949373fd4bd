"""Two half circles in the plane."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset


@dataset("moons")
@dataclasses.dataclass(frozen=True)
class MoonsDataset(AbstractDataset):
    r"""Two half circles that interlock, with Gaussian noise.

    .. math:: x = (\cos t, \sin t) \text{ or } (1 - \cos t, \tfrac12 - \sin t), \qquad t \sim U(0, \pi)

    Even samples lie on the first half circle, odd ones on the second. The factor is the half circle.

    >>> MoonsDataset(n_samples=10).values([0, 1]).shape
    (2, 2)
    """

    n_samples: Annotated[int, Ge(1)] = 400
    """Number of points."""
    noise: Annotated[float, Ge(0)] = 0.1
    """Standard deviation of the noise."""
    seed: int = 0
    """Seed of the points."""

    factor_names = ("moon",)
    factor_sizes = (2,)
    factor_kinds = ("categorical",)

    @property
    def shape(self) -> tuple[int, ...]:
        return (2,)

    def __len__(self) -> int:
        return self.n_samples

    @functools.cached_property
    def _points(self) -> Float[np.ndarray, "sample feature"]:
        rng = generator(self.seed, "moons")
        angle = rng.uniform(0, np.pi, self.n_samples)
        upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        is_upper = np.arange(self.n_samples)[:, np.newaxis] % 2 == 0
        points = np.where(is_upper, upper, np.array([1.0, 0.5]) - upper)
        return (points + self.noise * rng.standard_normal(points.shape)).astype(np.float32)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return self._points[self.check_indices(indices)]

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        """The half circle that each point lies on."""
        return self.check_indices(indices)[:, np.newaxis] % 2
