"""Human figures built from their poses: toy figures of one material."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from polariscope.rendering.mesh import (
    Mesh,
    Number,
    box,
    ellipsoid,
    join,
    limb,
    plate,
    tube,
)

Angles = tuple[Number, Number, Number, Number]


@dataclasses.dataclass(frozen=True)
class Human:
    """A pose. The angles of a limb, in degrees, are those of its upper part ahead and sideways, then of its lower part.

    At 0 a limb points down; at 90 it points ahead or sideways.
    """

    name: str
    """Name of the figure."""
    left_arm: Angles
    """Angles of the left arm."""
    right_arm: Angles
    """Angles of the right arm."""
    left_leg: Angles = (0, 6, 0, 4)
    """Angles of the left leg."""
    right_leg: Angles = (0, 6, 0, 4)
    """Angles of the right leg."""
    build: float = 1.0
    """Breadth of the body, relative to the default."""
    lean: float = 0.0
    """Angle by which the body bends ahead, in degrees."""
    hat: Literal["none", "brim", "helmet", "tall", "cone"] = "none"
    """Kind of hat."""
    holds: Literal["nothing", "staff", "rifle", "sword", "case"] = "nothing"
    """Object in the right hand."""
    shield: bool = False
    """If True, there is a round shield on the left arm."""
    skirt: float = 0.0
    """Length of a skirt, as a share of the legs."""
    pack: bool = False
    """If True, there is a pack on the back."""
    cape: bool = False
    """If True, there is a cape."""


HUMANS = (
    Human(
        "walker", left_arm=(-30, 8, 5, 4), right_arm=(32, 8, 60, 4), left_leg=(30, 3, 10, 3),
        right_leg=(-25, 3, -45, 3),
    ),
    Human(
        "soldier", left_arm=(55, 5, 80, -40), right_arm=(20, 12, 85, -35), left_leg=(12, 12, 5, 12),
        right_leg=(-10, 12, -8, 12), hat="helmet", holds="rifle", pack=True,
    ),
    Human(
        "dancer", left_arm=(10, 95, 10, 150), right_arm=(10, 80, 10, 120), left_leg=(0, 5, 0, 5),
        right_leg=(20, 45, -40, 20), build=0.85, skirt=0.55,
    ),
    Human(
        "wizard", left_arm=(15, 15, 50, 5), right_arm=(50, 20, 90, 10), left_leg=(0, 5, 0, 5),
        right_leg=(0, 5, 0, 5), hat="cone", holds="staff", skirt=0.93,
    ),
    Human(
        "cowboy", left_arm=(5, 38, 15, -35), right_arm=(5, 38, 20, -30), left_leg=(5, 20, -5, 12),
        right_leg=(0, 20, 0, 12), build=1.05, hat="brim",
    ),
    Human(
        "runner", left_arm=(-60, 8, 30, 0), right_arm=(60, 8, 130, -10), left_leg=(70, 3, -15, 3),
        right_leg=(-35, 3, -95, 3), build=0.92, lean=18.0,
    ),
    Human(
        "knight", left_arm=(35, 18, 80, -15), right_arm=(160, 15, 175, 10), left_leg=(20, 12, 5, 10),
        right_leg=(-18, 12, -15, 10), build=1.15, hat="helmet", holds="sword", shield=True,
    ),
    Human(
        "gymnast", left_arm=(0, 165, 0, 172), right_arm=(0, 165, 0, 172), left_leg=(0, 32, 0, 32),
        right_leg=(0, 32, 0, 32), build=0.9,
    ),
    Human(
        "hero", left_arm=(5, 42, -5, -55), right_arm=(5, 42, -5, -55), left_leg=(0, 16, 0, 14),
        right_leg=(0, 16, 0, 14), build=1.25, cape=True,
    ),
    Human(
        "gentleman", left_arm=(10, 10, 25, 0), right_arm=(12, 14, 8, 6), left_leg=(12, 4, 4, 4),
        right_leg=(-12, 4, -14, 4), hat="tall", holds="case",
    ),
)  # fmt: skip
_HIPS, _SHOULDERS = 0.92, 1.45  # metres above the ground, of an upright body


def human(of: Human) -> Mesh:
    """Build the body of a figure that faces ahead, on a round base.

    :param of: its pose.
    """
    wide = of.build
    torso = [
        tube([(0, 0, 0.86), (0, 0, 0.92), (0, 0, 1.1), (0, 0, 1.34), (0, 0, 1.46), (0, 0, 1.52)],
             (0.12 * wide, 0.17 * wide, 0.145 * wide, 0.2 * wide, 0.17 * wide, 0.07), 14).scaled(0.72, 1, 1),
        limb((0, 0, 1.5), (0.01, 0, 1.6), 0.065, 0.06),
        ellipsoid(0.115, 0.095, 0.135).moved(0.02, 0, 1.71),
        ellipsoid(0.03, 0.02, 0.03, 8).moved(0.135, 0, 1.7),
        *_hat(of),
    ]  # fmt: skip
    left, right = _arm(of.left_arm, wide, 1), _arm(of.right_arm, wide, -1)
    torso += [*left[0], *right[0], *_held(of, right[1])]
    if of.shield:
        x, y, z = left[1]
        torso.append(tube([(x + 0.05, y, z), (x + 0.1, y, z)], (0.27, 0.22), 16))
    if of.pack:
        torso.append(box(0.16, 0.32, 0.42, 0.04).moved(-0.22, 0, 1.25))
    if of.cape:
        outline = [(-0.16, -0.22, 1.48), (-0.16, 0.22, 1.48), (-0.42, 0.42, 0.35), (-0.42, -0.42, 0.35)]
        torso.append(plate(outline, 0.03))
    # The body bends at the hips, which are moved to the origin for the turn.
    upper = join(*torso).moved(z=-_HIPS).turned(1, math.radians(of.lean)).moved(z=_HIPS)
    legs = [*_leg(of.left_leg, wide, 1), *_leg(of.right_leg, wide, -1)]
    parts = [upper, *legs]
    if of.skirt:
        hem = _HIPS * (1 - of.skirt)
        parts.append(
            tube(
                [(0, 0, 1.0), (0, 0, 0.8), (0, 0, hem)], (0.15 * wide, 0.22 * wide, 0.3 + 0.12 * of.skirt), 16
            )
        )
    figure = join(*parts)
    # The lowest point touches the base in every pose.
    low = float(figure.vertices[:, 2].min())
    base = tube([(0, 0, 0), (0, 0, 0.04), (0, 0, 0.05)], (0.36, 0.36, 0.34), 20)
    return join(figure.moved(z=0.05 - low), base)


def _way(ahead: Number, sideways: Number, side: int) -> np.ndarray:
    """Return the direction of a limb with these angles, on the left (1) or the right (−1)."""
    pitch, spread = math.radians(ahead), math.radians(sideways)
    return np.array(
        [math.sin(pitch) * math.cos(spread), side * math.sin(spread), -math.cos(pitch) * math.cos(spread)]
    )


def _arm(angles: Angles, wide: float, side: int) -> tuple[list[Mesh], np.ndarray]:
    """Return the parts of an arm and the position of its hand."""
    shoulder = np.array([0.0, 0.22 * wide * side, 1.42])
    elbow = shoulder + 0.29 * _way(angles[0], angles[1], side)
    hand = elbow + 0.27 * _way(angles[2], angles[3], side)
    thick = 0.062 * wide
    parts = [
        limb(shoulder, elbow, 1.15 * thick, 0.85 * thick),
        limb(elbow, hand, 0.85 * thick, 0.65 * thick),
        ellipsoid(0.055, 0.055, 0.055, 8).moved(*hand),
    ]
    return parts, hand


def _leg(angles: Angles, wide: float, side: int) -> list[Mesh]:
    hip = np.array([0.0, 0.1 * wide * side, _HIPS])
    knee = hip + 0.43 * _way(angles[0], angles[1], side)
    ankle = knee + 0.42 * _way(angles[2], angles[3], side)
    thick = 0.085 * wide
    foot = ankle + np.array([0.06, 0, -0.03])
    return [
        limb(hip, knee, 1.15 * thick, 0.78 * thick),
        limb(knee, ankle, 0.78 * thick, 0.55 * thick),
        ellipsoid(0.13, 0.055, 0.05, 10).moved(*foot),
    ]


def _hat(of: Human) -> list[Mesh]:
    if of.hat == "brim":
        crown = tube([(0.01, 0, 1.78), (0.01, 0, 1.92), (0.01, 0, 1.95)], (0.12, 0.1, 0.05), 14)
        return [crown, ellipsoid(0.25, 0.22, 0.025, 16).moved(0.02, 0, 1.79)]
    if of.hat == "helmet":
        return [ellipsoid(0.155, 0.14, 0.12, 14).moved(0.005, 0, 1.77)]
    if of.hat == "tall":
        crown = tube([(0.01, 0, 1.78), (0.01, 0, 2.02), (0.01, 0, 2.03)], (0.105, 0.115, 0.1), 14)
        return [crown, ellipsoid(0.18, 0.17, 0.02, 16).moved(0.01, 0, 1.79)]
    if of.hat == "cone":
        return [tube([(0.01, 0, 1.76), (0, 0, 1.8), (-0.06, 0, 2.2)], (0.22, 0.13, 0.005), 14)]
    return []


def _held(of: Human, hand: np.ndarray) -> list[Mesh]:
    x, y, z = hand
    if of.holds == "staff":
        return [
            limb((x, y, z - 0.95), (x, y, z + 0.75), 0.028, 0.028, 8),
            ellipsoid(0.07, 0.07, 0.07, 10).moved(x, y, z + 0.8),
        ]
    if of.holds == "rifle":
        return [limb((x - 0.3, y + 0.02, z - 0.05), (x + 0.65, y + 0.1, z + 0.1), 0.04, 0.018, 8)]
    if of.holds == "sword":
        blade = plate(
            [(x + 0.04, y, z), (x + 0.3, y, z + 0.62), (x + 0.33, y, z + 0.72), (x - 0.03, y, z + 0.03)], 0.03
        )
        return [blade, limb((x - 0.05, y - 0.1, z + 0.06), (x - 0.05, y + 0.1, z + 0.06), 0.02, 0.02, 8)]
    if of.holds == "case":
        return [box(0.42, 0.12, 0.3, 0.03).moved(x, y, z - 0.2)]
    return []
