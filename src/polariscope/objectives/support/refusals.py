"""Options that several objectives refuse in the same words."""

from __future__ import annotations

from polariscope.core.errors import InputError


def refuse_single_samples(batch_size: int, reason: str) -> None:
    """What compares the samples of a batch needs at least two of them."""
    if batch_size < 2:
        raise InputError("batch_size", "be at least 2", got=f"{batch_size}: {reason}", remedy="64 is usual")
