"""Aeroplanes built from their measures: toy figures of one material."""

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
    plate,
    revolve,
    tube,
    wheel,
)

_DARK = (0.3, 0.3, 0.3)


@dataclasses.dataclass(frozen=True)
class Plane:
    """Measures of an aeroplane, in units of the length of its fuselage."""

    name: str
    """Name of the aeroplane."""
    body: float
    """Radius of the fuselage."""
    span: float
    """Distance from the middle of the fuselage to a wing tip."""
    chord: float
    """Depth of the wings at the fuselage."""
    tip: float
    """Depth of the wings at their tips."""
    sweep: float
    """Distance of the tips behind the roots of the wings."""
    wing_at: float = 0.08
    """x coordinate of the front edge of the wings."""
    mount: float = -0.5
    """Height of the wings: −1 below the fuselage, 1 above it."""
    dihedral: float = 0.06
    """Rise of the tips per unit of span."""
    tail_span: float = 0.19
    """Distance from the middle to a tip of the tailplane."""
    fin: float = 0.2
    """Height of the fin."""
    high_tail: bool = False
    """If True, the tailplane is on top of the fin."""
    twin_fins: bool = False
    """If True, there are two fins instead of one."""
    engines: Literal["none", "jets", "propellers", "nose", "tail", "intakes"] = "none"
    """Kind and position of the engines."""
    n_engines: int = 1
    """Number of engines on each wing."""
    second_wing: bool = False
    """If True, there is a second wing above the first."""
    floats: bool = False
    """If True, there are floats instead of wheels."""
    sharp: bool = False
    """If True, the nose is pointed."""


PLANES = (
    Plane(
        "airliner", body=0.062, span=0.52, chord=0.2, tip=0.06, sweep=0.24, engines="jets",
    ),
    Plane(
        "fighter", body=0.06, span=0.3, chord=0.34, tip=0.09, sweep=0.2, wing_at=0.02, mount=0.1, dihedral=0.0,
        tail_span=0.17, fin=0.16, twin_fins=True, engines="intakes", sharp=True,
    ),
    Plane(
        "biplane", body=0.08, span=0.5, chord=0.2, tip=0.19, sweep=0.0, wing_at=0.26, mount=-0.9, dihedral=0.03,
        tail_span=0.2, fin=0.16, engines="nose", second_wing=True,
    ),
    Plane(
        "bomber", body=0.065, span=0.64, chord=0.19, tip=0.09, sweep=0.06, wing_at=0.16, mount=0.2,
        dihedral=0.03, tail_span=0.24, fin=0.17, engines="propellers", n_engines=2,
    ),
    Plane(
        "delta", body=0.05, span=0.3, chord=0.55, tip=0.03, sweep=0.48, wing_at=0.12, mount=-0.3, dihedral=0.0,
        tail_span=0.0, engines="jets", sharp=True,
    ),
    Plane(
        "glider", body=0.045, span=0.85, chord=0.12, tip=0.06, sweep=0.02, wing_at=0.14, mount=0.5,
        dihedral=0.04, tail_span=0.16, fin=0.17, high_tail=True,
    ),
    Plane(
        "trainer", body=0.072, span=0.52, chord=0.19, tip=0.16, sweep=0.01, wing_at=0.2, mount=1.0,
        dihedral=0.02, fin=0.17, engines="nose",
    ),
    Plane(
        "business jet", body=0.066, span=0.44, chord=0.17, tip=0.06, sweep=0.1, wing_at=0.02, mount=-0.8,
        high_tail=True, engines="tail",
    ),
    Plane(
        "freighter", body=0.095, span=0.58, chord=0.2, tip=0.09, sweep=0.1, wing_at=0.16, mount=1.0,
        dihedral=-0.05, tail_span=0.25, fin=0.26, high_tail=True, engines="jets", n_engines=2,
    ),
    Plane(
        "seaplane", body=0.07, span=0.56, chord=0.18, tip=0.13, sweep=0.02, wing_at=0.18, mount=1.1,
        dihedral=0.03, tail_span=0.2, fin=0.18, engines="propellers", floats=True,
    ),
)  # fmt: skip


def plane(of: Plane) -> Mesh:
    """Build the body of an aeroplane that points ahead, on the ground.

    :param of: its measures.
    """

    def radius(share: float) -> float:
        """Return the radius at a share of the length, from the tail to the nose."""
        if share < 0.4:
            return of.body * (0.16 + 0.84 * math.sin(math.pi / 2 * share / 0.4))
        if share < 0.78:
            return of.body
        ahead = (share - 0.78) / 0.22
        return of.body * (math.sqrt(max(0.0, 1 - ahead**2)) if not of.sharp else 1 - 0.88 * ahead**1.3)

    hull = revolve(radius, -0.5, 0.5, 20)
    along = hull.vertices[:, 0]
    rise = 0.6 * of.body * np.clip((-0.1 - along) / 0.4, 0, 1)  # the tail bends upwards
    hull = dataclasses.replace(hull, vertices=hull.vertices + rise[:, None] * [0, 0, 1])
    parts = [hull, *_wings(of), *_tail(of), *_engines(of)]
    canopy = ellipsoid(0.1 if of.sharp else 0.075, 0.55 * of.body, 0.55 * of.body, 12)
    parts.append(canopy.moved(0.27 if of.sharp else 0.3, 0, 0.72 * of.body).painted(_DARK, 0.3))
    return join(*parts, *_feet(of))


