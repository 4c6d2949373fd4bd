"""Four-legged animals built from their measures: toy figures of one material."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from polariscope.rendering.mesh import Mesh, Point, ellipsoid, join, limb, plate, tube

_STRIDE = (0.16, -0.1, -0.14, 0.1)  # swing of the legs: left front, right front, left hind, right hind


@dataclasses.dataclass(frozen=True)
class Animal:
    """Measures of an animal, in units of the distance between its shoulders and its hips."""

    name: str
    """Name of the animal."""
    chest: float
    """Radius of the trunk at the shoulders."""
    hips: float
    """Radius of the trunk at the hips."""
    legs: float
    """Length of the legs below the trunk."""
    leg: float
    """Radius of the legs at their upper ends."""
    neck: float
    """Length of the neck."""
    rise: float
    """Angle of the neck above the ground, in degrees."""
    throat: float
    """Radius of the neck at the trunk."""
    head: float
    """Length of the head."""
    skull: float
    """Radius of the head."""
    muzzle: float
    """Radius of the head at its mouth."""
    ear: float
    """Length of the ears."""
    tail: float
    """Length of the tail."""
    tail_rise: float = -55.0
    """Angle of the tail above the ground, in degrees."""
    droop: float = -25.0
    """Angle of the head above the ground, in degrees."""
    horns: float = 0.0
    """Length of two horns."""
    antlers: float = 0.0
    """Length of two antlers."""
    nose_horn: float = 0.0
    """Length of a horn on the nose."""
    trunk: float = 0.0
    """Length of a trunk, with tusks."""
    mane: float = 0.0
    """Radius of a mane around the head."""
    crest: float = 0.0
    """Height of a crest along the neck."""
    humps: int = 0
    """Number of humps."""
    brush: float = 0.0
    """Radius of a bushy tail."""


ANIMALS = (
    Animal(
        "horse", chest=0.27, hips=0.28, legs=0.72, leg=0.12, neck=0.62, rise=52.0, throat=0.2, head=0.5,
        skull=0.13, muzzle=0.085, ear=0.13, tail=0.62, tail_rise=-60.0, droop=-40.0, crest=0.1, brush=0.07,
    ),
    Animal(
        "elephant", chest=0.48, hips=0.46, legs=0.5, leg=0.2, neck=0.22, rise=25.0, throat=0.32, head=0.42,
        skull=0.3, muzzle=0.18, ear=0.42, tail=0.5, tail_rise=-75.0, droop=-30.0, trunk=0.95,
    ),
    Animal(
        "giraffe", chest=0.29, hips=0.25, legs=0.95, leg=0.1, neck=1.35, rise=68.0, throat=0.18, head=0.4,
        skull=0.12, muzzle=0.07, ear=0.13, tail=0.6, tail_rise=-75.0, horns=0.12,
    ),
    Animal(
        "bull", chest=0.38, hips=0.31, legs=0.46, leg=0.12, neck=0.3, rise=15.0, throat=0.27, head=0.42,
        skull=0.17, muzzle=0.11, ear=0.14, tail=0.62, tail_rise=-75.0, droop=-35.0, horns=0.34,
    ),
    Animal(
        "lion", chest=0.28, hips=0.24, legs=0.45, leg=0.11, neck=0.26, rise=35.0, throat=0.22, head=0.3,
        skull=0.19, muzzle=0.11, ear=0.08, tail=0.75, tail_rise=-20.0, droop=-8.0, mane=0.37, brush=0.03,
    ),
    Animal(
        "camel", chest=0.33, hips=0.3, legs=0.78, leg=0.11, neck=0.75, rise=38.0, throat=0.15, head=0.4,
        skull=0.13, muzzle=0.09, ear=0.09, tail=0.45, tail_rise=-75.0, droop=-5.0, humps=2,
    ),
    Animal(
        "rhinoceros", chest=0.42, hips=0.43, legs=0.34, leg=0.16, neck=0.25, rise=-8.0, throat=0.33, head=0.6,
        skull=0.23, muzzle=0.15, ear=0.15, tail=0.42, tail_rise=-75.0, droop=-20.0, nose_horn=0.4,
    ),
    Animal(
        "stag", chest=0.22, hips=0.21, legs=0.72, leg=0.085, neck=0.5, rise=58.0, throat=0.13, head=0.36,
        skull=0.1, muzzle=0.06, ear=0.16, tail=0.16, tail_rise=30.0, droop=-15.0, antlers=0.62,
    ),
    Animal(
        "pig", chest=0.34, hips=0.36, legs=0.2, leg=0.1, neck=0.1, rise=5.0, throat=0.3, head=0.4, skull=0.24,
        muzzle=0.12, ear=0.18, tail=0.22, tail_rise=40.0, droop=-15.0,
    ),
    Animal(
        "fox", chest=0.17, hips=0.16, legs=0.4, leg=0.065, neck=0.26, rise=40.0, throat=0.12, head=0.36,
        skull=0.13, muzzle=0.035, ear=0.24, tail=0.75, tail_rise=-15.0, droop=-10.0, brush=0.13,
    ),
)  # fmt: skip


def animal(of: Animal) -> Mesh:
    """Build the body of a walking animal.

    :param of: its measures.
    """
    # Height of the axis of the trunk; its lower side is at the top of the legs.
    back = of.legs + max(of.chest, of.hips)
    body = tube(
        [(-0.5 - 0.9 * of.hips, 0, back), (-0.5 - 0.6 * of.hips, 0, back), (-0.5, 0, back), (0, 0, back - 0.02),
         (0.4, 0, back), (0.5 + 0.5 * of.chest, 0, back), (0.5 + 0.85 * of.chest, 0, back)],
        (0.1 * of.hips, 0.75 * of.hips, of.hips, 0.5 * (of.chest + of.hips), of.chest, 0.75 * of.chest, 0.1 * of.chest),
        flat=1.12,
    ).scaled(1, 0.85, 1)  # fmt: skip
    parts = [body, *_legs(of, back), _tail(of, back), *_head(of, back)]
    for number in range(of.humps):
        x = 0.0 if of.humps == 1 else 0.3 - 0.55 * number
        parts.append(ellipsoid(0.19, 0.15, 0.34).moved(x, 0, back + of.chest - 0.05))
    return join(*parts)


def _legs(of: Animal, back: float) -> list[Mesh]:
    parts = []
    for number, swing in enumerate(_STRIDE):
        front, left = number < 2, number % 2 == 0
        x = 0.42 if front else -0.46
        y = 0.62 * (of.chest if front else of.hips) * (1 if left else -1)
        bend = 0.07 if front else -0.09  # knees point ahead, hocks behind
        foot = 0.6 * of.leg
        top = (x, 0.9 * y, back - 0.25 * of.chest)
        knee = (x + 0.5 * swing * of.legs + bend * of.legs, y, 0.48 * of.legs)
        sole = (x + swing * of.legs, y, foot)
        parts += [
            limb(top, knee, 1.25 * of.leg, 0.72 * of.leg),
            limb(knee, sole, 0.72 * of.leg, 0.55 * of.leg),
            ellipsoid(0.9 * of.leg, 0.75 * of.leg, foot).moved(sole[0] + 0.15 * of.leg, y, foot),
        ]
    return parts


def _tail(of: Animal, back: float) -> Mesh:
    angle = math.radians(of.tail_rise)
    start = np.array([-0.5 - 0.8 * of.hips, 0, back + 0.35 * of.hips])
    way = np.array([-math.cos(angle), 0, math.sin(angle)])
    sag = np.array([-0.12, 0, 0])
    path = [
        start,
        start + 0.35 * of.tail * way + sag * of.tail,
        start + 0.7 * of.tail * way + sag * of.tail,
        start + of.tail * way,
    ]
    thick = 0.18 * of.hips
    if of.brush:
        return tube(path, (thick, max(thick, 0.8 * of.brush), max(thick, of.brush), 0.15 * thick))
    return tube(path, (thick, 0.7 * thick, 0.5 * thick, 0.2 * thick))


def _head(of: Animal, back: float) -> list[Mesh]:
    rise, droop = math.radians(of.rise), math.radians(of.droop)
    start = np.array([0.5 + 0.25 * of.chest, 0, back + 0.25 * of.chest])
    nape = start + of.neck * np.array([math.cos(rise), 0, math.sin(rise)])
    # Directions in the plane of symmetry: along the head, and at a right angle to it.
    ahead, up = (
        np.array([math.cos(droop), 0, math.sin(droop)]),
        np.array([-math.sin(droop), 0, math.cos(droop)]),
    )
    middle, mouth = nape + 0.25 * of.head * ahead, nape + of.head * ahead

    def at(x: float, y: float, z: float) -> Point:
        """Return a point relative to the middle of the skull: along the head, to the left, above it."""
        point = middle + x * ahead + z * up
        return float(point[0]), y, float(point[2])

    parts = [
        limb(start, nape, of.throat, 0.85 * of.skull),
        ellipsoid(1.15 * of.skull, of.skull, of.skull).turned(1, -droop).moved(*middle),
        limb(middle, mouth - of.muzzle * ahead, 0.9 * of.skull, of.muzzle),
    ]
    ear, side = of.ear, 0.75 * of.skull
    if of.trunk:
        flap = ellipsoid(0.07, 0.16 + 0.3 * ear, ear, 10).turned(0, 0.35).turned(2, 0.55)
        parts.append(flap.moved(*at(-0.15, of.skull + 0.1, -0.05)).both_sides())
        drop = of.trunk * np.array(
            [[0, 0, 0], [0.22, 0, -0.22], [0.3, 0, -0.55], [0.36, 0, -0.86], [0.5, 0, -0.98]]
        )
        parts.append(tube(mouth - 0.1 * ahead + drop, (0.17, 0.14, 0.11, 0.08, 0.06)))
        tusk = np.array(at(0.75 * of.head - 0.1, 0.15, -0.12)) + np.array(
            [[0, 0, 0], [0.14, 0.03, -0.16], [0.34, 0.05, -0.16]]
        )
        parts.append(tube(tusk, (0.05, 0.04, 0.005), 8).both_sides())
    elif ear:
        root, tip = (
            at(-0.3 * of.skull, side, 0.6 * of.skull),
            at(-0.35 * of.skull, side + 0.45 * ear, 0.6 * of.skull + 0.8 * ear),
        )
        parts.append(limb(root, tip, 0.24 * ear + 0.012, 0.06 * ear, 8).both_sides())
    if of.horns:
        root, bow = (
            at(0.0, 0.6 * of.skull, 0.7 * of.skull),
            at(0.05, 0.6 * of.skull + 0.75 * of.horns, 0.8 * of.skull + 0.1 * of.horns),
        )
        tip = at(0.18, 0.6 * of.skull + 0.85 * of.horns, 0.8 * of.skull + 0.75 * of.horns)
        parts.append(tube([root, bow, tip], (0.05, 0.04, 0.005), 8).both_sides())
    if of.antlers:
        root, bow = (
            at(0.0, 0.5 * of.skull, 0.7 * of.skull),
            at(-0.25 * of.antlers, 0.7 * of.antlers, 0.65 * of.antlers),
        )
        tip = at(0.05, 0.55 * of.antlers, 1.25 * of.antlers)
        parts.append(tube([root, bow, tip], (0.04, 0.035, 0.012), 8).both_sides())
        for share in (0.35, 0.75):
            stem = (1 - share) * np.array(root) + share * np.array(bow)
            branch = limb(stem, stem + of.antlers * np.array([0.42, 0.06, 0.3]), 0.028, 0.01, 8)
            parts.append(branch.both_sides())
    if of.nose_horn:
        nose = np.array(at(0.62 * of.head, 0.0, 0.6 * of.muzzle))
        for size, shift in ((1.0, 0.0), (0.5, -0.2)):
            foot, long = nose + shift * ahead, size * of.nose_horn
            path = [foot, foot + long * (0.6 * up + 0.1 * ahead), foot + long * (up + 0.35 * ahead)]
            parts.append(tube(np.array(path), (0.1 * size + 0.02, 0.06 * size, 0.005), 8))
    if of.mane:
        parts.append(ellipsoid(0.6 * of.mane, 0.92 * of.mane, of.mane, 14).moved(*at(-0.14, 0.0, -0.02)))
    if of.crest:
        lifted = of.throat * np.array([-math.sin(rise), 0, math.cos(rise)])
        outline = [
            start + 0.7 * lifted,
            nape + 0.5 * lifted,
            nape + 0.5 * lifted + of.crest * up,
            start + lifted + of.crest * up,
        ]
        parts.append(plate(np.array(outline), 0.06))
    return parts
