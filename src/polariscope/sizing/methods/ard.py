"""Automatic relevance determination: count the latents that carry most of their learned prior variance."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.wide import count_in_wide_model
from polariscope.sizing.result import SeedResult


def count_relevant(representation: Representation) -> int:
    """Return the number of latents whose means carry more than half of their prior's variance."""
    prior = 1.0 if representation.prior_variance is None else representation.prior_variance
    return int((np.mean(representation.variance / prior, axis=0, dtype=np.float64) < 0.5).sum())


@method(
    "ard",
    statistic="relevant latents",
    trains=True,
    rate="quick",
    needs_variances=True,
    threshold=None,
    interval="the range over resamples of the samples",
    uses=("n_init", "cap", "steps"),
)
def ard(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Count the latents of a wide model that carry most of their learned prior variance.

    In automatic relevance determination the scale of an irrelevant variable shrinks to 0. A VAE's decoder can undo any
    scale of a latent, so the learned prior variance s² alone is not informative. A latent is relevant if its means
    carry more than half of it: 1 − E[σ²]/s² > 1/2. The interval is the range over resamples of the samples.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return count_in_wide_model(candidates, goal, count_relevant, prior="anisotropic-learned")
