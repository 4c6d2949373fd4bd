"""Divergence: numbers of a training that are no longer finite, and what is said about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polariscope.storage.folder import RunFolder


def not_finite(line: Mapping[str, object]) -> list[str]:
    """Return the names of the entries of a log line that hold a number that is not finite.

    >>> not_finite({"step": 3, "kl": [0.1, math.inf], "terms": {"rate": 2.0}, "delta_kl": None})
    ['kl']

    :param line: a line of the log.
    """

    def is_finite(value: object) -> bool:
        if isinstance(value, Mapping):
            return all(map(is_finite, value.values()))
        if isinstance(value, list | tuple):
            return all(map(is_finite, value))
        return not isinstance(value, float) or math.isfinite(value)

    return [name for name, value in line.items() if not is_finite(value)]


def divergence_message(
    noun: str, causes: Sequence[str], step: int, run: RunFolder | None, remedy: str
) -> str:
    """Return the message about a training that diverged: the cause, the last checkpoint, what to try.

    :param noun: name of what was trained.
    :param causes: names of what is not finite.
    :param step: the step at which it happened.
    :param run: folder where it is trained; None: it is not written.
    :param remedy: what to try.

    >>> divergence_message("training", ["term 'rate'"], 3, None, "Try another seed.")[:60]
    "training diverged at step 3: the term 'rate' is not finite. "
    """
    saved = "Nothing was kept, since no run folder was given."
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
