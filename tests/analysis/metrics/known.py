"""Representations whose scores are known."""

from __future__ import annotations

import itertools

import numpy as np


def grid(*sizes: int, repeats: int = 1) -> np.ndarray:
    """Every combination of factors with these numbers of values, as often as asked: independent, exactly."""
    return np.array(list(itertools.product(*map(range, sizes))) * repeats)


def standardised(codes: np.ndarray) -> np.ndarray:
    return (codes - codes.mean(axis=0)) / codes.std(axis=0)


def noise(n_samples: int, n_latents: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_samples, n_latents))


def rotated(codes: np.ndarray) -> np.ndarray:
    """Two latents turned by 45 degrees."""
    return codes @ np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
