"""Bounds on the change of an observation: at most ε, and within [0, 1] for values in that range."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional

LEVELS = 255
"""Largest value of a byte."""
SLACK = 1e-5
"""Rounding tolerance in units of one byte: 255 times a float32 of n / 255 is off by less than this."""


def moved(
    x: Float[Tensor, "sample *shape"], m: Float[Tensor, "sample *shape"], epsilon: float, *, reflects: bool
) -> Float[Tensor, "sample *shape"]:
    r"""Return manipulated observations, differentiable with respect to the manipulation.

    .. math:: x' = r(x + \varepsilon m), \qquad r(y) = y - 2\,\mathrm{ReLU}(y - 1) + 2\,\mathrm{ReLU}(-y)

    r reflects at 0 and 1. It never increases the distance between two points and leaves [0, 1] unchanged, therefore |x'
    − x| ≤ ε for |m| ≤ 1. zietlow2022 §4.3.1 prints r with x instead of x + εm.

    :param x: observations.
    :param m: the manipulation, in [−1, 1].
    :param epsilon: largest change ε of a value.
    :param reflects: If True, values lie in [0, 1] and must stay there.
    """
    y = x + epsilon * m
    return y - 2 * functional.relu(y - 1) + 2 * functional.relu(-y) if reflects else y


def moved_values(
    x: Float[np.ndarray, "sample *shape"],
    m: Float[np.ndarray, "sample *shape"],
    epsilon: float,
    *,
    reflects: bool,
) -> Float[np.ndarray, "sample *shape"]:
    """Return manipulated observations as arrays; see :func:`moved`.

    :param x: observations.
    :param m: the manipulation, in [−1, 1].
    :param epsilon: largest change ε of a value.
    :param reflects: If True, values lie in [0, 1] and must stay there.

    >>> moved_values(np.array([0.0, 0.5, 1.0]), np.array([-1.0, 1.0, 0.5]), 0.25, reflects=True).tolist()
    [0.25, 0.75, 0.875]
    """
    y = x + epsilon * m
    # The same reflection as in moved, for y in [−1, 2].
    return 1 - np.abs(1 - np.abs(y)) if reflects else y


def moved_bytes(
    x: Float[np.ndarray, "sample *shape"], m: Float[np.ndarray, "sample *shape"], epsilon: float
) -> UInt8[np.ndarray, "sample *shape"]:
    """Return manipulated images as bytes: the nearest byte, or the next one towards x if the nearest is further than ε.

    :param x: images in [0, 1].
    :param m: the manipulation, in [−1, 1].
    :param epsilon: largest change ε of a value, at least 1/255.

    >>> moved_bytes(np.array([100 / 255, 0.0]), np.array([1.0, -1.0]), 0.1).tolist()
    [125, 25]
    """
    x = x.astype(np.float64)
    nearest = np.rint(LEVELS * moved_values(x, m, epsilon, reflects=True))
    lowest = np.maximum(np.ceil(LEVELS * (x - epsilon) - SLACK), 0)
    highest = np.minimum(np.floor(LEVELS * (x + epsilon) + SLACK), LEVELS)
    return np.clip(nearest, lowest, highest).astype(np.uint8)
