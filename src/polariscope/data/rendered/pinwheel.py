"""Points in the plane along bent arms: clusters for a clustered prior."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from polariscope.core.option_values import Advice
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset


@dataset("pinwheel")
@dataclasses.dataclass(frozen=True)
class PinwheelDataset(AbstractDataset):
    r"""Arms of a wheel in the plane: Gaussian blobs on the unit circle, each point turned further the farther out.

    .. math:: x = (f_1 \cos\theta + f_2 \sin\theta,\; f_2 \cos\theta - f_1 \sin\theta), \qquad
              \theta = 2\pi c / C + r e^{f_1}, \quad f_1 \sim N(1, s_1^2),\; f_2 \sim N(0, s_2^2)

    with arm c of C, ``rate`` r, and standard deviations s₁ along the radius and s₂ across it. Sample i lies on
    arm i mod C, so the arms have equally many points and any stretch of indices holds them all. The factor
    is the arm. Turning only moves a point along its circle: its distance from the centre is that of (f₁, f₂).

    Reference: mathieu2019 App. B, with the generator of R. P. Adams (2008). That generator calls its arguments
    (radial_std, tangential_std) but multiplies the radial coordinate by ``tangential_std``, so what was
    published as a radial deviation of 0.1 and a tangential one of 0.3 are arms 0.3 long and 0.1 thick.
    ``spread="published"`` does the same; ``"as-named"`` gives the radius ``radial_std``. Ours: the arms in turn
    instead of one after the other; another ``seed`` is an independent test set.

    >>> data = PinwheelDataset(n_samples=8)
    >>> data.values([0, 1]).shape, data.factors(range(8))[:, 0].tolist()
    ((2, 2), [0, 1, 2, 3, 0, 1, 2, 3])
    """

    n_samples: Annotated[int, Ge(1)] = 400
    """Number of points."""
    n_arms: Annotated[int, Ge(1)] = 4
    """Number C of arms."""
    radial_std: Annotated[float, Ge(0), Advice("it is a standard deviation")] = 0.1
    """The first standard deviation, called radial where it was published; see ``spread`` for what it does."""
    tangential_std: Annotated[float, Ge(0), Advice("it is a standard deviation")] = 0.3
    """The second standard deviation, called tangential where it was published; see ``spread``."""
    rate: Annotated[float, Advice("0 leaves the arms straight")] = 0.25
    """How far the arms are bent: radians per exp(radius)."""
    spread: Literal["published", "as-named"] = "published"
    """Which deviation the radius gets: ``tangential_std``, as the published code does, or the one so named."""
    seed: int = 0
    """Seed of the points."""

    factor_names = ("arm",)
    factor_kinds = ("categorical",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor_sizes", (self.n_arms,))

    @property
    def shape(self) -> tuple[int, ...]:
        return (2,)

    def __len__(self) -> int:
        return self.n_samples

    @functools.cached_property
    def _rows(self) -> Float[np.ndarray, "sample feature"]:
        along, across = self.tangential_std, self.radial_std
        if self.spread == "as-named":
            along, across = across, along
        noise = generator(self.seed, "pinwheel").standard_normal((self.n_samples, 2))
        radial, tangential = 1 + along * noise[:, 0], across * noise[:, 1]
        angle = 2 * np.pi * (np.arange(self.n_samples) % self.n_arms) / self.n_arms
        angle += self.rate * np.exp(radial)
        cos, sin = np.cos(angle), np.sin(angle)
        turned = [radial * cos + tangential * sin, tangential * cos - radial * sin]
        return np.stack(turned, axis=1).astype(np.float32)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return self._rows[self.check_indices(indices)]

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        """The arm that a point lies on."""
        return self.check_indices(indices)[:, np.newaxis] % self.n_arms
