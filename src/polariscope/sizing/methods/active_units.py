"""Count what one wide model uses."""

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
    """Latents that are active or mixed."""
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
    """Active and mixed latents of one wide model, doubled in width until it has passive ones.

    The rule of thumb of most practitioners, and the ``var-type`` variant in the code of bonheme2023. It says what a
    model with room to spare uses, not what a narrow one would need: latents on their way to being pruned count
    as mixed. The interval is over resamples of the samples, not over seeds.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return count_in_wide_model(candidates, goal, count_in_use)
