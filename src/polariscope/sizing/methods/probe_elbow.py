"""The elbow of the accuracy with which factors are predicted from the codes."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError
from polariscope.core.seeds import generator
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.knee import elbow_of
from polariscope.sizing.result import SeedResult

MAX_SAMPLES = 4000


@method(
    "probe-elbow",
    statistic="probe accuracy",
    trains=True,
    rate="quick",
    needs_variances=False,
    needs_factors=True,
    threshold=None,
    interval="95 % of the knees over resamples of the residuals",
    uses=("cap", "steps"),
)
def probe_elbow(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Find the knee beyond which more latents hardly improve the prediction of the factors (bonheme2023 §8.4.1).

    The statistic is the held-out accuracy (R² for continuous factors) of boosted trees on the mean representation,
    averaged over the factors. The data must have known factors.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return elbow_of(
        candidates,
        goal,
        lambda n, steps: probe_score(
            candidates.representation(n, steps, learning_rate=goal.rate()), candidates.seed
        ),
    )


def probe_score(representation: Representation, seed: int) -> float:
    """Return the mean held-out accuracy, or R², over factors: fit on three quarters of the samples, test on one."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if representation.factors is None or not representation.factors.shape[1]:
        raise InputError(
            problem="probe-elbow requires data with known factors",
            remedy=("use ", Argument("method", "elbow"), ", which does not"),
        )
    # If the samples are sorted by a factor, a split in their order would test values that were never fitted.
    rows = generator(seed, "probe").permutation(representation.n_samples)[:MAX_SAMPLES]
    codes, factors = representation.mean[rows], representation.factors[rows]
    border = len(codes) * 3 // 4
    scores = []
    for column in factors.T:
        # A constant factor is always predicted, which would raise the mean.
        if np.unique(column).size < 2:
            continue
        is_class = np.issubdtype(column.dtype, np.integer)
        kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        probe = kind(max_iter=30, random_state=seed).fit(codes[:border], column[:border])
        scores.append(probe.score(codes[border:], column[border:]))
    if not scores:
        raise InputError(
            problem="probe-elbow requires a factor with at least two values",
            remedy=("use ", Argument("method", "elbow")),
        )
    return float(np.mean(scores))
