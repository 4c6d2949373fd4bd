"""Statistics of FONDUE: the surplus of latents in a representation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.core.errors import unknown
from polariscope.numerics.rounding import truncate
from polariscope.sizing.result import TRACE


def trace(representation: Representation) -> float:
    r"""FONDUE's statistic in its noise-free form, Σ_j E[σ_j²].

    The published one is Tr Var[z] − Tr Var[μ] from one draw of z; by the law of total variance its expectation is
    exactly this sum, without the draw's noise. A passive latent adds 1, an active one almost nothing, a mixed one
    the share of inputs for which it is passive; of a prior with another variance, σ² is taken relative to it.
    """
    prior = 1.0 if representation.prior_variance is None else representation.prior_variance
    return float((representation.variance / prior).mean(axis=0, dtype=np.float64).sum())


def sampled_trace(representation: Representation) -> float:
    """The statistic as published: Tr Cov[z] − Tr Cov[μ] of one draw, each entry cut to 3 decimals before the traces.

    The cut takes up to 0.001 per latent from either trace, 0.0005 on average, so the two cuts cancel in the difference
    on average, except for latents whose mean varies by less than 0.001: their entry of Cov[μ] becomes 0.
    """
    drawn, means = (
        truncate(codes.var(axis=0, dtype=np.float64, ddof=1), 3).sum()
        for codes in (representation.sampled, representation.mean)
    )
    return float(drawn - means) / 1000


def dimension_gap(representation: Representation, k: int = 20) -> float:
    """FONDUE_IDE's statistic: intrinsic dimension of the sampled minus that of the mean representation."""
    from polariscope.analysis.dimension.mle import mle

    return mle(representation.sampled, k=k).value - mle(representation.mean, k=k).value


STATISTICS: dict[str, tuple[str, Callable[[Representation], float]]] = {
    "trace": (TRACE, trace),
    "sampled-trace": ("Tr Var[z] − Tr Var[μ]", sampled_trace),
    "dimension": ("ID[z] − ID[μ]", dimension_gap),
}


def resolve_statistic(
    statistic: str | Callable[[Representation], float],
) -> tuple[str, Callable[[Representation], float]]:
    """Return the label and the function of a statistic.

    :param statistic: a name of :data:`STATISTICS`, or a function of a representation.
    """
    if callable(statistic):
        return getattr(statistic, "__name__", "statistic"), statistic
    if statistic not in STATISTICS:
        raise unknown("statistic", str(statistic), STATISTICS)
    return STATISTICS[statistic]
