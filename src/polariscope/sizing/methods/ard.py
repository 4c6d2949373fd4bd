"""Automatic relevance: learn the prior's variances, and count the latents that stand out from their own."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.wide import count_in_wide_model
from polariscope.sizing.result import SeedResult


def count_relevant(representation: Representation) -> int:
    """Latents whose means carry more than half of their prior's variance."""
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
    """Latents of a wide model with a learned prior variance that carry most of it.

    In automatic relevance determination the scale of what is not needed shrinks to 0. A VAE's decoder can undo any
    scale of a latent, so the learned prior variance s² alone says nothing; what does is the share of it that
    the means carry, 1 − E[σ²]/s², more than half for a relevant latent. The interval is over resamples of the
    samples.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return count_in_wide_model(candidates, goal, count_relevant, prior="anisotropic-learned")
