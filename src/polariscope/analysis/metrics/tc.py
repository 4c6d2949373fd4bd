"""Gaussian total correlation of the codes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from jaxtyping import Float, UInt

from polariscope.analysis.code_table import N_PERMUTATIONS, Table
from polariscope.analysis.metrics import Score, metric
from polariscope.core.seeds import generator
from polariscope.numerics.dependence import correlation, covariance, total_correlation_of
from polariscope.numerics.intervals import recentred_interval


@metric(
    "tc",
    bounds=(0, np.inf),
    higher_is_better=False,
    needs=("codes",),
    invariant_to={"order", "shift", "scale", "sign"},
    uses=("variance",),
    posterior_variants=("noise-free",),
)
def tc(
    table: Table,
    *,
    variant: Literal["gaussian", "noise-free"] = "gaussian",
) -> Score:
    r"""Linear dependence between all latents, in nats.

    .. math:: \mathrm{TC} = \tfrac12 \Bigl( \sum_j \log C_{jj} - \log\det C \Bigr)

    with C the covariance of the codes (``gaussian``), or Cov[μ] + diag E[σ²] from means and ``variance``
    (``noise-free``), which is that of the sampled representation over all draws. It is 0 if no two latents are
    correlated, and infinite, with an infinite interval, if a latent is a linear function of others. ``chance`` is the
    mean for codes whose columns are shuffled independently, about d(d − 1)/4n for d latents. ``matrix`` contains the
    correlations (latent, latent).

    Only linear dependence is measured. It equals the total correlation if the latents are jointly Gaussian, which mixed
    latents are not.

    Reference: bonheme2023 Eq. 6.3; see :func:`polariscope.numerics.dependence.total_correlation`.

    :param variant: (default "gaussian") covariance of the codes, or of the means with the mean variances added.

    >>> tc(np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])).value
    0.0
    """
    noise = np.zeros_like(table.codes) if variant == "gaussian" else table.variance
    total = covariance(table.codes) + np.diag(noise.mean(axis=0))
    value = total_correlation_of(total)
    replicates = _replicates(table.codes, noise, table.resamples)
    draw = generator(table.seed, "metrics", "columns")
    chances = [
        # permuted shuffles each column on its own.
        total_correlation_of(covariance(draw.permuted(table.codes, axis=0)) + np.diag(noise.mean(axis=0)))
        for _ in range(N_PERMUTATIONS)
    ]
    finite = math.isfinite(value)
    # A resample of few samples can contain fewer distinct samples than there are latents.
    known = finite and np.isfinite(replicates).all()
    interval = recentred_interval(value, replicates, (0, np.inf)) if known else (value, math.inf)
    notes = () if finite else ("A latent is a linear function of others; drop it to measure the rest.",)
    return Score.of(
        "tc",
        value,
        interval=interval,
        chance=float(np.mean(chances)),
        variant=variant,
        matrix=correlation(total),
        details={"bits": value / math.log(2)},
        notes=notes,
    )


def _replicates(
    codes: Float[np.ndarray, "sample latent"],
    noise: Float[np.ndarray, "sample latent"],
    resamples: UInt[np.ndarray, "replicate sample"],
) -> Float[np.ndarray, " replicate"]:
    """Return the total correlation in each resample, from weighted moments."""
    constant = np.diag(covariance(codes)) == 0
    # Centred, because the moments below are otherwise differences of large sums.
    z = np.where(constant, 0.0, codes - codes.mean(axis=0))
    n, d = z.shape
    sums = (resamples @ (z[:, :, None] * z[:, None, :]).reshape(n, -1)).reshape(-1, d, d)
    # The counts of a resample add up to n.
    means = resamples @ z / n
    noises = resamples @ noise / n
    moments = (sums - n * means[:, :, None] * means[:, None, :]) / (n - 1)
    return np.array([total_correlation_of(c + np.diag(v)) for c, v in zip(moments, noises, strict=True)])