def _wing(
    root: float, chord: float, tip: float, sweep: float, span: float, height: float, dihedral: float
) -> Mesh:
    """Build a wing on the left: a loft between sections that are thickest at a third of their depth."""
    rings = []
    for share in (0.0, 0.5, 1.0):
        depth = chord + share * (tip - chord)
        front, y, z = root - share * sweep, share * span, height + share * span * dihedral
        thick = 0.06 * depth + 0.004
        section = [
            (0, 0),
            (0.12, 0.8),
            (0.35, 1),
            (0.7, 0.6),
            (1, 0),
            (0.7, -0.4),
            (0.35, -0.6),
            (0.12, -0.5),
        ]
        rings.append([(front - along * depth, y, z + up * thick) for along, up in section])
    return loft(np.array(rings))


def _wings(of: Plane) -> list[Mesh]:
    height = of.mount * 0.85 * of.body
    parts = [_wing(of.wing_at, of.chord, of.tip, of.sweep, of.span, height, of.dihedral).both_sides()]
    if of.second_wing:
        above = height + 0.24
        parts.append(
            _wing(of.wing_at + 0.04, of.chord, of.tip, of.sweep, of.span, above, of.dihedral).both_sides()
        )
        for share in (0.18, 0.75):
            y = share * of.span
            parts += [
                limb((x, y, height), (x + 0.03, y, above), 0.009, 0.009, 6).both_sides()
                for x in (of.wing_at - 0.03, of.wing_at - 0.15)
            ]
    return parts


def _tail(of: Plane) -> list[Mesh]:
    base = 0.6 * of.body
    outline = [(-0.5, base), (-0.36, base), (-0.46, base + of.fin), (-0.53, base + of.fin)]
    parts = []
    if of.twin_fins:
        fin = (
            plate([(x, 0.0, z) for x, z in outline], 0.014)
            .turned(0, -0.25)
            .moved(0.02, 0.75 * of.body, -0.2 * of.body)
        )
        parts.append(fin.both_sides())
    else:
        parts.append(plate([(x, 0.0, z) for x, z in outline], 0.018))
    if of.tail_span:
        height = base + 0.97 * of.fin if of.high_tail else base
        shift = -0.05 if of.high_tail else 0.0
        parts.append(_wing(-0.38 + shift, 0.12, 0.06, 0.07, of.tail_span, height, 0.0).both_sides())
    return parts


def _engines(of: Plane) -> list[Mesh]:
    height = of.mount * 0.85 * of.body
    parts = []
    if of.engines == "nose":
        parts += [
            _propeller(0.13).moved(0.51),
            tube([(0.4, 0, 0), (0.5, 0, 0)], (of.body, 0.55 * of.body), 14),
        ]
    if of.engines == "intakes":
        parts.append(box(0.42, 0.075, 0.085, 0.02).moved(-0.08, 0.085, -0.02).both_sides())
        nozzle = tube([(-0.5, 0, 0), (-0.3, 0, 0)], (0.038, 0.05), 12).moved(0, 0.05, 0.0)
        parts.append(nozzle.both_sides())
    if of.engines == "tail":
        pod = revolve(lambda share: 0.034 * math.sin(math.pi * (0.2 + 0.6 * share)), -0.42, -0.2, 7, 12)
        parts.append(pod.moved(0, of.body + 0.035, 0.35 * of.body).both_sides())
    for number in range(of.n_engines if of.engines in ("jets", "propellers") else 0):
        share = 0.34 if of.n_engines == 1 else 0.3 + 0.32 * number
        y, z = share * of.span, height + share * of.span * of.dihedral
        front = of.wing_at - share * of.sweep
        pod = revolve(lambda share: 0.037 * math.sin(math.pi * (0.22 + 0.6 * share)), -0.09, 0.1, 7, 12)
        if of.engines == "jets":
            parts.append(pod.moved(front, y, z - 0.045).both_sides())
        else:
            parts.append(join(pod, _propeller(0.1).moved(0.11)).moved(front, y, z).both_sides())
    return parts


def _propeller(radius: float) -> Mesh:
    """Build three blades that turn about x, and a spinner."""
    outline = [
        (0.0, -0.012, 0.0),
        (0.0, 0.012, 0.0),
        (0.0, 0.018, 0.7 * radius),
        (0.0, 0.0, radius),
        (0.0, -0.018, 0.7 * radius),
    ]
    blade = plate(outline, 0.01)
    blades = [blade.turned(0, 2 * math.pi * number / 3) for number in range(3)]
    return join(*blades, ellipsoid(0.03, 0.022, 0.022, 8))


def _feet(of: Plane) -> list[Mesh]:
    if of.floats:
        low = -of.body - 0.13
        hull = revolve(
            lambda share: 0.034 * math.sin(math.pi * (0.08 + 0.84 * share)) ** 0.6, -0.22, 0.32, 9, 10
        )
        parts = [hull.moved(0, 0.15, low).both_sides()]
        parts += [
            limb((x, 0.15, low), (x, 0.6 * of.body, -0.6 * of.body), 0.011, 0.011, 6).both_sides()
            for x in (0.18, -0.04)
        ]
        return parts
    low = -of.body - 0.07
    tyre = wheel(0.03, 0.02, _DARK, _DARK)
    main = join(
        tyre.moved(0, 0.1, low + 0.03),
        limb((0, 0.1, low + 0.03), (0, 0.5 * of.body, -0.6 * of.body), 0.01, 0.01, 6),
    )
    nose = join(
        tyre.moved(0.3, 0, low + 0.03), limb((0.3, 0, low + 0.03), (0.3, 0, -0.5 * of.body), 0.01, 0.01, 6)
    )
    return [main.both_sides(), nose]
