"""Measurements of one model of a curve over the number of latents."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import TYPES, moments, types_of
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.types import OptionValue
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.curve_result import CurvePoint
from polariscope.sizing.methods.probe_elbow import probe_score
from polariscope.sizing.surplus import trace

K = 20
"""Number of neighbours for intrinsic dimensions, as published."""


def measure_point(
    candidates: AbstractCandidates, n_latents: int, steps: int, **changes: OptionValue
) -> CurvePoint:
    """Train a model if necessary, and measure all quantities of a curve.

    :param candidates: trains and encodes a model for any number of latents.
    :param n_latents: number of latents of the model.
    :param steps: gradient steps of its training.
    :param changes: options that differ from the recipe.
    """
    losses = candidates.losses(n_latents, steps, **changes)
    codes = candidates.representation(n_latents, steps, **changes)
    has_density = losses.rate is not None
    counts: dict[str, int | None] = dict.fromkeys(TYPES)
    if has_density:
        from polariscope.analysis.regime.posterior import relative_posterior

        types = types_of(moments(relative_posterior(codes)), TypeRule.alpha).tolist()
        counts = {kind: types.count(kind) for kind in TYPES}
    return CurvePoint(
        n_latents=n_latents,
        seed=candidates.seed,
        steps=steps,
        loss=losses.total,
        reconstruction=losses.reconstruction,
        rate=losses.rate,
        probe=_probe(codes, candidates.seed),
        trace_mean=_total_variance(codes.mean),
        trace_sampled=_total_variance(codes.sampled) if has_density else None,
        trace=trace(codes) if has_density else None,
        dimension_mean=_dimension(codes.mean, candidates.seed),
        dimension_sampled=_dimension(codes.sampled, candidates.seed) if has_density else None,
        active=counts["active"],
        mixed=counts["mixed"],
        passive=counts["passive"],
    )


def _total_variance(codes: Float[np.ndarray, "sample latent"]) -> float:
    """Return the trace of the covariance (n − 1)."""
    return float(codes.var(axis=0, dtype=np.float64, ddof=1).sum())


def _dimension(codes: Float[np.ndarray, "sample latent"], seed: int) -> float | None:
    """Estimate the intrinsic dimension as in FONDUE_IDE; None if codes hardly vary or are too few."""
    from polariscope.analysis.dimension.mle import mle

    try:
        return mle(codes, k=K, n_bootstrap=20, seed=seed).value
    except InputError:
        return None


def _probe(codes: Representation, seed: int) -> float | None:
    """Return the accuracy with which the factors are predicted; None without factors that vary."""
    if codes.factors is None or not any(len(np.unique(column)) > 1 for column in codes.factors.T):
        return None
    return probe_score(codes, seed)
