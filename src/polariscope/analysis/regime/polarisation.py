"""How well the polarised regime holds: is the KL all spent on a few latents?"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from polariscope.analysis.regime.criteria import std_of_mean
from polariscope.analysis.regime.posterior import RelativePosterior

POLARISED = 0.03  # zietlow2022 Table 3.2


@dataclasses.dataclass(frozen=True)
class Polarisation:
    """Δ_KL and what it is made of; ``delta`` is None when the KL is infinite (a posterior variance of 0)."""

    delta: float | None
    kl: float
    approximate_kl: float
    active: tuple[int, ...]
    """Latents with std(μ) > 0.5, those the approximation keeps."""


def polarisation(posterior: RelativePosterior) -> Polarisation:
    r"""Relative error of the KL written for active latents alone.

    .. math:: \Delta_\mathrm{KL} = \frac{|L_\mathrm{KL} - L_{\approx\mathrm{KL}}|}{L_\mathrm{KL}}, \qquad
        L_{\approx\mathrm{KL}} = \tfrac12 \sum_{j \in V_a} \mathrm{E}\,[\mu_j^2 - \log\sigma_j^2 - 1]

    with V_a the latents of std(μ) > 0.5. The approximation leaves out σ² where it should be near 0 and every
    latent that should be the prior. Below 0.03 the regime is called polarised. A KL of 0, every posterior the
    prior, is approximated exactly: Δ = 0. Moments are relative to a Gaussian prior, if it is not N(0, 1).

    Reference: zietlow2022 Eqs 3.5, 3.38.
    """
    active = std_of_mean(posterior)
    kl = float(posterior.gaussian_kl.mean(axis=0).sum())
    # 2 KL = μ² + σ² − log σ² − 1, so that leaving out σ² is leaving out E[σ²]/2 of the latent's KL.
    kept = posterior.gaussian_kl[:, active].mean(axis=0) - posterior.variance[:, active].mean(axis=0) / 2
    approximate = float(kept.sum())
    return Polarisation(
        _relative_error(kl, approximate), kl, approximate, tuple(np.flatnonzero(active).tolist())
    )


def _relative_error(kl: float, approximate: float) -> float | None:
    if math.isinf(kl):
        return None
    return abs(kl - approximate) / kl if kl > 0 else 0.0
