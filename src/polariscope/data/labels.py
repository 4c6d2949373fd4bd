"""Factors with classes."""

from __future__ import annotations

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset


def discrete_factors(data: AbstractDataset) -> dict[str, int]:
    """Return the number of classes of each discrete factor by name, in the order of the dataset's columns."""
    sizes = {name: size for name, size in zip(data.factor_names, data.factor_sizes, strict=True) if size > 0}
    if not sizes:
        raise InputError(
            problem=f"{data.name} has no discrete factors or labels to classify",
            remedy="pass integer factors when you create it",
        )
    return sizes
