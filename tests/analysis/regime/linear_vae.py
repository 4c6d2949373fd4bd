"""Representations whose answer is known exactly: the optimum of a linear β-VAE."""

from __future__ import annotations

import numpy as np


def orthogonal_columns(n_samples, n_columns, seed=0):
    """Columns with mean 0, population variance 1 and no correlation, to rounding."""
    x = np.random.default_rng(seed).normal(size=(n_samples, n_columns))
    q, _ = np.linalg.qr(x - x.mean(axis=0))
    q -= q.mean(axis=0)
    return q * np.sqrt(n_samples)


def linear_vae(eigenvalues, noise, n_samples=2000, seed=0):
    """Mean, variance and sampled arrays of a linear β-VAE at its optimum; ``noise`` is βγ.

    objectives.md §12.2: σ² = min(1, βγ/λ), Var[μ] = 1 − σ². The noise is orthogonal to the means, so that the
    sampled representation is exactly uncorrelated with variance 1.
    """
    variances = np.minimum(1.0, noise / np.asarray(eigenvalues, dtype=float))
    columns = orthogonal_columns(n_samples, 2 * len(variances), seed)
    mean = columns[:, : len(variances)] * np.sqrt(1 - variances)
    sampled = mean + columns[:, len(variances) :] * np.sqrt(variances)
    return mean, np.tile(variances, (n_samples, 1)), sampled
