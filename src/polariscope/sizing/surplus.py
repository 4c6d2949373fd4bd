"""Statistics of FONDUE, which measure the surplus latents of a representation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from polariscope.analysis.representation import Representation
from polariscope.core.errors import unknown
from polariscope.numerics.rounding import truncate
from polariscope.sizing.result import TRACE


def trace(representation: Representation) -> float:
    r"""Compute FONDUE's statistic in its noise-free form, Σ_j E[σ_j²].

    The published statistic is Tr Var[z] − Tr Var[μ] from one draw of z. By the law of total variance its expectation is
    exactly this sum, without sampling noise. A passive latent adds 1, an active one almost nothing, and a mixed one
    the share of inputs for which it is passive. If the prior has another variance, σ² is relative to it.
    """
    return float(relative_variances(representation).sum())


def relative_variances(representation: Representation) -> Float[np.ndarray, " latent"]:
    """Return E[σ_j²] of each latent, relative to the prior's variance.

    :param representation: result of :func:`polariscope.encode`.
    """
    prior = 1.0 if representation.prior_variance is None else representation.prior_variance
    return (representation.variance / prior).mean(axis=0, dtype=np.float64)


def sampled_trace(representation: Representation) -> float:
    """Compute the statistic as published: Tr Cov[z] − Tr Cov[μ] of one draw, entries truncated to 3 decimals first.

    Truncation lowers either trace by up to 0.001 per latent, 0.0005 on average, so on average the two effects cancel in
    the difference. The exception is latents whose mean has a variance below 0.001: their entry of Cov[μ] becomes 0.
    """
    # truncate returns whole thousandths, so the difference of the sums is exact.
    drawn, means = (
        truncate(codes.var(axis=0, dtype=np.float64, ddof=1), 3).sum()
        for codes in (representation.sampled, representation.mean)
    )
    return float(drawn - means) / 1000


def dimension_gap(representation: Representation, k: int = 20) -> float:
    """Compute FONDUE_IDE's statistic: intrinsic dimension of the sampled minus that of the mean representation."""
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
