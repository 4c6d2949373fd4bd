"""The answer for a linear VAE, from the covariance of the data alone."""

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
"""Numbers of latents beyond the answer that are shown beside it."""


@method(
    "linear",
    statistic=TRACE,
    trains=False,
    needs_variances=False,
    threshold="goal",
    interval="the answer alone: the closed form is exact for these data, and other data of the kind are not in it",
    uses=("cap",),
)
def linear(
    candidates: AbstractCandidates, goal: Goal, *, decoder_variance: Annotated[float, Gt(0)] | None = None
) -> SeedResult:
    """The number of latents of a linear VAE, in closed form: exact for linear nets, a first guess for others.

    The end of the first stretch of n whose Σ E[σ²] stays within the threshold
    (:func:`polariscope.analysis.theory.linear_size`), from the covariance of at most 10,000 observations; nothing is
    trained. A network that is not linear can need fewer latents, where the data lie on a curved surface, and more,
    where it finds structure in what a linear model takes for noise. Of images it supposes a Gaussian likelihood.

    :param candidates: whose observations are looked at
    :param goal: threshold and cap
    :param decoder_variance: (default: that of the likelihood, where it is fixed, else learned) variance of the
        decoder, in the units that models are trained in
    """
    rows = candidates.observations()
    values = eigenvalues_of(rows)
    gamma = candidates.fixed_variance if decoder_variance is None else decoder_variance
    optimum = linear_size(values, goal.threshold, len(rows), gamma=gamma)
    answer = min(optimum.n_latents, goal.cap)
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
    notes = ["The answer is for a linear VAE with β = 1; for others take it as a first guess."]
    if optimum.is_at_end:
        features = plural(len(values), "feature")
        notes.append(
            f"Every number of latents fits up to {optimum.n_latents}, the most that {len(rows):,} observations of "
            f"{features} allow: what is left over is always small beside what is described."
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
    """Eigenvalues of the covariance (with 1/n) of some rows, one for each feature, by the smaller of the two products.

    :param rows: observations, (sample, feature)

    >>> eigenvalues_of(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    array([1., 0., 0.])
    """
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    n_samples, n_features = centred.shape
    product = centred.T @ centred if n_features <= n_samples else centred @ centred.T
    eigenvalues = np.maximum(np.linalg.eigvalsh(product / n_samples)[::-1], 0.0)
    # What rounding leaves of directions that never vary.
    eigenvalues[eigenvalues < eigenvalues[0] * max(rows.shape) * np.finfo(np.float32).eps ** 2] = 0.0
    return np.pad(eigenvalues, (0, n_features - len(eigenvalues)))
