"""Who correlates with whom: passive latents against the others."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

LARGE = 0.2  # what bonheme2023 §6.5 counts as a correlation


@dataclasses.dataclass(frozen=True)
class Partner:
    """The latent most correlated with one latent."""

    latent: int
    partner: int | None
    """None when there is no other latent."""
    correlation: float
    """With its sign; 0 without a partner."""
    n_correlated: int
    """Number of other latents with |correlation| > 0.2."""


def partners(correlation: Float[np.ndarray, "latent latent"]) -> tuple[Partner, ...]:
    """The strongest partner of every latent and how many others correlate with it.

    In a polarised mean representation passive latents correlate strongly with some others and active ones do
    not; in the sampled representation neither does (bonheme2023 Fig. 6.9).

    >>> partners(np.array([[1.0, -0.5], [-0.5, 1.0]]))[0]
    Partner(latent=0, partner=1, correlation=-0.5, n_correlated=1)
    """
    n_latents = len(correlation)
    if n_latents == 1:
        return (Partner(0, None, 0.0, 0),)
    strength = np.abs(correlation)
    np.fill_diagonal(strength, -1.0)
    strongest = strength.argmax(axis=1)
    return tuple(
        Partner(i, int(j), float(correlation[i, j]), int((strength[i] > LARGE).sum()))
        for i, j in enumerate(strongest)
    )
