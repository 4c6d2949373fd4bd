"""The elbow of the reconstruction loss."""

from __future__ import annotations

from polariscope.sizing import AbstractCandidates, Found, Goal, method
from polariscope.sizing.support.elbow import elbow_of


@method(
    "elbow",
    statistic="reconstruction loss",
    trains=True,
    needs_variances=False,
    threshold=None,
    interval="95 % of the knees when the residuals are drawn anew",
    uses=("cap", "steps"),
)
def elbow(candidates: AbstractCandidates, goal: Goal) -> Found:
    """Where more latents stop improving the held-out reconstruction (bonheme2023 §8.5), by an automatic knee.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return elbow_of(
        candidates,
        goal,
        lambda n, steps: candidates.reconstruction_loss(n, steps, learning_rate=goal.rate()),
    )
