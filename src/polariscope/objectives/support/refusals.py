"""Checks of options that several objectives share."""

from __future__ import annotations

from polariscope.core.errors import InputError


def refuse_single_samples(batch_size: int, reason: str) -> None:
    """Raise an error if a batch has fewer than two samples."""
    if batch_size < 2:
        raise InputError(
            "batch_size", "be at least 2", got=f"{batch_size}: {reason}", remedy="a common value is 64"
        )
