"""Since when a model learns single observations by heart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polariscope.sizing.support.judge import LEAST_LOOKS, last_part, lines


def best_step(held_out: Sequence[tuple[int, float]]) -> int | None:
    """The step at which the loss on held-out observations was lowest, if it rises now; None while it does not.

    It rises where a line in log₂(step) over the last half of the training does, beyond 2.5 standard errors. What a
    model has learned since its best step does not help with observations it was not trained on.

    >>> steps = range(1000, 9000, 1000)
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.6, 13.9, 14.2, 14.6, 14.8, 15.1], strict=True)))
    2000
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.1, 13.0, 13.0, 12.9, 12.9, 12.8], strict=True)))

    :param held_out: losses, as (step, nats per observation).
    """
    steps = np.array([step for step, _ in held_out])
    losses = np.array([loss for _, loss in held_out], dtype=float)
    if len(steps) < LEAST_LOOKS or last_part(steps, 0.5).sum() < LEAST_LOOKS:
        return None
    _, slope, _ = lines(steps, losses[:, None], 0.5)
    return int(steps[losses.argmin()]) if slope[0] > 0 else None
