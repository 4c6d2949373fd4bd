"""Size of a linear VAE, computed from the covariance of the data."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Gt
from jaxtyping import Float

from polariscope.analysis.noise import Noise
from polariscope.analysis.theory import FLOOR, linear_size
from polariscope.core.text import plural
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.result import TRACE, SeedResult
from polariscope.sizing.trial import Trial

SHOWN = 3
"""Number of widths below and above the answer that are listed with it."""


@method(
    "linear",
    statistic=TRACE,
    trains=False,
    needs_variances=False,
    threshold="goal",
    interval="the answer only: the closed form is exact for these data, and the sampling of the data is not included",
    uses=("cap",),
)
def linear(
    candidates: AbstractCandidates, goal: Goal, *, decoder_variance: Annotated[float, Gt(0)] | None = None
) -> SeedResult:
    """Compute the size of a linear VAE in closed form: exact for linear nets, a first guess for others.

    The answer is the largest n such that models with 1 … n latents all have Σ E[σ²] within the threshold
    (:func:`polariscope.analysis.theory.linear_size`). It is computed from the covariance of at most 10,000
    observations; no model is trained. A non-linear network can need fewer latents if the data lie on a curved surface,
    and more if it finds structure in the residual of a linear model. A Gaussian likelihood is assumed, also for images.

    :param candidates: source of the observations
    :param goal: threshold and cap
    :param decoder_variance: (default: that of the likelihood if it is fixed, otherwise learned) variance of the
        decoder, in the units in which models are trained
    """
    rows = candidates.observations()
    values = eigenvalues_of(rows)
    gamma = candidates.fixed_variance if decoder_variance is None else decoder_variance
    optimum = linear_size(values, goal.threshold, len(rows), gamma=gamma)
    answer = min(optimum.n_latents, goal.cap)
    # If the cap limits the answer, wider models are not listed.
    last = min(len(optimum.traces), max(answer, 1) + SHOWN if answer == optimum.n_latents else answer)
    trials = tuple(
        Trial(
            n,
            candidates.seed,
            float(optimum.traces[n - 1]),
            "fits" if optimum.traces[n - 1] <= goal.threshold else "too many",
            0,
            gamma=float(optimum.gammas[n - 1]),
        )
        for n in range(max(1, answer - SHOWN), last + 1)
    )
    notes = ["The answer is for a linear VAE with β = 1; for other models it is a first guess."]
    if optimum.is_at_end:
        features = plural(len(values), "feature")
        notes.append(
            f"Every number of latents up to {optimum.n_latents} fits, the maximum for {len(rows):,} observations of "
            f"{features}: the residual is always small compared with the variance that the latents explain."
        )
    if answer < optimum.n_latents:
        notes.append(f"The closed form gives {optimum.n_latents}, and cap is {goal.cap}.")
    mean = float(values.mean())
    noise = Noise(
        float(optimum.gammas[max(answer, 1) - 1]),
        gamma is None,
        mean,
        FLOOR * mean if gamma is None else None,
    )
    return SeedResult(answer, (answer, answer), trials, tuple(notes), noise)


def eigenvalues_of(rows: Float[np.ndarray, "sample feature"]) -> Float[np.ndarray, " feature"]:
    """Return the eigenvalues of the covariance (with 1/n), one for each feature.

    They are computed from the smaller of the two products XᵀX and XXᵀ.

    :param rows: observations, (sample, feature)

    >>> eigenvalues_of(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    array([1., 0., 0.])
    """
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    n_samples, n_features = centred.shape
    product = centred.T @ centred if n_features <= n_samples else centred @ centred.T
    eigenvalues = np.maximum(np.linalg.eigvalsh(product / n_samples)[::-1], 0.0)
    # Directions without variance get tiny eigenvalues from rounding.
    eigenvalues[eigenvalues < eigenvalues[0] * max(rows.shape) * np.finfo(np.float32).eps ** 2] = 0.0
    # XXᵀ has only n_samples eigenvalues; the others are 0.
    return np.pad(eigenvalues, (0, n_features - len(eigenvalues)))
