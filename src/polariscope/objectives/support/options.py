"""Options that several objectives refuse in the same words."""

from __future__ import annotations

import math

from polariscope.core.errors import InputError


def refuse_negative(meaning_of_zero: str, **weights: float | int) -> None:
    """Each of the named weights must be a finite number, 0 or larger; ``meaning_of_zero`` is the remedy."""
    for name, value in weights.items():
        if not (value >= 0 and math.isfinite(value)):
            raise InputError(name, "not be negative", got=value, remedy=f"{meaning_of_zero}")


def refuse_single_samples(batch_size: int, reason: str) -> None:
    """What compares the samples of a batch needs at least two of them."""
    if batch_size < 2:
        raise InputError("batch_size", "be at least 2", got=f"{batch_size}: {reason}", remedy="64 is usual")
