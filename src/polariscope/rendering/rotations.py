"""Rotations as unit quaternions (w, x, y, z), and their classes modulo the symmetry of a solid.

A solid with rotation group G looks the same after the rotations q and q g, g ∈ G. Of all of these, and of q and −q,
which are the same rotation, the *reduced* quaternion is the one with the largest w: the smallest turn.
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
    """The product p q: first the turn q, then p.

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
    """The turn by an angle about an axis.

    :param axis: of any length but 0.
    :param angle: in radians.
    """
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis / np.linalg.norm(axis))])


def matrices(quaternions: Quaternions) -> Float[np.ndarray, "*rotations 3 3"]:
    """Rotation matrices: columns are where the axes go.

    :param quaternions: of length 1.
    """
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def uniform(points: Float[np.ndarray, "point 3"]) -> Float[np.ndarray, "point 4"]:
    r"""Rotations from points of the unit cube, equal volumes to equal volumes.

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
    """The smallest turns that take the z axis to each of these; half a turn about x where it is reversed.

    :param axes: of length 1.
    """
    x, y, z = axes.T
    turns = np.stack([1 + z, -y, x, 0 * z], axis=1)
    turns[z < -1 + _TIE] = (0, 1, 0, 0)
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def generated(*generators: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "element 4"]:
    """The finite group of rotations that some of its elements generate; each rotation once, of its two signs one.

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
    """Each rotation once; q and −q are one."""
    distinct: list[np.ndarray] = []
    for each in quaternions:
        if not distinct or np.abs(np.array(distinct) @ each).max() < 1 - _TIE:
            distinct.append(each)
    return np.array(distinct)


def reduced(
    quaternions: Float[np.ndarray, "rotation 4"], group: Float[np.ndarray, "element 4"]
) -> Float[np.ndarray, "rotation 4"]:
    """Of q g for all g of a finite group, and their negatives, the one with the largest w.

    Where several have it, as on the border of the region of reduced quaternions, it is the largest in the order of
    the alphabet, so the answer depends on the class alone.

    :param quaternions: q, of length 1.
    :param group: g, the rotation group of a solid.
    """
    every = multiply(quaternions[:, np.newaxis], group)
    every = np.concatenate([every, -every], axis=1)
    best = every[np.arange(len(every)), every[..., 0].argmax(axis=1)]
    is_tied = (every[..., 0] > best[:, :1] - _TIE).sum(axis=1) > 1
    for row in np.flatnonzero(is_tied):
        equal = every[row][every[row][:, 0] > best[row, 0] - _TIE]
        best[row] = equal[np.lexsort(equal.round(7).T[::-1])[-1]]
    return best


def reduced_about_axis(
    quaternions: Float[np.ndarray, "rotation 4"], has_two_ends: bool
) -> Float[np.ndarray, "rotation 4"]:
    """The same for solids of revolution: G turns about z, and also turns z over if both ends are alike.

    Only where the axis goes is left, so the reduced quaternion is a tilt: its z part is 0.

    :param quaternions: q, of length 1.
    :param has_two_ends: whether the two ends of the axis cannot be told apart.
    """
    axes = matrices(quaternions)[..., :, 2]
    if has_two_ends:
        x, y, z = np.where(np.abs(axes) < _TIE, 0, axes).T
        is_down = (z < 0) | ((z == 0) & ((x < 0) | ((x == 0) & (y < 0))))
        axes = np.where(is_down[:, np.newaxis], -axes, axes)
    return tilts(axes)
