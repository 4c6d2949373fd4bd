"""The rule that names a latent variable active, mixed or passive; shared by training and the regime analysis."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

VariableType = Literal["active", "mixed", "passive"]
TYPES: tuple[VariableType, ...] = ("active", "mixed", "passive")


def classify(
    mean_variance: Float[np.ndarray, " latent"],
    variance_variance: Float[np.ndarray, " latent"],
    alpha: float = 0.1,
) -> list[VariableType]:
    r"""Type of each latent from two moments over the samples of its posterior variance σ².

    * passive: mean in [1 − α, 1 + α] and variance < α: it is the prior, whatever the input;
    * active: mean ≤ α and variance < α: it is known almost exactly, whatever the input;
    * mixed: everything else.

    The variance is relative to the prior's when that is not 1. Reference: bonheme2023 §6.4.1, α = 0.1,
    population variance; ``<`` and ``≤`` as in the authors' code.

    >>> classify(np.array([0.01, 0.5, 1.02]), np.array([0.0, 0.2, 0.0]))
    ['active', 'mixed', 'passive']
    """
    steady = variance_variance < alpha
    active = steady & (mean_variance <= alpha)
    passive = steady & (1 - alpha <= mean_variance) & (mean_variance <= 1 + alpha)
    return ["active" if a else "passive" if p else "mixed" for a, p in zip(active, passive, strict=True)]
