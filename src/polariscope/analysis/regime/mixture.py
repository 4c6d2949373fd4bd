"""Types counted sample by sample: is a latent really known for some inputs and unknown for others?"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float

MixtureLabel = Literal["active", "mixed", "passive", "noisy"]


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of samples per latent, and the label that follows."""

    known: Float[np.ndarray, " latent"]
    """Share of samples with σ²/Σ† < α: the input fixes the latent."""
    unknown: Float[np.ndarray, " latent"]
    """Share of samples with σ²/Σ† > 1 − α: the posterior is as wide as the prior."""
    labels: tuple[MixtureLabel, ...]


def mixture(variance: Float[np.ndarray, "sample latent"], alpha: float = 0.1) -> Mixture:
    """Label of each latent from the posterior variance of single samples, relative to the prior's.

    * active, passive: known, or unknown, for at least 1 − α of the samples;
    * mixed: both for at least α of them, "sometimes active, sometimes passive" (bonheme2023 Def. 6.3.1);
    * noisy: everything else, above all a latent with the same middling variance everywhere. The primary rule
      calls it mixed although it mixes nothing.

    >>> mixture(np.array([[0.01, 0.01, 0.5], [0.02, 1.0, 0.5]])).labels
    ('active', 'mixed', 'noisy')
    """
    known, unknown = (variance < alpha).mean(axis=0), (variance > 1 - alpha).mean(axis=0)
    labels = tuple(_label(a, p, alpha) for a, p in zip(known, unknown, strict=True))
    return Mixture(known, unknown, labels)


def _label(known: float, unknown: float, alpha: float) -> MixtureLabel:
    if known >= 1 - alpha:
        return "active"
    if unknown >= 1 - alpha:
        return "passive"
    return "mixed" if min(known, unknown) >= alpha else "noisy"
