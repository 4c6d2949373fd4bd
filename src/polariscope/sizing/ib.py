"""The information bottleneck's search."""

from __future__ import annotations

from polariscope.sizing import AbstractCandidates, Found, Goal, method
from polariscope.sizing.fondue_ib import THRESHOLD
from polariscope.sizing.support.published import information_of, search


@method(
    "ib",
    statistic="H(z) − I(x, x̂)",
    trains=True,
    needs_variances=True,
    threshold=THRESHOLD,
    interval="what it was an epoch before",
    uses=("cap", "steps", "epochs"),
)
def ib(candidates: AbstractCandidates, goal: Goal) -> Found:
    """Binary search of H(z) − I(x, x̂) ≤ −0.01 over 1 … 200 latents (IB, bonheme2023 Algorithm 7).

    H and I are each cut to two decimals before they are subtracted, as in :mod:`polariscope.sizing.fondue_ib`.
    The original (boquet2021) trains every model to convergence; here, as in bonheme2023, for the same
    epochs as FONDUE. The threshold is this method's own.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return search(candidates, goal, information_of, binary=True, threshold=THRESHOLD)
