"""Number of latents in use in one wide model."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.regime.latent_types import classify
from polariscope.analysis.representation import Representation
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.wide import count_in_wide_model
from polariscope.sizing.result import SeedResult


def count_in_use(representation: Representation) -> int:
    """Return the number of latents that are active or mixed."""
    prior = 1.0 if representation.prior_variance is None else representation.prior_variance
    ratio = (representation.variance / prior).astype(np.float64)
    return sum(kind != "passive" for kind in classify(ratio.mean(axis=0), ratio.var(axis=0)))


@method(
    "active-units",
    statistic="latents in use",
    trains=True,
    rate="quick",
    needs_variances=True,
    threshold=None,
    interval="the range over resamples of the samples",
    uses=("n_init", "cap", "steps"),
)
def active_units(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Count the active and mixed latents of one wide model, whose width is doubled until it has passive ones.

    This is the rule of thumb of most practitioners, and the ``var-type`` variant in the code of bonheme2023. It counts
    the latents that a wide model uses, not those that a narrow one would need: latents that are being pruned count as
    mixed. The interval is the range over resamples of the samples, not over seeds.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return count_in_wide_model(candidates, goal, count_in_use)
