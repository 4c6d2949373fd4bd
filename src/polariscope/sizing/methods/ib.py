"""Binary search with the statistic of the information bottleneck."""

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
    interval="from the answer with one epoch fewer to the final answer",
    uses=("cap", "steps", "epochs"),
)
def ib(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Search for H(z) − I(x, x̂) ≤ −0.01 by bisection over 1 … 200 latents (IB, bonheme2023 Algorithm 7).

    H and I are each truncated to two decimals before they are subtracted, as in
    :mod:`polariscope.sizing.methods.fondue_ib`. The original (boquet2021) trains every model to convergence; here, as
    in bonheme2023, models train for the same number of epochs as in FONDUE. The threshold is fixed.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return search(candidates, goal, information_of, binary=True, threshold=THRESHOLD)
