"""Train, validation and test indices, disjoint, by seed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Int

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of indices, each in random order: any prefix is a random subset."""

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]


def split(n: int, fractions: tuple[float, float, float] = (0.9, 0.05, 0.05), seed: int = 0) -> Split:
    """Deal the indices 0 … n − 1 into train, validation and test, each once and none empty.

    Validation and test get the whole number nearest their fraction of n, at least 1; train gets the rest.

    >>> parts = split(100, (0.8, 0.1, 0.1))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (80, 10, 10)
    """
    if n < 3:
        raise InputError(
            "n", "be at least 3 to have train, validation and test samples", got=n, remedy="add samples"
        )
    if len(fractions) != 3 or not all(math.isfinite(part) and part > 0 for part in fractions):
        raise InputError("fractions", "be three positive numbers (train, validation, test)", got=fractions)
    if not math.isclose(sum(fractions), 1, abs_tol=1e-6):
        raise InputError("fractions", "add up to 1", got=f"{fractions} with sum {sum(fractions):g}")
    n_validation = min(max(1, round(fractions[1] * n)), n - 2)
    n_test = min(max(1, round(fractions[2] * n)), n - n_validation - 1)
    order = generator(seed, "split").permutation(n)
    train, validation, test = np.split(order, [n - n_validation - n_test, n - n_test])
    return Split(train, validation, test)
