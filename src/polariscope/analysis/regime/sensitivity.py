"""How the types depend on the rule's only constant, α."""

from __future__ import annotations

import dataclasses

import numpy as np

from polariscope.analysis.regime.rule import ALPHA_LIMIT, Moments, thresholds, types_of
from polariscope.analysis.regime.variable_types import VariableType

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Types over a grid of α."""

    alphas: tuple[float, ...]
    types: tuple[tuple[VariableType, ...], ...]
    """For each α, the type of each latent."""


def sensitivity(moments: Moments, alpha: float) -> Sensitivity:
    """Types at each α of a fixed grid and at the chosen one."""
    alphas = tuple(sorted({*ALPHAS, alpha}))
    return Sensitivity(alphas, tuple(tuple(types_of(moments, at).tolist()) for at in alphas))


def alpha_ranges(moments: Moments, alpha: float) -> list[tuple[float, float]]:
    """For each latent, the interval around ``alpha`` in which its type stays; exact, not from a grid.

    A latent is mixed up to some α and active, or passive, from there to 0.5, where the rule ends.

    >>> alpha_ranges(Moments(np.array([0.04]), np.array([0.01])), alpha=0.1)
    [(0.04, 0.5)]
    """
    # At most one of the two lies below 0.5, since m ≤ α and m ≥ 1 − α exclude each other there.
    first = np.minimum(np.minimum(*thresholds(moments)), ALPHA_LIMIT)
    mixed = types_of(moments, alpha) == "mixed"
    # On the bound itself |m − 1| may round to the other side of α.
    return [
        (0.0, float(max(start, alpha))) if is_mixed else (float(min(start, alpha)), ALPHA_LIMIT)
        for start, is_mixed in zip(first, mixed, strict=True)
    ]
