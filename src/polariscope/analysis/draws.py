"""Check that sampled codes are draws from the posterior that they are passed with."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from polariscope.analysis.representation import Representation

MIN_SAMPLES = 100
"""Minimum number of samples for a decision."""
N_ERRORS = 6
"""Number of standard errors beyond which the spread of draws is not that of the posterior."""


def not_drawn(representation: Representation) -> Bool[np.ndarray, " latent"]:
    r"""Return a mask of the latents whose sampled codes are not draws from N(mean, variance).

    For draws, :math:`(z - \mu)^2 / \sigma^2` has mean 1 and standard deviation √2. A latent is marked if its average
    over n samples differs from 1 by more than 6 standard errors. The standard error is the larger of √(2/n) and that of
    the observed values, since a wrong ratio can have a smaller spread by accident. A normal variable exceeds 6 standard
    errors with probability 2·10⁻⁹; the sum of 100 squares is skewed and exceeds √(2/n) six times with probability
    5·10⁻⁷. Samples
    that Polariscope drew itself are not checked, and neither are fewer than 100 samples.

    :param representation: the codes.
    """
    if representation.sampled_was_drawn:
        return np.zeros(representation.n_latents, dtype=bool)
    mean, variance, sampled = (
        getattr(representation, name).astype(np.float64) for name in ("mean", "variance", "sampled")
    )
    # If σ is below the rounding error of μ, z − μ consists of rounding errors.
    eps = max(np.finfo(representation.mean.dtype).eps, np.finfo(representation.sampled.dtype).eps)
    reliable = variance > (100 * eps * np.abs(mean)) ** 2
    ratio = np.divide((sampled - mean) ** 2, variance, out=np.ones_like(mean), where=reliable)
    count = np.maximum(reliable.sum(axis=0), 1)
    average = 1 + ((ratio - 1) * reliable).sum(axis=0) / count
    spread = np.sqrt((((ratio - average) * reliable) ** 2).sum(axis=0) / count)
    error = np.maximum(spread, np.sqrt(2)) / np.sqrt(count)
    return (count >= MIN_SAMPLES) & (np.abs(average - 1) > N_ERRORS * error)
