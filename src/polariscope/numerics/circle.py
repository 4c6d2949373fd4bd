"""Mean direction of angles."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

ROUNDING = 1e-9


def mean_direction(
    angles: Float[np.ndarray, "*batch angle"], otherwise: Float[np.ndarray, ""] | float = 0.0
) -> Float[np.ndarray, "*batch"]:
    r"""Return the direction of the mean of e^{iθ} over the last axis, in radians.

    It is the φ with the smallest mean squared chord, :math:`\overline{|e^{i\theta} - e^{i\varphi}|^2} = 2 - 2R
    \cos(\varphi - \bar\theta)`, with R the length of the mean.

    :param angles: angles in radians.
    :param otherwise: (default 0) value if the angles cancel, so the direction is undefined.

    >>> mean_direction(np.array([[0.1, 0.3], [0.0, np.pi]]), otherwise=9.0).round(6)
    array([0.2, 9. ])
    """
    mean = np.exp(1j * np.asarray(angles)).mean(axis=-1)
    # A mean of length 0 has an arbitrary angle, which rounding would decide.
    return np.where(np.abs(mean) > ROUNDING, np.angle(mean), otherwise)
