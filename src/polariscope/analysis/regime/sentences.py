"""Sentences about a diagnosis that terminal and pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polariscope.analysis.regime.latent_types import CONFIDENT, NEARBY
from polariscope.analysis.regime.note import name_latents
from polariscope.core.text import number

if TYPE_CHECKING:
    from polariscope.analysis.regime.regime import Latent, Positions, Regime


def alphas(latent: Latent) -> str:
    """Return the range of α in which the type of a latent is the same, such as "0.035–0.5"."""
    return "–".join(f"{round(end, 3):g}" for end in latent.alpha_range)


def stability(regime: Regime) -> str:
    """Describe the certainty of the types, over resamples of the data and over the choice of α.

    Resamples at one α do not show the effect of another α, so both are always reported.
    """
    unsure = [latent.index for latent in regime.latents if latent.confidence < CONFIDENT]
    near = f"if α changes by up to {NEARBY:.0%}"
    count, of = len(regime.fragile), f"{regime.n_latents} types"
    if unsure:
        types, are = ("The types", "are") if len(unsure) > 1 else ("The type", "is")
        first = f"{types} of {name_latents(unsure)} {are} uncertain: the confidence is below {CONFIDENT:.0%}."
        last = f"{count or 'None'} of {of} change{'s' if count < 2 else ''} {near}."
        return f"{first} {last}" if regime.n_latents > 1 else first
    same = f"is the same in at least {CONFIDENT:.0%} of {regime.n_bootstrap} bootstrap resamples"
    first = f"Every type {same}"
    if not count:
        return f"{first}, and {near}."
    if regime.n_latents == 1:
        return f"The type {same}, but not {near}."
    return f"{first}, but {count} of {of} change{'s' if count == 1 else ''} {near}."


def about_positions(positions: Positions) -> str:
    """Describe the dependence between the positions of a channel, and its consequence for the number of values."""
    low, high = (f"{round(end):,}" for end in (min(positions.n_effective), max(positions.n_effective)))
    rho = sorted({number(end, 2) for end in (min(positions.correlation), max(positions.correlation))})
    values = low if low == high else f"{low} to {high}"
    return (
        f"Means of a channel at different positions of an observation are correlated (ρ = {' to '.join(rho)}), so a "
        f"channel has {values} independent values (n_eff). All intervals resample observations. Dependence between "
        "channels is that at the same position."
    )


REDUNDANT = 0.5
"""Minimum R² of a mean that counts as mostly redundant with others."""


def about_passive_means(regime: Regime) -> str:
    """Describe the variation and linear redundancy of the means of passive latents; empty if there are none.

    The means vary little, but not at random: they usually repeat information from the other latents.
    """
    passive = [latent for latent in regime.latents if latent.type == "passive"]
    if not passive:
        return ""
    spread = max(latent.std_of_mean for latent in passive)
    little = "vary little" if spread**2 < regime.alpha else "vary, although their variance is the prior's"
    first = f"Means of passive latents {little} (std μ at most {number(spread)})"
    shares = [latent.redundancy for latent in passive if latent.redundancy is not None]
    if len(shares) < len(passive) or regime.counts["passive"] == regime.n_latents:
        return f"{first}."
    redundant = sum(share >= REDUNDANT for share in shares)
    span = f"R² {min(shares):.2f}" + ("" if len(shares) == 1 else f" to {max(shares):.2f}")
    if redundant == len(shares):
        word = "redundant: they can be predicted linearly from the other latents"
    elif redundant:
        word = (
            f"partly redundant: {redundant} of {len(shares)} can be predicted linearly from the other latents"
        )
    else:
        word = "not linear functions of the other latents, which explain less than half of their variance"
    return f"{first} and are {word} ({span})."
