"""A square bent by a random network: the non-linear toy dataset with two factors."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float
from numpy.typing import ArrayLike

from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset

_WIDTHS = (2, 10, 6)


@dataset("square-nonlinear")
@dataclasses.dataclass(frozen=True)
class SquareNonlinearDataset(AbstractDataset):
    r"""Uniform points of a square, mapped by a random network with one hidden layer.

    .. math:: x = B \tanh(A w + a) + b, \qquad w \sim U([0, 1]^2)

    with A (10 × 2), a, B (6 × 10), b drawn once. ``uniform`` draws all of them from U(±1/√fan_in), the default of
    PyTorch; ``normal`` draws them from N(0, 1). ``gain`` then multiplies A and B. With the uniform default the map is
    nearly linear and its outputs vary little. ``singular_value_ratio`` measures how much the local stretching of the
    two directions differs, and a larger gain bends the square more.

    Reference: zietlow2022 §3.3.1 (Synth. Non-Lin.). The reference does not state the distribution of the weights, or
    whether the output has a tanh; here it has none.

    >>> data = SquareNonlinearDataset(n_samples=10)
    >>> data.values([0]).shape, bool((data.singular_value_ratio(range(10)) >= 1).all())
    ((1, 6), True)
    """

    gain: Annotated[float, Gt(0)] = 1.0
    """Factor on the weights of both layers, not on the biases."""
    weights: Literal["uniform", "normal"] = "uniform"
    """Distribution of weights and biases."""
    n_samples: Annotated[int, Ge(1)] = 50_000
    """Number of points."""
    seed: int = 0
    """Seed of the points."""
    network_seed: int = 0
    """Seed of the network."""

    factor_names = ("first", "second")
    factor_sizes = (0, 0)
    factor_kinds = ("continuous", "continuous")

    @property
    def shape(self) -> tuple[int, ...]:
        return (_WIDTHS[-1],)

    def __len__(self) -> int:
        return self.n_samples

    @functools.cached_property
    def layers(self) -> tuple[tuple[Float[np.ndarray, "out in"], Float[np.ndarray, " out"]], ...]:
        """Weights and biases of the two layers: (A, a), (B, b)."""
        random = generator(self.network_seed, "square-nonlinear", "network")

        def draw(fan_in: int, *shape: int) -> np.ndarray:
            if self.weights == "normal":
                return random.standard_normal(shape)
            return random.uniform(-1, 1, size=shape) / math.sqrt(fan_in)

        pairs = itertools.pairwise(_WIDTHS)
        return tuple((self.gain * draw(n_in, n_out, n_in), draw(n_in, n_out)) for n_in, n_out in pairs)

    @functools.cached_property
    def _points(self) -> Float[np.ndarray, "sample factor"]:
        return generator(self.seed, "square-nonlinear", "points").uniform(size=(self.n_samples, 2))

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        _, (matrix, bias) = self.layers
        # Sums per row: the rounding of matrix products can depend on the batch.
        return ((self._hidden(indices)[:, np.newaxis, :] * matrix).sum(axis=2) + bias).astype(np.float32)

    def _hidden(self, indices: Any) -> Float[np.ndarray, "sample hidden"]:
        matrix, bias = self.layers[0]
        return np.tanh((self.factors(indices)[:, np.newaxis, :] * matrix).sum(axis=2) + bias)

    def factors(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample factor"]:
        """Return the points w of the unit square."""
        return self._points[self.check_indices(indices)]

    def jacobian(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature factor"]:
        """Return ∂x/∂w = B diag(1 − tanh²) A at each point.

        :param indices: indices of the observations, from 0.
        """
        (first, _), (second, _) = self.layers
        slopes = 1 - self._hidden(indices) ** 2
        return np.einsum("oh,nh,hi->noi", second, slopes, first)

    def singular_value_ratio(self, indices: ArrayLike | int) -> Float[np.ndarray, " sample"]:
        """Return the largest divided by the smallest singular value of the Jacobian; 1 if both directions are alike.

        :param indices: indices of the observations, from 0.
        """
        singular = np.linalg.svd(self.jacobian(indices), compute_uv=False)
        return singular[:, 0] / singular[:, 1]
