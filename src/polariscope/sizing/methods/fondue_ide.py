"""FONDUE with intrinsic dimensions."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.published import search
from polariscope.sizing.result import SeedResult
from polariscope.sizing.surplus import dimension_gap


@method(
    "fondue-ide",
    statistic="ID[z] − ID[μ]",
    trains=True,
    needs_variances=True,
    threshold="goal",
    interval="from the answer with one epoch fewer to the final answer",
    uses=("n_init", "cap", "steps", "epochs"),
)
def fondue_ide(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Find where the intrinsic dimension of the sampled representation exceeds the mean's (FONDUE_IDE).

    bonheme2023 Algorithms 5 and 6. Passive latents are noise in the sampled representation and nearly constant in the
    mean, so the gap is roughly the number of latents that are not active (Figs 8.9–8.10). Dimensions are estimated by
    maximum likelihood with k = 20. The published threshold is 1; there is no theory behind it.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return search(candidates, goal, gap_of)


def gap_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """Return the intrinsic dimension of the sampled representation minus that of the mean."""
    return dimension_gap(candidates.representation(n_latents, steps))
