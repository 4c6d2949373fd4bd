"""Since when a model learns single observations by heart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polariscope.sizing.support.judge import LEAST_LOOKS, last_part, lines


def best_step(losses: Sequence[tuple[int, float, float]]) -> int | None:
    """The step at which the loss on held-out observations was lowest, if it and its excess rise now; None otherwise.

    The excess is over the loss in training: where both rise alike, the objective itself has changed, as those do whose
    weights follow a schedule. Something rises where a line in log₂(step) over the last half of the training does,
    beyond 2.5 standard errors. What a model has learned since its best step does not help with observations it was not
    trained on.

    >>> steps = range(1000, 9000, 1000)
    >>> training = [13.5, 12.9, 12.6, 12.2, 11.9, 11.7, 11.6, 11.4]
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.6, 13.9, 14.2, 14.6, 14.8, 15.1], training, strict=True)))
    2000
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.1, 13.0, 13.0, 12.9, 12.9, 12.8], training, strict=True)))

    :param losses: as (step, held out, in training), nats per observation.
    """
    steps = np.array([step for step, _, _ in losses])
    values = np.array([both for _, *both in losses], dtype=float)
    if len(steps) < LEAST_LOOKS or last_part(steps, 0.5).sum() < LEAST_LOOKS:
        return None
    held_out, training = values.T
    rises = [lines(steps, course[:, None], 0.5)[1][0] > 0 for course in (held_out, held_out - training)]
    return int(steps[held_out.argmin()]) if all(rises) else None
