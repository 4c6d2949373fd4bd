"""The information bottleneck's search."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.fondue_ib import THRESHOLD
from polariscope.sizing.published import information_of, search
from polariscope.sizing.result import SeedResult


@method(
    "ib",
    statistic="H(z) − I(x, x̂)",
    trains=True,
    needs_variances=True,
    threshold=THRESHOLD,
    interval="what it was an epoch before",
    uses=("cap", "steps", "epochs"),
)
def ib(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Binary search of H(z) − I(x, x̂) ≤ −0.01 over 1 … 200 latents (IB, bonheme2023 Algorithm 7).

    H and I are each cut to two decimals before they are subtracted, as in :mod:`polariscope.sizing.methods.fondue_ib`.
    The original (boquet2021) trains every model to convergence; here, as in bonheme2023, for the same
    epochs as FONDUE. The threshold is this method's own.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return search(candidates, goal, information_of, binary=True, threshold=THRESHOLD)
