"""Points on manifolds of known dimension, and rotations.

This file only imports NumPy: the script that recorded scikit-dimension's values runs it without Polariscope.

The families are those of the usual benchmark (Campadelli et al., Intrinsic Dimension Estimation: Relevant
Techniques and a Benchmark Framework, 2015): a sphere, a flat piece, curved ones and non-uniform densities.
"""

from __future__ import annotations

import numpy as np


def random_rotation(n: int, seed: int) -> np.ndarray:
    """Return a random orthogonal matrix, uniform up to column signs.

    :param n: number of rows and columns.
    :param seed: seed of the draw.
    """
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def sphere(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Draw points uniformly on the d-dimensional sphere in d + 1 dimensions, which has no edges."""
    x = np.random.default_rng(seed).normal(size=(n, d + 1))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cube(n: int, d: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Draw points uniformly in a d-dimensional cube, rotated into more dimensions."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(n_features, d)))[0]
    return rng.random((n, d)) @ frame.T


def torus(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Draw points uniformly on the flat d-torus in 2d dimensions: d circles, without edges or a preferred point."""
    angles = 2 * np.pi * np.random.default_rng(seed).random((n, d))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def swiss_roll(n: int, seed: int = 0) -> np.ndarray:
    """Draw points on a rolled-up rectangle (t cos t, t sin t, height), t from 1.5π to 4.5π: 2 dimensions in 3."""
    rng = np.random.default_rng(seed)
    t, height = np.pi * (1.5 + 3 * rng.random(n)), 21 * rng.random(n)
    return np.stack([t * np.cos(t), t * np.sin(t), height], axis=1)


def nonlinear(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Draw d coordinates u, bent into 4d dimensions by sin and cos of products of neighbours: curved everywhere."""
    u = np.random.default_rng(seed).random((n, d))
    v = np.roll(u, -1, axis=1)
    waves = [np.tan(u * np.cos(v)), np.arctan(v * np.sin(u)), u**2 + v, np.sin(u + v)]
    return np.concatenate(waves, axis=1)


def gaussian(n: int, d: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Draw points from N(0, I) of d dimensions in more: no edge, and a density that decreases everywhere."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(n_features, d)))[0]
    return rng.normal(size=(n, d)) @ frame.T


def power_law(n: int, d: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Draw cubes of uniform numbers, in more dimensions: the density is unbounded at the faces."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(n_features, d)))[0]
    return (rng.random((n, d)) ** 3) @ frame.T


# Manifolds for which scikit-dimension's values were recorded: name → (points, dimension).
BENCHMARK = {
    "hypersphere": (lambda: sphere(500, 5), 5),
    "linear": (lambda: cube(500, 3, 10), 3),
    "curved": (lambda: nonlinear(500, 4), 4),
    "roll": (lambda: swiss_roll(500), 2),
    "gaussian": (lambda: gaussian(500, 6, 20), 6),
    "non-uniform": (lambda: power_law(500, 4, 8), 4),
}
