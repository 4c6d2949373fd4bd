"""Trucks built from their measures: toy figures of one material."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from polariscope.rendering.mesh import (
    Mesh,
    box,
    ellipsoid,
    join,
    limb,
    loft,
    panel,
    plate,
    revolve,
    tube,
    wheel,
)

_DARK = (0.26, 0.26, 0.26)
_TYRE = (0.22, 0.22, 0.22)
_RIM = (0.5, 0.5, 0.5)
_WIDTH = 2.3


@dataclasses.dataclass(frozen=True)
class Truck:
    """Measures of a truck in metres."""

    name: str
    """Name of the truck."""
    length: float
    """Length of the chassis behind the cab."""
    load: Literal["box", "tank", "flat", "tipper", "ladder", "mixer", "crane", "canvas", "logs"]
    """Load behind the cab."""
    cab: float = 1.7
    """Length of the cab."""
    cab_height: float = 2.5
    """Height of the cab above the ground."""
    bonnet: float = 0.0
    """Length of a bonnet in front of the cab."""
    high: float = 1.9
    """Height of the load above the chassis."""
    rear_axles: int = 2
    """Number of axles at the rear."""
    trailer: bool = False
    """If True, the load is on a trailer, with a gap behind the cab."""


TRUCKS = (
    Truck("box van", 4.6, "box", high=2.1, rear_axles=1),
    Truck("tanker", 6.2, "tank", high=1.7, trailer=True, bonnet=1.1),
    Truck("tipper", 4.4, "tipper", high=1.3),
    Truck("fire engine", 5.0, "ladder", cab=2.2, cab_height=2.4, high=1.3, rear_axles=1),
    Truck("mixer", 4.8, "mixer", high=2.0),
    Truck("flatbed", 5.2, "flat", high=0.5, bonnet=1.2, rear_axles=1),
    Truck("crane truck", 4.8, "crane", high=0.9),
    Truck("army truck", 4.0, "canvas", bonnet=1.3, cab=1.4, cab_height=2.3, high=1.7),
    Truck("semi-trailer", 7.2, "box", high=2.3, bonnet=1.4, trailer=True, cab_height=2.8),
    Truck("log truck", 5.8, "logs", high=1.2, bonnet=1.2, trailer=True),
)


def truck(of: Truck) -> Mesh:
    """Build the body of a truck that points ahead.

    :param of: its measures.
    """
    tyre, floor = 0.5, 0.95
    rear, gap = -of.length, 0.5 if of.trailer else 0.12
    frame = box(of.length + of.cab, 0.9, 0.28).moved((of.cab - of.length) / 2, 0, floor - 0.14).painted(_DARK)
    parts = [frame, *_cab(of, floor)]
    axles = [of.cab + of.bonnet - (0.75 if of.bonnet else 0.85)]
    axles += [rear + 0.75 + 1.1 * number for number in range(of.rear_axles)]
    if of.trailer:
        axles += [-0.35]
    left = wheel(tyre, 0.36, _TYRE, _RIM)
    parts += [left.moved(x, _WIDTH / 2 - 0.2, tyre).both_sides() for x in axles]
    parts.append(box(0.12, 0.5, 0.12).moved(rear, 0.75, floor - 0.1).both_sides().painted(_DARK))
    return join(*parts, *_load(of, rear, -gap, floor))


def _cab(of: Truck, floor: float) -> list[Mesh]:
    low, high, back, front = 0.55, of.cab_height, 0.0, of.cab
    slant = 0.35 if of.bonnet else 0.14
    belt = low + 0.55 * (high - low)
    profile = [
        (back, low),
        (front, low),
        (front, belt),
        (front - slant, high - 0.06),
        (front - slant - 0.12, high),
        (back + 0.06, high),
        (back, high - 0.06),
    ]
    y, cut = _WIDTH / 2 - 0.02, 0.06
    outline, middle = np.array(profile), np.array([(back + front) / 2, (low + high) / 2])
    inner = middle + 0.95 * (outline - middle)  # the sides are slightly smaller, so the edges are bevelled
    sides = ((-y, inner), (cut - y, outline), (y - cut, outline), (y, inner))
    parts = [loft(np.array([[(x, at, z) for x, z in points] for at, points in sides]))]

    def slope(z: float) -> float:
        return front - slant * max(0.0, z - belt) / (high - 0.06 - belt)

    a, b = belt + 0.06, high - 0.16
    screen = [
        (slope(a), -y + 0.16, a),
        (slope(a), y - 0.16, a),
        (slope(b), y - 0.18, b),
        (slope(b), -y + 0.18, b),
    ]
    parts.append(panel(screen, 0.02).painted(_DARK, 0.3))
    side_window = [(back + 0.3, y, a), (back + 0.3, y, b), (slope(b) - 0.16, y, b), (slope(a) - 0.14, y, a)]
    parts.append(panel(side_window, 0.015).both_sides().painted(_DARK, 0.3))
    nose = front + of.bonnet
    if of.bonnet:
        parts.append(
            box(of.bonnet + 0.3, 1.5, belt - low, 0.14).moved(
                front + of.bonnet / 2 - 0.15, 0, (belt + low) / 2
            )
        )
        parts.append(
            box(of.bonnet * 0.95, 0.36, 0.14, 0.05).moved(front + of.bonnet / 2, 0.92, 1.1).both_sides()
        )
    parts.append(box(0.06, 1.1, 0.45).moved(nose + 0.01, 0, low + 0.5).painted(_DARK))
    parts.append(box(0.25, 2.2, 0.28, 0.06).moved(nose, 0, low))
    parts.append(ellipsoid(0.08, 0.16, 0.14, 8).moved(nose, 0.72, low + 0.36).both_sides())
    parts.append(box(0.1, 0.14, 0.4).moved(front - 0.1, y + 0.12, belt + 0.3).both_sides())
    if of.trailer:
        parts.append(limb((-0.12, 0.95, floor), (-0.12, 0.95, high + 0.5), 0.09, 0.09, 8).both_sides())
    return parts


def _load(of: Truck, rear: float, front: float, floor: float) -> list[Mesh]:
    long, middle, top = front - rear, (front + rear) / 2, floor + of.high
    deck = box(long, _WIDTH, 0.16).moved(middle, 0, floor + 0.08)
    if of.load == "box":
        return [box(long, _WIDTH + 0.1, of.high, 0.07).moved(middle, 0, floor + of.high / 2)]
    if of.load == "tank":
        drum = revolve(
            lambda share: 0.5 * of.high * min(1.0, 0.72 + 3 * min(share, 1 - share)), rear, front, 13, 18
        )
        hatches = [
            tube([(x, 0, top - 0.05), (x, 0, top + 0.14)], (0.26, 0.26)) for x in (middle - 1.3, middle + 1.3)
        ]
        return [drum.scaled(1, 1.2, 1).moved(0, 0, floor + of.high / 2 + 0.05), deck, *hatches]
    if of.load == "tipper":
        return _tipper(of, rear, front, floor)
    if of.load == "ladder":
        body = box(long, _WIDTH, of.high, 0.06).moved(middle, 0, floor + of.high / 2)
        rungs = [box(0.08, 0.66, 0.08).moved(rear - 0.2 + 0.42 * number, 0, 0.36) for number in range(15)]
        rails = box(6.4, 0.1, 0.2).moved(rear + 2.8, 0.34, 0.36).both_sides()
        turret = tube([(rear + 1.0, 0, top), (rear + 1.0, 0, top + 0.3)], (0.6, 0.5), 14)
        lights = box(0.3, 1.4, 0.2, 0.05).moved(of.cab - 0.7, 0, of.cab_height + 0.1)
        lockers = [
            box(1.0, 0.06, 0.9)
            .moved(rear + 0.8 + 1.3 * n, _WIDTH / 2, floor + 0.6)
            .painted(_DARK)
            .both_sides()
            for n in range(3)
        ]
        return [body, join(*rungs, rails).moved(0, 0, top + 0.05), turret, lights, *lockers]
    if of.load == "mixer":
        drum = revolve(
            lambda share: 0.42 + 0.72 * math.sin(math.pi * min(1.0, 0.1 + 0.95 * share)),
            -long / 2 - 0.1,
            long / 2 - 0.3,
            12,
            18,
        )
        chute = limb((rear + 0.1, 0, floor + 1.3), (rear - 0.7, 0, floor + 0.3), 0.22, 0.18)
        stand = box(0.3, 1.4, 1.3).moved(rear + 0.6, 0, floor + 0.6)
        return [deck, drum.turned(1, 0.2).moved(middle, 0, floor + 1.2), chute, stand]
    if of.load == "crane":
        house = box(1.6, 1.9, 1.2, 0.1).moved(rear + 2.0, 0, floor + 0.9)
        boom = tube([(rear + 1.8, 0, floor + 1.2), (of.cab + 1.4, 0, of.cab_height + 1.4)], (0.3, 0.16), 8)
        hook = limb(
            (of.cab + 1.35, 0, of.cab_height + 1.4), (of.cab + 1.35, 0, of.cab_height + 0.3), 0.05, 0.05, 6
        )
        legs = [box(0.3, 2.9, 0.2).moved(x, 0, 0.7) for x in (rear + 0.3, -0.5)]
        return [
            deck,
            house,
            boom,
            hook,
            ellipsoid(0.16, 0.16, 0.2, 8).moved(of.cab + 1.35, 0, of.cab_height + 0.2),
            *legs,
        ]
    if of.load == "canvas":
        turn = np.linspace(0, math.pi, 11)
        arch = [
            (math.cos(angle) * 1.12, floor + 0.75 * of.high + 0.42 * of.high * math.sin(angle))
            for angle in turn
        ]
        outline = [(1.12, floor), *arch, (-1.12, floor)]
        stations = np.linspace(rear, front, 9)
        bows = [1.0 if number % 2 == 0 else 0.965 for number in range(9)]
        rings = [
            [(x, bow * y, floor + bow * (z - floor)) for y, z in outline]
            for x, bow in zip(stations, bows, strict=True)
        ]
        return [loft(np.array(rings))]
    if of.load == "logs":
        logs = [(-0.75, 0.4), (0.0, 0.4), (0.75, 0.4), (-0.38, 1.04), (0.38, 1.04)]
        trunks = [
            tube([(rear - 0.3, 0, 0), (front, 0, 0)], (0.36, 0.37), 12).moved(0, y, floor + 0.1 + z)
            for y, z in logs
        ]
        posts = [
            box(0.14, 0.14, 1.7).moved(x, 1.15, floor + 0.85).both_sides()
            for x in (rear + 0.6, rear + 3.0, front - 0.5)
        ]
        return [box(long, 1.2, 0.2).moved(middle, 0, floor + 0.05), *trunks, *posts]
    sides = box(long, 0.1, of.high).moved(middle, _WIDTH / 2, floor + of.high / 2).both_sides()
    head = box(0.12, _WIDTH, 1.3).moved(front - 0.06, 0, floor + 0.65)
    crates = [
        box(1.1, 1.0, 0.9, 0.04).moved(rear + 1.1, 0.4, floor + 0.6),
        box(1.3, 1.4, 0.7, 0.04).moved(front - 1.2, -0.2, floor + 0.5),
    ]
    return [deck, sides, head, *crates]


def _tipper(of: Truck, rear: float, front: float, floor: float) -> list[Mesh]:
    """Build a tilted skip full of sand."""
    long, middle = front - rear, (front + rear) / 2
    wall = box(long, 0.12, of.high).moved(0, _WIDTH / 2, of.high / 2).both_sides()
    ends = [box(0.12, _WIDTH, of.high).moved(x, 0, of.high / 2) for x in (-long / 2, long / 2)]
    ground = box(long, _WIDTH, 0.14).moved(0, 0, 0.07)
    roof = plate(
        [
            (long / 2, -1.1, of.high),
            (long / 2 + 0.9, -1.1, of.high + 0.1),
            (long / 2 + 0.9, 1.1, of.high + 0.1),
            (long / 2, 1.1, of.high),
        ],
        0.1,
    )
    sand = ellipsoid(0.46 * long, 0.46 * _WIDTH, 0.5, 14).moved(0, 0, 0.85 * of.high)
    ribs = [
        box(0.12, 0.1, of.high).moved(x, _WIDTH / 2 + 0.08, of.high / 2).both_sides()
        for x in np.linspace(-0.4, 0.4, 4) * long
    ]
    # The skip tilts about its rear end, which is moved to the origin for the turn.
    skip = join(wall, *ends, ground, roof, sand, *ribs).moved(long / 2).turned(1, -0.18).moved(-long / 2)
    return [skip.moved(middle, 0, floor + 0.1)]
