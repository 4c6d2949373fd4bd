"""One model that was trained on the way to an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from polariscope.core.records import AbstractRecord

Decision = Literal["fits", "too many", "undecided"]
Role = Literal["narrow", "wide"]
Cause = Literal["below", "above", "below-unsettled", "above-unsettled", "silent"]
"""Why a trial is counted as it is: undecided and below or above the threshold, perhaps with posteriors that are still
wider than the prior; or no latent carries information."""
BELOW = "undecided after {} steps; counted as fitting because it is below the threshold now"
ABOVE = "undecided after {} steps; counted as too many because it is above the threshold now"
UNSETTLED = "; its posteriors are still wider than the prior: train longer, or raise the learning rate"
NOTES: dict[Cause, str] = {
    "below": BELOW,
    "above": ABOVE,
    "below-unsettled": BELOW + UNSETTLED,
    "above-unsettled": ABOVE + UNSETTLED,
    "silent": "no latent says anything about the input after {} steps",
}
WIDE = "wide model, for a first guess"


@dataclasses.dataclass(frozen=True)
class Trial(AbstractRecord):
    """One model that was trained on the way to an answer."""

    n_latents: int
    seed: int
    statistic: float
    """What was measured of it, for FONDUE Σ E[σ²]."""
    decision: Decision
    """Whether the statistic is at most the threshold; undecided when that could still change."""
    steps: int
    """Gradient steps it was trained for."""
    beta: float | None = None
    """Weight of the rate, where that is what is searched for."""
    projected: tuple[float, float] | None = None
    """Where the statistic may be if the model is trained further."""
    keeps: int | None = None
    """How many of its latents are within the threshold together in the worst case, as a narrower model's would be."""
    curve: tuple[tuple[int, float], ...] = ()
    """The statistic while training: (step, value)."""
    role: Role = "narrow"
    """Whether the model decides about its number of latents, or makes the first guess."""
    cause: Cause | None = None
    """Why the decision is not the plain one; the note is made from it."""
    gamma: float | None = None
    """The decoder's variance γ at the end, where it is one number for all values."""

    @property
    def note(self) -> str:
        """What a reader of the list of models should know about this one; empty in most cases."""
        if self.role == "wide":
            return WIDE
        return "" if self.cause is None else NOTES[self.cause].format(f"{self.steps:,}")


def coded(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored trial with role and cause; version 0.2.0 stored them as the text of a note.

    :param trial: a trial as JSON has it.

    >>> coded({"n_latents": 3, "note": "no latent says anything about the input after 400 steps"})
    {'n_latents': 3, 'role': 'narrow', 'cause': 'silent'}
    """
    if "note" not in trial:
        return dict(trial)
    text, rest = trial["note"], {name: value for name, value in trial.items() if name != "note"}
    cause = next((cause for cause, note in NOTES.items() if _matches(note, text)), None)
    return {**rest, "role": "wide" if text == WIDE else "narrow", "cause": cause}


def _matches(template: str, text: str) -> bool:
    before, after = template.split("{}")
    return text.startswith(before) and text.endswith(after)
