"""Colours of figures can be told apart by readers who do not see all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from polariscope.analysis.regime.latent_types import COLOURS
from polariscope.core.figure_style import MARKERS, PALETTE, PRINT

# What dichromats see of linear RGB: Machado, Oliveira and Fernandes 2009, Table 1, severity 1.
SEEN = {
    "all": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
NOTICEABLE = 2.3
"""Distance at which two colours are just told apart."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which equal distances look about equally far."""
    code = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(seen @ linear, 0, 1) / WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("reader", SEEN)
@pytest.mark.parametrize(
    ("colours", "times"), [(PALETTE, 7), (COLOURS.values(), 5)], ids=["palette", "types"]
)
def test_every_two_colours_are_far_apart_for_every_reader(
    reader: str, colours: Iterable[str], times: int
) -> None:
    """Lines that cross need several just noticeable differences."""
    places = [lab(colour, SEEN[reader]) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > times * NOTICEABLE


def test_colours_have_shapes_too_and_text_stays_text() -> None:
    assert len(set(MARKERS)) == len(PALETTE) == len(MARKERS)
    assert PRINT["svg.fonttype"] == "none"
    assert PRINT["pdf.fonttype"] == 42
