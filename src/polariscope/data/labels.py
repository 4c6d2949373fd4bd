"""Factors that have classes."""

from __future__ import annotations

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset


def discrete_factors(data: AbstractDataset) -> dict[str, int]:
    """Number of classes of each factor that has classes, by name, in the order of the dataset's columns."""
    sizes = {name: size for name, size in zip(data.factor_names, data.factor_sizes, strict=True) if size > 0}
    if not sizes:
        raise InputError(
            problem=f"{data.name} has no discrete factors or labels to classify",
            remedy="give it factors in whole numbers when you make it",
        )
    return sizes
