"""The elbow of what can be predicted from the codes."""

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

MOST_SAMPLES = 4000


@method(
    "probe-elbow",
    statistic="probe accuracy",
    trains=True,
    rate="quick",
    needs_variances=False,
    needs_factors=True,
    threshold=None,
    interval="95 % of the knees when the residuals are drawn anew",
    uses=("cap", "steps"),
)
def probe_elbow(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Where more latents stop improving the prediction of the factors (bonheme2023 §8.4.1), by an automatic knee.

    Held-out accuracy (R² for continuous factors) of boosted trees on the mean representation, averaged over the
    factors. Needs data with known factors.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return elbow_of(
        candidates,
        goal,
        lambda n, steps: probe_score(
            candidates.representation(n, steps, learning_rate=goal.rate()), candidates.seed
        ),
    )


def probe_score(representation: Representation, seed: int) -> float:
    """Mean held-out accuracy, or R², over factors: three quarters of the samples to fit, one to judge."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if representation.factors is None or not representation.factors.shape[1]:
        raise InputError(
            problem="probe-elbow needs data with known factors",
            remedy=("use ", Argument("method", "elbow"), ", which needs none"),
        )
    # In any order: samples that come sorted by a factor would be judged on values that were never fitted.
    rows = generator(seed, "probe").permutation(representation.n_samples)[:MOST_SAMPLES]
    codes, factors = representation.mean[rows], representation.factors[rows]
    border = len(codes) * 3 // 4
    scores = []
    for column in factors.T:
        if np.unique(column).size < 2:
            continue
        is_class = np.issubdtype(column.dtype, np.integer)
        kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        probe = kind(max_iter=30, random_state=seed).fit(codes[:border], column[:border])
        scores.append(probe.score(codes[border:], column[border:]))
    if not scores:
        raise InputError(
            problem="probe-elbow needs a factor with at least two values",
            remedy=("use ", Argument("method", "elbow")),
        )
    return float(np.mean(scores))
