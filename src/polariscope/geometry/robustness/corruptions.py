"""Observations that a model was not trained on: flipped pixels, inverted colours, an unknown shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import Argument, InputError

Corruption = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Function from observations with values in [0, 1] and a generator to corrupted observations of the same shape."""
FLIPS = (0.001, 0.01, 0.05)


def flip_pixels(
    x: Float[np.ndarray, "sample *shape"], probability: float, random: np.random.Generator
) -> Float[np.ndarray, "sample *shape"]:
    """Replace each value by 1 − x independently with a probability (mushom2020 §5.6: 0.001, 0.01, 0.05)."""
    if not 0 <= probability <= 1:
        raise InputError("probability", "lie between 0 and 1", got=probability)
    flipped = random.random(x.shape) < probability
    return np.where(flipped, 1 - _unit(x), x).astype(x.dtype)


def invert(x: Float[np.ndarray, "sample *shape"]) -> Float[np.ndarray, "sample *shape"]:
    """Invert colours, 1 − x (mushom2020 §5.6)."""
    return 1 - _unit(x)


def uniform_noise(
    x: Float[np.ndarray, "sample *shape"], reach: float, random: np.random.Generator
) -> Float[np.ndarray, "sample *shape"]:
    """Add uniform noise in ±reach to every value, and clip to [0, 1] (zietlow2022's control: 0.1 and 0.175)."""
    if not reach >= 0:
        raise InputError("reach", "not be negative", got=reach)
    noise = random.uniform(-reach, reach, size=x.shape)
    return np.clip(_unit(x) + noise, 0, 1).astype(x.dtype)


def standard_corruptions() -> dict[str, Corruption]:
    """Return the corruptions of mushom2020 §5.6: pixels flipped with probability 0.001, 0.01 and 0.05; inversion."""

    # A function, because a lambda in the loop would use the last probability for all.
    def flipping(probability: float) -> Corruption:
        return lambda x, random: flip_pixels(x, probability, random)

    return {f"flip {p:g}": flipping(p) for p in FLIPS} | {"invert": lambda x, _: invert(x)}


def triangles(
    n_samples: int, image_size: int, random: np.random.Generator
) -> Float[np.ndarray, "sample 1 height width"]:
    """Draw white triangles on black with random position, size and orientation, a shape that sprites do not include.

    Triangles are equilateral, with a circumradius of 8 to 16 of 64 pixels, and lie inside the image; a pixel is white
    if its centre lies inside the triangle.
    """
    if n_samples < 1 or image_size < 8:
        raise InputError(
            "n_samples",
            ("be at least 1 and ", Argument("image_size"), " at least 8"),
            got=f"{n_samples} and {image_size}",
        )
    radius = random.uniform(8, 16, size=n_samples) * image_size / 64
    turn = random.uniform(0, 2 * np.pi, size=n_samples)
    centre = radius + random.uniform(size=(2, n_samples)) * (image_size - 2 * radius)
    y, x = (axis[None] + 0.5 for axis in np.mgrid[:image_size, :image_size])
    inside = np.ones((n_samples, image_size, image_size), dtype=bool)
    for side in range(3):
        # The distance of a side from the centre is half the circumradius.
        angle = turn + 2 * np.pi * side / 3
        normal = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
        along = normal[0] * (x - centre[0][:, None, None]) + normal[1] * (y - centre[1][:, None, None])
        inside &= along <= radius[:, None, None] / 2
    return inside[:, None].astype(np.float32)


def _unit(x: Float[np.ndarray, "sample *shape"]) -> Float[np.ndarray, "sample *shape"]:
    if x.dtype.kind != "f":
        raise InputError(
            problem="this corruption requires floats in [0, 1]",
            got=x.dtype,
            remedy="use dataset.values, or divide bytes by 255",
        )
    if x.size and (x.min() < 0 or x.max() > 1):
        raise InputError(
            problem="this corruption requires values in [0, 1], like those of images",
            got=f"{x.min():.3g} … {x.max():.3g}",
        )
    return x
