"""The closed form of linear VAEs, as a check on trained models."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from polariscope.analysis.linear_evidence import LinearEvidence, cross_validate, held_out_losses
from polariscope.sizing import AbstractCandidates, Goal

MAX_FEATURES = 300
"""Features above which the closed form is not computed: its time grows with their third power."""
MIN_SAMPLES = 20
"""Observations below which it is not computed: a tenth of them are one or two."""
NATS, SHARE = 0.5, 0.05
"""A held-out loss is higher than another by more than 0.5 nats and 5 % of what the latents gain."""


@dataclasses.dataclass(frozen=True, eq=False)
class ClosedForm:
    """What linear models say of a table."""

    evidence: LinearEvidence
    losses: Float[np.ndarray, " model"]
    """Of linear models with 0, 1, … latents, on the observations that trained models are validated with."""

    def beats(self, loss: float | None) -> bool:
        """Return whether the linear model with as many latents as generalise has a clearly lower held-out loss.

        :param loss: held-out loss of a trained model, nats; None: not known.
        """
        if loss is None:
            return False
        own = float(self.losses[min(max(self.evidence.n_latents, 1), len(self.losses) - 1)])
        return loss - own > max(NATS, SHARE * (float(self.losses[0]) - own))


def closed_form(candidates: AbstractCandidates, goal: Goal) -> ClosedForm | None:
    """Return what linear models say of a table whose decoder variance is learned; None for other data.

    :param candidates: whose observations are looked at.
    :param goal: threshold.
    """
    parts = candidates.split_rows() if is_table(candidates, goal) else None
    if parts is None:
        return None
    training, held_out = parts
    if training.shape[1] > MAX_FEATURES or len(training) < MIN_SAMPLES or not len(held_out):
        return None
    evidence = cross_validate(candidates.observations(), float(goal.threshold), seed=candidates.seed)
    return ClosedForm(evidence, held_out_losses(training, held_out))


def is_table(candidates: AbstractCandidates, goal: Goal) -> bool:
    """Return whether the observations are rows of a table, and the decoder's variance is learned from them.

    :param candidates: whose models are trained.
    :param goal: knows whether the observations are images.
    """
    return candidates.n_learned_from is not None and not goal.images
