"""Points in the plane along bent arms: clusters for a mixture prior."""

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
    r"""Arms of a wheel in the plane: Gaussian blobs on the unit circle, turned by an angle that grows outwards.

    .. math:: x = (f_1 \cos\theta + f_2 \sin\theta,\; f_2 \cos\theta - f_1 \sin\theta), \qquad
              \theta = 2\pi c / C + r e^{f_1}, \quad f_1 \sim N(1, s_1^2),\; f_2 \sim N(0, s_2^2)

    with arm c of C, ``rate`` r, and standard deviations s₁ along the radius and s₂ across it. Sample i lies on arm
    i mod C, so all arms have equally many points and any range of at least C indices contains all arms. The factor is
    the arm. The turn moves a point along its circle, so its distance from the centre is that of (f₁, f₂).

    Reference: mathieu2019 App. B, with the generator of R. P. Adams (2008). That generator calls its arguments
    (radial_std, tangential_std) but multiplies the radial coordinate by ``tangential_std``. The published radial
    deviation of 0.1 and tangential deviation of 0.3 therefore give arms 0.3 long and 0.1 thick.
    ``spread="published"`` does the same; ``"as-named"`` applies ``radial_std`` to the radius. Differences: samples
    alternate between the arms instead of filling one after the other. Use another ``seed`` for an independent test set.

    >>> data = PinwheelDataset(n_samples=8)
    >>> data.values([0, 1]).shape, data.factors(range(8))[:, 0].tolist()
    ((2, 2), [0, 1, 2, 3, 0, 1, 2, 3])
    """

    n_samples: Annotated[int, Ge(1)] = 400
    """Number of points."""
    n_arms: Annotated[int, Ge(1)] = 4
    """Number C of arms."""
    radial_std: Annotated[float, Ge(0), Advice("it is a standard deviation")] = 0.1
    """First standard deviation, called radial in the publication; the option spread defines its effect."""
    tangential_std: Annotated[float, Ge(0), Advice("it is a standard deviation")] = 0.3
    """Second standard deviation, called tangential in the publication; the option spread defines its effect."""
    rate: Annotated[float, Advice("0 leaves the arms straight")] = 0.25
    """Bend of the arms, in radians per exp(radius)."""
    spread: Literal["published", "as-named"] = "published"
    """Standard deviation of the radius: the second one, as in the published code, or the first one, as named."""
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
        """Return the arm of each point."""
        return self.check_indices(indices)[:, np.newaxis] % self.n_arms
