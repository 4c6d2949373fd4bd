"""The elbow of the reconstruction loss."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.knee import elbow_of
from polariscope.sizing.result import SeedResult


@method(
    "elbow",
    statistic="reconstruction loss",
    trains=True,
    rate="quick",
    needs_variances=False,
    threshold=None,
    interval="95 % of the knees when the residuals are drawn anew",
    uses=("cap", "steps"),
)
def elbow(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Where more latents stop improving the held-out reconstruction (bonheme2023 §8.5), by an automatic knee.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return elbow_of(
        candidates,
        goal,
        lambda n, steps: candidates.reconstruction_loss(n, steps, learning_rate=goal.rate()),
    )
