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
    interval="95 % of the knees over resamples of the residuals",
    uses=("cap", "steps"),
)
def elbow(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Find the knee beyond which more latents hardly improve the held-out reconstruction (bonheme2023 §8.5).

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return elbow_of(
        candidates,
        goal,
        lambda n, steps: candidates.reconstruction_loss(n, steps, learning_rate=goal.rate()),
    )
