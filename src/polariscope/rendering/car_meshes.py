"""Cars built from their measures: a body with wheel arches, a cabin with windows, wheels, lights and bumpers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from polariscope.core.seeds import generator
from polariscope.rendering.mesh import (
    Colour,
    Mesh,
    Point,
    box,
    ellipsoid,
    join,
    loft,
    panel,
    wheel,
)

GLASS: Colour = (0.13, 0.16, 0.2)
RUBBER: Colour = (0.09, 0.09, 0.1)
CHROME: Colour = (0.72, 0.73, 0.75)
PAINTS: tuple[Colour, ...] = (
    (0.85, 0.13, 0.12),
    (0.62, 0.64, 0.67),
    (0.13, 0.28, 0.66),
    (0.84, 0.84, 0.83),
    (0.95, 0.76, 0.14),
    (0.13, 0.14, 0.16),
    (0.12, 0.46, 0.24),
    (0.45, 0.07, 0.12),
    (0.47, 0.68, 0.86),
    (0.93, 0.47, 0.11),
    (0.34, 0.36, 0.4),
    (0.72, 0.62, 0.45),
    (0.1, 0.5, 0.53),
    (0.4, 0.24, 0.14),
    (0.42, 0.2, 0.52),
    (0.66, 0.75, 0.3),
    (0.08, 0.12, 0.32),
)
_POST = 0.07  # width of the pillars
_ARCH = 1.13  # radius of the wheel arches, relative to the wheels


@dataclasses.dataclass(frozen=True)
class Car:
    """Measures of a car in metres; positions along it are shares of its length from the front."""

    length: float = 4.6
    """Length from bumper to bumper."""
    width: float = 1.78
    """Width without mirrors."""
    height: float = 1.44
    """Height of the roof above the ground."""
    belt: float = 0.94
    """Height of the lower edge of the windows."""
    nose: float = 0.7
    """Height of the bonnet at its front."""
    tail: float = 0.92
    """Height of the body at its rear end."""
    floor: float = 0.22
    """Height of the sills above the ground."""
    cabin: tuple[float, float, float, float] = (0.27, 0.44, 0.7, 0.86)
    """Positions of the start of the windscreen, the start and end of the roof, and the end of the rear window."""
    pillars: tuple[float, ...] = (0.57,)
    """Positions of the pillars that divide the side windows."""
    windows: int = 9
    """Maximum number of side windows, from the front."""
    tumblehome: float = 0.28
    """Slope by which the cabin narrows on each side with the height."""
    axles: tuple[float, float] = (0.18, 0.8)
    """Positions of the wheels."""
    tyre: float = 0.32
    """Radius of the wheels."""
    bed: bool = False
    """If True, there is an open load bed behind the cabin."""
    rails: bool = False
    """If True, there are rails along the roof."""
    spare: bool = False
    """If True, there is a spare wheel on the rear door."""
    wing: bool = False
    """If True, there is a spoiler on the boot."""
    paint: Colour = PAINTS[0]
    """Colour of the body."""
    roof_paint: Colour | None = None
    """Colour of the cabin; None for that of the body."""
    trim: Colour = RUBBER
    """Colour of the bumpers."""
    rim: Colour = CHROME
    """Colour of the rims."""
    stripe: Colour | None = None
    """Colour of a stripe along the bonnet; None for no stripe."""

    def at(self, share: float) -> float:
        """Return the x coordinate of a position along the car.

        :param share: share of the length, from the front.
        """
        return (0.5 - share) * self.length

    def side(self, z: float) -> float:
        """Return half the width of the cabin at a height.

        :param z: height above the ground.
        """
        return 0.92 * self.width / 2 - self.tumblehome * (z - self.belt)


BODIES: dict[str, dict[str, Any]] = {
    "saloon": {},
    "hatchback": {
        "length": 3.85, "width": 1.68, "height": 1.46, "tail": 0.93, "cabin": (0.25, 0.44, 0.8, 0.97),
        "pillars": (0.6,), "axles": (0.19, 0.83), "tyre": 0.3,
    },
    "estate": {
        "length": 4.7, "height": 1.46, "tail": 0.93, "cabin": (0.26, 0.42, 0.9, 0.985), "pillars": (0.55, 0.74),
        "axles": (0.18, 0.79), "rails": True,
    },
    "van": {
        "length": 4.8, "width": 1.84, "height": 2.02, "belt": 1.1, "nose": 0.86, "tail": 1.1,
        "cabin": (0.13, 0.3, 0.965, 0.995), "pillars": (0.42, 0.7), "axles": (0.17, 0.8), "tumblehome": 0.1,
        "tyre": 0.33,
    },
    "pickup": {
        "length": 5.15, "width": 1.84, "height": 1.76, "belt": 1.12, "nose": 0.92, "tail": 1.06, "floor": 0.34,
        "cabin": (0.25, 0.37, 0.54, 0.585), "pillars": (0.47,), "axles": (0.17, 0.79), "tyre": 0.39, "bed": True,
        "tumblehome": 0.2,
    },
    "coupé": {
        "length": 4.35, "width": 1.82, "height": 1.24, "belt": 0.84, "nose": 0.6, "tail": 0.84, "floor": 0.17,
        "cabin": (0.35, 0.53, 0.67, 0.93), "pillars": (0.68,), "axles": (0.19, 0.81), "tyre": 0.33,
        "tumblehome": 0.42,
    },
    "off-roader": {
        "length": 4.4, "width": 1.86, "height": 1.84, "belt": 1.14, "nose": 0.98, "tail": 1.12, "floor": 0.36,
        "cabin": (0.26, 0.36, 0.93, 0.98), "pillars": (0.55, 0.76), "axles": (0.18, 0.8), "tyre": 0.4,
        "tumblehome": 0.16,
    },
}  # fmt: skip
"""Measures by type of body that differ from those of a saloon."""


def design(identity: int) -> Car:
    """Design a car by its number; the types of bodies alternate, each time with other measures and colours.

    :param identity: any number from 0; neighbours differ in type and paint.
    """
    names = list(BODIES)
    name, turn = names[identity % len(names)], identity // len(names)
    draws = generator(0, "cars", identity)
    basis = Car(**BODIES[name])

    def near(value: float, spread: float) -> float:
        return value * (1 + spread * float(draws.uniform(-1, 1)))

    length, height = near(basis.length, 0.08), near(basis.height, 0.06)
    belt = near(basis.belt, 0.03)
    shift = 0.025 * float(draws.uniform(-1, 1))  # shift of the cabin
    front, top, back, end = basis.cabin
    cabin = (
        front + shift + 0.01 * float(draws.uniform(-1, 1)),
        top + shift + 0.025 * float(draws.uniform(-1, 1)),
        # The end of the rear window is fixed, so a roof that almost reaches it does not move with the cabin.
        min(back + (0 if back > 0.9 else shift) + 0.035 * float(draws.uniform(-1, 1)), end - 0.015),
        end,
    )
    # Steps of 5 visit all 17 paints before one recurs for the same type of body; paints are then mixed with the next.
    number = 5 * turn + 3 * (identity % len(names))
    paint, next_paint = PAINTS[number % len(PAINTS)], PAINTS[(number + 1) % len(PAINTS)]
    mixed = 0.5 if turn >= len(PAINTS) else 0.0
    shade = float(draws.uniform(0.8, 1.15))
    painted = tuple(min(1.0, shade * (a + mixed * (b - a))) for a, b in zip(paint, next_paint, strict=True))
    stripe = PAINTS[3] if turn % 6 == 4 and name in ("coupé", "hatchback", "saloon") else None
    return dataclasses.replace(
        basis,
        length=length,
        width=near(basis.width, 0.04),
        height=height,
        belt=belt,
        nose=near(basis.nose, 0.07),
        tail=near(basis.tail, 0.05) if not basis.bed else basis.tail,
        cabin=cabin,
        tumblehome=near(basis.tumblehome, 0.25),
        tyre=near(basis.tyre, 0.08),
        windows=1 if name == "van" and turn % 2 else 9,
        rails=basis.rails or (name == "off-roader" and turn % 3 == 0),
        spare=name == "off-roader" and turn % 2 == 0,
        wing=name == "coupé" and turn % 3 == 1,
        paint=(painted[0], painted[1], painted[2]),
        roof_paint=PAINTS[3] if (turn + identity) % 6 == 2 else None,
        trim=RUBBER if identity % 2 else (painted[0], painted[1], painted[2]),
        rim=CHROME if identity % 3 else (0.4, 0.41, 0.43),
        stripe=stripe,
    )


def car(of: Car) -> Mesh:
    """Build the body of a car on the ground, with the middle of its length at the origin.

    :param of: its measures.
    """
    parts = [_body(of), *_cabin(of), *_wheels(of), *_ends(of)]
    if of.bed:
        x0, x1, y, z = of.at(0.97), of.at(of.cabin[3] + 0.02), 0.4 * of.width, of.tail + 0.035
        parts.append(panel([(x0, -y, z), (x1, -y, z), (x1, y, z), (x0, y, z)], 0.01).painted(RUBBER))
    if of.rails:
        long = 0.9 * (of.at(of.cabin[1]) - of.at(of.cabin[2]))
        middle = (of.at(of.cabin[1]) + of.at(of.cabin[2])) / 2
        rail = box(long, 0.06, 0.06).moved(middle, of.side(of.height) - 0.12, of.height + 0.05)
        parts.append(rail.both_sides().painted(RUBBER))
    if of.spare:
        spare = wheel(0.9 * of.tyre, 0.2, RUBBER, of.rim).turned(2, math.pi / 2)
        parts.append(spare.moved(-of.length / 2 - 0.08, 0.0, 0.95 * of.tail))
    if of.wing:
        blade = box(0.26, 0.86 * of.width, 0.05).moved(of.at(0.96), 0, of.tail + 0.24)
        post = box(0.14, 0.06, 0.26).moved(of.at(0.95), 0.28 * of.width, of.tail + 0.12).both_sides()
        parts.append(join(blade, post).painted(of.paint, 0.2))
    return join(*parts)


def _top(of: Car, x: float) -> float:
    """Return the height of the body without the cabin."""
    front, rear = of.at(of.cabin[0]), of.at(of.cabin[3])
    half = of.length / 2
    if x > front:
        share = (x - front) / (half - front)
        return of.belt + (of.nose - of.belt) * (0.55 * share + 0.45 * share**3)
    if x < rear:
        return of.belt + (of.tail - of.belt) * min(1.0, 3 * (rear - x) / max(half + rear, 0.2))
    return of.belt


def _body(of: Car) -> Mesh:
    half = of.length / 2
    arch = _ARCH * of.tyre
    arches = [of.at(share) for share in of.axles]
    ends = np.array([0, 0.03, 0.1, 0.25])
    stations = [*(half - ends), *(ends - half), *(of.at(share) for share in of.cabin)]
    stations += list(np.linspace(-half + 0.3, half - 0.3, 15))
    for middle in arches:
        turn = np.linspace(0, math.pi, 11)
        # Stations just outside the arch make its edges vertical.
        stations += [*(middle + arch * np.cos(turn)), middle - arch - 1e-3, middle + arch + 1e-3]
    rings = []
    for x in sorted(set(np.clip(stations, -half, half).tolist())):
        bottom = of.floor
        for middle in arches:
            # Rounding must not exclude the stations on the edge of the arch.
            if abs(x - middle) <= arch * (1 + 1e-9):
                bottom = max(bottom, of.tyre + math.sqrt(max(0.0, arch**2 - (x - middle) ** 2)))
        top = _top(of, x)
        beyond = max(0.0, abs(x) - half + 0.6) / 0.6
        side = of.width / 2 * (1 - 0.12 * beyond**2)
        low = bottom + 0.12 * max(0.0, beyond - 0.6)
        rings.append(_rounded(_section(x, side, low, top), half - abs(x)))
    return loft(np.array(rings)).painted(of.paint, 0.25)


def _section(x: float, side: float, bottom: float, top: float) -> list[Point]:
    tall = top - bottom
    edge = min(0.07, 0.3 * tall)
    outline = [
        (0.88 * side, bottom),
        (0.98 * side, bottom + 0.12 * tall),
        (side, bottom + 0.5 * tall),
        (0.975 * side, top - 1.2 * edge),
        (0.925 * side, top - 0.35 * edge),
        (0.82 * side, top),
        (0.4 * side, top + 0.02),
    ]
    return [*((x, y, z) for y, z in outline), *((x, -y, z) for y, z in reversed(outline))]


def _rounded(ring: list[Point], from_end: float) -> list[Point]:
    """Contract the outline near the bumpers, along a quarter of a circle of 10 cm."""
    if from_end >= 0.1:
        return ring
    shrink = 0.1 * (1 - math.sqrt(1 - (1 - from_end / 0.1) ** 2))
    points = np.array(ring)
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    factor = np.array([1, 1 - 2 * shrink / size[1], 1 - 1.2 * shrink / size[2]])
    middle = (low + high) / 2
    return [(float(x), float(y), float(z)) for x, y, z in middle + (points - middle) * factor]


def _cabin(of: Car) -> list[Mesh]:
    front, top, back, rear = (of.at(share) for share in of.cabin)
    base, roof, edge = of.belt - 0.06, of.height, 0.05
    profile = [
        (rear, min(of.belt, of.tail)),
        (back - edge * min(1.0, (back - rear) / 0.1), roof - 0.035),
        (back + edge, roof - 0.005),
        ((top + back) / 2, roof + 0.02),
        (top - edge, roof - 0.005),
        (top + edge, roof - 0.035),
        (front, of.belt),
    ]
    rings = []
    for x, height in profile:
        cut = min(0.06, 0.45 * (height - base))
        half = [
            (x, of.side(base), base),
            (x, of.side(height - cut), height - cut),
            (x, of.side(height) - cut, height),
        ]
        rings.append([*half, *((x, -y, z) for _, y, z in reversed(half))])
    shell = loft(np.array(rings)).painted(of.roof_paint or of.paint, 0.25)
    # A van with a single side window is closed: it has no rear window either.
    screens = _screens(of) if of.windows > 1 else _screens(of)[:1]
    return [shell, *(glass.painted(GLASS, 0.5) for glass in (*_side_windows(of), *screens))]


def _slant(of: Car, front: bool, z: float) -> float:
    """Return the x coordinate of the windscreen, or of the rear window, at a height."""
    bottom, top = (of.at(of.cabin[corner]) for corner in ((0, 1) if front else (3, 2)))
    return bottom + (top - bottom) * (z - of.belt) / (of.height - of.belt)


def _side_windows(of: Car) -> list[Mesh]:
    """Build the glass between the pillars."""
    front, rear = of.at(of.cabin[0]), of.at(of.cabin[3])
    splits = [of.at(share) for share in of.pillars]
    # The first and the last window are bounded by the screens alone.
    limits = [math.inf, *(split for split in splits if rear < split < front), -math.inf]
    low, high = of.belt + 0.03, of.height - 0.09
    glass = []
    for begin, end in list(itertools.pairwise(limits))[: of.windows]:
        edges = []
        for z in (low, high):
            ahead = min(_slant(of, True, z) - _POST, begin - _POST / 3)
            behind = max(_slant(of, False, z) + _POST, end + _POST / 3)
            if ahead - behind < 0.05:  # a slanting pillar leaves a triangle
                ahead = behind = (ahead + behind) / 2
            edges.append(((behind, of.side(z), z), (ahead, of.side(z), z)))
        (behind_low, ahead_low), (behind_high, ahead_high) = edges
        if ahead_low[0] - behind_low[0] >= 0.1:
            glass.append(panel([behind_low, behind_high, ahead_high, ahead_low], 0.012).both_sides())
    return glass


def _screens(of: Car) -> list[Mesh]:
    """Build the windscreen and the rear window."""
    screens = []
    for way, front in ((1, True), (-1, False)):
        steep = not front and abs(of.at(of.cabin[2]) - of.at(of.cabin[3])) < 0.4
        low, high = of.belt + (0.1 if steep else 0.06), of.height - 0.06
        x0, x1 = _slant(of, front, low), _slant(of, front, high)
        y0, y1 = way * (of.side(low) - _POST), way * (of.side(high) - _POST - 0.02)
        screens.append(panel([(x0, -y0, low), (x0, y0, low), (x1, y1, high), (x1, -y1, high)], 0.03))
    return screens


def _wheels(of: Car) -> list[Mesh]:
    thick = 0.2 + 0.1 * (of.tyre - 0.3)
    wheels = []
    for share in of.axles:
        left = wheel(of.tyre, thick, RUBBER, of.rim).moved(
            of.at(share), 0.955 * of.width / 2 - thick / 2, of.tyre
        )
        wheels.append(left.both_sides())
    # The block between the wheels, from arch to arch and below the bonnet, hides the hollow body.
    ahead, behind = of.at(of.axles[0]) + _ARCH * of.tyre, of.at(of.axles[1]) - _ARCH * of.tyre
    low, high = of.floor + 0.02, min(_top(of, ahead), _top(of, behind)) - 0.03
    dark = box(ahead - behind, 0.66 * of.width, high - low).moved((ahead + behind) / 2, 0, (low + high) / 2)
    return [*wheels, dark.painted(RUBBER)]


def _ends(of: Car) -> list[Mesh]:
    half = of.length / 2
    y = 0.68 * of.width / 2
    lamp_height = of.nose - 0.11
    lamp = (
        ellipsoid(0.12, 0.19, 0.085, 10)
        .moved(half - 0.09, y, lamp_height)
        .both_sides()
        .painted((0.97, 0.96, 0.86), 0.6)
    )
    grille = box(0.1, 0.42 * of.width, 0.13, 0.02).moved(half - 0.03, 0, lamp_height - 0.07).painted(RUBBER)
    tail_height = of.tail - 0.17
    red = box(0.12, 0.26, 0.17, 0.03).moved(0.06 - half, 0.72 * of.width / 2, tail_height).both_sides()
    plate = box(0.06, 0.46, 0.11).moved(0.01 - half, 0, tail_height - 0.12).painted((0.9, 0.9, 0.85))
    low = of.floor + 0.17
    bumpers = [
        box(0.24, 0.93 * of.width, 0.17, 0.05).moved(sign * (half - 0.07), 0, low).painted(of.trim, 0.1)
        for sign in (1, -1)
    ]
    mirror = ellipsoid(0.07, 0.11, 0.08, 8).moved(
        of.at(of.cabin[0]) - 0.28, of.side(of.belt) + 0.07, of.belt + 0.08
    )
    parts = [
        lamp,
        grille,
        red.painted((0.7, 0.06, 0.07), 0.4),
        plate,
        *bumpers,
        mirror.both_sides().painted(of.paint, 0.2),
    ]
    if of.stripe is not None:
        parts.append(_stripe(of).painted(of.stripe, 0.2))
    return parts


def _stripe(of: Car) -> Mesh:
    """Build a band along the bonnet and over the roof."""
    ahead = np.linspace(of.at(of.cabin[0]), of.length / 2 - 0.12, 6).tolist()
    middle = (of.at(of.cabin[1]) + of.at(of.cabin[2])) / 2
    bonnet = [(x, _top(of, x) + 0.03) for x in ahead]
    roof = [(of.at(of.cabin[2]), of.height), (middle, of.height + 0.03), (of.at(of.cabin[1]), of.height)]
    steps = [*itertools.pairwise(bonnet), *itertools.pairwise(roof)]
    y = 0.22
    return join(
        *(
            panel([(x0, -y, z0), (x1, -y, z1), (x1, y, z1), (x0, y, z0)], 0.012)
            for (x0, z0), (x1, z1) in steps
        )
    )
