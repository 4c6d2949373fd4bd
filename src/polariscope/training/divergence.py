"""Divergence: detection of numbers that are not finite, and its message."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polariscope.storage.folder import RunFolder


def not_finite(line: Mapping[str, object]) -> list[str]:
    """Return the names of the entries of a log line that contain a number that is not finite.

    >>> not_finite({"step": 3, "kl": [0.1, math.inf], "terms": {"rate": 2.0}, "delta_kl": None})
    ['kl']

    :param line: a line of the log.
    """

    def is_finite(value: object) -> bool:
        if isinstance(value, Mapping):
            return all(map(is_finite, value.values()))
        if isinstance(value, list | tuple):
            return all(map(is_finite, value))
        # Counts, text and missing numbers (None) are not signs of divergence.
        return not isinstance(value, float) or math.isfinite(value)

    return [name for name, value in line.items() if not is_finite(value)]


def divergence_message(
    noun: str, causes: Sequence[str], step: int, run: RunFolder | None, remedy: str
) -> str:
    """Return the message about a diverged training: the cause, the last checkpoint, and a remedy.

    :param noun: name of the trained object.
    :param causes: names of the numbers that are not finite.
    :param step: the step at which it happened.
    :param run: the run folder; None if nothing is written.
    :param remedy: the remedy.

    >>> divergence_message("training", ["term 'rate'"], 3, None, "Try another seed.")[:60]
    "training diverged at step 3: the term 'rate' is not finite. "
    """
    saved = "Nothing was saved, since there is no run folder."
    if run is not None:
        steps = run.checkpoints.steps
        saved = (
            f"The last good checkpoint is step {steps[-1]} in {run.path}."
            if steps
            else "There is no checkpoint yet."
        )
    subject = " and ".join(f"the {cause}" for cause in causes)
    verb = "are" if len(causes) > 1 else "is"
    return f"{noun} diverged at step {step}: {subject} {verb} not finite. {saved} {remedy}"
