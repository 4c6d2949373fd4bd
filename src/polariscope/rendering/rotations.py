"""Rotations as unit quaternions (w, x, y, z), and their classes modulo the symmetry of a solid.

A solid with rotation group G looks the same after the rotations q and q g, g ∈ G. Since q and −q are the same rotation,
the *reduced* quaternion is the one of all ±q g with the largest w, which is the smallest turn.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

Quaternions = Float[np.ndarray, "*rotations 4"]
_TIE = 1e-9


def multiply(
    first: Float[np.ndarray, "*#rotations 4"], second: Float[np.ndarray, "*#rotations 4"]
) -> Quaternions:
    """Return the product p q: first the turn q, then p.

    >>> multiply(np.array([0.0, 1, 0, 0]), np.array([0.0, 0, 1, 0])).tolist()
    [0.0, 0.0, 0.0, 1.0]

    :param first: p.
    :param second: q.
    """
    a, b, c, d = np.moveaxis(first, -1, 0)
    w, x, y, z = np.moveaxis(second, -1, 0)
    product = (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )
    return np.stack(product, axis=-1)


def about(axis: Float[np.ndarray, " 3"], angle: float) -> Float[np.ndarray, " 4"]:
    """Return the turn by an angle about an axis.

    :param axis: vector of any nonzero length.
    :param angle: angle in radians.
    """
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis / np.linalg.norm(axis))])


def matrices(quaternions: Quaternions) -> Float[np.ndarray, "*rotations 3 3"]:
    """Return rotation matrices, whose columns are the images of the axes.

    :param quaternions: unit quaternions.
    """
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def uniform(points: Float[np.ndarray, "point 3"]) -> Float[np.ndarray, "point 4"]:
    r"""Map points of the unit cube to rotations, with equal volumes mapped to equal volumes.

    .. math:: (\sqrt{1-a} \sin 2πb,\; \sqrt{1-a} \cos 2πb,\; \sqrt{a} \sin 2πc,\; \sqrt{a} \cos 2πc)

    Reference: Shoemake, Uniform Random Rotations, 1992.

    :param points: (a, b, c), each from 0 to 1.
    """
    a, b, c = points.T
    inner, outer = np.sqrt(1 - a), np.sqrt(a)
    first, second = 2 * math.pi * b, 2 * math.pi * c
    parts = (inner * np.sin(first), inner * np.cos(first), outer * np.sin(second), outer * np.cos(second))
    return np.stack(parts, axis=1)


def tilts(axes: Float[np.ndarray, "axis 3"]) -> Float[np.ndarray, "axis 4"]:
    """Return the smallest turns that map the z axis to each axis; half a turn about x for the reversed z axis.

    :param axes: unit vectors.
    """
    x, y, z = axes.T
    # For unit vectors a and b, (1 + a·b, a × b) is a multiple of the quaternion that turns a to b.
    turns = np.stack([1 + z, -y, x, 0 * z], axis=1)
    # For opposite vectors it vanishes, and half a turn about any horizontal axis would do.
    turns[z < -1 + _TIE] = (0, 1, 0, 0)
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def generated(*generators: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "element 4"]:
    """Return the finite group that these rotations generate; each rotation occurs once, with one of its two signs.

    :param generators: rotations.
    """
    elements = np.array([[1.0, 0, 0, 0]])
    while True:
        products = [elements, *(multiply(elements, each) for each in generators)]
        larger = _distinct(np.concatenate(products))
        if len(larger) == len(elements):
            return elements
        elements = larger


def _distinct(quaternions: Float[np.ndarray, "rotation 4"]) -> Float[np.ndarray, "element 4"]:
    """Return each rotation once; q and −q are the same."""
    distinct: list[np.ndarray] = []
    for each in quaternions:
        # The product of unit quaternions is ±1 for equal rotations.
        if not distinct or np.abs(np.array(distinct) @ each).max() < 1 - _TIE:
            distinct.append(each)
    return np.array(distinct)


def reduced(
    quaternions: Float[np.ndarray, "rotation 4"], group: Float[np.ndarray, "element 4"]
) -> Float[np.ndarray, "rotation 4"]:
    """Return the quaternion with the largest w among ±q g for all g of a finite group.

    If several have the largest w, as on the border of the region of reduced quaternions, the last one in
    lexicographic order is returned, so the result depends only on the class.

    :param quaternions: unit quaternions q.
    :param group: elements g of the rotation group of a solid.
    """
    every = multiply(quaternions[:, np.newaxis], group)
    every = np.concatenate([every, -every], axis=1)
    best = every[np.arange(len(every)), every[..., 0].argmax(axis=1)]
    is_tied = (every[..., 0] > best[:, :1] - _TIE).sum(axis=1) > 1
    for row in np.flatnonzero(is_tied):
        equal = every[row][every[row][:, 0] > best[row, 0] - _TIE]
        # lexsort sorts by its last key first. Rounded, so rounding errors do not decide.
        best[row] = equal[np.lexsort(equal.round(7).T[::-1])[-1]]
    return best


def reduced_about_axis(
    quaternions: Float[np.ndarray, "rotation 4"], has_two_ends: bool
) -> Float[np.ndarray, "rotation 4"]:
    """Return reduced quaternions for solids of revolution: G turns about z, and also reverses z if both ends are alike.

    Only the direction of the axis matters, so the reduced quaternion is a tilt: its z part is 0.

    :param quaternions: unit quaternions q.
    :param has_two_ends: if True, the two ends of the axis are alike.
    """
    axes = matrices(quaternions)[..., :, 2]
    if has_two_ends:
        # Rounding errors around 0 must not decide which end is up.
        x, y, z = np.where(np.abs(axes) < _TIE, 0, axes).T
        is_down = (z < 0) | ((z == 0) & ((x < 0) | ((x == 0) & (y < 0))))
        axes = np.where(is_down[:, np.newaxis], -axes, axes)
    return tilts(axes)
