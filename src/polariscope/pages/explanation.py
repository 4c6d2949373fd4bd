"""Text about the verdict of a report: headline, explanation, and meanings of the types of latents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from polariscope.analysis.code_view import in_units
from polariscope.analysis.regime.regime import Regime, name_latents
from polariscope.core.text import capitalised, percent, readable

if TYPE_CHECKING:
    from polariscope.sizing.result import Size


KINDS_OF_MIXED = {
    "switching": "active for some inputs and passive for others",
    "intermediate": "intermediate variance for most inputs",
    "wide": "larger variance than the prior",
}


FAINT = 0.01
"""Share of the KL below which a latent carries almost no information, regardless of its type."""


def meanings(regime: Regime) -> dict[str, str]:
    """Return the meaning of each type, with the number of mixed latents of each kind."""
    kinds = regime.kinds_of_mixed
    listed = "; ".join(f"{count} {kind}: {KINDS_OF_MIXED[kind]}" for kind, count in kinds.items())
    return {
        "active": "encoded almost exactly for every input: posterior variance near 0",
        "mixed": f"neither active nor passive. {listed}" if kinds else "neither active nor passive",
        "passive": regime.passive_in_words,
    }


def headline(regime: Regime) -> str:
    """Return the verdict in a few words: "5 of 10 latents in use, converged".

    :param regime: the diagnosis.
    """
    return regime.verdict.short


def explanation(regime: Regime, has_rate: bool = True, size: Size | None = None) -> str:
    """Return the verdict and its consequences for the model, in a few sentences.

    :param regime: the diagnosis.
    :param has_rate: (default True) if True, posteriors have a KL to the prior.
    :param size: (default None) the answer of a search for the number of latents.
    """
    verdict = regime.verdict
    if not has_rate:
        return (
            f"{verdict} The encoder is deterministic: it returns a point for each observation, without variance or KL, "
            f"so types of {regime.unit}s do not apply and every {regime.unit} counts as active. "
            f"{capitalised(regime.unit)}s are sorted by std μ."
        )
    if not verdict.n_in_use:
        return str(verdict)
    top = verdict.in_use[:3]
    named = name_latents(top)
    carried = f"{capitalised(named)} carr{'ies' if len(top) == 1 else 'y'} "
    if 0 < regime.kl < math.inf:
        share = sum(regime.latents[j].kl for j in top) / regime.kl
        carried += f"{percent(share)} of the {readable(regime.kl)} nats of KL to the prior."
    else:
        carried += "most of the information about an observation."
    room = _room(regime, size) if verdict.allows_advice and verdict.n_in_use == regime.n_latents > 1 else ""
    return in_units(" ".join(part for part in (str(verdict), carried, room) if part), regime.unit)


def _room(regime: Regime, size: Size | None) -> str:
    """Return one sentence on whether a model that uses all its latents needs more, from the best evidence.

    Different kinds of evidence can contradict each other, so only one is used: a search for the number of latents, then
    the number of known factors, then the latents themselves.
    """
    n = regime.n_latents
    if size is not None and size.target == "latents" and size.value is not None:
        if size.interval is not None and size.interval[0] <= n <= size.interval[1]:
            return f"The search for the number of latents agrees: {size.answer}."
        difference = "more" if size.value > n else "fewer"
        return f"The search for the number of latents gave {size.answer}, {difference} than this model has."
    if regime.has_note("too-few-latents"):
        return "There are more factors than latents, so a model with more latents might use them."
    if regime.has_note("over-pruned"):
        return (
            "Some of them hardly differ from the prior: lower the weight of the rate before adding latents."
        )
    if regime.has_note("still-learning"):
        return "The loss was still decreasing when training ended: train longer before changing their number."
    faint = [j for j in regime.order if 0 < regime.kl < math.inf and regime.latents[j].kl < FAINT * regime.kl]
    if not faint:
        return "No latent is unused, so a model with more latents might use them."
    named = name_latents(faint)
    return (
        f"{capitalised(named)} carr{'ies' if len(faint) == 1 else 'y'} almost no information, so more "
        "latents are unlikely to help."
    )
