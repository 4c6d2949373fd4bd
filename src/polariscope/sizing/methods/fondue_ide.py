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
    interval="what it was an epoch before",
    uses=("n_init", "cap", "steps", "epochs"),
)
def fondue_ide(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Where the sampled representation's intrinsic dimension exceeds the mean's (FONDUE_IDE, Algorithms 5 and 6).

    Passive latents are noise in the sampled representation and nearly constant in the mean, so the gap counts
    roughly the latents that are not active (bonheme2023 Figs 8.9–8.10). MLE with k = 20; no theory says which
    threshold is right, 1 is the published one.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return search(candidates, goal, gap_of)


def gap_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """Intrinsic dimension of the sampled representation minus that of the mean."""
    return dimension_gap(candidates.representation(n_latents, steps))
