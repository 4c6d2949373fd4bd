"""FONDUE with the information bottleneck's statistic."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.published import information_of, search
from polariscope.sizing.result import SeedResult

THRESHOLD = -0.01


@method(
    "fondue-ib",
    statistic="H(z) − I(x, x̂)",
    trains=True,
    needs_variances=True,
    threshold=THRESHOLD,
    interval="from the answer with one epoch fewer to the final answer",
    uses=("n_init", "cap", "steps", "epochs"),
)
def fondue_ib(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Find where the entropy of the codes reaches the mutual information of input and reconstruction (FONDUE_IB).

    bonheme2023 Algorithms 3 and 4: H(z) − I(x, x̂) ≤ −0.01 with Rényi entropies of order 2. H and I are each truncated
    to two decimals before they are subtracted (§8.4.2). The threshold is fixed; ``goal.threshold`` is not used.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return search(candidates, goal, information_of, threshold=THRESHOLD)
