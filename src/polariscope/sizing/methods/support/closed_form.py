"""The closed form of linear VAEs, as a check on trained models."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from polariscope.analysis.linear_evidence import LinearEvidence, cross_validate, held_out_losses
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal


@dataclasses.dataclass(frozen=True, eq=False)
class ClosedForm:
    """Cross-validated size and held-out losses of linear models of a table."""

    evidence: LinearEvidence
    losses: Float[np.ndarray, " model"]
    """Losses of linear models with 0, 1, … latents on the validation observations of the trained models."""

    def beats(self, loss: float | None) -> bool:
        """Return True if the linear model of the cross-validated size has a clearly lower held-out loss.

        :param loss: held-out loss of a trained model, nats; None if it is unknown.
        """
        if loss is None:
            return False
        linear = float(self.losses[min(max(self.evidence.n_latents, 1), len(self.losses) - 1)])
        return loss - linear > max(
            SETTINGS.min_gain_nats, SETTINGS.min_gain_share * (float(self.losses[0]) - linear)
        )


def closed_form(candidates: AbstractCandidates, goal: Goal) -> ClosedForm | None:
    """Fit linear models to a table whose decoder variance is learned; return None for other data.

    :param candidates: source of the observations.
    :param goal: threshold.
    """
    parts = candidates.split_rows() if is_table(candidates, goal) else None
    if parts is None:
        return None
    training, held_out = parts
    if training.shape[1] > SETTINGS.max_features or len(training) < SETTINGS.min_samples or not len(held_out):
        return None
    evidence = cross_validate(candidates.observations(), float(goal.threshold), seed=candidates.seed)
    return ClosedForm(evidence, held_out_losses(training, held_out))


def is_table(candidates: AbstractCandidates, goal: Goal) -> bool:
    """Return True if the observations are rows of a table and the decoder variance is learned.

    :param candidates: the models.
    :param goal: the goal; its field ``images`` is True for images.
    """
    return candidates.n_gamma_values is not None and not goal.images
