"""A flat rectangle, tilted in space: the linear toy dataset whose principal components are its factors."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float
from numpy.typing import ArrayLike

from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset


@dataset("square-linear")
@dataclasses.dataclass(frozen=True)
class SquareLinearDataset(AbstractDataset):
    r"""Uniform points of a square with one side stretched, embedded in three dimensions and rotated.

    .. math:: x = R\, \mathrm{diag}(r, 1, 0)_{:, 1:2}\, w, \qquad w \sim U([0, 1]^2)

    R turns by 45° about the line through (1, −1, 1) and r is the ``ratio``. The columns of the matrix are
    orthogonal with norms r and 1, so the covariance has eigenvalues r²/12, 1/12 and 0 in expectation. If r ≠ 1, the
    principal components are the factors w. If r = 1, they are degenerate: any rotation of w is one.

    Reference: zietlow2022 §3.3.1 (Synth. Lin.), r = 2; degenerate study r = 1, 1.2, 1.5. The reference does not state
    which side is stretched; here it is the first. As in the reference, the data are not centred.

    >>> data = SquareLinearDataset(n_samples=10)
    >>> data.values([0]).shape, np.linalg.norm(data.matrix, axis=0).round(6).tolist()
    ((1, 3), [2.0, 1.0])
    """

    ratio: Annotated[float, Gt(0)] = 2.0
    """Length of the first side divided by that of the second."""
    n_samples: Annotated[int, Ge(1)] = 50_000
    """Number of points."""
    seed: int = 0
    """Seed of the points."""

    factor_names = ("first", "second")
    factor_sizes = (0, 0)
    factor_kinds = ("continuous", "continuous")

    @property
    def shape(self) -> tuple[int, ...]:
        return (3,)

    def __len__(self) -> int:
        return self.n_samples

    @property
    def matrix(self) -> Float[np.ndarray, "feature factor"]:
        """Matrix of the generator: ``values = factors @ matrix.T``."""
        stretched = np.array([[self.ratio, 0.0], [0.0, 1.0], [0.0, 0.0]])
        return rotation(np.array([1.0, -1.0, 1.0]), math.pi / 4) @ stretched

    @functools.cached_property
    def _points(self) -> Float[np.ndarray, "sample factor"]:
        return generator(self.seed, "square-linear", "points").uniform(size=(self.n_samples, 2))

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        # A sum per row: the rounding of a matrix product can depend on the batch.
        return (self.factors(indices)[:, np.newaxis, :] * self.matrix).sum(axis=2).astype(np.float32)

    def factors(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample factor"]:
        """Return the points w of the unit square."""
        return self._points[self.check_indices(indices)]


def rotation(axis: Float[np.ndarray, " 3"], angle: float) -> Float[np.ndarray, "3 3"]:
    r"""Return the rotation by ``angle`` about ``axis`` (Rodrigues): R = I + sin θ K + (1 − cos θ) K², K v = k × v.

    >>> rotation(np.array([0.0, 0.0, 2.0]), math.pi / 2).round(6).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
