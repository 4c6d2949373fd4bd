"""Record of one model of a search."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from polariscope.core.records import AbstractRecord

Decision = Literal["fits", "too many", "undecided"]
Role = Literal["narrow", "wide"]
Cause = Literal["below", "above", "below-unsettled", "above-unsettled", "silent"]
"""Reason for the decision: the trial is undecided and below or above the threshold, in some cases with posteriors wider
than the prior; or no latent carries information."""
BELOW = "undecided after {} steps; counted as fitting because it is below the threshold now"
ABOVE = "undecided after {} steps; counted as too many because it is above the threshold now"
UNSETTLED = "; its posteriors are still wider than the prior: train longer, or raise the learning rate"
NOTES: dict[Cause, str] = {
    "below": BELOW,
    "above": ABOVE,
    "below-unsettled": BELOW + UNSETTLED,
    "above-unsettled": ABOVE + UNSETTLED,
    "silent": "no latent carries information about the input after {} steps",
}
WIDE = "wide model, for the prediction"
STORED_NOTES: dict[Cause, str] = {**NOTES, "silent": "no latent says anything about the input after {} steps"}
"""Notes as version 0.2.0 stored them."""
STORED_WIDE = "wide model, for a first guess"
"""Note on a wide model as version 0.2.0 stored it."""


@dataclasses.dataclass(frozen=True)
class Trial(AbstractRecord):
    """One model of a search."""

    n_latents: int
    seed: int
    statistic: float
    """Statistic of the method; for FONDUE Σ E[σ²]."""
    decision: Decision
    """``fits`` if the statistic is at most the threshold, ``too many`` otherwise, ``undecided`` if that can change."""
    steps: int
    """Gradient steps of the training."""
    beta: float | None = None
    """Weight of the rate, if β is searched for."""
    projected: tuple[float, float] | None = None
    """Range of the statistic expected if the model is trained further."""
    keeps: int | None = None
    """Number of its latents whose sum is within the threshold in the worst case: a lower bound of the answer."""
    curve: tuple[tuple[int, float], ...] = ()
    """The statistic while training: (step, value)."""
    role: Role = "narrow"
    """``wide`` for the model that makes the prediction, ``narrow`` for models that decide about their size."""
    cause: Cause | None = None
    """Reason for a decision that is not clear; the note is generated from it."""
    gamma: float | None = None
    """Final decoder variance γ, if it is one number for all values."""

    @property
    def note(self) -> str:
        """Note on this model in a list of models; empty in most cases."""
        if self.role == "wide":
            return WIDE
        return "" if self.cause is None else NOTES[self.cause].format(f"{self.steps:,}")


def coded(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored trial with role and cause; version 0.2.0 stored them as the text of a note.

    :param trial: a trial as read from JSON.

    >>> coded({"n_latents": 3, "note": "no latent says anything about the input after 400 steps"})
    {'n_latents': 3, 'role': 'narrow', 'cause': 'silent'}
    """
    if "note" not in trial:
        return dict(trial)
    text, rest = trial["note"], {name: value for name, value in trial.items() if name != "note"}
    cause = next((cause for cause, note in STORED_NOTES.items() if _matches(note, text)), None)
    return {**rest, "role": "wide" if text == STORED_WIDE else "narrow", "cause": cause}


def _matches(template: str, text: str) -> bool:
    before, after = template.split("{}")
    return text.startswith(before) and text.endswith(after)
