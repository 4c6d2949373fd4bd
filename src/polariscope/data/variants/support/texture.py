"""A procedural painting: swirling coloured bands, as in the sky and the fjord of an expressionist picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8

EDITION = 1
"""Version of the texture, part of the fingerprint of variants that use it; increase it whenever a pixel changes."""
SKY = ((0.93, 0.62, 0.25), (0.80, 0.28, 0.13))
WATER = ((0.16, 0.27, 0.45), (0.42, 0.52, 0.50))
GROUND = ((0.36, 0.22, 0.14), (0.62, 0.42, 0.24))
"""The two colours of the bands in each third."""


def texture(height: int, width: int) -> UInt8[np.ndarray, "3 height width"]:
    r"""Render the picture in bytes.

    With v from 0 (top) to 1 (bottom) and u from 0 (left) to 1, the bands are the regions in which

    .. math:: b = \tfrac12 + \tfrac12 \sin 2\pi\bigl(7 v + 0.9 \sin 2\pi(0.8 u + 0.3 v)
              + 0.35 \sin 2\pi(1.9 u - 1.1 v)\bigr)

    is high or low. b mixes two colours that depend on v, with smooth, swirling borders.

    :param height: height in pixels.
    :param width: width in pixels.
    """
    v, u = (np.arange(size, dtype=np.float64) / size for size in (height, width))
    v = v[:, np.newaxis]
    swirl = 0.9 * _wave(0.8 * u + 0.3 * v) + 0.35 * _wave(1.9 * u - 1.1 * v)
    bands = (0.5 + 0.5 * _wave(7 * v + swirl))[np.newaxis]
    depth = v + 0.06 * swirl
    painted = _mixed(SKY, bands)
    for border, colours in ((0.4, WATER), (0.72, GROUND)):
        share = np.clip((depth - border) / 0.08 + 0.5, 0, 1)
        painted = (1 - share) * painted + share * _mixed(colours, bands)
    return np.rint(255 * painted).astype(np.uint8)


def _wave(phase: Float[np.ndarray, "height width"]) -> Float[np.ndarray, "height width"]:
    return np.sin(2 * np.pi * phase)


def _mixed(
    colours: tuple[tuple[float, ...], tuple[float, ...]], share: Float[np.ndarray, "1 height width"]
) -> Float[np.ndarray, "3 height width"]:
    low, high = (np.array(colour)[:, np.newaxis, np.newaxis] for colour in colours)
    return (1 - share) * low + share * high
