"""How sure the type of each latent is, given that the samples were drawn by chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.posterior import RelativePosterior
from polariscope.analysis.regime.rule import moments_of_resamples, types_of
from polariscope.analysis.regime.variable_types import TYPES

CONFIDENT = 0.9  # share of resamples from which a type counts as sure
BLOCK = 4_000_000  # weights held in memory at once


def type_shares(
    posterior: RelativePosterior, *, alpha: float, n_bootstrap: int, generator: np.random.Generator
) -> Float[np.ndarray, "latent 3"]:
    """Share of bootstrap resamples in which each latent is active, mixed and passive, in this order.

    Each resample draws n of the n samples with replacement and applies the primary rule again. A share of 1
    for the type found on all samples: the type does not hang on which samples were drawn. About a half: the
    latent sits on the boundary of the rule. It says nothing about another seed or a longer training.

    Reference: Efron, Bootstrap Methods: Another Look at the Jackknife, 1979.
    """
    counts = np.zeros((posterior.mean.shape[1], len(TYPES)))
    weighted = moments_of_resamples(posterior)
    for weights in _resamples(len(posterior.mean), n_bootstrap, generator):
        found = types_of(weighted(weights), alpha)
        counts += np.stack([(found == name).sum(axis=0) for name in TYPES], axis=1)
    return counts / n_bootstrap


def _resamples(
    n_samples: int, n_bootstrap: int, generator: np.random.Generator
) -> Iterator[Float[np.ndarray, "resample sample"]]:
    """How often each sample is drawn, over n: a resample's mean is then one matrix product."""
    block = max(1, BLOCK // n_samples)
    for start in range(0, n_bootstrap, block):
        rows = min(block, n_bootstrap - start)
        drawn = generator.integers(n_samples, size=(rows, n_samples))
        drawn += n_samples * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_samples).reshape(rows, n_samples) / n_samples
